"""Tests the progress of a drain: each group counts once, on whichever node it is."""

from __future__ import annotations

from webapp.handovers.draining import Move, progress

A, B, C = (("d", group) for group in ("a", "b", "c"))


def move(group: tuple[str, str], outcome: str | None) -> Move:
    return Move(group, "machines", group[1], "edge-b", outcome)


def counted(placed: list[tuple[str, str]], *moves: Move) -> tuple[int, int, str | None]:
    found = progress(placed, moves)
    return found["moved"], found["total"], found["moving"] and found["moving"]["element"]


def test_a_drain_is_counted_from_its_first_move_to_its_last() -> None:
    assert counted([A, B, C]) == (0, 3, None)
    assert counted([A, B, C], move(A, None)) == (0, 3, "a")
    assert counted([B, C], move(A, None)) == (0, 3, "a"), "it owns elsewhere, and its move has not ended"
    assert counted([B, C], move(A, "done")) == (1, 3, None)
    assert counted([B, C], move(A, "done"), move(B, None)) == (1, 3, "b")
    assert counted([], move(A, "done"), move(B, "done"), move(C, "done")) == (3, 3, None)


def test_a_move_that_failed_is_still_to_be_done() -> None:
    assert counted([A, B], move(A, "failed"), move(B, "done")) == (0, 2, None)
    assert counted([A], move(A, "failed"), move(A, None), move(B, "done")) == (1, 2, "a")


def test_where_it_goes_is_said() -> None:
    assert progress([A], [move(A, None)])["moving"] == {
        "pipeline": "machines",
        "element": "a",
        "target": "edge-b",
    }
