"""The laws of the journal's fold."""

from __future__ import annotations

import json
from dataclasses import replace
from unittest.mock import Mock

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.journal.records import (
    Arm,
    Boundary,
    Claim,
    Commit,
    ElementCounts,
    Record,
    Release,
    Retire,
    Totals,
    decode,
    encode,
)
from pipeline_runtime.journal.view import JournalBroken, JournalView
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.replica.state import ReplicaState


def commit(seq: int, epoch: int = 1, **more: object) -> Commit:
    return Commit(Epoch(epoch), Boundary(Seq(seq), {"in-0": seq * 10}, seq * 1000), **more)  # type: ignore[arg-type]


def claim(epoch: int, order: str = "o", node: str = "a") -> Claim:
    return Claim(Epoch(epoch), order, node, {"in-0": epoch})


def folded(records: list[Record], after: JournalView | None = None) -> JournalView:
    view = after or JournalView()
    for record in records:
        view.apply(record)
    return view


@st.composite
def journals(draw: st.DrawFn) -> list[Record]:
    """Lawful ones: each epoch claimed, then some commits."""
    records: list[Record] = []
    seq = 0
    for epoch in range(1, draw(st.integers(1, 4)) + 1):
        records.append(claim(epoch, f"order-{epoch}", draw(st.sampled_from("ab"))))
        for _ in range(draw(st.integers(0, 4))):
            seq += 1
            ended = ("in-0",) if draw(st.booleans()) else ()
            records.append(commit(seq, epoch, marks={"file": {"length": seq}}, ended=ended))
    if draw(st.booleans()):
        records.append(Retire(Epoch(epoch)))
    return records


def test_an_empty_journal_grants_nothing() -> None:
    view = JournalView()
    assert (view.granted, view.last_seq, view.start, view.retired) == (0, 0, None, False)


def test_the_first_claim_decides_where_the_group_begins() -> None:
    assert folded([claim(1), claim(2)]).start == {"in-0": 1}


def test_the_newest_claim_grants() -> None:
    view = folded([claim(1, "x", "a"), commit(1), claim(2, "y", "b")])
    assert (view.granted, view.holder) == (2, "b")
    assert view.orders == {"x": 1, "y": 2}


@pytest.mark.parametrize("seq", [1, 2, 4, 9])
def test_a_seq_that_is_missing_or_stands_twice_breaks_the_journal(seq: int) -> None:
    view = folded([claim(1), commit(1), commit(2)])
    with pytest.raises(JournalBroken, match=f"seq {seq} follows 2"):
        view.apply(commit(seq))
    assert view.last_seq == 2


def test_the_fold_keeps_what_a_follower_has_still_to_replay() -> None:
    view = folded([claim(1), *(commit(seq) for seq in range(1, 6))])
    view.forget(Seq(3))
    assert sorted(view.commits) == [4, 5]
    view.forget(Seq(2))
    assert sorted(view.commits) == [4, 5]


def test_a_commit_that_is_done_already_is_not_kept_when_it_is_read_later() -> None:
    view = folded([claim(1), commit(1)])
    view.forget(Seq(2))
    view.apply(commit(2))
    assert view.commits == {}
    assert view.last_seq == 2


def test_marks_and_ends_are_those_of_the_last_seq() -> None:
    view = folded(
        [claim(1), commit(1, marks={"f": 1}, ended=("a",)), commit(2, marks={"f": 2}, ended=("b",))]
    )
    assert view.marks == {"f": 2}
    assert view.last_ends == {"in-0": 20}
    assert view.ended == {"a": 1, "b": 2}


@given(journals(), st.data())
def test_a_fold_that_was_put_away_goes_on_as_if_it_had_not_been(
    records: list[Record], data: st.DataObject
) -> None:
    split = data.draw(st.integers(0, len(records)))
    first = folded(records[:split])
    restored = JournalView.from_json(json.loads(json.dumps(first.to_json())))
    assert restored.to_json() == first.to_json()
    for record in records[split:]:
        restored.apply(record)
    whole = folded(records)
    assert restored.to_json() == whole.to_json()
    behind = {seq for seq in whole.commits if seq > first.last_seq}
    assert set(restored.commits) == behind


def test_only_the_newest_orders_are_put_away() -> None:
    view = folded([claim(epoch, f"order-{epoch}") for epoch in range(1, 51)])
    orders = JournalView.from_json(view.to_json()).orders
    assert len(orders) == 20
    assert orders["order-50"] == 50


def test_a_release_grants_the_next_epoch_to_its_successor() -> None:
    armed = Arm(Epoch(2), "h/n", "h", "b")
    view = folded([claim(1, "x"), commit(1), armed, Release(Epoch(1), Seq(1), "h/n", "h", "b")])
    assert (view.granted, view.holder, view.orders["h"]) == (2, "b", 2)
    assert view.released is not None
    assert view.released.token == "h/n"


def test_the_gap_is_between_the_last_and_the_first_commit_by_the_brokers_clock() -> None:
    view = folded([claim(1)])
    for record, at_ms in [
        (commit(1, rows_out=3), 1_000),
        (commit(2), 1_500),
        (Release(Epoch(1), Seq(2), "h/n", "h", "b"), 1_501),
    ]:
        view.apply(record, at_ms)
    assert view.takeover is not None
    assert view.takeover.gap_ms is None
    view.apply(commit(3, epoch=2, wait_ms=40), 1_550)
    view.apply(commit(4, epoch=2, rows_out=1, wait_ms=70), 1_600)
    takeover = view.takeover
    assert (takeover.gap_ms, takeover.by, takeover.at_ms) == (50, "release", 1_501)
    assert takeover.first_wait_ms == 40


def test_a_takeover_says_how_long_rows_usually_waited_before_it() -> None:
    view = folded([claim(1)])
    for seq in range(1, 11):
        view.apply(commit(seq, wait_ms=100 if seq % 2 else None), 10_000 + seq * 100)
    view.apply(commit(11, wait_ms=9_000), 20_000)  # one long wait among them is not what is usual
    view = JournalView.from_json(json.loads(json.dumps(view.to_json())))
    view.apply(Release(Epoch(1), Seq(11), "h/n", "h", "b"), 20_001)
    assert view.takeover is not None
    assert (view.takeover.usual_wait_ms, view.takeover.last_commit_at_ms) == (100, 20_000)


def test_rows_are_counted_over_all_owners_and_restarts() -> None:
    view = folded([claim(1)])
    first = Totals(5, 2, 1, {"a": (5, 4, 1), "b": (4, None, 0)})
    view.apply(commit(1, rows_in=5, rows_out=2, dead_letters=1, totals=first), 1_000)
    view = JournalView.from_json(json.loads(json.dumps(view.to_json())))
    view.apply(claim(2, "y"), 2_000)
    second = view.totals.plus(7, 3, 0, {"a": (7, 6, 0), "b": (6, None, 2)})
    view.apply(commit(2, epoch=2, rows_in=7, rows_out=3, totals=second), 3_000)
    view.apply(commit(3, epoch=2, totals=second), 4_000)
    assert view.totals == Totals(12, 5, 1, {"a": (12, 10, 1), "b": (10, None, 2)})
    assert view.last_row_at_ms == 3_000


def test_each_element_of_a_group_has_a_last_row_of_its_own() -> None:
    """`silent` reads nothing any more, Spark alone sees `planned`, and `writes` is known by its rows out."""
    counts: list[ElementCounts] = [
        {
            "busy": (5, 5, 0),
            "silent": (2, 2, 0),
            "never": (0, 0, 0),
            "planned": (None, None, 0),
            "writes": (None, 1, 0),
        },
        {
            "busy": (9, 5, 0),
            "silent": (2, 2, 0),
            "never": (0, 0, 0),
            "planned": (None, None, 0),
            "writes": (None, 1, 0),
        },
        {
            "busy": (9, 5, 0),
            "silent": (2, 2, 0),
            "never": (0, 0, 0),
            "planned": (None, None, 0),
            "writes": (None, 2, 0),
        },
    ]
    view = folded([claim(1)])
    for place, each in enumerate(counts, 1):
        view.apply(commit(place, rows_in=1, totals=Totals(place, 0, 0, each)), place * 1_000)
        view = JournalView.from_json(json.loads(json.dumps(view.to_json())))
    assert (view.rows_at_ms, view.last_row_at_ms) == (
        {"busy": 2_000, "silent": 1_000, "writes": 3_000},
        3_000,
    )
    # A topic of its own has told of the last commit and of the release. The journal has other times.
    last = commit(3, rows_in=1, totals=Totals(3, 0, 0, counts[-1]))
    view.apply(Release(Epoch(1), Seq(3), "h/n", "h", "b"), 3_100)
    view.date(last, 3_050)
    assert (view.rows_at_ms["writes"], view.rows_at_ms["busy"], view.last_row_at_ms) == (3_050, 2_000, 3_050)


def test_a_journal_without_its_begin_dates_an_element_at_its_next_row() -> None:
    """Nobody knows in which commit it had the rows that the first one counts."""
    view = folded([claim(1)])
    for place in range(7, 10):
        counts: ElementCounts = {"busy": (place, 0, 0), "silent": (2, 2, 0)}
        view.apply(commit(place, rows_in=1, totals=Totals(place, 0, 0, counts)), place * 1_000)
    assert (view.rows_at_ms, view.last_row_at_ms) == ({"busy": 9_000}, 9_000)
    assert view.totals.elements["silent"] == (2, 2, 0)


@given(journals(), st.data())
def test_no_row_is_counted_twice_wherever_a_restarted_replica_reads_on(
    records: list[Record], data: st.DataObject
) -> None:
    """It has kept what the journal said up to one record, and reads on from there or from before it."""
    records = [
        replace(record, rows_in=record.seq) if isinstance(record, Commit) else record for record in records
    ]
    kept = data.draw(st.integers(0, len(records)))
    reads_from = data.draw(st.integers(0, kept))
    view = JournalView.from_json(json.loads(json.dumps(folded(records[:kept]).to_json())))
    if any(isinstance(record, Commit) for record in records[reads_from:kept]):
        with pytest.raises(JournalBroken):
            folded(records[reads_from:], view)
    else:
        folded(records[reads_from:], view)
        assert view.totals.rows_in == sum(r.rows_in for r in records if isinstance(r, Commit))


COUNTS = st.integers(0, 1_000)
OF_ELEMENT = st.tuples(COUNTS, st.none() | COUNTS, COUNTS)
ELEMENTS = st.fixed_dictionaries({}, optional=dict.fromkeys("ab", OF_ELEMENT))
OWNED = st.lists(st.lists(st.tuples(COUNTS, COUNTS, COUNTS, ELEMENTS), max_size=4), min_size=1, max_size=5)


@given(OWNED, st.data())
def test_totals_never_fall_and_are_known_wherever_the_journal_begins(
    epochs: list[list[tuple[int, int, int, ElementCounts]]],
    data: st.DataObject,
) -> None:
    """Each owner counts on from what it has read when it claimed. A rewind counts what is repeated again."""
    records: list[Record] = []
    seq = 0
    for epoch, batches in enumerate(epochs, 1):
        rewind = Seq(data.draw(st.integers(0, seq))) if data.draw(st.booleans()) else None
        if rewind is not None and folded(records).is_void(rewind):
            rewind = None
        records.append(replace(claim(epoch, f"o{epoch}"), rewind=rewind))
        owner = ReplicaState(view=folded(records))
        owner.own(Mock())
        for rows_in, rows_out, dead, elements in batches:
            seq += 1
            totals = owner.totals.plus(rows_in, rows_out, dead, elements)
            rows = {"rows_in": rows_in, "rows_out": rows_out, "dead_letters": dead}
            written = decode(encode(commit(seq, epoch, **rows, totals=totals)))
            assert isinstance(written, Commit)
            owner.committed(1, written)
            records.append(written)
    begins = data.draw(st.integers(0, len(records) - 1))
    whole, late = folded(records[:begins]), JournalView()
    for record in records[begins:]:
        before = whole.totals
        for view in (whole, late):
            view.apply(record)
        assert whole.totals.most(before) == whole.totals, "no count has fallen"
        if isinstance(record, Commit):
            assert late.totals == whole.totals
    assert whole.totals.rows_in == sum(rows_in for batches in epochs for rows_in, *_ in batches)


def test_what_is_usual_is_not_said_of_too_few_waits() -> None:
    view = folded([claim(1)])
    for seq in range(1, 3):
        view.apply(commit(seq, wait_ms=100), seq * 1_000)
    view.apply(claim(2, "y"), 5_000)
    assert view.takeover is not None
    assert view.takeover.usual_wait_ms is None


def test_a_rewind_makes_what_followed_void() -> None:
    view = folded([claim(1), commit(1), commit(2), commit(3)])
    view.apply(Claim(Epoch(2), "rewind", "b", {}, rewind=Seq(1)))
    assert [view.is_void(Seq(seq)) for seq in (1, 2, 3, 4)] == [False, True, True, False]
    assert (view.following(Seq(1)), view.following(Seq(4))) == (4, 5)
    assert set(view.commits) == {1}
    view.apply(commit(4, epoch=2))
    assert JournalView.from_json(json.loads(json.dumps(view.to_json()))).rewinds == [(1, 3)]
    with pytest.raises(JournalBroken):
        view.apply(Claim(Epoch(3), "again", "b", {}, rewind=Seq(2)))


def test_a_rewind_undoes_an_end_that_was_read_behind_it() -> None:
    """Else its owner would close the windows before it has read again what they lack."""
    view = folded([claim(1), commit(1, ended=("a",)), commit(2), commit(3, ended=("a", "b"))])
    view.apply(Claim(Epoch(2), "rewind", "b", {}, rewind=Seq(2)))
    assert set(view.ended) == {"a"}
    view.apply(commit(4, epoch=2, ended=("b",)))
    assert set(view.ended) == {"a", "b"}


INPUTS = st.sets(st.sampled_from("abc")).map(lambda keys: tuple(sorted(keys)))


@given(st.lists(INPUTS | st.floats(0, 1), max_size=15))
def test_what_has_ended_is_what_the_batches_that_count_have_read(
    steps: list[tuple[str, ...] | float],
) -> None:
    """A step is a batch that has read these ends, or a rewind to somewhere among the batches that count."""
    view, counting, epoch = folded([claim(1)]), {Seq(0): ()}, 1
    for step in steps:
        if isinstance(step, float):
            to = sorted(counting)[round(step * (len(counting) - 1))]
            epoch += 1
            view.apply(Claim(Epoch(epoch), f"o{epoch}", "a", {}, rewind=to))
            counting = {seq: ended for seq, ended in counting.items() if seq <= to}
        else:
            view.apply(commit(view.last_seq + 1, epoch, ended=step))
            counting[view.last_seq] = step
        view = JournalView.from_json(json.loads(json.dumps(view.to_json())))
        assert set(view.ended) == {key for ended in counting.values() for key in ended}


def test_every_rewind_is_remembered() -> None:
    """A replica that starts from before the first of them comes past all of them."""
    view = folded([claim(1), *(commit(seq) for seq in (1, 2, 3))])
    view.apply(Claim(Epoch(2), "first", "b", {}, rewind=Seq(2)))
    view.apply(commit(4, epoch=2))
    view.apply(commit(5, epoch=2))
    view.apply(Claim(Epoch(3), "second", "b", {}, rewind=Seq(4)))
    view.apply(commit(6, epoch=3))
    path = [Seq(0)]
    while path[-1] < view.last_seq:
        path.append(view.following(path[-1]))
    assert path == [0, 1, 2, 4, 6]
    assert set(view.commits) == set(path[1:])
    assert not any(view.is_void(seq) for seq in path)
    view.apply(Claim(Epoch(4), "to the same again", "b", {}, rewind=Seq(2)))
    assert view.following(Seq(2)) == 7


@pytest.mark.parametrize(("seq", "lawful"), [(1, False), (2, False), (3, True)])
def test_a_release_ends_with_the_journals_last_batch(seq: int, lawful: bool) -> None:
    view = folded([claim(1), *(commit(seq) for seq in (1, 2, 3))])
    release = Release(Epoch(1), Seq(seq), "h/n", "h", "b")
    if lawful:
        view.apply(release)
    else:
        with pytest.raises(JournalBroken, match=f"a release at seq {seq}"):
            view.apply(release)


def test_what_lies_before_the_local_state_is_not_kept() -> None:
    view = JournalView()
    view.begin_at(Seq(3))
    for record in [claim(1), *(commit(seq) for seq in range(1, 6))]:
        view.apply(record)
    assert sorted(view.commits) == [3, 4, 5], "of `local` itself the sinks' marks are needed"


def test_an_end_that_was_read_before_the_group_began_counts_from_its_claim_on() -> None:
    view = folded([replace(claim(1), ended=("a",)), commit(1, ended=("b",))])
    assert view.ended == {"a": 0, "b": 1}
    assert JournalView.from_json(json.loads(json.dumps(view.to_json()))).ended == view.ended
