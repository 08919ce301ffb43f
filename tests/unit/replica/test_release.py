"""Which batch an owner releases with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pipeline_runtime.journal.records import Arm, Boundary, Claim, Commit
from pipeline_runtime.model.desired import Directive
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.replica.release import OwnerRelease
from pipeline_runtime.replica.state import ReplicaState


def test_a_batch_that_was_to_be_the_last_is_not_once_it_is_announced_as_another() -> None:
    """It was not granted, and meanwhile the successor has come near."""
    released: list[Seq] = []

    def give_away(handover: str, armed: Arm, seq: Seq, *_: object) -> int:
        released.append(seq)
        return 1

    ownership: Any = SimpleNamespace(release=give_away, released=lambda: None)
    permit: Any = SimpleNamespace(epoch=Epoch(1), commit=lambda _: 1)
    state = ReplicaState(permit=permit, directive=Directive(release="h"))
    state.view.apply(Claim(Epoch(1), "o", "a"))
    state.view.apply(Arm(Epoch(2), "token", "h", "b"))
    release = OwnerRelease(state, ownership)
    boundary = Boundary(Seq(5), {}, 5)

    release.end_with(boundary.seq)
    release.announce(boundary, last=False)
    assert release.with_batch(Commit(Epoch(1), boundary), []) is None
    release.end_with(boundary.seq)
    assert release.with_batch(Commit(Epoch(1), boundary), []) == 1
    assert released == [5]
