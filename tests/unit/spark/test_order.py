"""Tests the order of the rows that a group puts out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_runtime.batch.facts import GroupFacts
from pipeline_runtime.model.document import parse_document
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.planning.plan import plan_groups
from pipeline_runtime.spark.planned import PlannedGroup

GENERATOR = {"id": "gen", "type": "generator", "params": {"signals": [{"name": "value"}]}}
STATISTICS = {
    "id": "work",
    "type": "running-statistics",
    "params": {"column": "value"},
    "inputs": {"in": "gen"},
}


def test_event_by_event_results_keep_their_order() -> None:
    document = {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "order"},
        "spec": {"elements": [GENERATOR, STATISTICS]},
    }
    spec = plan_groups(parse_document(document), "d1", default_registry(), {})[-1]
    rows = pa.table({"_out": ["work.out"] * 2, "_key": ["k"] * 2, "_time_ms": [3, 1], "_value": ["0", "1"]})

    session: Any = None
    assert PlannedGroup(GroupFacts(spec, {}, Path("/nowhere"))).completed(session, rows, 0) is rows
