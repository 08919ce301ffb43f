"""Laws of a queue of moves: one at a time, in order, and nothing behind a move that was not done."""

from __future__ import annotations

import django

django.setup()

import pytest  # noqa: E402
from hypothesis import given, strategies as st  # noqa: E402

from workers.control.handovers.queues import Queued, next_step  # noqa: E402

WAITS, MOVES = Queued(), Queued(ordered=True)
DONE, FAILED, CANCELLED = (Queued(outcome) for outcome in ("done", "failed", "cancelled"))


def ended(outcome: str) -> Queued:
    """Its handover has ended, and nobody has written that at the move yet."""
    return Queued(ordered=True, ended=outcome)


@pytest.mark.parametrize(
    ("queue", "outcomes", "due"),
    [
        ([], [], None),
        ([WAITS, WAITS], [None, None], 0),
        ([MOVES, WAITS], [None, None], None),
        ([ended("done"), WAITS, WAITS], ["done", None, None], 1),
        ([DONE, WAITS], ["done", None], 1),
        ([ended("failed"), WAITS, WAITS], ["failed", "left-out", "left-out"], None),
        ([ended("cancelled"), WAITS], ["cancelled", "left-out"], None),
        # it was cancelled while it waited: the others go on
        ([DONE, CANCELLED, WAITS], ["done", "cancelled", None], 2),
        ([MOVES, CANCELLED, WAITS], [None, "cancelled", None], None),
        ([ended("failed"), CANCELLED, WAITS], ["failed", "cancelled", "left-out"], None),
        # it could not be ordered
        ([DONE, Queued(ended="failed"), WAITS], ["done", "failed", "left-out"], None),
        # what was written before does not stop what was ordered since
        ([FAILED, WAITS], ["failed", None], 1),
    ],
)
def test_what_ends_and_what_is_ordered_next(
    queue: list[Queued], outcomes: list[str | None], due: int | None
) -> None:
    assert next_step(queue) == (outcomes, due)


outcomes = st.sampled_from(["done", "failed", "cancelled"])
moves = st.one_of(
    st.just(WAITS), st.just(MOVES), st.builds(Queued, outcome=outcomes), st.builds(ended, outcomes)
)


@given(st.lists(moves, max_size=6))
def test_no_move_is_ordered_while_one_before_it_has_not_ended(queue: list[Queued]) -> None:
    after, due = next_step(queue)
    if due is not None:
        assert None not in after[:due]
        assert not queue[due].ordered
