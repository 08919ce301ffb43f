"""Faults that need real queries, in addition to `test_faults`: Spark's batches, its checkpoint and its
processes survive each kind of fault while the group is between two owners, and they survive the loss of an
owner."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipeline_runtime.model.spec import LATENCY_MS_MIN, Pace
from tests.chosen import chosen
from tests.handover.cells import LOSSES, Cell, lose_and_replace, meet
from tests.handover.control import Control, Loss
from tests.handover.nodes import PATIENCE_S
from tests.handover.stage import Stage, running_stage

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

CELLS = [
    Cell("live", "releasing", "kill"),
    Cell("live", "releasing", "stop"),
    Cell("live", "releasing", "cut"),
    Cell("live", "releasing", "broker"),
    Cell("live", "released-to", "kill"),
    Cell("live", "released-to", "stop"),
    Cell("live", "released-to", "cut"),
    Cell("live", "released-to", "broker"),
    Cell("live", "first-commit", "kill"),
    Cell("claim", "claimed", "kill"),
    Cell("claim", "claimed", "cut"),
]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    # Three nodes on two cores: with batches so rare there is time left for faults. On a busy machine they are
    # as rare as the pace allows, or its followers would never be level with an owner, as claimants must.
    yield from running_stage(
        "spark", Pace(latency_ms=LATENCY_MS_MIN, interval_ms_min=400, interval_ms_max=3000), tmp_path_factory
    )


# `test_faults` has the others without Spark.
ALWAYS = [Cell("live", "first-commit", "kill")]


@pytest.mark.parametrize("cell", chosen(CELLS, ALWAYS), ids=str)
def test_a_fault_in_a_change_of_owner(control: Control, cell: Cell) -> None:
    meet(control, cell)


@pytest.mark.parametrize("how", chosen(LOSSES, ["kill"]))
def test_an_owner_that_is_gone_is_replaced_and_never_comes_back_by_itself(
    control: Control, how: Loss
) -> None:
    lose_and_replace(control, how)


def test_a_node_that_has_nothing_goes_on_from_an_older_checkpoint(control: Control) -> None:
    control.restock(standbys=2)
    spec = control.group.spec
    backup, empty = control.followers()[:2]
    empty.stop(spec)
    empty.ask("discard", group=spec.id)
    taken = backup.checkpoint(spec)
    older = taken["seq"] + 5
    control.rig.wait(lambda: control.group.journal.read().seq >= older, "some batches more", PATIENCE_S)

    assert empty.fetch(spec, backup)["seq"] == taken["seq"]
    empty.start(spec)
    empty.wait_status(spec, lambda status: status.seq >= older, "to follow from the checkpoint")
    control.claim(empty)
    assert control.owner() is empty
