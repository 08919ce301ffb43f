"""The rows of a batch, sorted by key, and what comes out of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import EPOCH
from pipeline_runtime.operators.recording import arrow_type
from pipeline_runtime.operators.tables import rejects

_MICROSECOND = timedelta(microseconds=1)
_TIME = pa.timestamp("us", "UTC")
_NUMBER = FieldType.NUMBER

ROUND_KEYS_MIN = 64
"""With fewer keys a loop over the rows costs less than NumPy's calls."""

Made = tuple[Any, ...]
"""An output row: the place of the input row that it comes from, its event time in ms, and its values."""
Places = NDArray[np.int64]


class KeyedRows:
    """The rows of a batch that came to one port, sorted by key. A place is the number of a row in that order,
    from 0. The rows of a key are in the order in which they came."""

    def __init__(
        self, table: pa.Table, schema: StreamSchema, keys: Sequence[str], codes: NDArray[np.int32]
    ) -> None:
        """`codes` says for each row of the table which of the keys it has."""
        self.table = table
        self.schema = schema
        self._order = np.argsort(codes, kind="stable") if len(keys) > 1 else None
        counts = np.bincount(codes, minlength=len(keys))
        with_rows = np.flatnonzero(counts)
        self.counts: NDArray[np.int64] = counts[with_rows].astype(np.int64)
        self.ends: NDArray[np.int64] = np.cumsum(self.counts)
        self.keys = [*keys] if len(with_rows) == len(keys) else [keys[code] for code in with_rows.tolist()]
        self._lists: dict[Any, list[Any]] = {}
        self.made: list[Made] = []
        self.rejected: list[tuple[int, str]] = []
        self._given: list[tuple[Any, ...]] = []
        self._earlier: list[tuple[str, Sequence[Any]]] = []

    # -- all keys, as arrays -------------------------------------------------------------------------

    @cached_property
    def times(self) -> NDArray[np.int64]:
        """The event times in ms."""
        return self.by_place(self.table["_time"].cast(pa.int64()).to_numpy() // 1000)

    @cached_property
    def key_numbers(self) -> NDArray[np.int64]:
        """Which of `keys` each row has."""
        return np.repeat(np.arange(len(self.keys)), self.counts)

    def by_place(self, values: NDArray[Any]) -> NDArray[Any]:
        """Returns what there is for each row of the table, in the order of the places."""
        return values if self._order is None else values[self._order]

    def valid(self, name: str) -> Places:
        """Returns the places of the rows that have a value in that column."""
        column = self.table[name]
        if not column.null_count:
            return np.arange(len(column))
        return np.flatnonzero(self.by_place(column.is_valid().to_numpy()))

    def array(self, name: str, type_: pa.DataType | None = None) -> NDArray[Any]:
        """Returns a column of numbers, as floats if no other type is asked for. A null float is NaN; nulls of
        other types are 0."""
        type_ = type_ or pa.float64()
        column = self.table[name]
        if column.type != type_:
            column = column.cast(type_, safe=False)
        if column.null_count and not pa.types.is_floating(type_):
            column = column.fill_null(pa.scalar(0, type_))
        return self.by_place(column.to_numpy())

    def counts_of(self, places: Places) -> NDArray[np.int64]:
        """Returns how many of these rows each key has."""
        if len(places) == len(self.table):
            return self.counts
        return np.bincount(self.key_numbers[places], minlength=len(self.keys)).astype(np.int64)

    def accepted(self) -> Places:
        """Returns the places of all rows but those that were rejected."""
        places = np.arange(len(self.table))
        return np.delete(places, [place for place, _ in self.rejected]) if self.rejected else places

    def give(self, places: Places, times_ms: NDArray[np.int64], *columns: Any) -> None:
        """Adds output rows: for each its input row, its event time, and a column of each new field, as NumPy
        or Arrow arrays. An output row's event may not be of an earlier input row."""
        self._given.append((places, times_ms, *columns))

    # -- key by key, as lists ------------------------------------------------------------------------

    @cached_property
    def spans(self) -> dict[str, tuple[int, int]]:
        """Where the rows of each key are: the first place, and the place after the last."""
        ends = self.ends.tolist()
        return dict(zip(self.keys, zip([0, *ends], ends), strict=True))  # noqa: B905 - ends go on

    @cached_property
    def times_ms(self) -> list[int]:
        return self.times.tolist()  # type: ignore[no-any-return]

    def values(self, name: str) -> list[Any]:
        """Returns a column's values. Points in time are datetimes."""
        if name not in self._lists:
            self._lists[name] = self._list(self.table[name])
        return self._lists[name]

    def numbers(self, name: str) -> list[Any]:
        """Returns a column of numbers, in which true is 1."""
        return self._of_type(name, pa.int64()) if self.is_boolean(name) else self.values(name)

    def floats(self, name: str) -> list[float | None]:
        """Returns a column of numbers as floats."""
        return self._of_type(name, pa.float64())

    def kept_values(self) -> list[list[Any]]:
        """Returns the data columns in the form that a state holds. Points in time are in us."""
        return [
            self._of_type(field.name, pa.int64())
            if field.type is FieldType.TIMESTAMP
            else self.values(field.name)
            for field in self.schema.fields
        ]

    def add_earlier(self, key: str, values: Sequence[Any]) -> int:
        """Adds a row of an earlier batch, with its value of each of the columns of `kept_values`. Returns its
        place, for an output row."""
        self._earlier.append((key, values))
        return len(self.table) + len(self._earlier) - 1

    def is_boolean(self, name: str) -> bool:
        return bool(pa.types.is_boolean(self.table.schema.field(name).type))

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the data columns."""
        return self.schema.names

    def reject(self, place: int, error: Exception) -> None:
        self.rejected.append((place, f"{type(error).__name__}: {error}"))

    def dead_letters(self) -> pa.Table | None:
        """Returns the rows that were rejected, in the order in which they came."""
        if not self.rejected:
            return None
        places, reasons = zip(*self.rejected, strict=True)
        found = self.in_table(np.array(places, np.int64))
        order = np.argsort(found, kind="stable")
        return rejects(self.table.take(pa.array(found[order])), self.names, [reasons[each] for each in order])

    # -- output --------------------------------------------------------------------------------------

    def in_table(self, places: Places) -> Places:
        """Returns where the rows are in `table`; behind its end, in the order in which they were added, those
        of `add_earlier`."""
        if self._order is None or not len(places):
            return places
        count = len(self._order)
        if not self._earlier:
            return self._order[places]
        return np.where(places < count, self._order[np.minimum(places, count - 1)], places)

    def output(self, schema: StreamSchema, passed: Sequence[str]) -> pa.Table:
        """Returns what was made: the columns `passed` of the input, else the key, the new fields, `_key` and
        `_time`."""
        passed = passed or (() if schema.key is None else (schema.key,))
        new = [field for field in schema.fields if field.name not in passed]
        places, times_ms, columns = self._made(new)
        rows, input_order = self.in_table(places), self._leaving(places)
        if input_order is not None:
            rows, times_ms = rows[input_order], times_ms[input_order]
            columns = [each.take(pa.array(input_order)) for each in columns]
        given = self._with_earlier([*dict.fromkeys((*passed, "_key"))])
        if len(rows) != len(given) or not np.array_equal(rows, np.arange(len(given))):
            given = given.take(pa.array(rows))
        found = {name: given[name] for name in passed}
        found |= {field.name: column for field, column in zip(new, columns, strict=True)}
        return pa.table({**found, "_key": given["_key"], "_time": pa.array(times_ms * 1000).cast(_TIME)})

    def _made(self, new: Sequence[Field]) -> tuple[Places, NDArray[np.int64], list[pa.Array]]:
        """Returns the place, the event time and the columns of all output rows, in the order in which they
        were made."""
        nothing = [()] * (2 + len(new))
        places, times_ms, *values = zip(*self.made, strict=True) if self.made else nothing
        all_places, all_times = [np.array(places, np.int64)], [np.array(times_ms, np.int64)]
        if not self._given:
            return all_places[0], all_times[0], _columns(new, values)
        parts = [[each] for each in _columns(new, values)] if self.made else [[] for _ in new]
        for given_places, given_times, *columns in self._given:
            all_places.append(given_places)
            all_times.append(given_times)
            for field, part, column in zip(new, parts, columns, strict=True):
                part.append(_given_column(column, field.type))
        columns = [part[0] if len(part) == 1 else pa.concat_arrays(part) for part in parts]
        return np.concatenate(all_places), np.concatenate(all_times), columns

    def _leaving(self, places: Places) -> Places | None:
        """Returns the order in which output rows leave: that of the input rows with which they were made. The
        rows of a key leave in the order in which they were made. Returns None if they have it already."""
        if self._order is None and not self._given:
            return None
        made = len(self.made)
        # An earlier row leaves with the row of its key before it, or with the first.
        with_rows = np.where(places < len(self.table), places, 0)
        with_rows[:made] = np.maximum.accumulate(with_rows[:made])
        numbers = self.in_table(with_rows)
        if (numbers[1:] >= numbers[:-1]).all():
            return None
        return np.argsort(numbers, kind="stable")

    def _with_earlier(self, names: Sequence[str]) -> pa.Table:
        """Returns these columns of the table's rows, and behind them those that were added."""
        table = self.table.select(names)
        if not self._earlier:
            return table
        keys, values = zip(*self._earlier, strict=True)
        columns = {"_key": pa.array(keys, pa.string())}
        for field, column in zip(self.schema.fields, zip(*values, strict=True), strict=True):
            stored = pa.int64() if field.type is FieldType.TIMESTAMP else arrow_type(field.type)
            columns[field.name] = pa.array(column, stored).cast(arrow_type(field.type))
        return pa.concat_tables([table, pa.table(columns).select(names).cast(table.schema)])

    def _of_type(self, name: str, type_: pa.DataType) -> list[Any]:
        found = self._lists.get((name, type_))  # it is asked for each key
        if found is None:
            is_it = self.table.schema.field(name).type == type_
            found = self.values(name) if is_it else self._list(self.table[name].cast(type_, safe=False))
            self._lists[name, type_] = found
        return found

    def _list(self, column: pa.ChunkedArray) -> list[Any]:
        if pa.types.is_timestamp(column.type):
            times_us = self._list(column.cast(pa.int64()))
            return [None if each is None else EPOCH + each * _MICROSECOND for each in times_us]
        if column.null_count or not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            taken = column if self._order is None else column.take(pa.array(self._order))
            return taken.to_pylist()  # type: ignore[no-any-return]
        return self.by_place(column.to_numpy()).tolist()  # type: ignore[no-any-return]


class Rounds:
    """Goes through the rows of all keys, first the first row of each key, then the second, and so on.

    It is for what follows from the row before, as NumPy can do it for all keys at once. Keys come in the
    order of how many rows they have, most rows first.
    """

    def __init__(self, rows: KeyedRows) -> None:
        self._order = np.argsort(-rows.counts, kind="stable")
        self._counts = rows.counts[self._order]
        self._firsts = (rows.ends - rows.counts)[self._order]
        self._round = 0

    @property
    def has_many_keys(self) -> bool:
        """Whether there are rounds at all. Else each key comes in `rest`."""
        return len(self._counts) >= ROUND_KEYS_MIN

    def sorted(self, values: NDArray[Any]) -> NDArray[Any]:
        """Returns a copy of a column of the states, in the order of the keys."""
        return values[self._order]

    def as_before(self, values: NDArray[Any]) -> NDArray[Any]:
        """Returns a column of the states as it was before `sorted`."""
        found = np.empty_like(values)
        found[self._order] = values
        return found

    def __iter__(self) -> Iterator[Places]:
        """Yields the places of a round's rows. The keys are as many of the first."""
        keys = len(self._counts)
        rounds = int(self._counts[ROUND_KEYS_MIN - 1]) if self.has_many_keys else 0
        ended = np.searchsorted(self._counts[::-1], np.arange(rounds), side="right")
        for number, with_rows in enumerate((keys - ended).tolist()):
            self._round = number + 1
            yield self._firsts[:with_rows] + number

    def rest(self) -> Iterator[tuple[int, int, int]]:
        """Yields the number of each key that has rows left, the first of them, and the place after the
        last. Keys come in the order of the rows."""
        for key in np.argsort(self._order[: self._keys()]).tolist():
            first = int(self._firsts[key])
            yield key, first + self._round, first + int(self._counts[key])

    def _keys(self) -> int:
        return int(np.searchsorted(-self._counts, -self._round, side="left"))


def _given_column(values: Any, type_: FieldType) -> pa.Array:
    if not isinstance(values, np.ndarray):
        return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if type_ is FieldType.TIMESTAMP:
        return pa.array(values * 1000, pa.int64()).cast(_TIME)
    return pa.array(values, arrow_type(type_), from_pandas=True)


def _columns(fields: Sequence[Field], values: Sequence[Sequence[Any]]) -> list[pa.Array]:
    """Returns the column of each field. Columns of numbers are made at once: in a batch of few rows it is the
    calls that take the time."""
    pairs = list(zip(fields, values, strict=True))
    numbers = [each for field, each in pairs if field.type is _NUMBER]
    end_to_end = pa.array([value for column in numbers for value in column], pa.float64())
    found, place = [], 0
    for field, column in pairs:
        if field.type is not _NUMBER:
            found.append(_column(column, field.type))
            continue
        found.append(end_to_end.slice(place, len(column)))
        place += len(column)
    return found


def _column(values: Sequence[Any], type_: FieldType) -> pa.Array:
    """Returns an output's column. Points in time are in ms, or datetimes."""
    if type_ is not FieldType.TIMESTAMP:
        return pa.array(values, arrow_type(type_))
    if any(isinstance(value, datetime) for value in values):
        return pa.array(values, _TIME)
    return pa.array(values, pa.int64()).cast(pa.timestamp("ms", "UTC")).cast(_TIME)
