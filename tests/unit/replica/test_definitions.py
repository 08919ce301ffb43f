"""With which definition a replica begins, when its group was upgraded."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.journal.records import Boundary, Claim, Commit
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import ElementSpec, GroupSpec
from pipeline_runtime.replica.core import Facts, needs_another_definition, next_followed
from pipeline_runtime.replica.definitions import keep, kept, to_begin_with
from pipeline_runtime.replica.local_state import LocalStateDamaged


def definition(version: str) -> GroupSpec:
    element = ElementSpec(id="g", type="filter", params={"version": version})
    return GroupSpec(deployment="d", pipeline="p", group="g", elements=(element,), version=version)


OLD, NEW = definition("old"), definition("new")


def journal(*versions: str) -> JournalView:
    """A batch of each definition."""
    view = JournalView()
    view.apply(Claim(Epoch(1), "o", "a", definition=versions[0] if versions else ""))
    for seq, version in enumerate(versions, 1):
        view.apply(Commit(Epoch(1), Boundary(Seq(seq), {}, seq), rows_in=1, definition=version))
    return view


def is_anothers_turn(
    view: JournalView,
    local: Seq,
    running: str,
    wanted: str,
    rewinds_to: Seq | None = None,
    *,
    fresh: bool = False,
) -> bool:
    """Asks for a follower with the state of `local`."""
    facts = Facts(
        view,
        local,
        state_begins=local,
        running_definition=running,
        wanted_definition=wanted,
        rewinds_to=rewinds_to,
        leaves_state=fresh,
    )
    return needs_another_definition(facts)


def may_commit(view: JournalView, local: Seq, running: str, wanted: str) -> bool:
    """Asks for the owner."""
    facts = Facts(
        view,
        local,
        state_begins=local,
        permit=view.granted,
        running_definition=running,
        wanted_definition=wanted,
    )
    return not needs_another_definition(facts)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The directory of a replica that had the former definition and now has the new one."""
    keep(tmp_path, OLD)
    keep(tmp_path, NEW)
    return tmp_path


@pytest.mark.parametrize(("local", "expected"), [(0, OLD), (1, OLD), (2, NEW), (3, NEW)])
def test_a_batch_is_followed_with_the_definition_that_it_was_processed_by(
    directory: Path, local: int, expected: GroupSpec
) -> None:
    assert to_begin_with(journal("old", "old", "new"), Seq(local), NEW, directory) == expected


def test_at_the_journals_end_it_is_the_one_that_is_wanted(directory: Path) -> None:
    assert to_begin_with(journal("old", "old"), Seq(2), NEW, directory) == NEW
    assert to_begin_with(journal(), Seq(0), NEW, directory) == NEW


def test_a_state_without_the_definition_it_needs_is_of_no_use(tmp_path: Path) -> None:
    keep(tmp_path, NEW)
    with pytest.raises(LocalStateDamaged, match=r"batch 1 of .* was processed by definition old"):
        to_begin_with(journal("old"), Seq(0), NEW, tmp_path)


TORN = [b"", b"{", b"\0" * 100, b'{"deployment":"d\xc3', OLD.model_dump_json().encode()[:-40]]


@pytest.mark.parametrize("torn", TORN, ids=["empty", "begun", "zeros", "half a letter", "half"])
def test_a_file_that_cannot_be_read_is_as_good_as_none(directory: Path, torn: bytes) -> None:
    (directory / "definitions" / "old.json").write_bytes(torn)
    assert kept(directory) == {"new": NEW}
    keep(directory, OLD)
    assert kept(directory) == {"old": OLD, "new": NEW}


def test_a_definition_that_is_there_is_not_written_again(directory: Path) -> None:
    """It is read of in every CLAIM, and a checkpoint may be linking it."""
    path = directory / "definitions" / "old.json"
    before = path.stat().st_ino
    keep(directory, OLD)
    assert path.stat().st_ino == before


@given(st.lists(st.sampled_from(["old", "new"]), max_size=12), st.booleans(), st.data())
def test_who_is_to_rewind_follows_up_to_there_and_no_further_each_batch_as_it_was_processed(
    tmp_path_factory: pytest.TempPathFactory, versions: list[str], coalesced: bool, data: st.DataObject
) -> None:
    """From whichever checkpoint it could have: the one that was chosen may be damaged."""
    directory = tmp_path_factory.getbasetemp() / "definitions of both"
    directory.mkdir(exist_ok=True)
    keep(directory, OLD)
    keep(directory, NEW)
    view = journal(*versions)
    rewinds_to = Seq(data.draw(st.integers(0, len(versions))))
    local = Seq(data.draw(st.integers(0, rewinds_to)))
    rows_max = data.draw(st.integers(1, 5))
    starts = 0
    while True:
        running = to_begin_with(view, local, NEW, directory, rewinds_to).version
        starts += 1
        assert starts <= len(versions) + 1
        while not is_anothers_turn(view, local, running, "new", rewinds_to):
            end = next_followed(
                view, local, definition=running, coalesced=coalesced, rows_max=rows_max, up_to=rewinds_to
            )
            if end is None:
                # This is what it waits for before it claims.
                assert (local, running) == (rewinds_to, "new")
                return
            assert set(versions[local : end.seq]) == {running}
            local = end.seq


def fresh_at(last_seq: int, *versions: str) -> JournalView:
    """A batch of each definition; after `last_seq` a CLAIM that leaves the state behind."""
    view = journal(*versions[:last_seq])
    view.apply(Claim(Epoch(2), "restart", "a", definition=versions[-1], fresh=True))
    for seq, version in enumerate(versions[last_seq:], last_seq + 1):
        view.apply(Commit(Epoch(2), Boundary(Seq(seq), {}, seq), rows_in=1, definition=version))
    return view


@pytest.mark.parametrize("after", ["old", "new"], ids=["the same definition again", "another one"])
def test_no_follower_goes_past_where_the_state_is_begun_anew(after: str) -> None:
    view = fresh_at(2, "old", "old", after, after)
    assert [view.begins_fresh(Seq(seq)) for seq in range(5)] == [False, False, True, False, False]
    end = next_followed(view, Seq(0), definition="old", coalesced=True, rows_max=100)
    assert end is not None
    assert end.seq == 2
    assert JournalView.from_json(view.to_json()).begins_fresh(Seq(2))


def test_after_a_rewind_the_state_is_begun_anew_where_it_went_back_to() -> None:
    view = journal("old", "old", "old")
    view.apply(Claim(Epoch(2), "rewind", "a", rewind=Seq(1), definition="old"))
    view.apply(Claim(Epoch(3), "restart", "a", definition="new", fresh=True))
    assert [view.begins_fresh(Seq(seq)) for seq in range(3)] == [False, True, False]


def test_who_is_to_leave_the_former_state_behind_runs_the_former_definition_until_it_has_claimed(
    directory: Path,
) -> None:
    view = journal("old", "old")
    assert to_begin_with(view, Seq(2), NEW, directory, fresh=True) == OLD
    assert not is_anothers_turn(view, Seq(2), "old", "new", fresh=True)
    # What is to be rewound is as good as not there.
    assert to_begin_with(view, Seq(1), NEW, directory, Seq(1), fresh=True) == OLD
    assert not is_anothers_turn(view, Seq(1), "old", "new", Seq(1), fresh=True)


def test_who_has_come_to_the_seq_to_rewind_to_goes_on_with_what_is_wanted(directory: Path) -> None:
    view = journal("old", "old", "old")
    assert not is_anothers_turn(view, Seq(1), "old", "new", rewinds_to=Seq(2))
    assert is_anothers_turn(view, Seq(2), "old", "new", rewinds_to=Seq(2))
    assert to_begin_with(view, Seq(2), NEW, directory, rewinds_to=Seq(2)) == NEW


@pytest.mark.parametrize(
    ("said", "running", "may"),
    [("new", "new", True), ("", "new", True), ("new", "old", False), ("old", "new", False)],
)
def test_an_owner_of_another_definition_than_its_journals_claims_anew(
    said: str, running: str, may: bool
) -> None:
    """The last: it began at the journal's end, where there was nothing to follow, and was released to."""
    assert may_commit(journal(said), Seq(1), running, "new") is may


def test_an_owner_that_has_to_follow_what_another_definition_processed_claims_anew() -> None:
    """The owner before it, of the former definition, has committed once more before it was shut out."""
    view = journal("new", "old")
    view.definition = "new"  # by its own CLAIM, behind that
    assert not may_commit(view, Seq(1), "new", "new")
    assert may_commit(view, Seq(2), "new", "new")
