"""Which groups' tasks stay, and what comes of a source's rows there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.planning.plan import plan_groups
from pipeline_runtime.spark.decode import TIMESTAMP
from pipeline_runtime.spark.frame import GroupFrame
from pipeline_runtime.spark.gate_client import Slice
from pipeline_runtime.spark.resident import run_batches, unpacked, work_of
from pipeline_runtime.spark.slices import GroupReader

COLUMNS = [{"name": "k"}, {"name": "n", "type": "integer"}, {"name": "x", "type": "number"}]
TOPIC = {
    "id": "in",
    "type": "kafka-in",
    "params": {"topic": "t", "columns": COLUMNS, "key": "k", "partitions": 4},
}
GENERATOR = {"id": "in", "type": "generator", "params": {"signals": [{"name": "x"}]}}
STATISTICS = {"id": "work", "type": "running-statistics", "inputs": {"in": "in"}, "params": {"column": "x"}}
FILE = {"id": "file", "type": "csv-sink", "inputs": {"in": "in"}, "params": {"file": "out.csv"}}
FILTER = {"id": "some", "type": "filter", "inputs": {"in": "in"}, "params": {"condition": "x > 0"}}
BEHIND = {**FILTER, "inputs": {"in": "work"}, "params": {"condition": "mean > 0"}}
WINDOWS = {
    "id": "work",
    "type": "window-aggregate",
    "inputs": {"in": "in"},
    "params": {"size_s": 1, "aggregates": [{"function": "avg", "column": "x", "as": "average"}]},
}


PAIRS = {
    "id": "work",
    "type": "join",
    "inputs": {"left": "in", "right": "in"},
    "params": {"left_key": "k", "right_key": "k", "within_s": 1},
}


def spec_of(*elements: dict[str, Any], together: bool = True) -> GroupSpec:
    groups = [{"id": "all", "elements": [element["id"] for element in elements]}] if together else []
    document = parse_document(
        {
            "apiVersion": "fogline/v1",
            "kind": "Pipeline",
            "metadata": {"name": "staying"},
            "spec": {"elements": list(elements), "groups": groups},
        }
    )
    return plan_groups(document, "d1", default_registry(), {})[-1]


def keyed_by(column: str) -> dict[str, Any]:
    return {**STATISTICS, "params": {"column": "x", "key": column}}


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        ([GENERATOR], "in"),
        ([GENERATOR, FILE], "in"),
        ([GENERATOR, FILTER], None),
        ([TOPIC], None),
        ([TOPIC, STATISTICS], "work"),
        ([GENERATOR, STATISTICS], "work"),
        (
            [TOPIC, STATISTICS, {**FILTER, "inputs": {"in": "work"}, "params": {"condition": "mean > 0"}}],
            "work",
        ),
        ([TOPIC, STATISTICS, FILTER], None),
        ([TOPIC, FILTER, {**STATISTICS, "inputs": {"in": "some"}}], None),
        ([TOPIC, STATISTICS, FILE], None),
        ([TOPIC, keyed_by("n")], "work"),
        ([TOPIC, keyed_by("x")], None),
        ([TOPIC, WINDOWS], "work"),
        ([TOPIC, FILTER, {**WINDOWS, "inputs": {"in": "some"}}], None),
        ([TOPIC, PAIRS], None),
    ],
)
def test_the_task_stays_of_a_processor_or_a_source_that_stands_alone(
    elements: list[dict[str, Any]], expected: str | None
) -> None:
    assert GroupFrame(spec_of(*elements), {}, Path()).resident == expected


@pytest.mark.parametrize(
    ("elements", "expected"),
    [([TOPIC, STATISTICS], 4), ([TOPIC, keyed_by("k")], 4), ([TOPIC, keyed_by("n")], 1), ([GENERATOR], 1)],
)
def test_partitions_are_shared_where_they_are_written_by_the_key_that_is_grouped_by(
    elements: list[dict[str, Any]], expected: int
) -> None:
    assert GroupFrame(spec_of(*elements), {}, Path()).tasks_max == expected


class Gate:
    """Grants one batch, and takes what comes of it."""

    def __init__(self, spec: GroupSpec, directory: Path) -> None:
        self._hello = {
            "spec": spec.model_dump(mode="json"),
            "kafka": {"bootstrap": "localhost:0", "security": {}},
            "files": {},
            "directory": str(directory),
        }
        self._granted: list[Any] = [[Slice(0, 1, 0, 0, 3).__dict__], None]
        self.made: list[pa.Table] = []
        self.read: list[dict[str, Any]] = []

    def ask(self, op: str, **arguments: Any) -> Any:
        match op:
            case "hello":
                return self._hello
            case "rows":
                return self._granted.pop(0)
            case "done":
                self.made.append(unpacked(bytes(arguments["payload"])))
            case "read":
                self.read.append(arguments)
        return None


class Three:
    """A source of three rows, one of which has a number that JSON does not have."""

    def read(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        times = [datetime(2024, 1, 1, 0, 0, second, 1500, tzinfo=UTC) for second in range(start, end)]
        yield pa.record_batch(
            {
                "key": ["a", "b", "a"],
                "n": [1, 2, 3],
                "x": [1.5, float("inf"), None],
                "_time": pa.array(times, TIMESTAMP),
                "_offset": pa.array(range(start, end), pa.int64()),
            }
        )


def test_a_sources_rows_leave_as_they_are_and_what_json_cannot_say_is_a_dead_letter(tmp_path: Path) -> None:
    gate: Any = Gate(spec_of(GENERATOR), tmp_path)
    reader = GroupReader(gate)
    sources: Any = {"in.out": Three()}
    reader._sources = sources

    run_batches(gate, work_of(gate, reader, "in"), 1, 0)

    [made] = gate.made
    rows = [(row["_out"], row["_key"], json.loads(row["_value"])) for row in made.to_pylist()]
    first, (out, key, letter), last = rows
    assert (first, last) == (
        ("in.out", "a", {"key": "a", "n": 1, "x": 1.5}),
        ("in.out", "a", {"key": "a", "n": 3, "x": None}),
    )
    assert (out, key, letter["raw"]) == ("in.dead", None, '{"key":"b","n":2,"x":Infinity}')
    assert "not JSON compliant" in letter["reason"]
    assert made["_time_ms"].to_pylist() == [1704067200001 + 1000 * n for n in range(3)]
    assert [told["rows"] for told in gate.read] == [3]
