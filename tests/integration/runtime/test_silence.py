"""An alarm that nothing comes is raised although nothing comes, once, whoever owns by then."""

from __future__ import annotations

import pytest

from pipeline_runtime.model.desired import ClaimOrder
from pipeline_runtime.model.ids import Epoch
from tests.directing import tell
from tests.integration.runtime.documents import events
from tests.integration.runtime.engine import Deployed, Node, create_topic, owning, produce, wait_for_status
from tests.waiting import wait_until

pytestmark = pytest.mark.integration


def test_silence_is_told_once_also_by_another_owner_and_to_a_follower(
    kafka: str, node: Node, other_node: Node
) -> None:
    topic = create_topic(kafka)
    alarm = {"id": "alarm", "type": "silence-alarm", "inputs": {"in": "events"}, "params": {"for_s": 2}}
    deployed = Deployed(kafka, [events(topic), alarm], {"all": ["events", "alarm"]})
    spec = deployed.specs["all"]

    def told() -> list[str]:
        return [record["alarm"] for record in deployed.records("alarm")]

    replica = node.own(spec)
    owning(replica)
    follower = other_node.start(spec)
    produce(kafka, topic, [{"k": "a", "v": 1}])
    wait_until(lambda: told() == ["raised"] or None, "the alarm")
    produce(kafka, topic, [{"k": "a", "v": 2}])
    wait_until(lambda: told() == ["raised", "cleared"] or None, "the end of the alarm")
    wait_until(lambda: told() == ["raised", "cleared", "raised"] or None, "the next alarm")
    seq = replica.status().seq
    replica.stop(60)
    wait_for_status(follower, lambda status: status.seq >= seq, "to follow")
    tell(follower, order=ClaimOrder(id="next", over=Epoch(1)))
    wait_until(lambda: len(deployed.commits("all")) > seq + 3, "some batches of the next owner")
    assert told() == ["raised", "cleared", "raised"], "the alarm is still on"
    produce(kafka, topic, [{"k": "a", "v": 3}])
    wait_until(lambda: len(told()) == 4, "the end of the alarm")
    assert told()[3] == "cleared"
    assert follower.status().error is None
    deployed.assert_journal_lawful("all")
