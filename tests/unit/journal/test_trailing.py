"""A replica that starts again from its mark knows what it would know if it had read the whole journal."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from pipeline_runtime.journal.records import Announce, Arm, Boundary, Claim, Commit, Record, Release, Totals
from pipeline_runtime.journal.trailing import TrailingView
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.model.ids import Epoch, Seq

KINDS = ("commit", "commit", "commit", "claim", "rewind", "fresh", "move", "release", "armed", "announce")


@st.composite
def journals(draw: st.DrawFn) -> list[Record]:
    """As owners write them: seqs follow each other, and no rewind goes to what is void."""
    records: list[Record] = [Claim(Epoch(1), "first", "a", {"in-0": 0})]
    view = JournalView()
    view.apply(records[0])
    for place in range(draw(st.integers(1, 30))):
        record = _record(draw, draw(st.sampled_from(KINDS)), view, place)
        records.append(record)
        view.apply(record, place)
    return records


def _record(draw: st.DrawFn, kind: str, view: JournalView, place: int) -> Record:
    epoch, seq = view.granted, Seq(view.last_seq + 1)
    order, node = f"o{place}", draw(st.sampled_from("abc"))
    ended = tuple(draw(st.sets(st.sampled_from(["in-0", "in-1"]), max_size=1)))
    match kind:
        case "commit":
            elements = {"a": (draw(st.integers(0, place)), None, 0)}
            totals = Totals(place, place, draw(st.integers(0, 1)), elements)
            boundary = Boundary(seq, {"in-0": place}, place)
            return Commit(epoch, boundary, 1, 1, marks={"out": place}, ended=ended, totals=totals)
        case "rewind":
            sound = [Seq(at) for at in range(view.last_seq + 1) if not view.is_void(Seq(at))]
            return Claim(Epoch(epoch + 1), order, node, rewind=draw(st.sampled_from(sound)))
        case "claim":
            return Claim(Epoch(epoch + 1), order, node, ended=ended)
        case "fresh":
            return Claim(Epoch(epoch + 1), order, node, fresh=True)
        case "move":
            return Claim(Epoch(epoch + 1), order, node, moves={"in-1": place})
        case "release":
            return Release(epoch, view.last_seq, f"t{place}", order, node)
        case "armed":
            return Arm(Epoch(epoch + 1), f"t{place}", order, node)
    return Announce(epoch, Boundary(seq, {"in-0": place}, place))


def known(view: JournalView, local: Seq) -> tuple[Any, ...]:
    behind = {seq: commit for seq, commit in view.commits.items() if seq > local}
    return (view.to_json(), behind, view.announced)


@given(journals(), st.data())
def test_a_restart_from_the_mark_drops_nothing(journal: list[Record], data: st.DataObject) -> None:
    whole = JournalView()
    for at, record in enumerate(journal):
        whole.apply(record, at)
    trailing = TrailingView(JournalView(), 0)
    read, local = 0, Seq(0)
    for _ in range(data.draw(st.integers(0, 4), "how often it notes its mark")):
        upto = data.draw(st.integers(read, len(journal)), "read up to")
        for at in range(read, upto):
            trailing.read(at, at, journal[at])
        read = upto
        local = Seq(data.draw(st.integers(local, whole.last_seq), "local"))
        trailing.come_to(local)
    view, offset = trailing.view.copy(), trailing.offset
    assert view.last_seq <= local, "no batch that is still to be followed is passed"
    view.begin_at(local)
    for at in range(offset, len(journal)):
        view.apply(journal[at], at)
    assert known(view, local) == known(whole, local)


@given(journals())
def test_what_was_read_is_taken_in_as_soon_as_it_was_followed(journal: list[Record]) -> None:
    """Else a mark would stay behind, and the journal may be trimmed up to it."""
    trailing = TrailingView(JournalView(), 0)
    for at, record in enumerate(journal):
        trailing.read(at, at, record)
        seq = record.seq if isinstance(record, Commit) else trailing.view.last_seq
        trailing.come_to(seq)
        assert (trailing.offset, trailing.read_to) == (at + 1, at + 1)
        assert set(trailing.view.commits) <= {seq}
