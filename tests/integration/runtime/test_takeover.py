"""Another replica takes over from a copy of the state that is older than the journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.transactions import Transactions
from pipeline_runtime.model.desired import ClaimOrder, Role
from pipeline_runtime.model.ids import Epoch
from tests.directing import tell
from tests.integration.runtime.copying import copy_state
from tests.integration.runtime.documents import sums
from tests.integration.runtime.engine import Element, Node, owning, wait_for_status
from tests.integration.runtime.summing import WINDOWS, SummingGroup

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("stateful", [sums(), WINDOWS], ids=["coalesced", "exact"])
def test_a_standby_from_an_older_copy_follows_without_emitting_and_then_owns(
    kafka: str, node: Node, other_node: Node, tmp_path: Path, stateful: Element
) -> None:
    group = SummingGroup(kafka, stateful)
    spec, deployed = group.spec, group.deployed
    old = group.begin(node)
    copied = copy_state(spec, node, other_node, tmp_path)
    behind = copied + 5
    wait_for_status(old, lambda status: status.seq >= behind, f"to reach seq {behind}")

    # It follows the journal to its end, and beyond, and emits nothing.
    new = other_node.start(spec)
    wait_for_status(new, lambda status: status.seq >= behind, "to follow")
    ahead = old.status().seq
    wait_for_status(new, lambda status: status.seq >= ahead, "to catch up")
    assert new.status().role is Role.STANDBY
    assert {commit.node for commit in deployed.commits("all")} == {"a"}

    tell(new, order=ClaimOrder(id="takeover", over=Epoch(1)))
    assert owning(new).epoch == 2
    status = wait_for_status(old, lambda status: status.role is Role.STOPPED, "to give way")
    assert status.phase == "fenced"
    assert status.error is not None
    assert "another" in status.error.message

    group.finish(other_node)
    assert {commit.node for commit in deployed.commits("all") if commit.epoch == 2} == {"b"}


def test_an_owner_that_is_fenced_while_nobody_else_was_granted_goes_on(kafka: str, node: Node) -> None:
    """A claimant that died before its CLAIM, or a broker that has ended a transaction."""
    group = SummingGroup(kafka, sums())
    owner = group.begin(node)
    Transactions(KafkaSettings(kafka), group.spec.transactional_id(Epoch(1))).initialise()
    wait_for_status(owner, lambda status: status.role is Role.OWNER and status.epoch == 2, "to own again")
    group.finish(node)
