"""An order to own is carried out once, and only while it is not out of date."""

from __future__ import annotations

import pytest

from pipeline_runtime.journal.records import Retire
from pipeline_runtime.model.desired import ClaimOrder, Role
from pipeline_runtime.model.ids import Epoch
from tests.directing import tell
from tests.integration.runtime.documents import events
from tests.integration.runtime.engine import (
    STOP_S,
    Deployed,
    Node,
    create_topic,
    owning,
    produce,
    wait_for_status,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.integration


def test_late_repeated_and_posthumous_orders_change_nothing(kafka: str, node: Node, other_node: Node) -> None:
    topic = create_topic(kafka)
    deployed = Deployed(kafka, [events(topic)])
    spec = deployed.specs["events"]
    replica = node.own(spec, order="first")
    owning(replica)
    produce(kafka, topic, [{"k": "a", "v": 1}])
    wait_until(lambda: len(deployed.records("events")) == 1, "the first row")

    # The same order again.
    tell(replica, order=ClaimOrder(id="first", over=Epoch(0)))
    produce(kafka, topic, [{"k": "a", "v": 2}])
    wait_until(lambda: len(deployed.records("events")) == 2, "the second row")
    assert [claim.epoch for claim in deployed.claims("events")] == [1]

    # A late one, elsewhere: over an epoch that is not the newest.
    before = deployed.journal("events")
    late = other_node.own(spec, over=0, order="late")
    status = wait_for_status(late, lambda status: status.order_refused is not None, "to be refused")
    assert (status.role, status.phase) == (Role.STANDBY, "following")
    assert status.order_id == "late"
    assert status.order_refused == "the order takes over epoch 0, but the journal grants 1"
    assert deployed.journal("events") == before
    produce(kafka, topic, [{"k": "a", "v": 3}])
    wait_until(lambda: len(deployed.records("events")) == 3, "the third row")
    assert replica.status().role is Role.OWNER

    # After its end nobody claims, by whatever order.
    tell(replica, retire=True)
    status = wait_for_status(replica, lambda status: status.role is Role.STOPPED, "to retire")
    assert (status.phase, status.retired) == ("retired", True)
    replica.stop(STOP_S)  # it ends its query, whose name the next one has, too
    ended = deployed.journal("events")
    assert isinstance(ended[-1], Retire)
    posthumous = node.own(spec, over=1, order="posthumous")
    status = wait_for_status(posthumous, lambda status: status.role is Role.STOPPED, "to be refused")
    assert status.phase == "refused"
    assert status.order_refused is not None
    assert "undeployed" in status.order_refused
    assert deployed.journal("events") == ended
    assert [row["v"] for row in deployed.records("events")] == [1, 2, 3]


def test_an_idle_owner_hears_that_it_was_replaced(kafka: str, node: Node, other_node: Node) -> None:
    topic = create_topic(kafka)
    deployed = Deployed(kafka, [events(topic)])
    spec = deployed.specs["events"]
    old = node.own(spec)
    owning(old)
    new = other_node.own(spec, over=1)
    assert owning(new).epoch == 2
    status = wait_for_status(old, lambda status: status.role is Role.STOPPED, "to give way")
    assert status.phase == "fenced"
    assert status.error is not None
    assert "epoch 1 was fenced: another replica took over" in status.error.message
    produce(kafka, topic, [{"k": "a", "v": 1}])
    wait_until(lambda: len(deployed.records("events")) == 1, "the row")
    assert {commit.node for commit in deployed.commits("events")} == {"b"}
