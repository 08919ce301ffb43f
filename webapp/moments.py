"""Moments as Django keeps them, as milliseconds since 1970, and as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def moment_of_ms(time_ms: int) -> datetime:
    """Returns the moment, exactly. Raises OverflowError outside the years 1 to 9999."""
    return _EPOCH + time_ms * _MS


def ms_of_moment(moment: datetime) -> int:
    """Returns the milliseconds since 1970 at `moment`, rounded down."""
    return (moment - _EPOCH) // _MS


def iso_of(moment: datetime | None) -> str | None:
    """Returns the moment in ISO 8601, or None if there is none."""
    return None if moment is None else moment.isoformat()


def iso_of_ms(time_ms: int | None) -> str | None:
    """Returns the moment in ISO 8601. Returns None if it is None, or outside the years 1 to 9999."""
    try:
        return None if time_ms is None else moment_of_ms(time_ms).isoformat()
    except OverflowError:
        return None
