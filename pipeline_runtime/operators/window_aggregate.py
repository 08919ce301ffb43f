"""State: aggregates over windows of event time."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field, model_validator

from pipeline_runtime.model.plain_data import shown
from pipeline_runtime.model.schema import COLUMNS_MAX, Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.accumulators import Accumulation, Kept, column_of, readable
from pipeline_runtime.operators.aggregates import Aggregates, aggregate_fields, key_fields
from pipeline_runtime.operators.columns import ColumnName, SchemaCheck
from pipeline_runtime.operators.event_time import (
    DIGITS,
    FIRST_US,
    LAST_US,
    in_us,
    newest_before,
    of_sortable,
    times_us,
    too_late,
    untimed,
    utc,
)
from pipeline_runtime.operators.lineage import Came, Found, TracedRow, between, equal, in_time, ms_of
from pipeline_runtime.operators.pane_states import Entries, Keys, Panes, entries_of, merged, rows_together
from pipeline_runtime.operators.panes import (
    DAY_US,
    HOUR_US,
    Calendar,
    EvenCalendar,
    Times,
    ZonedCalendar,
    first_start,
    windows,
)
from pipeline_runtime.operators.sdk import BatchProcessor, OperatorContext, Params, States
from pipeline_runtime.operators.tables import with_rejects

_PANE, _START = "_pane", "_start"
PARTS_MAX = 20_000
"""The most panes of one window: so many are kept for each key, and read for each result."""
PARTS_A_SECOND_MAX = 20_000
"""The most panes that are put together in a second, for one key."""


class WindowAggregateParams(Params):
    size_s: float = Field(
        ge=0.001, le=366 * 86400, title="Length of a window, in seconds", description="the length of a window"
    )
    slide_s: float | None = Field(
        default=None,
        ge=0.001,
        le=366 * 86400,
        title="Seconds from one window to the next",
        description="how long after one window the next one begins, at most a window's length; empty: when"
        " that one ends",
    )
    offset_s: float = Field(
        default=0.0,
        ge=0,
        le=366 * 86400,
        title="Seconds from midnight to a window",
        description="how long after midnight windows begin: 21600 for a shift or a day from 06:00",
    )
    zone: str | None = Field(
        default=None,
        max_length=64,
        title="Time zone",
        description="whose midnight that is, such as Europe/Berlin; empty: UTC. A day in which the clocks are"
        " changed has 23 or 25 hours. With a zone, a window begins every 1, 2, 3, 4, 6, 8 or 12 hours, or"
        " every so many days, and its length is a multiple of that",
    )
    delay_s: float = Field(
        default=0.0,
        ge=0,
        le=7 * 86400,
        title="How late a row may come, in seconds",
        description="how late a row may arrive; each window waits for so long",
    )
    keys: tuple[ColumnName, ...] = Field(
        default=(),
        max_length=COLUMNS_MAX,
        title="For each",
        description="the rows of each value of these columns are aggregated separately",
        json_schema_extra={"x-item": "column"},
    )
    aggregates: Aggregates

    @model_validator(mode="after")
    def _slides_within(self) -> WindowAggregateParams:
        if self.slide_s is not None and self.slide_s > self.size_s:
            raise ValueError(
                "windows must not begin further apart than they are long: rows between two would be lost"
            )
        if self.zone is not None:
            self._check_zone(self.zone)
        self._check_cost()
        return self

    def _check_zone(self, zone: str) -> None:
        try:
            ZoneInfo(zone)
        except (ValueError, OSError, ZoneInfoNotFoundError):
            raise ValueError(
                f'there is no time zone "{shown(zone)}"; one is for example Europe/Berlin'
            ) from None
        slide_us = self.slide_us
        fits_day = slide_us % HOUR_US == 0 and (DAY_US % slide_us == 0 or slide_us % DAY_US == 0)
        if not fits_day or self.size_us % slide_us:
            raise ValueError(
                "with a time zone, a window begins every 1, 2, 3, 4, 6, 8 or 12 full hours, or every so many "
                "days, and its size is a multiple of that"
            )

    def _check_cost(self) -> None:
        a_second = self.parts * 1_000_000 / self.slide_us
        if self.parts <= PARTS_MAX and a_second <= PARTS_A_SECOND_MAX:
            return
        size_s, slide_s = self.size_us / 1_000_000, self.slide_us / 1_000_000
        open_at_once = -(-self.size_us // self.slide_us)
        least_s = max(size_s / PARTS_MAX, math.sqrt(size_s / PARTS_A_SECOND_MAX))
        raise ValueError(
            f"a window of {size_s:g} s every {slide_s:g} s costs too much: {open_at_once:,} windows are open "
            f"at once, and each result is put together from {self.parts:,} parts, {a_second:,.0f} in a "
            f"second (at most {PARTS_MAX:,} and {PARTS_A_SECOND_MAX:,} are possible). "
            f"Let a window begin every {_round_slide(size_s, least_s):g} s or more, a part of its size"
        )

    @property
    def size_us(self) -> int:
        return in_us(self.size_s)

    @property
    def slide_us(self) -> int:
        return in_us(self.slide_s or self.size_s)

    @property
    def pane_us(self) -> int:
        """Returns the longest time that lies as a whole inside each window or outside."""
        return math.gcd(self.size_us, self.slide_us)

    @property
    def parts(self) -> int:
        """Returns how many panes a window has."""
        return self.size_us // self.pane_us

    @property
    def calendar(self) -> Calendar:
        offset_us = in_us(self.offset_s)
        if self.zone is None:
            return EvenCalendar(self.pane_us, offset_us % self.slide_us)
        return ZonedCalendar(self.pane_us, offset_us % self.slide_us, self.zone)


def _round_slide(size_s: float, least_s: float) -> float:
    """Returns a slide that is not shorter than `least_s` and divides the window."""
    usual = (
        number * unit for unit in (0.001, 0.01, 0.1, 1, 60, 3600) for number in (1, 2, 5, 10, 15, 20, 30)
    )
    fitting = (each for each in sorted(usual) if each >= least_s and size_s / each == int(size_s / each))
    return next(fitting, size_s / max(1, int(size_s / least_s)))


class WindowAggregate(BatchProcessor):
    """Aggregates the rows of each window of event time, separately for each value of `keys`.

    The element emits a window once, when it is complete: when a row of any key arrives whose time is
    `delay_s` past the window's end, or when the source has ended. A row goes to the dead letters if all its
    windows are complete when it arrives, or if it has no event time. A window without rows gives no output
    row. Windows follow one another, or overlap if `slide_s` is shorter than `size_s`. Fogline refuses windows
    that begin much more often than they are long, because they cost too much. The message says what is
    possible.

    Windows begin at full multiples of `slide_s` since 1970 (UTC), or `offset_s` later if that is set. For
    example, windows of 28800 s with an offset of 21600 are shifts from 06:00, 14:00 and 22:00. With a `zone`,
    windows begin when the clocks of that zone show these times, so a local day has 23 or 25 hours when the
    clocks change. A week begins on a Thursday, as 1970 did; with an `offset_s` of 345600 it begins on a
    Monday.

    | function | |
    |---|---|
    | avg, min, max, sum | of numbers; min and max also of texts, times, and true and false |
    | count | how many values there are; without a column, how many rows |
    | first, last | the value with the oldest or the newest event time, of any type |
    | stddev | the standard deviation of a sample (n - 1) |
    | relative_variation | (max - min) / average, in percent |

    Null values do not count. A result is null if there are no values, if `stddev` has only one, if the
    average in `relative_variation` is 0, and if it is too large for its type.

    Output: `window_start`, `window_end`, the keys and the aggregates. The event time is the window's end.
    """

    type = "window-aggregate"
    title = "Window aggregate"
    summary = "Computes average, minimum, maximum, ... of each window of time"
    category = "state"
    icon = "chart-column"
    Params = WindowAggregateParams
    state_params = frozenset({"size_s", "slide_s", "offset_s", "zone", "keys", "aggregates"})
    other_columns = "more"
    keeps = "the windows that are open now: their rows so far are not counted again"
    follow = "exact"
    flushes = True
    example = {"size_s": 1, "aggregates": [{"function": "avg", "column": "value", "as": "average"}]}

    params: WindowAggregateParams

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        is_mine, delay_ms = equal(made, self.params.keys), -(-self.delay_us // 1000)
        end_ms = ms_of(made.values.get("window_end")) or made.time_ms
        start_ms = ms_of(made.values.get("window_start"))
        if start_ms is None:
            start_ms = end_ms - self.params.size_us // 1000

        def chosen(rows: Sequence[TracedRow]) -> Found:
            came = in_time(rows, end_ms + delay_ms)  # others came too late for this window
            return Found([row for row in between(came, start_ms, end_ms - 1) if is_mine(row)])

        return {"in": Came(start_ms, end_ms + delay_ms, chosen)}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        fields = [
            SchemaField(name="window_start", type=FieldType.TIMESTAMP),
            SchemaField(name="window_end", type=FieldType.TIMESTAMP),
        ]
        with SchemaCheck() as check:
            fields += key_fields(self.params.keys, schema, check)
            fields += aggregate_fields(self.params.aggregates, schema, check)
            check.unique([field.name for field in fields], "params.aggregates")
        return StreamSchema(fields=tuple(fields), key=self.params.keys[0] if self.params.keys else None)

    def accumulation(self, schema: StreamSchema) -> Accumulation:
        """Returns the accumulation for rows of that schema."""
        return Accumulation(self.params.aggregates, schema)

    def process_batch(
        self, inputs: Mapping[str, pa.Table], states: States, ctx: OperatorContext, *, at_end: bool
    ) -> pa.Table:
        accumulation, keys = self.accumulation(ctx.input_schemas["in"]), Keys()
        names = ctx.input_schemas["in"].names
        rows, rejected = inputs["in"], untimed(inputs["in"], names)
        if rejected is not None:
            rows = rows.filter(pc.is_valid(rows["_time"]))
        if not rows.num_rows and not at_end:
            nothing = Panes(states, accumulation, keys, range(0)).entries
            return with_rejects(self._emitted(nothing, keys, accumulation, ctx), rejected)
        progress, calendar = Progress(*(states.get([None])[0] or ())), self.params.calendar
        newest = newest_before(times_us(rows["_time"]), rows["_partition"].to_numpy(), progress.newest_us)
        of = self._placed(rows, np.maximum(newest - self.delay_us, progress.closed_us), calendar)
        if rows.num_rows:
            progress.newest_us = max(progress.newest_us, pc.max(rows["_time"]).cast(pa.int64()).as_py())
        closed_us = LAST_US if at_end else progress.newest_us - self.delay_us
        before, until = (calendar.pane_of(np.array([progress.closed_us, closed_us], np.int64)) - 1).tolist()
        size, slide = self._size, self._slide
        starts = range(first_start(before - size, slide), until - size + 1, slide)
        panes = Panes(states, accumulation, keys, range(starts.start + 1, until + 1) if starts else range(0))
        panes.add(accumulation.of(of.rows(of.in_time), [_PANE, *self.params.keys]))
        complete = self._complete(panes.entries, keys, starts, of, accumulation)
        if of.partly_late.any():
            panes.add(accumulation.of(of.rows(of.partly_late), [_PANE, *self.params.keys]))
        panes.keep(first_start(until - size, slide) + 1)
        ends = [calendar.end_us(int(complete.places.max()) + size)] if len(complete) else []
        progress.closed_us = max([progress.closed_us, *ends, *([] if at_end else [closed_us])])
        states.put(None, progress.kept())
        emitted = self._emitted(complete, keys, accumulation, ctx)
        return with_rejects(emitted, rejected, too_late(rows, names, newest, self.delay_us, of.late))

    def _placed(self, rows: pa.Table, complete_us: Times, calendar: Calendar) -> _Placed:
        """Places rows in panes. Windows that end up to `complete_us` were complete when the row came."""
        panes = calendar.pane_of(times_us(rows["_time"]))
        complete = calendar.pane_of(complete_us) - 1
        size, slide = self._size, self._slide
        last_start = (panes - 1) // slide * slide
        first_start_ = -((size - panes) // slide) * slide
        return _Placed(
            rows.append_column(_PANE, pa.array(panes)),
            complete,
            last_start,
            late=last_start + size <= complete,
            in_time=first_start_ + size > complete,
        )

    def _complete(
        self, panes: Entries, keys: Keys, starts: range, of: _Placed, accumulation: Accumulation
    ) -> Entries:
        """Returns what is kept for the rows of each window that has become complete: of those that begin at
        `starts`. Their places are where they begin."""
        if not starts:
            return panes.where(np.zeros(len(panes), bool))
        size = self._size
        begins, firsts, counts = windows(panes.keys, panes.places, starts, size)
        kept = rows_together(accumulation, panes.kept, firsts, counts)
        found = Entries(panes.keys[firsts], begins, kept, panes.is_new[firsts])
        if not of.partly_late.any():
            return found
        # A row that came when some of its windows were complete counts for the others.
        others = of.in_windows(size, starts.step, starts.stop + size - 1)
        late = entries_of(accumulation.of(others, [_START, *self.params.keys]), keys)
        return merged(accumulation, found, late)

    def _emitted(
        self, complete: Entries, keys: Keys, accumulation: Accumulation, ctx: OperatorContext
    ) -> pa.Table:
        """Returns the output's rows in the order of where their windows begin, and then of their keys."""
        outputs, calendar, size = ctx.output_schema, self.params.calendar, self._size
        texts, groups = keys.texts, keys.groups()
        ranks = np.argsort(sorted(range(len(texts)), key=texts.__getitem__))
        order = np.lexsort((ranks[complete.keys], complete.places))
        of_key = pa.array(complete.keys[order])
        begins, of_begin = np.unique(complete.places[order], return_inverse=True)
        columns = {
            name: column_of([calendar.end_us(at + more) for at in begins.tolist()], name, outputs).take(
                pa.array(of_begin)
            )
            for name, more in (("window_start", 0), ("window_end", size))
        }
        for place, name in enumerate(self.params.keys):
            columns[name] = column_of([group[place] for group in groups], name, outputs).take(of_key)
        columns |= accumulation.results(tuple(each[order] for each in complete.kept), outputs)
        return pa.table({**columns, "_time": columns["window_end"]})

    def readable_key(self, key: str) -> str:
        calendar, pane = self.params.calendar, of_sortable(key[:DIGITS])
        time = f"{utc(calendar.end_us(pane - 1))} to {utc(calendar.end_us(pane))} UTC"
        return ", ".join(filter(None, [time, readable(json.loads(key[DIGITS:]))]))

    def readable_state(self, state: Kept, inputs: Mapping[str, StreamSchema]) -> dict[str, Any]:
        return self.accumulation(inputs["in"]).readable(state, self.output_schema(inputs))

    @property
    def _size(self) -> int:
        return self.params.parts

    @property
    def _slide(self) -> int:
        return self.params.slide_us // self.params.pane_us

    @property
    def delay_us(self) -> int:
        return in_us(self.params.delay_s)


@dataclass
class Progress:
    """The progress of event time, in us."""

    newest_us: int = FIRST_US  # of all rows so far
    closed_us: int = FIRST_US  # windows that end up to here are complete

    def kept(self) -> list[int]:
        return [self.newest_us, self.closed_us]


@dataclass(frozen=True)
class _Placed:
    """A batch's rows, each with its pane in the column `_PANE`."""

    table: pa.Table
    complete: Times  # by row: the pane with which the last window ends that was complete when the row came
    last_start: Times  # by row: where the last window begins that it is in
    late: NDArray[np.bool_]  # all windows of the row were complete
    in_time: NDArray[np.bool_]  # none of them was

    @property
    def partly_late(self) -> NDArray[np.bool_]:
        return ~self.late & ~self.in_time

    def rows(self, which: NDArray[np.bool_]) -> pa.Table:
        return self.table if which.all() else self.table.filter(pa.array(which))

    def in_windows(self, size: int, slide: int, until: int) -> pa.Table:
        """Returns each row that is partly late once for each of its windows that was not complete when the
        row came and is by now. Where that begins is in the column `_START`."""
        which = self.partly_late
        rows, found = (
            self.rows(which),
            [self.table.slice(0, 0).append_column(_START, pa.array([], pa.int64()))],
        )
        starts, complete, pane = self.last_start[which], self.complete[which], rows[_PANE].to_numpy()
        while len(starts) and (taken := (starts + size >= pane) & (starts + size > complete)).any():
            now = pa.array(taken & (starts + size <= until))
            found.append(rows.append_column(_START, pa.array(starts)).filter(now))
            starts = starts - slide
        return pa.concat_tables(found)
