"""For each operator, a preview shows what the operator's own trial gives: the code that nodes run."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from pipeline_runtime.model.preview import SHOWN_MAX, SampleRow
from pipeline_runtime.operators.connected import ConnectedOperator
from pipeline_runtime.operators.expressions.casts import text_of
from pipeline_runtime.operators.registry import built_in, default_registry
from pipeline_runtime.operators.sdk import SourceOperator
from pipeline_runtime.planning.path import path_document
from pipeline_runtime.planning.validation import validate
from pipeline_runtime.trial import trial
from pipeline_runtime.trial_io import trial_source
from tests.unit.preview.cases import CASES, sample
from tests.unit.preview.previewing import (
    GENERATOR,
    NOW_MS,
    TOPIC,
    draft,
    previewed,
    rows,
)

_SHOWN_ELSEWHERE = {"csv-sink", "live-chart", "live-table"}


def given(found: list[dict[str, Any]]) -> tuple[SampleRow, ...]:
    return tuple(
        SampleRow(
            time_ms=int(row["_time"].timestamp() * 1000),
            values={name: value for name, value in row.items() if name != "_time"},
        )
        for row in found
    )


def told(value: Any) -> Any:
    """A value of a trial as a record tells it."""
    return text_of(value) if isinstance(value, datetime) else value


@pytest.mark.parametrize("type_", CASES)
def test_a_preview_shows_what_the_deployed_element_gives(type_: str) -> None:
    operator = default_registry().get(type_)
    ports = [port.name for port in operator.inputs][:2]
    other = {**TOPIC, "id": "other"}
    inputs = dict(zip(ports, ["in", "other"], strict=False))
    document = draft(TOPIC, other, {"id": "e", "type": type_, "params": CASES[type_], "inputs": inputs})
    found, more = sample(), [row for row in sample() if row["n"] != 4]
    answer = previewed(document, "e", given={"in.out": given(found), "other.out": given(more)})

    schemas = validate(path_document(document, "e"), default_registry()).schemas
    expected = trial(
        default_registry().create(type_, CASES[type_]),
        found,
        schemas["in.out"],
        others={ports[1]: (more, schemas["in.out"])} if len(ports) > 1 else None,
    )
    assert rows(answer) == [
        {name: told(value) for name, value in row.items() if name != "_time"}
        for row in expected.rows[:SHOWN_MAX]
    ]
    assert answer.output is not None
    assert [row.time_ms for row in answer.output.rows] == [
        int(row["_time"].timestamp() * 1000) for row in expected.rows[:SHOWN_MAX]
    ]
    assert answer.output.count == len(expected.rows)
    assert [letter.reason for letter in answer.letters] == expected.rejected[:SHOWN_MAX]
    assert answer.whole
    assert answer.inputs[ports[0]].count == len(found)
    assert expected.rows or type_ == "silence-alarm", "the case shows nothing"


@pytest.mark.parametrize("type_", sorted(_SHOWN_ELSEWHERE))
def test_a_sink_and_a_view_show_what_comes_to_them(type_: str) -> None:
    params = {"csv-sink": {"file": "a.csv"}, "live-chart": {"columns": ["x"]}, "live-table": {}}[type_]
    document = draft(TOPIC, {"id": "e", "type": type_, "params": params, "inputs": {"in": "in"}})
    answer = previewed(document, "e", given={"in.out": given(sample())})
    assert (answer.refused, answer.output) == (None, None)
    assert answer.inputs["in"].count == 120
    first = answer.inputs["in"].rows[0]
    assert dict(zip(answer.inputs["in"].columns, first.values, strict=True)) == {
        "k": "a",
        "x": 0.0,
        "n": 0,
        "flag": False,
    }


@pytest.mark.parametrize(
    "source",
    [
        GENERATOR,
        {**GENERATOR, "params": {**GENERATOR["params"], "catch_up": False}},
        {"id": "in", "type": "csv-replay", "params": {"path": "demo:wind-turbine", "rate": 5}},
        {"id": "in", "type": "csv-replay", "params": {"path": "demo:ecg", "rate": 0.01, "catch_up": False}},
    ],
)
def test_a_source_shows_its_first_rows(source: dict[str, Any]) -> None:
    answer = previewed(draft(source), "in")
    operator = default_registry().create(source["type"], source["params"])
    assert isinstance(operator, SourceOperator)
    expected = trial_source(operator, rows_max=SHOWN_MAX)
    assert rows(answer) == [
        {name: told(value) for name, value in row.items() if name != "_time"} for row in expected.rows
    ]
    assert answer.output is not None
    assert answer.output.rows[0].time_ms == NOW_MS


def test_no_operator_is_left_out() -> None:
    # Connectors are tested against real servers, in tests/contract/connectors.
    elsewhere = (SourceOperator, ConnectedOperator)
    sources = {type_ for type_, each in built_in().items() if issubclass(each, elsewhere)}
    assert CASES.keys() | _SHOWN_ELSEWHERE | sources | {"kafka-in"} == built_in().keys()
