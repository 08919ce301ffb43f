"""When the rows of groups that end are delivered to systems outside. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from workers.control.operations.limits import LIMIT_MS, asks_again, enter, in_vain, wait
from workers.control.operations.model import (
    CountUndelivered,
    NoteUndelivered,
    Observed,
    Progress,
    Step,
    Undelivered,
)
from workers.control.operations.phases import OperationPhase as P


def deliver(progress: Progress, seen: Observed, now_ms: int) -> Step:
    """Waits for as long as rows are delivered, and ends LIMIT_MS after the last one."""
    answer = seen.kafka
    if progress.hurries:  # a connector that has ended no longer tells why it failed
        return count_last(progress, seen) or enter(P.STOP, now_ms)
    if answer is None:
        return CountUndelivered()
    if answer.away:
        awaited = [f"Kafka to say how many rows are not delivered: {answer.away}"]
    elif _has_moved(progress.undelivered, answer.undelivered):
        return NoteUndelivered(answer.undelivered, now_ms + LIMIT_MS[P.DELIVER])
    else:
        up = {each.group for each in seen.groups if each.node_up}
        awaited = [
            f"{each.title} to deliver {_rows(each)}"
            for each in answer.undelivered
            if each.rows and each.group in up
        ]
        if not awaited:
            return enter(P.STOP, now_ms)
    if in_vain(progress, seen, now_ms):
        return enter(P.STOP, now_ms)
    return CountUndelivered() if asks_again(answer, now_ms) else wait(seen, *awaited)


def count_last(progress: Progress, seen: Observed) -> Step | None:
    """Returns how to learn what was not delivered when nothing runs any more, or None if it is stored, or if
    Kafka does not answer."""
    answer = seen.kafka
    if not progress.delivers or (answer is not None and answer.away):
        return None
    if answer is None:
        return CountUndelivered()
    if answer.undelivered == progress.undelivered:
        return None
    return NoteUndelivered(answer.undelivered, progress.deadline_ms)


def _has_moved(before: Iterable[Undelivered], now: Iterable[Undelivered]) -> bool:
    return {each.element: each.at for each in before} != {each.element: each.at for each in now}


def not_delivered(undelivered: Iterable[Undelivered]) -> str:
    """Returns which rows were not delivered, as the end of a message. It is empty if all were."""
    left = "; ".join(f"{_rows(each)} of {each.title}" for each in undelivered if each.rows)
    return left and f" Not delivered: {left}."


def _rows(each: Undelivered) -> str:
    """Returns how many rows wait, and why if their connector fails."""
    count = "1 row" if each.rows == 1 else f"{each.rows:,} rows"
    why = f" ({each.why})" if each.why else ""
    return f"{'about ' if each.estimated else ''}{count}{why}"
