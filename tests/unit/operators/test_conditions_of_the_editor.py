"""The editor's rows for conditions and the parser of expressions read the same texts alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.expressions.functions import NOT_REPEATABLE
from pipeline_runtime.operators.expressions.syntax import _KEYWORDS, ExpressionInvalid, columns_of, parse
from pipeline_runtime.operators.expressions.types import type_of
from tests.oracles.expressions import value_of

# vitest reads the same table: static/editor/tests/condition.test.ts
_TABLE = json.loads(
    (Path(__file__).parents[3] / "static" / "editor" / "tests" / "conditions.json").read_text()
)
_VALUES: dict[FieldType, tuple[Any, ...]] = {
    FieldType.NUMBER: (None, -2.0, -0.0015, 0.5, 1.0, 2.5, 3.0, 5.0, 101.0),
    FieldType.STRING: (None, "", "on", "it's", 'say "it\'s"', "a1", "xb", "y"),
    FieldType.BOOLEAN: (None, True, False),
    FieldType.TIMESTAMP: (
        None,
        datetime(2024, 4, 30, tzinfo=UTC),
        datetime(2024, 5, 1, tzinfo=UTC),
        datetime(2024, 5, 1, 12, 30, tzinfo=UTC),
    ),
}


@pytest.mark.parametrize(("text", "written"), [*_TABLE["shown"], *_TABLE["alike"]])
def test_what_the_rows_write_means_what_was_read(text: str, written: str) -> None:
    first, second = parse(text), parse(written)
    assert set(columns_of(first)) == set(columns_of(second))
    rows = 0
    for types in _types_that_fit(text):
        assert type_of(second, types) is FieldType.BOOLEAN
        for values in product(*(_VALUES[each] for each in types.values())):
            row = dict(zip(types, values, strict=True))
            assert value_of(first, row, types) == value_of(second, row, types), row
            rows += 1
    assert rows > 0


def _types_that_fit(text: str) -> Iterator[dict[str, FieldType]]:
    node = parse(text)
    names = columns_of(node)
    for chosen in product(_VALUES, repeat=len(names)):
        types = dict(zip(names, chosen, strict=True))
        try:
            fits = type_of(node, types) is FieldType.BOOLEAN
        except ExpressionInvalid:
            continue
        if fits:
            yield types


@pytest.mark.parametrize("text", [text for text, _ in _TABLE["text"]])
def test_what_stays_text_is_an_expression(text: str) -> None:
    parse(text)


@pytest.mark.parametrize("text", [text for text, _ in _TABLE["broken"]])
def test_what_the_rows_find_broken_is_broken(text: str) -> None:
    with pytest.raises(ExpressionInvalid):
        parse(text)


def test_each_name_that_means_something_else_is_quoted() -> None:
    assert set(_TABLE["quoted"]) == _KEYWORDS | NOT_REPEATABLE
