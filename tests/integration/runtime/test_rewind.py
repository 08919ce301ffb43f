"""A rewind goes on from an older checkpoint and emits again what followed it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline_runtime.journal.records import Claim
from pipeline_runtime.model.desired import ClaimOrder, Role
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.replica.local_state import last_committed
from tests.chosen import chosen
from tests.directing import tell
from tests.integration.runtime.copying import copy_state
from tests.integration.runtime.documents import events, running_sums, sums
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


@pytest.mark.parametrize("behind", chosen([0, 1], [1]), ids=["the chosen checkpoint", "the one before it"])
def test_a_rewind_emits_again_and_leaves_older_copies_behind(
    kafka: str, node: Node, other_node: Node, tmp_path: Path, behind: int
) -> None:
    """Also from an older checkpoint than the chosen one, when that is damaged: it follows up to there."""
    topic = create_topic(kafka)
    deployed = Deployed(kafka, [events(topic), sums()], {"all": ["events", "sums"]})
    spec = deployed.specs["all"]
    rows = [{"k": "a", "v": value} for value in range(1, 7)]
    first = node.own(spec)
    owning(first)
    for number, row in enumerate(rows, 1):
        produce(kafka, topic, [row])
        wait_until(lambda number=number: len(deployed.records("sums")) == number, f"row {number}")
        if number == 3:
            # On disk, which is what a snapshot takes: Spark writes that down after the COMMIT.
            wait_until(
                lambda: (at := last_committed(node.replica_directory(spec))) is not None and at.seq >= 3,
                "Spark to have finished the third batch",
            )
            copied = copy_state(spec, node, other_node, tmp_path)
    first.stop(STOP_S)
    newest = first.status().seq

    second = other_node.start(spec)
    tell(second, order=ClaimOrder(id="rewind", over=Epoch(1), rewind=Seq(copied + behind)))
    assert owning(second).epoch == 2
    produce(kafka, topic, [{"k": "a", "v": 7}])
    expected = running_sums([*rows, {"k": "a", "v": 7}])["a"]
    # The three that followed the checkpoint, or two, come twice: as before, and again.
    wait_until(lambda: len(deployed.records("sums")) == 10 - behind, "what was rewound and the new row")
    sums_seen = [row["v"] for row in deployed.records("sums")]
    assert sums_seen == expected[:6] + expected[3 + behind :]

    deployed.assert_journal_lawful("all")
    [claim] = [claim for claim in deployed.claims("all") if claim.epoch == 2]
    assert (claim.rewind, type(claim)) == (copied + behind, Claim)
    assert min(commit.seq for commit in deployed.commits("all") if commit.epoch == 2) == newest + 1

    # The old copy holds what is void now.
    revived = node.start(spec)
    status = wait_for_status(revived, lambda status: status.role is Role.STOPPED, "to see it")
    assert status.error is not None
    assert "which a rewind has undone" in status.error.message
