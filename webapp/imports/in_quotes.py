"""Reads numbers that stand in quotes in a JSON document: "1.5"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from pipeline_runtime.model.schema import FieldType
from webapp.imports import column_types, number_marks
from webapp.imports.column_types import Cell
from webapp.imports.shapes import is_no_value, shape


@dataclass(frozen=True)
class InQuotes:
    """How the texts of a column are read as numbers."""

    type: FieldType
    decimal: Literal[".", ","]
    thousands: Literal["", ".", ",", " ", "'"]


def in_quotes_of(name: str, values: Sequence[Any]) -> InQuotes | None:
    """Returns how the texts of a column are read as numbers. All texts must be numbers, except for those that
    mean "no value". Returns None if the numbers are ids, or if a mark in them has two meanings."""
    given = [value for value in values if value is not None]
    if not all(isinstance(value, str) for value in given):
        return None
    texts = [text for text in given if not is_no_value(text)]
    if not texts or any(shape(text) != "number" for text in texts):
        return None
    marks = number_marks.decide([number_marks.shown(texts)], ";")
    if marks.doubt is not None:
        return None
    judged = column_types.judge(
        name, [Cell(None, text) for text in given], marks.decimal, marks.thousands, False
    )
    if judged.type not in (FieldType.INTEGER, FieldType.NUMBER) or judged.others or judged.asks:
        return None
    decimal, thousands = cast(Any, (marks.decimal, marks.thousands))
    return InQuotes(judged.type, decimal, thousands)
