"""Orders the moves of each queue: each move when the move before it is done.

Each look starts from the database alone: the queue's rows say what waits, and their handovers what became of
the others. So if anything is lost or dies half way, the next look goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import Role
from webapp.audit.announcements import announce
from webapp.audit.records import record_event
from webapp.handovers.actions import migrate
from webapp.handovers.facts import deployed_group
from webapp.handovers.models import QueuedMove
from webapp.handovers.queues import locked_queue
from webapp.placements.models import Deployment
from webapp.problems import Problem
from workers.control.bulkhead import Bulkhead
from workers.control.handovers.drains import is_starting

Outcome = QueuedMove.Outcome


@dataclass(frozen=True)
class Queued:
    """A move as the database has it."""

    outcome: str | None = None
    ordered: bool = False
    ended: str | None = None  # how its handover ended; "failed" also if it could not be ordered


@dataclass(frozen=True)
class Ended:
    """What became of a move that needs no handover, or can have none."""

    outcome: str
    why: str


def next_step(queue: Sequence[Queued]) -> tuple[list[str | None], int | None]:
    """Returns the outcome that each move has now, and which of them is to be ordered. Pure.

    A move that ends otherwise than done leaves out those that wait behind it. One that was cancelled while it
    waited leaves out nothing: it had its outcome before.
    """
    outcomes: list[str | None] = []
    stopped = False
    for move in queue:
        outcome = move.outcome or move.ended
        if stopped and outcome is None and not move.ordered:
            outcome = Outcome.LEFT_OUT
        stopped = stopped or (move.outcome is None and outcome in (Outcome.FAILED, Outcome.CANCELLED))
        outcomes.append(outcome)
    first = next((index for index, outcome in enumerate(outcomes) if outcome is None), None)
    return outcomes, None if first is None or queue[first].ordered else first


def tend_queues(bulkhead: Bulkhead) -> None:
    """Takes the next step of each queue that has not ended."""
    waiting = QueuedMove.objects.filter(outcome__isnull=True).order_by()
    for deployment in waiting.values_list("deployment", flat=True).distinct():
        alert = "The next move of a queue could not be ordered. It is tried again."
        with bulkhead.only(f"the queue of {deployment}", alert, ""), transaction.atomic():
            while _step(locked_queue(deployment)):
                pass


def _step(queue: Sequence[QueuedMove]) -> bool:
    """Orders the next move, and writes what has ended. Returns whether the one behind it is due at once."""
    seen = [
        Queued(move.outcome, move.handover is not None, move.handover.outcome if move.handover else None)
        for move in queue
    ]
    outcomes, due = next_step(seen)
    ended = None if due is None else _order(queue[due])
    if due is not None and ended is not None:
        seen[due] = replace(seen[due], ended=ended.outcome)
        outcomes, _ = next_step(seen)
    _write(queue, outcomes, ended)
    return ended is not None and ended.outcome == Outcome.DONE


def _order(move: QueuedMove) -> Ended | None:
    """Orders the move with the rights of whoever queued it. Returns None if it moves now, or still waits."""
    name, who = move.deployment.pipeline.name, move.created_by
    if move.deployment.status not in (Deployment.Status.DEPLOYING, Deployment.Status.RUNNING):
        return _refused(f"{move.deployment.pipeline.title} was undeployed before its turn came.")
    if who is None or not who.may(Role.OPERATOR):
        by = "whoever ordered it" if who is None else who.username
        why = f"{_name(move)} was not moved to {move.target}: {by} may no longer move elements."
        return _refused(why, "Somebody who may has to order it again.")
    try:
        _, group = deployed_group(name, move.element, "move")
        if group.handover is not None:
            _wait(move, "Another order moves it now. It waits for the end of that.")
            return None
        if group.node == move.target:
            return Ended(Outcome.DONE, f"It ran on {move.target} already.")
        if is_starting(group):
            _wait(move, "It has not started on its node yet.")
            return None
        move.handover = migrate(who, name, move.element, move.target)
    except Problem as problem:
        return _refused(problem.detail, problem.next)
    move.message = ""
    move.save(update_fields=["handover", "message"])
    return None


def _refused(why: str, what_to_do: str | None = None) -> Ended:
    return Ended(Outcome.FAILED, f"{why} {what_to_do or 'Order it again when that has changed.'}")


def _wait(move: QueuedMove, why: str) -> None:
    if move.message != why:
        move.message = why
        move.save(update_fields=["message"])
        announce()


def _write(queue: Sequence[QueuedMove], outcomes: Sequence[str | None], ended: Ended | None) -> None:
    """Writes what has ended since the last look. Tells it if a move was refused, or others are left out."""
    stopped: QueuedMove | None = None
    why, left = "", 0
    for move, outcome in zip(queue, outcomes, strict=True):
        if outcome is None or move.outcome is not None:
            continue
        move.outcome, move.ended_at = outcome, timezone.now()
        if outcome == Outcome.LEFT_OUT:
            left += 1
            move.message = f"It stays where it is: {why}"
        elif move.handover is None and ended is not None:
            move.message = ended.why
        if outcome in (Outcome.FAILED, Outcome.CANCELLED):
            stopped, why = move, move.message or f"{_name(move)} was not moved to {move.target}."
        move.save(update_fields=["outcome", "message", "ended_at"])
        announce()
    if stopped is not None and (left or stopped.handover is None):
        _tell(stopped, why, left)


def _tell(move: QueuedMove, why: str, left: int) -> None:
    behind = "1 move that waited" if left == 1 else f"{left} moves that waited"
    after = f" {behind} after it will not be made. Order again the moves that you still want." if left else ""
    record_event(
        "move.left_out",
        f"{why}{after}",
        severity="info" if move.outcome == Outcome.CANCELLED else "warning",
        pipeline=move.deployment.pipeline.name,
        element=move.element,
        node=move.target,
    )


def _name(move: QueuedMove) -> str:
    return move.deployment.name_of(move.element)
