"""State: statistics of everything so far, per key, reported at a steady pace."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import finite
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NumericColumn, SchemaCheck
from pipeline_runtime.operators.event_time import utc
from pipeline_runtime.operators.key_columns import KeyArrays
from pipeline_runtime.operators.key_states import NOT_SET, Column, KeyStates, finite as all_finite
from pipeline_runtime.operators.keyed_rows import KeyedRows, Places, Rounds
from pipeline_runtime.operators.lineage import Came, Found, TracedRow, everything, first_place, is_same, up_to
from pipeline_runtime.operators.sdk import Params

_COLUMNS = {
    "count": Column.COUNT,
    "mean": Column.SUM,
    "squares": Column.SUM,
    "minimum": Column.NUMBER,
    "maximum": Column.NUMBER,
    "due_ms": Column.WHOLE,
}
_NEVER = 2**63 - 1
_NEW = {"count": 0.0, "mean": 0.0, "squares": 0.0, "minimum": np.inf, "maximum": -np.inf}


class RunningStatisticsParams(Params):
    column: NumericColumn = Field(description="the column of numbers")
    every_s: float = Field(
        default=0.0,
        ge=0,
        le=7 * 86400,
        title="Seconds from one report to the next",
        description="how often it reports, in event time; 0: at each row",
    )
    reset: bool = Field(
        default=False,
        title="Start again from zero after each report",
        description="start again from zero after each report",
    )
    key: ColumnName | None = Field(
        default=None,
        title="For each",
        description="each value of this column has its own statistics; empty: the stream's key",
    )


class RunningStatistics(KeyArrays):
    """Gives the count, mean, standard deviation, minimum and maximum of a column, for each key.

    With `every_s`, a report is due at each full multiple of that time since 1970 (UTC). The element emits the
    report with the first row of the key at that time or later, and the report covers the rows before that
    one. So if a key falls silent, the report of its last values comes with its next row. There are no reports
    for times without rows. With `every_s: 0`, each row gives a report.

    The element takes rows one by one in the order in which they arrive (Welford's method), so the result does
    not depend on batches. It ignores null values. A mean or deviation that is too large for a number is null.
    The deviation is that of a sample (n - 1), and null for a single value.

    Output: the key's column, if there is one, `count`, `mean`, `stddev`, `minimum` and `maximum`. The event
    time is the time at which the report was due; with `every_s: 0` it is that of the row.
    """

    type = "running-statistics"
    title = "Running statistics"
    summary = "Gives count, mean, deviation, minimum and maximum for each key"
    category = "state"
    icon = "chart-spline"
    Params = RunningStatisticsParams
    state_params = frozenset({"column", "key"})
    other_columns = "more"
    keeps = "the statistics so far: it starts again with the next row"
    passes_on = False
    example = {"column": "value", "every_s": 10}

    params: RunningStatisticsParams

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        every_ms = self._every_ms
        if not every_ms:
            return {
                "in": Came(None, made.time_ms, up_to(self.is_of_key(made), is_same(made, {}), everything))
            }
        is_mine = self.is_of_key(made)

        def chosen(rows: Sequence[TracedRow]) -> Found:
            own = [row for row in rows if is_mine(row)]
            # The first row from then on lets the report out. After a report it is the first that counts.
            end = first_place(own, made.time_ms)
            start = first_place(own, made.time_ms - every_ms) if self.params.reset else 0
            return Found(own[start : end + 1])

        return {"in": Came(made.time_ms - every_ms if self.params.reset else None, None, chosen)}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            source = check.column(schema, self.params.column, "params.column", NUMERIC)
            unit = source.unit if source is not None else None
            fields = [*self.key_of(schema, check), SchemaField(name="count", type=FieldType.INTEGER)]
            for name in ("mean", "stddev", "minimum", "maximum"):
                fields.append(SchemaField(name=name, type=FieldType.NUMBER, unit=unit))
            check.unique([field.name for field in fields], "params.key")
        return StreamSchema(fields=tuple(fields), key=self.params.key or schema.key)

    def state_columns(self, schema: StreamSchema) -> Mapping[str, Column]:
        return _COLUMNS

    def process_rows(self, rows: KeyedRows, states: KeyStates) -> None:
        rounds = Rounds(rows)
        found = {name: rounds.sorted(states[name]) for name in _COLUMNS}
        if rounds.has_many_keys:
            found = self._take_rounds(rows, rounds, found)
        for key, first, end in rounds.rest():
            self._take_all(rows, found, key, first, end)
        for name, column in found.items():
            states[name] = rounds.as_before(column)

    @property
    def _every_ms(self) -> int:
        return max(round(self.params.every_s * 1000), 1) if self.params.every_s else 0

    def _take_rounds(
        self, rows: KeyedRows, rounds: Rounds, states: Mapping[str, NDArray[Any]]
    ) -> dict[str, NDArray[Any]]:
        """Takes a row of each of many keys at a time. Returns the new states."""
        found, values = _counting(states), rows.array(self.params.column)
        is_given = None if not np.isnan(values).any() else ~np.isnan(values)
        some = found
        with np.errstate(all="ignore"):
            for places in rounds:
                if len(places) < len(some["count"]):
                    some = {name: column[: len(places)] for name, column in found.items()}
                given = True if is_given is None else is_given[places]
                self._take(rows, some, places, values[places], given)
        return _kept(found)

    def _take(
        self,
        rows: KeyedRows,
        state: Mapping[str, NDArray[Any]],
        places: Places,
        values: NDArray[np.float64],
        given: NDArray[np.bool_] | bool,
    ) -> None:
        """Takes a row of each of some keys. `given`: which of them have a value."""
        every_ms, now_ms, due_ms = self._every_ms, rows.times[places], state["due_ms"]
        is_due = now_ms >= due_ms
        if is_due.any():
            # The next event sets the next time, so a key that is silent for a year has no reports to catch
            # up on.
            due = np.flatnonzero(is_due)
            rows.give(places[due], due_ms[due], *_reports({name: each[due] for name, each in state.items()}))
            due_ms[due] = _NEVER
            if self.params.reset:
                for name, new in _NEW.items():
                    state[name][due] = new
        _add(state, values, given)
        if not every_ms:
            rows.give(places, now_ms, *_reports(state))
        elif due_ms.max() == _NEVER:
            np.copyto(due_ms, (now_ms // every_ms + 1) * every_ms, where=due_ms == _NEVER)

    def _take_all(
        self, rows: KeyedRows, state: dict[str, NDArray[Any]], key: int, first: int, end: int
    ) -> None:
        """Takes rows of one key, which give the same one by one."""
        values, times_ms, every_ms = rows.floats(self.params.column), rows.times_ms, self._every_ms
        *kept, due_ms = (column[key].item() for column in state.values())
        found = Statistics(*kept)
        for place in range(first, end):
            now_ms, value = times_ms[place], values[place]
            if due_ms != NOT_SET and now_ms >= due_ms:
                rows.made.append((place, due_ms, *found.report()))
                due_ms = NOT_SET
                if self.params.reset:
                    found = Statistics()
            if value is not None:
                found.add(value)
            if not every_ms:
                rows.made.append((place, now_ms, *found.report()))
            elif due_ms == NOT_SET:
                due_ms = (now_ms // every_ms + 1) * every_ms
        for column, value in zip(state.values(), (*found.kept(), due_ms), strict=True):
            column[key] = value

    def readable_state(self, state: Any, inputs: Mapping[str, StreamSchema]) -> Any:
        found = super().readable_state(state, inputs)
        due_ms = found.pop("due_ms")
        return found if due_ms is None else {**found, "reports_at": f"{utc(due_ms * 1000)} UTC"}


@dataclass(slots=True)
class Statistics:
    """Statistics of one key. A minimum and maximum of no values are NaN."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    minimum: float = math.nan
    maximum: float = math.nan

    def add(self, value: float) -> None:
        """Welford's method: exact enough over billions of values, without keeping a list."""
        self.count += 1
        delta = value - self.mean
        self.mean += delta / self.count
        self.squares += delta * (value - self.mean)
        if not value >= self.minimum:
            self.minimum = value
        if not value <= self.maximum:
            self.maximum = value

    def kept(self) -> tuple[Any, ...]:
        """Returns it as the state has it: its fields in their order."""
        return self.count, self.mean, self.squares, self.minimum, self.maximum

    def report(self) -> tuple[int, float | None, float | None, float | None, float | None]:
        """Returns count, mean, standard deviation, minimum and maximum. What is too large is None."""
        variance = finite(self.squares / (self.count - 1)) if self.count > 1 else None
        deviation = None if variance is None else math.sqrt(variance)
        mean = finite(self.mean) if self.count else None
        return self.count, mean, deviation, finite(self.minimum), finite(self.maximum)


def _counting(states: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Returns states in a form in which a new value takes few steps: counts are floats, the minimum of no
    values is infinite, and a report that is not due is due at the end of time."""
    least, most, due_ms = (states[name] for name in ("minimum", "maximum", "due_ms"))
    return {
        **states,
        "count": states["count"].astype(np.float64),
        "minimum": np.where(np.isnan(least), np.inf, least),
        "maximum": np.where(np.isnan(most), -np.inf, most),
        "due_ms": np.where(due_ms == NOT_SET, _NEVER, due_ms),
    }


def _kept(counting: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Does the opposite of `_counting`."""
    due_ms = counting["due_ms"]
    return {
        **counting,
        "count": counting["count"].astype(np.int64),
        "minimum": all_finite(counting["minimum"]),
        "maximum": all_finite(counting["maximum"]),
        "due_ms": np.where(due_ms == _NEVER, NOT_SET, due_ms),
    }


def _add(
    state: Mapping[str, NDArray[Any]], values: NDArray[np.float64], given: NDArray[np.bool_] | bool
) -> None:
    """Does as Statistics.add, with a value for each key. Those that are not given are NaN."""
    count, mean, squares, least, most = (state[name] for name in _NEW)
    np.add(count, 1.0, out=count, where=given)
    delta = values - mean
    np.add(mean, delta / count, out=mean, where=given)
    delta *= values - mean
    np.add(squares, delta, out=squares, where=given)
    np.copyto(least, values, where=values < least)
    np.copyto(most, values, where=values > most)


def _reports(state: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """Does as Statistics.report."""
    count = state["count"]
    variance = np.where(count > 1, state["squares"] / (count - 1), np.nan)
    mean = np.where(count > 0, state["mean"], np.nan)
    return [
        count.astype(np.int64),
        *map(all_finite, (mean, np.sqrt(all_finite(variance)), state["minimum"], state["maximum"])),
    ]
