"""Computes aggregates of windows that have a fixed number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.aggregates import Function, evaluate
from pipeline_runtime.operators.key_states import Joined, Lists, finite
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.recording import arrow_type
from pipeline_runtime.operators.sliding import extremes, squares, sums

ARRAYS_MIN = 6_000
"""With fewer values in all windows it costs less to take one window after another than NumPy's calls do."""
_WINDOW_COST = 32  # values, at which a window costs as much besides
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True)
class Windows:
    """Windows of rows. Each begins at its number in `firsts`, and has so many rows."""

    firsts: NDArray[np.int64]
    counts: NDArray[np.int64]


class Values:
    """The values of a column: for each key those of the state, and behind them those of the batch.

    Numbers are floats. All others are whole numbers: true is 1, a point in time is in us, and a text is its
    place among all texts in their order.
    """

    def __init__(self, rows: KeyedRows, name: str, kept: Lists, joined: Joined) -> None:
        field = rows.schema.field(name)
        assert field is not None, name
        self.type = field.type
        self._texts: pa.Array | None = None
        column = rows.table[name]
        if self.type is FieldType.NUMBER:
            self._lists = joined.lists(kept.numbers, rows.array(name))
            self._given = ~np.isnan(self._lists.numbers)
            return
        given = rows.by_place(column.is_valid().to_numpy())
        kept_given = np.array([each is not None for each in kept.numbers.tolist()], bool)
        self._given = joined.lists(kept_given, given).numbers
        if self.type is FieldType.STRING:
            both = pa.concat_arrays([pa.array(kept.numbers, pa.string()), *column.chunks]).dictionary_encode()
            order = pc.sort_indices(both.dictionary).to_numpy()
            self._texts = both.dictionary.take(pa.array(order))
            ranks = np.empty(len(order) + 1, np.int64)
            ranks[order], ranks[-1] = np.arange(len(order)), 0
            codes = ranks[pc.fill_null(both.indices, -1).to_numpy()]
            kept_numbers, new = codes[: len(kept.numbers)], rows.by_place(codes[len(kept.numbers) :])
        else:
            kept_numbers = np.where(kept_given, kept.numbers, 0).astype(np.int64)
            new = rows.array(name, pa.int64())
        self._lists = joined.lists(kept_numbers, new)

    def last(self, most: int) -> Lists:
        """Returns the last values of each key as a state has them."""
        if self.type is FieldType.NUMBER:
            return self._lists.last(most)
        last = self._lists.last(most)
        given = Lists(self._lists.counts, self._given).last(most).numbers
        return Lists(last.counts, self._plain(last.numbers, given))

    def made(self, function: Function, windows: Windows) -> Any:
        """Returns what the function makes of each window, as a column of the output."""
        count = len(windows.firsts)
        values = int(windows.counts.sum()) + count * _WINDOW_COST
        steps = len(self._given) * int(windows.counts.max(initial=0)).bit_length()
        if values < ARRAYS_MIN + steps or not self._fits(function):
            return self._one_by_one(function, windows)
        firsts, ends = windows.firsts, windows.firsts + windows.counts
        before = np.concatenate([[0], np.cumsum(self._given)])
        given = before[ends] - before[firsts]
        match function:
            case Function.COUNT:
                return given
            case Function.MIN | Function.MAX:
                return self._column(self._extremes(function, windows), given > 0)
            case Function.FIRST | Function.LAST:
                known = np.flatnonzero(self._given)
                at = before[firsts] if function is Function.FIRST else before[ends] - 1
                numbers = self._lists.numbers[known[np.clip(at, 0, len(known) - 1)]] if len(known) else given
                return self._column(numbers, given > 0)
            case Function.SUM if self.type is FieldType.INTEGER:
                behind = np.concatenate([[0], np.cumsum(self._lists.numbers)])
                return self._column(behind[ends] - behind[firsts], given > 0)
        return self._computed(function, windows, given)

    def _computed(self, function: Function, windows: Windows, given: NDArray[np.int64]) -> Any:
        """Returns what is computed of floats. `given`: how many values each window has."""
        values = np.where(self._given, self._lists.numbers, 0).astype(np.float64)
        with np.errstate(all="ignore"):
            total = np.where(given > 0, sums(values, windows.firsts, windows.counts), np.nan)
            if function is Function.SUM:
                return finite(total)
            mean = total / given
            if function is Function.AVG:
                return finite(mean)
            if function is Function.STDDEV:
                found = squares(values, self._given, mean, windows.firsts, windows.counts)
                return finite(np.where(given > 1, np.sqrt(found / (given - 1)), np.nan))
            least, most = (self._extremes(each, windows) for each in (Function.MIN, Function.MAX))
            return finite(np.where(mean == 0, np.nan, (most - least) / mean * 100))

    def _extremes(self, function: Function, windows: Windows) -> NDArray[Any]:
        """Returns the least or the greatest value of each window. It means nothing if there is none."""
        numbers, is_least = self._lists.numbers, function is Function.MIN
        if not self._given.all():
            ends = (np.inf, -np.inf) if numbers.dtype == np.float64 else (_INT64_MAX, -_INT64_MAX - 1)
            numbers = np.where(self._given, numbers, ends[0] if is_least else ends[1])
        return extremes(np.minimum if is_least else np.maximum, numbers, windows.firsts, windows.counts)

    def _fits(self, function: Function) -> bool:
        """Returns whether arrays give the same as one window after another."""
        numbers = self._lists.numbers
        if numbers.dtype == np.float64:
            # The first one of 0.0 and -0.0 is the least, and the greatest.
            return function not in _COMPARE or not np.signbit(numbers[numbers == 0]).any()
        if function not in (Function.SUM, Function.RELATIVE_VARIATION) or not len(numbers):
            return True
        largest = max(abs(int(numbers.min())), abs(int(numbers.max())))
        return largest <= _INT64_MAX // (len(numbers) if function is Function.SUM else 2)

    def _one_by_one(self, function: Function, windows: Windows) -> pa.Array:
        values = self._all_plain
        made = [
            evaluate(function, values[first : first + count], count)
            for first, count in zip(windows.firsts.tolist(), windows.counts.tolist(), strict=True)
        ]
        if function is Function.COUNT:
            return pa.array(made, pa.int64())
        if function in _OF_NUMBERS:
            return pa.array(made, arrow_type(FieldType.NUMBER))
        type_ = arrow_type(self.type)
        is_whole = self.type in (FieldType.BOOLEAN, FieldType.TIMESTAMP)
        return pa.array(made, pa.int64()).cast(type_) if is_whole else pa.array(made, type_)

    @cached_property
    def _all_plain(self) -> list[Any]:
        return self._plain(self._lists.numbers, self._given).tolist()  # type: ignore[no-any-return]

    def _plain(self, numbers: NDArray[Any], given: NDArray[np.bool_]) -> NDArray[Any]:
        """Returns values as a state has them, and as `evaluate` takes them."""
        found = numbers.astype(object)
        if self._texts is not None and len(self._texts):
            found = np.array(self._texts.to_pylist(), object)[numbers]
        found[~given] = None
        return found

    def _column(self, numbers: NDArray[Any], given: NDArray[np.bool_]) -> pa.Array:
        """Returns values as a column of the output. Those that are not given are null."""
        if self._texts is not None:
            return self._texts.take(pa.array(numbers, pa.int64(), mask=~given))
        found = pa.array(numbers, mask=~given)
        return (
            found if self.type in (FieldType.NUMBER, FieldType.INTEGER) else found.cast(arrow_type(self.type))
        )


_COMPARE = (Function.MIN, Function.MAX, Function.RELATIVE_VARIATION)
_OF_NUMBERS = (Function.AVG, Function.STDDEV, Function.RELATIVE_VARIATION)
