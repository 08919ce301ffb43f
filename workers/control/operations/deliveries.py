"""When the rows of groups that end are delivered to systems outside. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workers.control.operations.limits import LIMIT_MS, asked_long_enough, asks_again, enter, in_vain, wait
from workers.control.operations.model import (
    Answer,
    CountUndelivered,
    GroupSeen,
    NoteUndelivered,
    Observed,
    Progress,
    Step,
    Undelivered,
)
from workers.control.operations.phases import OperationPhase as P


def deliver(progress: Progress, seen: Observed, now_ms: int) -> Step:
    """Waits for as long as rows are delivered, and ends LIMIT_MS after the last one.

    When Kafka answers again after it was away, that time begins again. Kafka itself is waited for as long.
    """
    answer = seen.kafka
    if answer is None:
        return CountUndelivered()
    if not answer.noted and answer.undelivered != progress.undelivered:
        has_moved = _has_moved(progress.undelivered, answer.undelivered)
        until_ms = now_ms + LIMIT_MS[P.DELIVER] if has_moved else progress.deadline_ms
        return NoteUndelivered(answer.undelivered, until_ms)
    awaited = _awaited(answer, seen)
    # What is counted here says why a connector fails. One that has ended says it no longer.
    if not awaited or progress.hurries or in_vain(progress, seen, now_ms):
        return enter(P.STOP, now_ms)
    return CountUndelivered() if asks_again(answer, now_ms) else wait(seen, *awaited)


def _awaited(answer: Answer, seen: Observed) -> list[str]:
    """Returns what is waited for, in words. A node that does not answer may only be starting again."""
    if answer.away:
        return [f"Kafka to say how many rows are not delivered: {answer.away}"]
    groups = {each.group: each for each in seen.groups}
    return [
        f"{each.title} to deliver {rows_words(each)}{_why(each) if group.node_up else _silent(group)}"
        for each in answer.undelivered
        if each.rows and (group := groups.get(each.group)) is not None
    ]


def _silent(group: GroupSeen) -> str:
    return f" ({group.node} does not answer)"


def count_last(progress: Progress, seen: Observed, now_ms: int) -> Step | None:
    """Returns how to learn what was not delivered when nothing runs any more, or None if it is stored.

    If Kafka does not answer until the phase's time is over, it is stored that nobody knows.
    """
    answer = seen.kafka
    if not progress.delivers:
        return None
    if answer is None:
        return CountUndelivered()
    if answer.away and not asked_long_enough(progress, now_ms):
        if asks_again(answer, now_ms):
            return CountUndelivered()
        return wait(seen, f"Kafka to say how many rows were not delivered: {answer.away}")
    if answer.noted or answer.undelivered == progress.undelivered:
        return None
    return NoteUndelivered(answer.undelivered, progress.deadline_ms)


def _has_moved(before: Iterable[Undelivered], now: Iterable[Undelivered]) -> bool:
    """Returns whether a row was delivered, or whether Kafka answers and did not before, or the other way
    round."""
    return {_place(each) for each in before} != {_place(each) for each in now}


def _place(each: Undelivered) -> tuple[str, int | None]:
    return each.element, None if each.rows is None else each.at


def not_delivered(undelivered: Iterable[Undelivered], *, kept: bool = False) -> str:
    """Returns which rows were not read or not delivered, as the end of a message. It is empty if all were.
    `kept`: their streams go on to exist, so the rows are not lost."""
    found = tuple(undelivered)
    text = ""
    if unread := "; ".join(
        f"{rows_words(each)} of {each.title}" for each in found if each.unread and each.rows
    ):
        text = f" Not read any more: {unread}."
    if known := "; ".join(
        f"{rows_words(each)} of {each.title}{_why(each)}" for each in found if each.rows and not each.unread
    ):
        text += f" Not delivered{' yet' if kept else ''}: {known}."
        if kept:
            text += " These rows go with the next deployment, or when it is undeployed."
    return text + _unknown([each for each in found if each.rows is None])


def _unknown(unknown: Sequence[Undelivered]) -> str:
    """Returns of what Kafka said nothing, and that these streams are kept, as the end of a message."""
    text = ""
    for unread, what in ((True, "read"), (False, "delivered")):
        # An element may read several streams.
        if titles := ", ".join(dict.fromkeys(each.title for each in unknown if each.unread is unread)):
            text += f" Kafka did not say how many rows of {titles} were not {what}."
    if unknown:
        topics = ", ".join(dict.fromkeys(each.topic for each in unknown))
        text += f" These streams are kept in Kafka: {topics}. Delete them there when nobody needs them."
    return text


def rows_words(each: Undelivered) -> str:
    """Returns how many rows, as "about 3,000 rows"."""
    return f"{'about ' if each.estimated else ''}{'1 row' if each.rows == 1 else f'{each.rows:,} rows'}"


def _why(each: Undelivered) -> str:
    return f" ({each.why})" if each.why else ""
