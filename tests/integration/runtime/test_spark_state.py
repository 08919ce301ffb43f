"""A user's operator whose state Spark keeps: what is on disk while batches go on, and in which order its rows
leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_runtime.batch.facts import GroupFacts
from pipeline_runtime.model.document import parse_document
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.planning.plan import plan_groups
from pipeline_runtime.spark.planned import PlannedGroup
from tests.integration.runtime.documents import events
from tests.integration.runtime.engine import Deployed, Node, create_topic, owning, produce, wait_for_status
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

# Each changelog names all versions since the last snapshot, in at most 64 KiB: some 990.
VERSIONS_MAX = 200
PAIRS = {
    "id": "pairs",
    "type": "spark-pairs",
    "inputs": {"left": "events", "right": "events"},
    "params": {"within_s": 0},
}


@pytest.mark.full
def test_a_snapshot_comes_long_before_a_changelog_could_not_name_all_since_the_last(
    kafka: str, node: Node
) -> None:
    topic = create_topic(kafka)
    deployed = Deployed(kafka, [events(topic), PAIRS])
    replica = deployed.run(node)["pairs"]
    owning(replica)
    before = replica.status().state_bytes
    spark = node.replica_directory(deployed.specs["pairs"]) / "spark"

    def is_stored() -> bool:
        produce(kafka, topic, [{"k": "a", "v": 1}])
        return any(spark.rglob("*.zip"))

    wait_until(is_stored, "a snapshot", 120)
    assert replica.status().seq < VERSIONS_MAX
    wait_for_status(replica, lambda status: status.state_bytes > before, "to tell how much it holds")


def test_its_rows_leave_by_time_and_what_is_beside_them_as_it_came() -> None:
    document = {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "order"},
        "spec": {"elements": [events("topic"), PAIRS]},
    }
    spec = plan_groups(parse_document(document), "d1", default_registry(), {})[-1]
    group = GroupFacts(spec, {}, Path("/nowhere"))
    assert group.is_planned
    assert group.is_kept_by_spark
    rows = [("pairs.out", 3), ("events.out", 9), ("pairs.out", 1), ("events.out", 2), ("pairs.out", 3)]
    collected = pa.table(
        {
            "_out": [source for source, _ in rows],
            "_key": ["k"] * len(rows),
            "_time_ms": [time_ms for _, time_ms in rows],
            "_value": [str(number) for number in range(len(rows))],
        }
    )

    session: Any = None  # nothing stands behind it
    ordered = PlannedGroup(group).completed(session, collected, 0)

    assert ordered["_value"].to_pylist() == ["1", "3", "2", "0", "4"]
