"""The states of many keys as columns: one value, or some values, of each key.

A state is kept as a list of the values of its columns. A column with some values for each key is kept as the
bytes of its numbers, since to read and write each number would cost more than to use it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
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


_TYPES: Mapping[Column, Any] = {
    Column.NUMBER: np.dtype("<f8"),
    Column.WHOLE: np.dtype("<i8"),
    Column.SUM: np.dtype("<f8"),
    Column.COUNT: np.dtype("<i8"),
    Column.NUMBERS: np.dtype("<f8"),
    Column.WHOLES: np.dtype("<i8"),
}
_NEW: Mapping[Column, Any] = {
    Column.NUMBER: float("nan"),
    Column.WHOLE: NOT_SET,
    Column.SUM: 0.0,
    Column.COUNT: 0,
    Column.NUMBERS: b"",
    Column.WHOLES: b"",
}

_LISTS = (Column.NUMBERS, Column.WHOLES)


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
            if column in _LISTS:
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
        if column in _LISTS:
            found[name] = np.frombuffer(value, _TYPES[column]).tolist()
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
    data = values.numbers.astype(type_, copy=False).tobytes()
    ends = (values.ends * type_.itemsize).tolist()
    return [data[first:end] for first, end in zip([0, *ends], ends)]  # noqa: B905 - ends go on
