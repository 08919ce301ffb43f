"""The row that a KeyedProcessor gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Row(Mapping[str, Any]):
    """`row["power"]` is the value of that column, or None where the row has none. Points in time are
    datetimes. A column that has not been read costs nothing.

    One Row goes through all rows of a batch. So keep values of it in the state, never the Row itself.
    """

    __slots__ = ("_columns", "_names", "_times_us", "place")

    def __init__(
        self, names: Sequence[str], columns: Mapping[str, Sequence[Any]], times_us: Sequence[int]
    ) -> None:
        self._names = names
        self._columns = columns
        self._times_us = times_us
        self.place = 0  # the number of the row in its batch, from 0

    def __getitem__(self, name: str) -> Any:
        return self._columns[name][self.place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def time_ms(self) -> int:
        """The event time, in ms since 1970 (UTC)."""
        return self._times_us[self.place] // 1000

    @property
    def time(self) -> datetime:
        """The event time."""
        return _EPOCH + self._times_us[self.place] * _MICROSECOND

    def plus(self, **values: Any) -> RowPlus:
        """Returns an output row: this row with further values, by the names of the output's fields.

        Its other columns stay Arrow columns. So it costs much less than `{**row, ...}`, which gives the same.
        """
        return RowPlus(self, values)


class RowPlus:
    """What Row.plus returns."""

    __slots__ = ("place", "row", "values")

    def __init__(self, row: Row, values: Mapping[str, Any]) -> None:
        self.row = row
        self.place = row.place
        self.values = values


OutputRow = Mapping[str, Any] | RowPlus
"""An output row of a KeyedProcessor: the values of the output's fields by name, or what Row.plus returns. It
may say its event time as `_time`, a datetime."""
