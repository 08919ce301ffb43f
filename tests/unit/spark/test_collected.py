"""A group's collected rows on their way into its sinks and into what is behind its state."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_runtime.batch.facts import GroupFacts
from pipeline_runtime.model.document import parse_document
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.planning.plan import plan_groups
from pipeline_runtime.spark.planned import PlannedGroup
from pipeline_runtime.spark.tagged import output_of

GENERATOR = {"id": "gen", "type": "generator", "params": {"signals": [{"name": "value"}]}}
WINDOWS = {
    "id": "work",
    "type": "window-aggregate",
    "inputs": {"in": "gen"},
    "params": {"size_s": 1, "aggregates": [{"function": "avg", "column": "value", "as": "average"}]},
}
BEHIND = {
    "id": "keep",
    "type": "filter",
    "inputs": {"in": "work"},
    "params": {"condition": "average > 0"},
}
FILE = {"id": "file", "type": "csv-sink", "inputs": {"in": "work"}}
# As Spark writes numbers that JSON has no form for.
VALUES = ['{"average":1.0}', '{"average":"NaN"}', '{"average":2.0}', '{"average":"Infinity"}']


class Session:
    """In place of Spark's: keeps what it was to make a frame of."""

    def __init__(self) -> None:
        self.tables: list[pa.Table] = []

    def createDataFrame(self, table: pa.Table) -> pa.Table:
        self.tables.append(table)
        return table


class Nothing:
    """In place of the frame of the elements behind: no rows come of it."""

    def __init__(self, like: pa.Table) -> None:
        self.like = like

    def toArrow(self) -> pa.Table:
        return self.like.slice(0, 0)


def group() -> GroupFacts:
    document = parse_document(
        {
            "apiVersion": "fogline/v1",
            "kind": "Pipeline",
            "metadata": {"name": "collected"},
            "spec": {
                "elements": [GENERATOR, WINDOWS, BEHIND, FILE],
                "groups": [{"id": "g", "elements": ["work", "keep", "file"]}],
            },
        }
    )
    return GroupFacts(plan_groups(document, "d1", default_registry(), {})[-1], {}, Path("/nowhere"))


def collected(values: list[str]) -> pa.Table:
    others = [("work.dead", '{"reason": "r"}')]
    rows = [("work.out", value) for value in values] + others
    return pa.table(
        {
            "_out": [source for source, _ in rows],
            "_key": [f"k{number}" for number in range(len(rows))],
            "_time_ms": pa.array([number * 1000 for number in range(len(rows))], pa.int64()),
            "_value": [value for _, value in rows],
        }
    )


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def test_a_sink_is_given_the_readable_rows_with_their_own_times() -> None:
    rows = output_of(collected(VALUES), group().spec).sinks["work.out"]
    assert rows["average"].to_pylist() == [1.0, 2.0]
    assert rows["_time"].to_pylist() == [at(0), at(2)]


@pytest.mark.parametrize("values", [[], VALUES[1:2]])
def test_a_sink_is_given_no_rows_when_none_can_be_read(values: list[str]) -> None:
    rows = output_of(collected(values), group().spec).sinks["work.out"]
    assert rows.num_rows == 0
    assert "_time" in rows.column_names


def test_elements_behind_state_are_given_the_readable_rows_with_their_own_keys_and_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planned, session, table = PlannedGroup(group()), Session(), collected(VALUES)
    monkeypatch.setattr(planned, "_tagged", lambda streams, elements: Nothing(table))

    assert planned.completed(session, table, 9000).equals(table)  # type: ignore[arg-type]

    [given] = session.tables
    columns: dict[str, Any] = given.to_pydict()
    assert columns["average"] == [1.0, 2.0]
    assert columns["_key"] == ["k0", "k2"]
    assert columns["_time"] == [at(0), at(2)]
    assert columns["_batch_time"] == [at(9), at(9)]
    assert columns["_offset"] == [0, 1]


def test_elements_behind_state_are_not_run_when_no_row_can_be_read() -> None:
    session, table = Session(), collected(VALUES[1:2])
    assert PlannedGroup(group()).completed(session, table, 9000) is table  # type: ignore[arg-type]
    assert session.tables == []
