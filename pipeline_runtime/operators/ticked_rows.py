"""Rows of an answer of HTTP that a user has ticked, or fields of them, as parameters of HTTP poll. Pure.

They lie at the path that was asked for, a #, which no path of HTTP has, and a JSON array: where the array of
rows lies in the answer, and where the field lies in a row. Both are empty texts for the whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pipeline_runtime.model.connectors import Found, FoundPart
from pipeline_runtime.operators.ticked import entries, fields


class RowsPlace(NamedTuple):
    """Rows of an answer, or a field of them."""

    path: str
    rows: str
    field: str = ""

    @property
    def text(self) -> str:
        return f"{self.path}#{json.dumps([self.rows, self.field], ensure_ascii=False)}"


def rows_at(text: str) -> RowsPlace | None:
    """Returns what lies there, or None if it is only a path to ask for."""
    path, hash_, place = text.partition("#")
    try:
        rows, field = json.loads(place) if hash_ else (None, None)
    except (ValueError, TypeError, RecursionError):
        return None
    return RowsPlace(path, rows, field) if isinstance(rows, str) and isinstance(field, str) else None


def rows(params: Mapping[str, Any], ticked: Sequence[Found]) -> dict[str, Any]:
    """Returns the parameters of HTTP poll. Raises ValueError if fields of other rows are ticked or read,
    too."""
    places = [(place, each) for each in ticked if (place := rows_at(each.path)) is not None]
    if len(places) < len(ticked):
        raise ValueError("tick an array of rows, or fields of its rows")
    first = places[0][0]
    if any((place.path, place.rows) != (first.path, first.rows) for place, _ in places):
        raise ValueError("an element takes the rows of one array, and more than one are ticked")
    columns = entries(params, "columns", "name")
    if columns and (params.get("rows") or "") != first.rows:
        raise ValueError("the element takes other rows already; empty its columns first")
    known = {str(each.get("from") or each["name"]) for each in columns}
    parts = [
        each.model_copy(update={"parts": (FoundPart(name=place.field, type=each.holds),)})
        if place.field
        else each
        for place, each in places
    ]
    return {
        **params,
        "path": first.path,
        "rows": first.rows or None,
        "columns": fields(columns, parts, known),
    }
