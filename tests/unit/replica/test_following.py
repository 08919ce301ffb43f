"""Tests which records of its journal a replica takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline_runtime.handover.ownership import Ownership
from pipeline_runtime.journal.records import (
    SPEC_BYTES_MAX,
    Arm,
    Boundary,
    Claim,
    Commit,
    Record,
    Release,
    decode,
    encode,
)
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.desired import ClaimOrder
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import ElementSpec, GroupSpec
from pipeline_runtime.replica import definitions
from pipeline_runtime.replica.core import Facts, needs_another_definition
from pipeline_runtime.replica.following import JournalFollower
from pipeline_runtime.replica.local_state import read_mark
from pipeline_runtime.replica.state import ReplicaState

SPEC = GroupSpec(deployment="d", pipeline="p", group="g", elements=(ElementSpec(id="g", type="filter"),))


def test_what_a_tail_that_was_closed_still_reads_is_not_taken(tmp_path: Path) -> None:
    state = ReplicaState()
    follower = JournalFollower(SPEC, KafkaSettings("127.0.0.1:9"), tmp_path, state)
    former, state.view = state.view, JournalView()
    commit = (7, 0, Commit(Epoch(1), Boundary(Seq(1), {}, 0)))
    follower._apply_records(former, [commit])
    assert (state.view.last_seq, follower._trailing.read_to) == (0, 0)
    # The same record once more, by the tail that counts.
    follower._apply_records(state.view, [commit])
    assert (state.view.last_seq, follower._trailing.read_to) == (1, 8)


def definition(version: str, params: dict[str, object] | None = None) -> GroupSpec:
    element = ElementSpec(id="g", type="filter", params=params or {})
    return GroupSpec(deployment="d", pipeline="p", group="g", elements=(element,), version=version)


def claim(spec: GroupSpec, epoch: int) -> Claim:
    """As the owner that runs `spec` writes it, and anybody reads it."""

    unread: Any = None  # nothing is read here
    owner = Ownership(spec, KafkaSettings("none:1"), "a", unread, lambda _: {}, bool, lambda _: None)
    record = owner._claim_record(Epoch(epoch), ClaimOrder(id=f"o{epoch}", over=Epoch(epoch - 1)))
    written = decode(encode(record))
    assert isinstance(written, Claim)
    return written


FIRST, SECOND, THIRD = definition("v1"), definition("v2", {"condition": "x > 1"}), definition("v3")


def restored(directory: Path, view: JournalView, claims: list[Claim]) -> JournalFollower:
    """From a checkpoint at 100 that was cut under the first definition, and told the third. Behind it the
    second one has committed 101 to 120, and the third has claimed: no checkpoint has the second."""
    definitions.keep(directory, FIRST)
    definitions.keep(directory, THIRD)
    view.begin_at(Seq(100))
    follower = JournalFollower(THIRD, KafkaSettings("none:1"), directory, state := ReplicaState())
    state.view = view
    commits = [Commit(Epoch(2), Boundary(Seq(seq), {}, seq), definition="v2") for seq in range(101, 121)]
    follower._apply_records(
        view, [(at, 0, record) for at, record in enumerate([claims[0], *commits, claims[1]])]
    )
    return follower


@pytest.mark.parametrize("local", [100, 101, 119])
def test_two_upgrades_behind_a_checkpoint_are_followed_as_they_were_processed(
    tmp_path: Path, local: int
) -> None:
    view = JournalView()
    restored(tmp_path, view, [claim(SECOND, 2), claim(THIRD, 3)])
    assert definitions.to_begin_with(view, Seq(local), THIRD, tmp_path) == SECOND
    assert definitions.to_begin_with(view, Seq(120), THIRD, tmp_path) == THIRD


def test_a_standby_that_is_not_told_of_an_upgrade_yet_follows_it(tmp_path: Path) -> None:
    """Its state is sound, and must not be taken for damaged."""
    definitions.keep(tmp_path, FIRST)
    follower = JournalFollower(FIRST, KafkaSettings("none:1"), tmp_path, state := ReplicaState())
    state.view.begin_at(Seq(100))
    commit = Commit(Epoch(2), Boundary(Seq(101), {}, 101), definition="v2")
    follower._apply_records(state.view, [(7, 0, claim(SECOND, 2)), (8, 0, commit)])
    assert needs_another_definition(
        Facts(state.view, Seq(100), running_definition="v1", wanted_definition="v1")
    )
    assert definitions.to_begin_with(state.view, Seq(100), FIRST, tmp_path) == SECOND
    assert not needs_another_definition(
        Facts(state.view, Seq(101), running_definition="v2", wanted_definition="v1")
    )


def test_a_journal_of_an_older_version_has_no_definitions(tmp_path: Path) -> None:
    view = JournalView()
    claims = [Claim(Epoch(epoch), f"o{epoch}", "a", definition=f"v{epoch}") for epoch in (2, 3)]
    restored(tmp_path, view, claims)
    assert definitions.kept(tmp_path) == {"v1": FIRST, "v3": THIRD}


def test_a_definition_that_a_later_version_wrote_is_left_alone(tmp_path: Path) -> None:
    later = Claim(Epoch(2), "o", "a", definition="v2", spec={"later": 1})
    restored(tmp_path, view := JournalView(), [later, claim(THIRD, 3)])
    assert view.granted == 3
    assert set(definitions.kept(tmp_path)) == {"v1", "v3"}


def test_a_definition_is_kept_before_a_mark_may_go_past_its_claim(tmp_path: Path) -> None:
    """A checkpoint is cut at any moment: what its mark has passed is not read again."""
    follower = JournalFollower(FIRST, KafkaSettings("none:1"), tmp_path, state := ReplicaState())

    class Watching(JournalView):
        def apply(self, record: object, at_ms: int = 0) -> None:
            seen.append((follower._trailing.read_to, set(definitions.kept(tmp_path))))

    seen: list[tuple[int, set[str]]] = []
    state.view = Watching()
    follower._apply_records(state.view, [(4, 0, claim(SECOND, 2)), (5, 0, claim(THIRD, 3))])
    assert seen == [(0, {"v2", "v3"}), (5, {"v2", "v3"})]


def test_what_a_broker_might_not_take_is_left_out_of_a_claim() -> None:
    large = claim(definition("v2", {"condition": "x" * SPEC_BYTES_MAX}), 2)
    assert (large.definition, large.spec) == ("v2", None)
    smaller = claim(definition("v2", {"condition": "x" * (SPEC_BYTES_MAX // 2)}), 2)
    assert len(encode(smaller)) > SPEC_BYTES_MAX // 2


# -- a release that a far successor is told of before it reads it in the journal

ONE = Epoch(1)
JOURNAL: list[Record] = [
    Claim(ONE, "o", "a"),
    Commit(ONE, Boundary(Seq(1), {}, 1)),
    Arm(Epoch(2), "token", "h", "b", 100.0, True),
    Commit(ONE, Boundary(Seq(2), {}, 2), rows_in=1, rows_out=1),
    Release(ONE, Seq(2), "token", "h", "b"),
    Commit(Epoch(2), Boundary(Seq(3), {}, 3)),
]
READ = [(offset, 10 * offset, record) for offset, record in enumerate(JOURNAL)]
TOLD = [(0, 29, JOURNAL[3]), (1, 38, JOURNAL[4])]  # its topic has times of its own


def far_successor(directory: Path) -> tuple[JournalFollower, ReplicaState]:
    follower = JournalFollower(SPEC, KafkaSettings("none:1"), directory, state := ReplicaState())
    state.view.begin_at(Seq(0))
    return follower, state


def test_a_release_that_is_told_counts_at_once_and_not_again_when_it_is_read(tmp_path: Path) -> None:
    follower, state = far_successor(tmp_path)
    follower._apply_records(state.view, READ[:3])
    follower._hear(TOLD)
    assert (state.view.granted, state.view.last_seq, follower._trailing.read_to) == (2, 2, 3)
    follower._apply_records(state.view, READ[3:4])
    follower._apply_records(state.view, READ[4:])
    assert (state.view.last_seq, follower._trailing.read_to) == (3, 6)
    read = JournalView()
    for _, at_ms, record in READ:
        read.apply(record, at_ms)
    assert state.view == read


def test_a_release_that_is_told_waits_until_all_before_it_has_been_read(tmp_path: Path) -> None:
    follower, state = far_successor(tmp_path)
    follower._apply_records(state.view, READ[:1])
    follower._hear(TOLD[:1])
    follower._hear(TOLD[1:])
    assert (state.view.granted, state.view.last_seq) == (1, 0)
    follower._apply_records(state.view, READ[1:3])
    assert (state.view.granted, state.view.last_seq) == (2, 2)


def test_a_release_that_was_read_already_is_not_taken_again(tmp_path: Path) -> None:
    follower, state = far_successor(tmp_path)
    follower._apply_records(state.view, READ[:5])
    follower._hear(TOLD)
    follower._apply_records(state.view, READ[5:])
    assert (state.view.granted, state.view.last_seq, follower._trailing.read_to) == (2, 3, 6)
    assert follower._told == []


def test_a_release_is_told_behind_another_that_the_journal_has_not_said_yet(tmp_path: Path) -> None:
    """A successor that lags: the next owner has released with its first batch."""
    follower, state = far_successor(tmp_path)
    follower._apply_records(state.view, READ[:3])
    again = Release(Epoch(2), Seq(3), "another token", "h2", "a")
    follower._hear([*TOLD, (2, 50, JOURNAL[5]), (3, 60, again)])
    assert (state.view.granted, state.view.last_seq) == (3, 3)
    # Somebody else's ARMED, which says nothing by now.
    late = Arm(Epoch(2), "late", "h0", "c")
    follower._apply_records(state.view, [(3, 25, late), *((at + 1, ms, each) for at, ms, each in READ[3:])])
    follower._apply_records(state.view, [(7, 60, again)])
    assert (state.view.granted, state.view.last_seq, follower._trailing.read_to) == (3, 3, 8)


def test_what_was_told_too_late_is_not_kept(tmp_path: Path) -> None:
    follower, state = far_successor(tmp_path)
    follower._apply_records(state.view, READ)
    follower._hear(TOLD)
    assert (state.view.granted, follower._told, follower._ahead) == (2, [], [])


def test_no_mark_says_less_than_its_view(tmp_path: Path) -> None:
    """What was told is in the view, and lies behind the offset: from there it would be taken twice."""
    follower, state = far_successor(tmp_path)
    follower._apply_records(state.view, READ[:3])
    follower._hear(TOLD)
    follower.remember(Seq(2))
    mark = read_mark(tmp_path, Seq(2))
    assert mark is not None
    assert (mark.offset, mark.view.last_seq, mark.view.granted) == (3, 1, 1)
    follower._apply_records(state.view, READ[3:5])
    follower._marked_at_s = 0.0
    follower.remember(Seq(2))
    mark = read_mark(tmp_path, Seq(2))
    assert mark is not None
    assert (mark.offset, mark.view.last_seq, mark.view.granted) == (5, 2, 2)


def test_a_follower_that_lags_marks_how_far_it_has_come(tmp_path: Path) -> None:
    """The journal may be trimmed up to there. So the mark must not stay behind for as long as it lags."""
    follower, state = far_successor(tmp_path)
    follower._apply_records(state.view, READ)
    follower.remember(Seq(1))
    mark = read_mark(tmp_path, Seq(1))
    assert mark is not None
    assert (mark.offset, mark.view.last_seq, mark.view.armed) == (3, 1, JOURNAL[2])
