"""The states of many keys as columns: one value, or some values, of each key.

A state is kept as a list of the values of its columns. A column with some values for each key is kept as the
bytes of its numbers, since to read and write each number would cost more than to use it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline_runtime.model.schema import FieldType, StreamSchema

NOT_SET = -(2**63)
"""Stands for no value in a column of whole numbers. A column of numbers has NaN there."""


class Column(Enum):
    """What a column of the states has for each key."""

    NUMBER = "a number, NaN for a new key"
    WHOLE = "a whole number, NOT_SET for a new key"
    SUM = "a number, 0 for a new key"
    COUNT = "a whole number, 0 for a new key"
    NUMBERS = "some numbers"
    WHOLES = "some whole numbers"
    DIGESTS = "some digests, see row_digests"
    VALUES = "some values of any kind, or None"


_TYPES: Mapping[Column, Any] = {
    Column.NUMBER: np.dtype("<f8"),
    Column.WHOLE: np.dtype("<i8"),
    Column.SUM: np.dtype("<f8"),
    Column.COUNT: np.dtype("<i8"),
    Column.NUMBERS: np.dtype("<f8"),
    Column.WHOLES: np.dtype("<i8"),
    Column.DIGESTS: np.dtype("V16"),
    Column.VALUES: np.dtype(object),
}
_NEW: Mapping[Column, Any] = {
    Column.NUMBER: float("nan"),
    Column.WHOLE: NOT_SET,
    Column.SUM: 0.0,
    Column.COUNT: 0,
    Column.NUMBERS: b"",
    Column.WHOLES: b"",
    Column.DIGESTS: b"",
    Column.VALUES: (),
}

_LISTS = (Column.NUMBERS, Column.WHOLES, Column.DIGESTS)
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True)
class Lists:
    """A list of numbers for each key: how many it has, and the numbers of one key behind those of another."""

    counts: NDArray[np.int64]
    numbers: NDArray[Any]

    @property
    def ends(self) -> NDArray[np.int64]:
        return np.cumsum(self.counts)

    def of(self, key: int) -> NDArray[Any]:
        """Returns the numbers of one key."""
        end = int(self.counts[: key + 1].sum())
        return self.numbers[end - int(self.counts[key]) : end]

    def last(self, most: int | NDArray[np.int64]) -> Lists:
        """Returns the last numbers of each list, at most so many."""
        counts = np.minimum(self.counts, most)
        return Lists(counts, self.numbers[ranges(self.ends - counts, counts)])

    def chosen(self, which: NDArray[np.bool_]) -> Lists:
        """Returns of each list the numbers that are chosen."""
        before = np.concatenate([[0], np.cumsum(which)])
        ends = self.ends
        return Lists(before[ends] - before[ends - self.counts], self.numbers[which])

    def replaced(self, others: Mapping[int, Any]) -> Lists:
        """Returns the lists with others in place of some of them."""
        if not others:
            return self
        starts, type_ = self.ends - self.counts, self.numbers.dtype
        parts = [
            np.array(others[place], type_) if place in others else self.numbers[first:end]
            for place, (first, end) in enumerate(zip(starts.tolist(), self.ends.tolist(), strict=True))
        ]
        return Lists(np.array([len(part) for part in parts], np.int64), np.concatenate(parts))

    def in_turn(self) -> NDArray[np.bool_]:
        """Returns for each list whether no number is less than the one before."""
        falls = np.flatnonzero(self.numbers[1:] < self.numbers[:-1]) + 1
        ends = self.ends
        lists = np.searchsorted(ends, falls, side="right")
        found = np.ones(len(self.counts), bool)
        found[lists[falls != (ends - self.counts)[lists]]] = False
        return found

    def apart(self, reach: int) -> NDArray[np.int64] | None:
        """Returns whole numbers in which each list stands in a range of its own, more than `reach` from the
        others, so that one search finds a place in each list. Returns None if there is no room for that."""
        if not len(self.numbers):
            return self.numbers
        least = int(self.numbers.min())
        width = int(self.numbers.max()) - least + reach + 1
        if width > _INT64_MAX // (len(self.counts) + 1):
            return None
        found: NDArray[np.int64] = self.numbers - least
        found += np.repeat(np.arange(len(self.counts)) * width, self.counts)
        return found


class Joined:
    """Lists of which each has some numbers of a state before those of a batch."""

    def __init__(self, kept: NDArray[np.int64], new: NDArray[np.int64]) -> None:
        """`kept` and `new` say how many numbers each list has of both."""
        self.counts = kept + new
        self.new_counts = new
        starts = np.cumsum(self.counts) - self.counts
        self.starts = starts
        self.kept = ranges(starts, kept)
        """Where the numbers of the states are."""
        self.new = ranges(starts + kept, new)
        """Where the numbers of the batch are."""

    def new_behind(self, count: int) -> NDArray[np.int64]:
        """Returns which of the batch's numbers have at least so many others of their list before them."""
        return np.flatnonzero(self.new - np.repeat(self.starts, self.new_counts) >= count)

    def new_numbers(self) -> NDArray[np.int64]:
        """Returns for each of the batch's numbers which of the batch it is in its list, from 0."""
        return ranges(np.zeros_like(self.new_counts), self.new_counts)

    def lists(self, kept: NDArray[Any], new: NDArray[Any]) -> Lists:
        numbers = np.empty(len(kept) + len(new), new.dtype)
        numbers[self.kept], numbers[self.new] = kept, new
        return Lists(self.counts, numbers)


class KeyStates:
    """The states of some keys. `states[name]` is an array with a value for each key, or Lists."""

    def __init__(self, columns: Mapping[str, Column], stored: Sequence[Sequence[Any] | None]) -> None:
        """`stored` has what was kept for each key, or None."""
        self._columns = columns
        self._values: dict[str, Any] = {}
        new = [_NEW[column] for column in columns.values()]
        values = zip(*(new if each is None else each for each in stored), strict=True)
        for (name, column), given in zip(columns.items(), values, strict=True):
            type_ = _TYPES[column]
            if column is Column.VALUES:
                counts = np.array([len(each) for each in given], np.int64)
                numbers = np.fromiter(chain.from_iterable(given), type_, int(counts.sum()))
                self._values[name] = Lists(counts, numbers)
            elif column in _LISTS:
                counts = np.array([len(each) for each in given], np.int64) // type_.itemsize
                self._values[name] = Lists(counts, np.frombuffer(b"".join(given), type_))
            else:
                self._values[name] = np.array(given, type_)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __setitem__(self, name: str, values: NDArray[Any] | Lists) -> None:
        self._values[name] = values

    def kept(self) -> Iterator[tuple[Any, ...]]:
        """Yields what is kept for each key in turn."""
        return zip(
            *(_plain(self._values[name], _TYPES[column]) for name, column in self._columns.items()),
            strict=True,
        )


def is_integer(schema: StreamSchema, name: str) -> bool:
    """Returns whether a column's numbers are kept as whole numbers."""
    field = schema.field(name)
    return field is not None and field.type in (FieldType.INTEGER, FieldType.BOOLEAN)


def finite(values: NDArray[Any]) -> NDArray[np.float64]:
    """Returns the numbers as an output may have them: NaN, which stands for null, for what is too large."""
    found = np.asarray(values, np.float64)
    return np.where(np.isfinite(found), found, np.nan)


def readable(columns: Mapping[str, Column], state: Sequence[Any]) -> dict[str, Any]:
    """Returns a kept state for users: the values by name. None says that there is no value."""
    found: dict[str, Any] = {}
    for (name, column), value in zip(columns.items(), state, strict=True):
        if column is Column.VALUES:
            found[name] = value
        elif column in _LISTS:
            listed = np.frombuffer(value, _TYPES[column]).tolist()
            found[name] = [each.hex() for each in listed] if column is Column.DIGESTS else listed
        else:
            found[name] = None if value == NOT_SET or math.isnan(value) else value
    return found


def ranges(firsts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns `counts` numbers from each of `firsts` on, one range behind the other."""
    before = np.cumsum(counts) - counts
    found: NDArray[np.int64] = np.repeat(firsts - before, counts)
    return found + np.arange(len(found))


def _plain(values: NDArray[Any] | Lists, type_: np.dtype[Any]) -> Sequence[Any]:
    if not isinstance(values, Lists):
        return values.tolist()  # type: ignore[no-any-return]
    if type_.hasobject:
        each = values.numbers.tolist()
        return [each[end - count : end] for count, end in zip(values.counts, values.ends, strict=True)]
    data = values.numbers.astype(type_, copy=False).tobytes()
    ends = (values.ends * type_.itemsize).tolist()
    return [data[first:end] for first, end in zip([0, *ends], ends)]  # noqa: B905 - ends go on
