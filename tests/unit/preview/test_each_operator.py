"""For each operator, a preview shows what the operator's own trial gives: the code that nodes run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
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
from tests.unit.preview.previewing import (
    GENERATOR,
    NOW_MS,
    TOPIC,
    draft,
    previewed,
    rows,
)

_AVERAGE = [{"function": "avg", "column": "x", "as": "average"}]
CASES: dict[str, dict[str, Any]] = {
    "filter": {"condition": "x > 10"},
    "derive": {"columns": [{"name": "ratio", "expression": "100 / n"}]},
    "select": {"columns": [{"column": "x", "as": "power"}]},
    "model": {
        "path": "demo:beats",
        "inputs": [{"columns": ["x", "x", "x"]}],
        "outputs": [{"name": "beat", "output": "label"}],
    },
    "window-aggregate": {"size_s": 3, "aggregates": _AVERAGE},
    "keyed-aggregate": {"keys": ["k"], "aggregates": [{"function": "count", "as": "events"}]},
    "count-window-aggregate": {"size": 4, "aggregates": _AVERAGE},
    "running-statistics": {"column": "x", "every_s": 5},
    "edge-detection": {"columns": ["flag"], "edges": "rising"},
    "time-between": {"column": "k", "first": "a", "second": "b", "within_s": 10},
    "difference": {"column": "x", "gives": "derivative", "name": "per_second"},
    "last-values": {"column": "x", "size": 4, "every": 2},
    "baseline-change": {"column": "x", "window_s": 20, "baseline": "first"},
    "trend": {"column": "x", "window_s": 20, "per": "hour"},
    "record-around": {"event": "flag", "before_s": 2, "after_s": 3},
    "record-around-events": {"event": "flag", "before_s": 2, "after_s": 3},
    "deduplicate": {"columns": ["n"], "within_s": 30},
    "frequency-filter": {"column": "x", "kind": "low-pass", "sample_rate_hz": 1, "high_cutoff_hz": 0.1},
    "peak-detection": {"column": "x", "height": 15, "distance_s": 3},
    "join": {"left_key": "k", "right_key": "k", "within_s": 5},
    "merge": {},
    "threshold-alert": {"columns": ["x"], "operator": ">", "limit": 15},
    "hysteresis-alarm": {"column": "x", "raise_at": 15, "clear_at": 5, "for_s": 0},
    "silence-alarm": {"for_s": 60},
    "kafka-out": {"topic": "results"},
}
_SHOWN_ELSEWHERE = {"csv-sink", "live-chart", "live-table"}
BEGIN = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)


def sample(count: int = 120) -> list[dict[str, Any]]:
    """Rows with gaps, repeats, a zero to divide by, and values that rise and fall."""
    return [
        {
            "_time": BEGIN + timedelta(seconds=second),
            "k": "ab"[second % 2],
            "x": None if second % 17 == 5 else float((second * 7) % 23),
            "n": second // 3 % 9,
            "flag": second % 11 == 4,
        }
        for second in range(count)
    ]


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
