"""Tests how an owner releases its group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline_runtime.journal.records import Arm, Boundary, Claim, Commit
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.model.desired import Directive
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.replica.core import (
    LOCKSTEP_BATCHES,
    Announce,
    Facts,
    Follow,
    Own,
    OwnLast,
    ReleaseAlone,
    Wait,
    next_batch,
)

HERE = Seq(3)


def facts(
    round_trip_ms: float,
    batch_ms: float,
    *,
    release: str | None = "h",
    announced: int = 0,
    quiet: bool = False,
) -> Facts:
    """Returns the facts of an owner at HERE whose successor is armed for the handover `h`."""
    view = JournalView()
    view.apply(Claim(Epoch(1), "o", "a"))
    for seq in range(1, HERE + 1):
        view.apply(Commit(Epoch(1), Boundary(Seq(seq), {}, seq)))
    view.apply(Arm(Epoch(2), "token", "h", "b", round_trip_ms))
    return Facts(
        view,
        HERE,
        directive=Directive(release=release),
        permit=Epoch(1),
        announced=announced,
        batch_ms=batch_ms,
        quiet=quiet,
    )


@pytest.mark.parametrize("round_trip_ms", [0.0, 1.0, 20.0])
def test_the_last_batches_are_announced_to_a_successor_that_hears_of_them_before_their_end(
    round_trip_ms: float,
) -> None:
    for announced in range(LOCKSTEP_BATCHES + 1):
        found = next_batch(facts(round_trip_ms, 10.0, announced=announced), HERE)
        assert found == Announce(Seq(4), last=announced == LOCKSTEP_BATCHES)


def test_to_one_that_is_farther_than_that_the_next_batch_is_the_last() -> None:
    assert next_batch(facts(20.1, 10.0), HERE) == OwnLast(Seq(4), 20.1)


def test_who_does_not_know_yet_how_long_a_batch_takes_announces() -> None:
    assert next_batch(facts(1000.0, 0.0), HERE) == Announce(Seq(4), last=False)


@pytest.mark.parametrize("round_trip_ms", [1.0, 1000.0])
def test_where_nothing_comes_there_is_no_last_batch(round_trip_ms: float) -> None:
    assert next_batch(facts(round_trip_ms, 10.0, quiet=True), HERE) == ReleaseAlone()


def test_who_waits_for_a_schema_registry_releases_and_otherwise_begins_no_batch() -> None:
    waiting = replace(facts(1.0, 10.0), waits=True)
    assert next_batch(waiting, HERE) == ReleaseAlone()
    assert next_batch(replace(waiting, directive=Directive()), HERE) == Wait()


def test_without_an_order_to_release_it_goes_on_owning() -> None:
    assert next_batch(facts(1000.0, 10.0, release=None), HERE) == Own(Seq(4))


def test_behind_a_batch_that_is_not_committed_yet_an_owner_begins_its_next_one() -> None:
    owner = replace(facts(1.0, 10.0, release=None), committing=True)
    assert next_batch(owner, Seq(4)) == Own(Seq(5))


@pytest.mark.parametrize(
    "change",
    [
        {"permit": None},
        {"paused": True},
        {"stops": True},
        {"directive": Directive(release="h")},
        {"directive": Directive(release="h"), "quiet": True},
        {"directive": Directive(release="another one, whose successor is not armed")},
    ],
    ids=str,
)
def test_nothing_else_begins_there(change: dict[str, Any]) -> None:
    """An ANNOUNCE or a RELEASE would say that the group stands there."""
    owner = replace(facts(1.0, 10.0, release=None), committing=True)
    assert next_batch(replace(owner, **change), Seq(4)) == Wait()


def test_nothing_is_followed_there() -> None:
    owner = replace(facts(1.0, 10.0, release=None), committing=True)
    owner.view.apply(Commit(Epoch(2), Boundary(Seq(4), {}, 4)))
    owner.view.apply(Commit(Epoch(2), Boundary(Seq(5), {}, 5)))
    assert next_batch(owner, Seq(4)) == Wait()


def test_a_follower_takes_no_batches_together_between_which_the_position_was_moved() -> None:
    view = JournalView()
    view.apply(Claim(Epoch(1), "o", "a", {"t-0": 0}))
    ends = [Boundary(Seq(seq), {"t-0": at}, seq) for seq, at in ((1, 5), (2, 9), (3, 103), (4, 104))]
    for boundary in ends[:2]:
        view.apply(Commit(Epoch(1), boundary))
    view.apply(Claim(Epoch(2), "p", "a", moves={"t-0": 100}))  # what lay between was deleted
    for boundary in ends[2:]:
        view.apply(Commit(Epoch(2), boundary))
    follower = Facts(view, coalesced=True, rows_max=1000)
    assert next_batch(follower, Seq(0)) == Follow(ends[1])
    assert view.moved(ends[1]).ends == {"t-0": 100}
    assert next_batch(follower, Seq(2)) == Follow(ends[3])
