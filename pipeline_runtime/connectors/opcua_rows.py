"""Turns values of an OPC UA server into rows. Pure: it does not know the client library."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

GOOD = 0
_OVERFLOW = 0x0480
"""The bits of a status that say: this is the status of a value, and values before it were dropped."""
_NUMBERS = 2**32 - 1
_SEVERITY = 30
_TEXT_MAX = 10_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Change:
    """A value that the server has sent."""

    column: str
    value: Any
    status: int
    time_us: int  # since 1970, by the source's clock


@dataclass
class Row:
    """Changes at one time, or the last ones up to it."""

    time_us: int
    values: dict[str, Any] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """Returns the worst status of its values."""
        return max(self.statuses.values(), key=lambda each: each >> _SEVERITY, default=GOOD)


def is_good(status: int) -> bool:
    return status >> _SEVERITY == 0


def has_dropped(status: int) -> bool:
    """Returns whether the server says that it has dropped values before this one."""
    return status & _OVERFLOW == _OVERFLOW


def missed_before(last: int | None, number: int) -> int:
    """Returns how many messages are missing between two. They are numbered from 1 to 2**32 - 1, and then
    from 1 again. `last` is None before the first."""
    if last is None:
        return 0
    missed = (number - last - 1) % _NUMBERS
    return missed if missed < _NUMBERS // 2 else 0  # else the server has begun from an earlier number


def rows_of(changes: Iterable[Change]) -> list[Row]:
    """Returns the changes of one message as rows, by time. Two of a column at the same time are two rows, in
    the order in which they came."""
    made: list[Row] = []
    for change in sorted(changes, key=lambda each: each.time_us):
        row = made[-1] if made else None
        if row is None or row.time_us != change.time_us or change.column in row.values:
            row = Row(change.time_us)
            made.append(row)
        row.values[change.column] = plain(change.value) if is_good(change.status) else None
        row.statuses[change.column] = change.status
    return made


class Image:
    """The last values of all columns, for rows that repeat them."""

    def __init__(self, unchanged: Literal["empty", "last"]) -> None:
        self._repeats = unchanged == "last"
        self._values: dict[str, Any] = {}
        self._statuses: dict[str, int] = {}

    def completed(self, row: Row) -> Row:
        """Returns the row with the last values of the other columns, if they are to be repeated."""
        if not self._repeats:
            return row
        self._values |= row.values
        self._statuses |= row.statuses
        return Row(row.time_us, dict(self._values), dict(self._statuses))


def record(row: Row, quality: str) -> bytes:
    """Returns the record that OpcUaIn.reading reads. `quality`: the name of the row's status."""
    whole = {"time": row.time_us, "values": row.values, "quality": quality}
    return json.dumps(whole, ensure_ascii=False).encode()


def plain(value: Any) -> Any:
    """Returns a value as JSON has it: a scalar, or a text. Numbers that are none (NaN) are None."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value)  # also of an enumeration
        case float():
            return value if math.isfinite(value) else None
        case datetime():
            return _utc(value).isoformat()
        case date():
            return value.isoformat()
        case bytes():
            return value.hex()
        case Mapping() | list() | tuple():
            return json.dumps(_inner(value), ensure_ascii=False)[:_TEXT_MAX]
    text = getattr(value, "Text", None)  # a text with its language
    return text if isinstance(text, str) else str(value)[:_TEXT_MAX]


def _inner(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _inner(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_inner(each) for each in value]
    return plain(value)


def time_us_of(times: Iterable[datetime | None]) -> int | None:
    """Returns the first of the times that is given."""
    first = next((each for each in times if each is not None), None)
    return None if first is None else (_utc(first) - _EPOCH) // timedelta(microseconds=1)


def _utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
