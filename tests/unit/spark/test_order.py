"""What leaves a group in which order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_runtime.model.document import parse_document
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.planning.plan import plan_groups
from pipeline_runtime.spark.frame import GroupFrame

GENERATOR = {"id": "gen", "type": "generator", "params": {"signals": [{"name": "value"}]}}
PAIRS = {"left_key": "key", "right_key": "key", "within_s": 1}


def frame_of(element: dict[str, Any]) -> GroupFrame:
    document = parse_document(
        {
            "apiVersion": "fogline/v1",
            "kind": "Pipeline",
            "metadata": {"name": "order"},
            "spec": {"elements": [GENERATOR, {"id": "work", **element}]},
        }
    )
    spec = plan_groups(document, "d1", default_registry(), {})[-1]
    return GroupFrame(spec, {}, Path("/nowhere"))


def collected(rows: list[tuple[str, int]]) -> pa.Table:
    return pa.table(
        {
            "_out": [source for source, _ in rows],
            "_key": ["k"] * len(rows),
            "_time_ms": [time_ms for _, time_ms in rows],
            "_value": [str(number) for number in range(len(rows))],
        }
    )


def test_pairs_leave_by_time_and_what_is_beside_them_as_it_came() -> None:
    frame = frame_of({"type": "join", "params": PAIRS, "inputs": {"left": "gen", "right": "gen"}})
    rows = collected([("work.out", 3), ("gen.out", 9), ("work.out", 1), ("gen.out", 2), ("work.out", 3)])

    ordered = frame.in_order(rows)

    assert ordered["_value"].to_pylist() == ["1", "3", "2", "0", "4"]


def test_event_by_event_results_keep_their_order() -> None:
    statistics = {"type": "running-statistics", "params": {"column": "value"}, "inputs": {"in": "gen"}}
    frame = frame_of(statistics)
    rows = collected([("work.out", 3), ("work.out", 1)])

    assert frame.in_order(rows) is rows
