"""Handovers between real processes under load, with real faults at each step of the protocol.

After every one of them: one owner, which goes on; a journal in which each seq stands once, by the epoch that
was granted; no output that the oracle does not expect, none lost, duplicated or out of order within its key.
"""

from __future__ import annotations

import pytest

from tests.handover.control import Control, Fault, Plan
from tests.handover.nodes import PATIENCE_S

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

LIVE: list[tuple[str, str, Fault]] = [
    ("origin", "announced", "kill"),
    ("target", "released-to", "stop"),
    ("origin", "releasing", "cut"),
    ("target", "released-to", "kill"),
    ("origin", "released", "stop"),
    ("target", "armed", "cut"),
    ("origin", "releasing", "kill"),
    ("target", "first-commit", "stop"),
    ("origin", "announced", "cut"),
    ("target", "armed", "kill"),
    ("origin", "releasing", "broker"),
    ("target", "released-to", "cut"),
    ("origin", "released", "kill"),
    ("target", "initialised", "stop"),
    ("origin", "releasing", "stop"),
    ("target", "first-commit", "kill"),
    ("target", "released-to", "broker"),
    ("target", "initialised", "kill"),
]
FORCED: list[tuple[str, Fault]] = [
    ("claimed", "stop"),
    ("initialised", "cut"),
    ("claimed", "kill"),
    ("first-commit", "cut"),
    ("claimed", "broker"),
    ("claimed", "cut"),
]
CLEAN_LIVE = 8
CLEAN_FORCED = 4


def move_on(control: Control, plan_for: tuple[str, str, Fault] | None = None) -> None:
    """A live migration to the standby that is furthest, and what the law says of it."""
    control.restock()
    target, origin = control.followers()[0], control.owner()
    assert origin is not None
    plan = None
    if plan_for is not None:
        role, point, fault = plan_for
        plan = Plan(origin if role == "origin" else target, point, fault)
    control.move(target, plan)
    control.verify()


def test_live_handovers_between_three_nodes(control: Control) -> None:
    control.restock(standbys=2)
    for _ in range(CLEAN_LIVE):
        owner = control.owner()
        move_on(control)
        assert control.owner() is not owner


@pytest.mark.parametrize(("victim", "point", "fault"), LIVE)
def test_a_fault_in_a_live_handover(control: Control, victim: str, point: str, fault: Fault) -> None:
    move_on(control, (victim, point, fault))
    # And the next one is as if nothing had been.
    move_on(control)


@pytest.mark.parametrize(("point", "fault"), FORCED)
def test_a_fault_in_a_claim(control: Control, point: str, fault: Fault) -> None:
    control.restock()
    target = control.followers()[0]
    control.claim(target, Plan(target, point, fault))
    control.verify()


def test_claims_over_an_owner_that_lives(control: Control) -> None:
    for _ in range(CLEAN_FORCED):
        control.restock()
        target = control.followers()[0]
        control.claim(target)
        control.verify()
        assert control.owner() is target


@pytest.mark.parametrize("how", ["kill", "freeze", "cut", "reset"])
def test_an_owner_that_is_gone_is_replaced_and_never_comes_back_by_itself(control: Control, how: str) -> None:
    control.restock()
    lost = control.owner()
    control.lose_owner(how)  # type: ignore[arg-type]
    control.verify()
    successor = control.owner()
    assert successor is not lost
    control.restock(standbys=2)
    control.verify()
    assert control.owner() is successor


def test_a_node_that_has_nothing_goes_on_from_an_older_checkpoint(control: Control) -> None:
    control.restock(standbys=2)
    spec = control.group.spec
    backup, empty = control.followers()[:2]
    empty.stop(spec)
    empty.ask("discard", group=spec.id)
    taken = backup.checkpoint(spec)
    owner = control.owner()
    assert owner is not None
    older = taken["seq"] + 5
    control.rig.wait(lambda: control.group.journal.read().seq >= older, "some batches more", PATIENCE_S)

    assert empty.fetch(spec, backup)["seq"] == taken["seq"]
    empty.start(spec)
    empty.wait_status(spec, lambda status: status.seq >= older, "to follow from the checkpoint")
    control.claim(empty)
    control.verify()
    assert control.owner() is empty


def test_nothing_was_lost_in_all_of_them(control: Control) -> None:
    control.restock(standbys=2)
    group = control.group
    group.finish_load()
    control.rig.wait(lambda: group.judge.verdict(final=True).lost == 0, "the last outputs", PATIENCE_S)
    control.verify(final=True)
    assert group.judge.oracle.outputs == group.judge.oracle.inputs > 0
    assert group.journal.read().handovers >= 50
