"""State: aggregates over windows of event time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field, model_validator

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.accumulators import Accumulation, Group, Kept, column_of, readable
from pipeline_runtime.operators.aggregates import Aggregates, aggregate_fields
from pipeline_runtime.operators.columns import ColumnName, SchemaCheck
from pipeline_runtime.operators.event_time import (
    DIGITS,
    FIRST_US,
    LAST_US,
    in_us,
    newest_before,
    of_sortable,
    sortable,
    times_us,
    too_late,
    untimed,
    utc,
)
from pipeline_runtime.operators.sdk import BatchProcessor, OperatorContext, Params, States
from pipeline_runtime.operators.tables import with_rejects

_END = "_end"


class WindowAggregateParams(Params):
    size_s: float = Field(ge=0.001, le=366 * 86400, description="the length of a window")
    slide_s: float | None = Field(
        default=None, ge=0.001, description="how often a window begins; empty: when the one before it ends"
    )
    delay_s: float = Field(default=0.0, ge=0, le=7 * 86400, description="how late a row may arrive")
    keys: tuple[ColumnName, ...] = Field(
        default=(), description="the rows of each value of these columns are aggregated separately"
    )
    aggregates: Aggregates

    @model_validator(mode="after")
    def _slides_within(self) -> WindowAggregateParams:
        if self.slide_s is not None and self.slide_s > self.size_s:
            raise ValueError("slide_s must not be longer than size_s: rows between two windows would be lost")
        return self


class WindowAggregate(BatchProcessor):
    """Aggregates the rows of each window of event time, separately for each value of `keys`.

    A window is emitted once, when it is complete: when a row arrives whose time is `delay_s` past the
    window's end, or when the source has ended. A row goes to the dead letters if all its windows are complete
    when it arrives. Windows follow one another, or overlap if `slide_s` is shorter than `size_s`. They are
    aligned to full multiples of their length (UTC).

    The functions are avg, min, max, sum, count, first, last, stddev, and relative_variation, which is (max -
    min) / average in percent.

    Output: `window_start`, `window_end`, the keys and the aggregates. The event time is the window's end.
    """

    type = "window-aggregate"
    title = "Window aggregate"
    summary = "Average, minimum, maximum, ... of each window of time"
    category = "state"
    icon = "chart-column"
    Params = WindowAggregateParams
    state_params = frozenset({"size_s", "slide_s", "keys", "aggregates"})
    keeps = "the windows that are open now: their rows so far are not counted again"
    follow = "exact"
    flushes = True
    example = {"size_s": 1, "aggregates": [{"function": "avg", "column": "value", "as": "average"}]}

    params: WindowAggregateParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        fields = [
            SchemaField(name="window_start", type=FieldType.TIMESTAMP),
            SchemaField(name="window_end", type=FieldType.TIMESTAMP),
        ]
        with SchemaCheck() as check:
            for index, name in enumerate(self.params.keys):
                field = check.column(schema, name, f"params.keys[{index}]")
                if field is not None:
                    fields.append(field)
            fields += aggregate_fields(self.params.aggregates, schema, check)
            check.unique([field.name for field in fields], "params.aggregates")
        return StreamSchema(fields=tuple(fields), key=self.params.keys[0] if self.params.keys else None)

    def accumulation(self, schema: StreamSchema) -> Accumulation:
        """Returns the accumulation for rows of that schema."""
        return Accumulation(self.params.aggregates, schema)

    def process_batch(
        self, inputs: Mapping[str, pa.Table], states: States, ctx: OperatorContext, *, at_end: bool
    ) -> pa.Table:
        accumulation = self.accumulation(ctx.input_schemas["in"])
        names = ctx.input_schemas["in"].names
        rows, rejected = inputs["in"].filter(pc.is_valid(inputs["in"]["_time"])), untimed(inputs["in"], names)
        if not rows.num_rows and not at_end:
            return with_rejects(self._emitted({}, accumulation, ctx), rejected)
        progress = Progress(*(states.get([None])[0] or ()))
        newest = newest_before(times_us(rows["_time"]), rows["_partition"].to_numpy(), progress.newest_us)
        complete_us = np.maximum(newest - self.delay_us, progress.closed_us)
        last_ends = self._last_ends(rows)
        late = last_ends <= complete_us
        grown = self._grown(self._in_windows(rows, last_ends, complete_us), accumulation, states)
        if rows.num_rows:
            progress.newest_us = max(progress.newest_us, pc.max(rows["_time"]).cast(pa.int64()).as_py())
        until = _bound(LAST_US if at_end else progress.newest_us - self.delay_us)
        complete = states.between(_bound(progress.closed_us), until)
        complete |= {name: kept for name, kept in grown.items() if name < until}
        for name, kept in (grown | dict.fromkeys(complete)).items():
            states.put(name, kept)
        progress.closed_us = max([progress.closed_us, *map(_end, complete)])
        states.put(None, progress.kept())
        emitted = self._emitted(dict(sorted(complete.items())), accumulation, ctx)
        return with_rejects(emitted, rejected, too_late(rows, names, newest, self.delay_us, late))

    def _grown(self, rows: pa.Table, accumulation: Accumulation, states: States) -> dict[str, Kept]:
        """Returns what is to be kept for each window, by its key, that has some of the rows. The rows come
        from `_in_windows`."""
        if not rows.num_rows:
            return {}
        found = accumulation.of(rows, [_END, *self.params.keys])
        names = [state_key(group) for group in found]
        return {
            name: accumulation.merged(kept, new)
            for name, kept, new in zip(names, states.get(names), found.values(), strict=True)
        }

    def _in_windows(
        self, rows: pa.Table, last_ends: NDArray[np.int64], complete_us: NDArray[np.int64]
    ) -> pa.Table:
        """Returns each row once for each of its windows that was not complete when the row came. Windows that
        end up to `complete_us` were complete. The window's end is in the column `_END`."""
        times, found = times_us(rows["_time"]), []
        for back in range(-(-in_us(self.params.size_s) // self._slide_us)):
            ends = last_ends - back * self._slide_us
            taken = (ends > times) & (ends > complete_us)
            found.append(rows.append_column(_END, pa.array(ends)).filter(pa.array(taken)))
        return pa.concat_tables(found)

    def _last_ends(self, rows: pa.Table) -> NDArray[np.int64]:
        """Returns for each row when the last window ends that it is in."""
        times = times_us(rows["_time"])
        return times - times % self._slide_us + in_us(self.params.size_s)

    def _emitted(
        self, complete: Mapping[str, Kept], accumulation: Accumulation, ctx: OperatorContext
    ) -> pa.Table:
        outputs, ends = ctx.output_schema, [_end(name) for name in complete]
        groups = [json.loads(name[DIGITS:]) for name in complete]
        size_us = in_us(self.params.size_s)
        columns = {
            "window_start": column_of([end - size_us for end in ends], "window_start", outputs),
            "window_end": column_of(ends, "window_end", outputs),
        }
        for place, name in enumerate(self.params.keys):
            columns[name] = column_of([group[place] for group in groups], name, outputs)
        columns |= accumulation.results(list(complete.values()), outputs)
        return pa.table({**columns, "_time": columns["window_end"]})

    def readable_key(self, key: str) -> str:
        end_us = _end(key)
        window = f"{utc(end_us - in_us(self.params.size_s))} to {utc(end_us)} UTC"
        return ", ".join(filter(None, [window, readable(json.loads(key[DIGITS:]))]))

    def readable_state(self, state: Kept, inputs: Mapping[str, StreamSchema]) -> dict[str, Any]:
        return self.accumulation(inputs["in"]).readable(state, self.output_schema(inputs))

    @property
    def _slide_us(self) -> int:
        return in_us(self.params.slide_s or self.params.size_s)

    @property
    def delay_us(self) -> int:
        return in_us(self.params.delay_s)


@dataclass
class Progress:
    """The progress of event time, in us."""

    newest_us: int = FIRST_US  # of all rows so far
    closed_us: int = FIRST_US  # windows that end up to here have been emitted

    def kept(self) -> list[int]:
        return [self.newest_us, self.closed_us]


# The keys of the states: the end of a window and what its rows have in common, in the order of the ends.


def state_key(group: Group) -> str:
    """Returns the state's key from a window's end in us and the values of its keys."""
    end_us, *keys = group
    return f"{sortable(end_us)}{json.dumps(keys, ensure_ascii=False)}"


def _end(name: str) -> int:
    return of_sortable(name[:DIGITS])


def _bound(end_us: int) -> str:
    """Returns the first key that a window which ends later can have."""
    return sortable(end_us + 1)
