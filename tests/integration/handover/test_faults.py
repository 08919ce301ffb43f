"""Changes of owner between real processes under load, with every fault at each step of the protocol.

After every one of them: one owner, which goes on; a journal in which each seq stands once, by the epoch that
was granted; no output that the oracle does not expect, none lost, duplicated or out of order within its key.

The nodes run without Spark (tests.handover.plain_engine): all that is broken here lies outside it, and so
each step is taken in a second. `test_faults_with_spark` and `make soak` do the same with it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipeline_runtime.journal.reader import read_once
from pipeline_runtime.journal.records import Announce, Arm, Claim, Commit, Release
from tests.chosen import chosen
from tests.handover.cells import (
    CELLS,
    LOSSES,
    OWNERS_FAULTS,
    SMALL_BATCHES,
    TRIES,
    Cell,
    change_owner,
    lose_and_replace,
    meet,
    strike,
)
from tests.handover.control import Control, Fault, Loss
from tests.handover.stage import Stage, running_stage

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

CHANGES = 50
FAR_MS = 500  # many batches
LISTENING_MS = 60  # far enough to listen
FAR_CELLS = [
    Cell("live", "releasing", "kill"),
    Cell("live", "releasing", "broker"),
    Cell("live", "released", "kill"),
    Cell("live", "released", "broker"),
    Cell("live", "released-to", "kill"),
    Cell("live", "released-to", "cut"),
]
FAR_ALWAYS = [Cell("live", "releasing", "kill"), Cell("live", "released-to", "cut")]
EVERY_CLAIM = 5


def is_often(cell: Cell) -> bool:
    """Each point with a kill, and each fault at the point where the group is between two owners."""
    return cell.fault == "kill" or cell.point in ("releasing", "claimed")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    yield from running_stage("plain", SMALL_BATCHES, tmp_path_factory)


@pytest.mark.parametrize("cell", chosen(CELLS, [cell for cell in CELLS if is_often(cell)]), ids=str)
def test_a_fault_in_a_change_of_owner(control: Control, cell: Cell) -> None:
    meet(control, cell)
    # And the next one is as if nothing had been.
    change_owner(control)


@pytest.mark.parametrize("how", LOSSES)
def test_an_owner_that_is_gone_is_replaced_and_never_comes_back_by_itself(
    control: Control, how: Loss
) -> None:
    lose_and_replace(control, how)


@pytest.mark.parametrize("fault", OWNERS_FAULTS)
def test_a_fault_while_one_batch_is_committed_and_the_next_one_runs(control: Control, fault: Fault) -> None:
    strike(control, "ahead", fault)
    change_owner(control)


@pytest.mark.parametrize("fault", chosen(OWNERS_FAULTS, ["kill"]))
def test_an_owner_whose_state_lacks_the_batch_that_it_has_committed_catches_up(
    control: Control, fault: Fault
) -> None:
    """The journal has the batch. The owner's own state has not. It owns again, from that state."""
    struck = strike(control, "committed", fault)
    control.restock(standbys=2)
    for _ in range(TRIES):
        if control.move(struck) and control.owner() is struck:
            break
        control.verify()
        control.restock(standbys=2)
    assert control.owner() is struck
    control.verify()


def test_to_a_far_node_the_owner_announces_nothing(control: Control) -> None:
    [target] = control.followers()[:1]
    journal = control.group.journal
    far, epoch = control.rig.proxy(target), journal.read().granted
    far.delay(FAR_MS)
    try:
        assert control.move(target)
    finally:
        far.delay(0)
    assert control.owner() is target
    last = [
        record
        for _, record in journal.records
        if getattr(record, "epoch", None) == epoch and not isinstance(record, Claim | Arm)
    ]
    [armed] = [each for _, each in journal.records if isinstance(each, Arm) and each.epoch == epoch + 1]
    assert armed.round_trip_ms >= FAR_MS
    assert [type(record) for record in last[-2:]] == [Commit, Release]
    assert Announce not in map(type, last)
    assert armed.listens
    assert list(read_once(control.rig.kafka, control.group.spec.released))[-2:] == last[-2:]


@pytest.mark.parametrize("cell", chosen(FAR_CELLS, FAR_ALWAYS), ids=str)
def test_a_fault_in_a_release_to_a_far_node(control: Control, cell: Cell) -> None:
    """It is told of the release before it reads it in the journal, or the release never comes."""
    far = [control.rig.proxy(node) for node in control.followers()]
    for line in far:
        line.delay(LISTENING_MS)
    try:
        meet(control, cell)
        assert any(isinstance(each, Arm) and each.listens for _, each in control.group.journal.records)
        change_owner(control)
    finally:
        for line in far:
            line.delay(0)


@pytest.mark.full
def test_fifty_changes_of_owner(control: Control) -> None:
    """Live ones, and claims over an owner that lives."""
    before = control.group.journal.read().handovers
    number = 0
    while control.group.journal.read().handovers < before + CHANGES:
        number += 1
        if number % EVERY_CLAIM:
            change_owner(control)
        else:
            control.restock()
            target = control.followers()[0]
            control.claim(target)
            assert control.owner() is target
        control.verify()
