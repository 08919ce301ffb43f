"""Tests which part of the journal is kept around a change of owner."""

from __future__ import annotations

from pipeline_runtime.journal.records import Announce, Arm, Boundary, Claim, Commit, Record, Release
from pipeline_runtime.model.ids import Epoch, Seq
from workers.control.handovers.written import AFTER_MAX, BEFORE_MAX, written_around


def batch(seq: int, epoch: int, wait_ms: int | None = 40) -> Commit:
    node = "edge-a" if epoch == 1 else "edge-b"
    return Commit(Epoch(epoch), Boundary(Seq(seq), {}, 0), rows_in=seq, node=node, wait_ms=wait_ms)


def arm(order: str = "h") -> Arm:
    return Arm(Epoch(2), "token", order, "edge-b")


MOVE: list[tuple[int, Record]] = [
    (100, batch(1, 1)),
    (150, arm()),
    (180, Announce(Epoch(1), Boundary(Seq(2), {}, 0))),
    (190, Announce(Epoch(1), Boundary(Seq(3), {}, 0))),
    # the last batch and the release are one transaction
    (200, Release(Epoch(1), Seq(2), "token", "h", "edge-b")),
    (200, batch(2, 1)),
    (235, batch(3, 2, wait_ms=None)),
]


def test_the_batches_of_both_owners_and_what_prepared_the_cut() -> None:
    found = written_around(MOVE, 200)
    assert found is not None
    assert [(mark["what"], mark["at_ms"]) for mark in found["marks"]] == [
        ("armed", 150),
        ("announced", 180),
        ("released", 200),
    ]
    assert found["batches"] == [
        {"at_ms": 100, "node": "edge-a", "rows": 1, "wait_ms": 40},
        {"at_ms": 200, "node": "edge-a", "rows": 2, "wait_ms": 40},
        {"at_ms": 235, "node": "edge-b", "rows": 3, "wait_ms": None},
    ]


def test_no_more_than_the_nearest_batches_are_kept() -> None:
    many = [(at, batch(at, 1)) for at in range(1, 101)]
    later = [(at, batch(at, 2)) for at in range(300, 400)]
    found = written_around([*many, *MOVE[1:], *later], 200)
    assert found is not None
    nodes = [each["node"] for each in found["batches"]]
    assert (nodes.count("edge-a"), nodes.count("edge-b")) == (BEFORE_MAX, AFTER_MAX)


def test_other_changes_of_owner_bound_it() -> None:
    before: list[tuple[int, Record]] = [
        (10, batch(1, 1)),
        (15, arm("earlier")),
        (20, Claim(Epoch(1), "x", "edge-a")),
    ]
    after: list[tuple[int, Record]] = [(240, Claim(Epoch(3), "y", "edge-a")), (250, batch(4, 3))]
    found = written_around([*before, *MOVE, *after], 200)
    assert found == written_around(MOVE, 200)


def test_without_the_change_of_owner_nothing_is_kept() -> None:
    assert written_around(MOVE[:4], 200) is None
    assert written_around([(200, Claim(Epoch(2), "h", "edge-b"))], 200) == {
        "marks": [{"what": "claimed", "at_ms": 200}],
        "batches": [],
    }
