"""The values of a key in the time before a row. In the state they are sorted by event time, and those of the
same time in the order in which they came."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline_runtime.operators.by_key import KEPT_MAX, TooManyKept
from pipeline_runtime.operators.key_states import Column, Joined, KeyStates, Lists, ranges
from pipeline_runtime.operators.keyed_rows import KeyedRows, Places
from pipeline_runtime.operators.lineage import (
    Came,
    Fits,
    TracedRow,
    between,
    is_same,
    not_forgotten,
    up_to,
    with_value,
)

COLUMNS = {"times_ms": Column.WHOLES, "values": Column.NUMBERS}
"""What the state has."""
_AT_ONCE = 1 << 20  # values of all windows together


@dataclass(frozen=True)
class Windows:
    """What some rows look back on. The window of a row are the values from its number in `firsts` to before
    that in `ends`, oldest first. There the row itself stands."""

    places: Places
    times_ms: NDArray[np.int64]
    values: NDArray[np.float64]
    firsts: NDArray[np.int64]
    ends: NDArray[np.int64]

    def some(self, chosen: NDArray[Any] | slice) -> Windows:
        """Returns the windows of some of the rows."""
        return Windows(
            self.places[chosen], self.times_ms, self.values, self.firsts[chosen], self.ends[chosen]
        )


def windows(rows: KeyedRows, name: str, states: KeyStates, window_s: float) -> Iterator[Windows]:
    """Yields what each row with a value looks back on: the values that came before it, from `window_s` before
    its event time up to it, both included.

    The states then have what rows of later batches can look back on. Older values are forgotten when a row
    comes that is not late. A row beyond KEPT_MAX is rejected, and changes nothing.
    """
    window_ms = window_in_ms(window_s)
    places, kept_times, kept_values = rows.valid(name), states["times_ms"], states["values"]
    joined = Joined(kept_times.counts, rows.counts_of(places))
    times = joined.lists(kept_times.numbers, rows.times[places])
    values = joined.lists(kept_values.numbers, rows.array(name)[places])
    firsts = _firsts(times, joined.new, window_ms)
    in_turn = times.in_turn()
    if firsts is None:
        in_turn[:] = False
        firsts = joined.new
    too_many = joined.new - firsts >= KEPT_MAX
    key_of_row = rows.key_numbers[places]
    in_turn[key_of_row[too_many]] = False

    fast = in_turn[key_of_row]
    found = Windows(places, times.numbers, values.numbers, firsts, joined.new).some(fast)
    yield from _cut(found)
    # The newest row of a key says what is kept of it.
    kept_firsts = joined.starts.copy()
    kept_firsts[key_of_row[fast]] = found.firsts
    others: dict[int, _OneKey] = {}
    for key in np.flatnonzero(~in_turn & (joined.new_counts > 0)).tolist():
        mine = np.flatnonzero(key_of_row == key)
        others[key] = _OneKey(kept_times.of(key).tolist(), kept_values.of(key).tolist(), window_ms)
        yield from others[key].take(
            rows, places[mine], times.numbers[joined.new[mine]], values.numbers[joined.new[mine]]
        )
    counts = times.ends - kept_firsts
    kept = ranges(kept_firsts, counts)
    states["times_ms"] = Lists(counts, times.numbers[kept]).replaced(
        {key: other.times for key, other in others.items()}
    )
    states["values"] = Lists(counts, values.numbers[kept]).replaced(
        {key: other.values for key, other in others.items()}
    )


def came_from(made: TracedRow, column: str, window_s: float, is_mine: Fits, names: Mapping[str, str]) -> Came:
    """Returns which rows the output row `made` came from: its own, by `names` (output -> input column), and
    those on which that looked back."""
    from_ms = made.time_ms - window_in_ms(window_s)

    def then(rows: Sequence[TracedRow]) -> Sequence[TracedRow]:
        own = not_forgotten(with_value(rows, column), made.time_ms - from_ms)
        return between(own, from_ms, made.time_ms)

    return Came(from_ms, made.time_ms, up_to(is_mine, is_same(made, names), then))


def window_in_ms(window_s: float) -> int:
    """Returns how far back a window reaches, in full ms."""
    return math.floor(round(window_s * 1000, 6))


class _OneKey:
    """Takes the rows of a key one by one: some are late, or there are too many."""

    def __init__(self, times: list[int], values: list[float], window_ms: int) -> None:
        self.times, self.values, self._window_ms = times, values, window_ms

    def take(
        self, rows: KeyedRows, places: Places, times_ms: NDArray[np.int64], values: NDArray[np.float64]
    ) -> Iterator[Windows]:
        found: list[tuple[int, int, int]] = []  # place, first and end
        seen_times: list[int] = []
        seen_values: list[float] = []
        for place, now_ms, value in zip(places.tolist(), times_ms.tolist(), values.tolist(), strict=True):
            span = self._room(now_ms)
            if span is None:
                error = f"there are {KEPT_MAX} values in the window already; aggregate them first"
                rows.reject(place, TooManyKept(error))
                continue
            start, end = span
            first = len(seen_times)
            seen_times += [*self.times[start:end], now_ms]
            seen_values += [*self.values[start:end], value]
            found.append((place, first, len(seen_times) - 1))
            if end == len(self.times):  # otherwise it is late, and other rows may look back further
                del self.times[:start], self.values[:start]
                end -= start
            self.times.insert(end, now_ms)
            self.values.insert(end, value)
            if len(seen_times) >= _AT_ONCE:
                yield _windows(found, seen_times, seen_values)
                found, seen_times, seen_values = [], [], []
        if found:
            yield _windows(found, seen_times, seen_values)

    def _room(self, now_ms: int) -> tuple[int, int] | None:
        """Returns where the row's window begins and ends. Makes room for one more value. Returns None, and
        changes nothing, if there is none."""
        start = bisect_left(self.times, now_ms - self._window_ms)
        end = bisect_right(self.times, now_ms)
        if len(self.times) < KEPT_MAX:
            return start, end
        # A row from a clock that is ahead may make all others look late.
        if len(self.times) - start >= KEPT_MAX:
            return None
        del self.times[:start], self.values[:start]
        return 0, end - start


def _windows(found: list[tuple[int, int, int]], times: list[int], values: list[float]) -> Windows:
    places, firsts, ends = np.array(found, np.int64).T
    return Windows(places, np.array(times, np.int64), np.array(values, np.float64), firsts, ends)


def _firsts(times: Lists, new: NDArray[np.int64], window_ms: int) -> NDArray[np.int64] | None:
    """Returns where the window of each new row begins, if its list rises. Returns None if times are too far
    apart to be looked at together."""
    apart = times.apart(window_ms)
    if apart is None or not len(apart):
        return None if apart is None else new
    return np.searchsorted(np.maximum.accumulate(apart), apart[new] - window_ms, side="left")


def _cut(found: Windows) -> Iterator[Windows]:
    """Yields the windows, so many at a time as may be looked at together."""
    sizes = np.cumsum(found.ends - found.firsts + 1)
    done = 0
    while done < len(sizes):
        before = int(sizes[done - 1]) if done else 0
        end = max(int(np.searchsorted(sizes, before + _AT_ONCE, side="right")), done + 1)
        yield found.some(slice(done, end))
        done = end
