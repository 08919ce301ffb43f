"""What Spark keeps of a state on disk, while batches go on."""

from __future__ import annotations

import pytest

from tests.integration.runtime.documents import events
from tests.integration.runtime.engine import Deployed, Node, create_topic, owning, produce, wait_for_status
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

# Each changelog names all versions since the last snapshot, in at most 64 KiB: some 990.
VERSIONS_MAX = 200


def test_a_snapshot_comes_long_before_a_changelog_could_not_name_all_since_the_last(
    kafka: str, node: Node
) -> None:
    topic = create_topic(kafka)
    params = {"left_key": "k", "right_key": "k", "within_s": 0}
    pairs = {"id": "pairs", "type": "join", "inputs": {"left": "events", "right": "events"}, "params": params}
    deployed = Deployed(kafka, [events(topic), pairs])
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
