"""Notices event times of a user's topic that are likely to be wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

FAR_AHEAD_MS = 900_000
"""Few clocks are wrong by 15 minutes. A time that is ahead by more has moved the watermark for as long."""
FAR_BEHIND_MS = 10 * 365 * 86_400_000


class TimesSeen:
    """The event times of one input, against the time of their arrival."""

    def __init__(self, topic: str, *, is_field: bool) -> None:
        """`is_field`: a field holds the event time, and the user has said in which unit."""
        self._topic = topic
        self._is_field = is_field
        self._ahead_until_ms = 0  # the newest time that was far ahead: until then, rows may be late
        self._told_behind = False

    def add(self, newest_ms: int, arrived_ms: int) -> str | None:
        """Takes note of the newest event time of some rows, and of their arrival. Returns what people should
        know, or None.

        A time far ahead is told once until the clock has reached it, and so has that of each row that is far
        ahead by then. A topic whose times are always ahead, in the local time of a zone, is told once.
        """
        ahead_ms = newest_ms - arrived_ms
        if ahead_ms > FAR_AHEAD_MS:
            is_told = arrived_ms < self._ahead_until_ms
            self._ahead_until_ms = max(self._ahead_until_ms, newest_ms)
            return None if is_told else self._far_ahead(newest_ms, ahead_ms)
        if self._is_field and -ahead_ms > FAR_BEHIND_MS and not self._told_behind:
            self._told_behind = True
            return (
                f"The newest event time that was read of {self._topic} is {_text_of(newest_ms)}. Is the unit"
                " of the field right?"
            )
        return None

    def _far_ahead(self, newest_ms: int, ahead_ms: int) -> str:
        limit = "" if not self._is_field else " If the field is in UTC, a few minutes are enough."
        return (
            f"A row of {self._topic} has the event time {_text_of(newest_ms)}, which is {_span(ahead_ms)}"
            " after its arrival. Until then, windows may take rows with an earlier time for late, and make"
            f' dead letters of them. The parameter "Longest time ahead" refuses such rows.{limit}'
        )


def _text_of(time_ms: int) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _span(ms: int) -> str:
    minutes = ms / 60_000
    return f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.1f} hours"
