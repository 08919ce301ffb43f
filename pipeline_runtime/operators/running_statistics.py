"""State: statistics of everything so far, per key, reported at a steady pace. The example of an
operator that takes the rows of each key as columns: read it before you write your own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import finite
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NumericColumn, SchemaCheck
from pipeline_runtime.operators.event_time import utc
from pipeline_runtime.operators.key_columns import KeyColumns, KeyedRows
from pipeline_runtime.operators.sdk import Params


class RunningStatisticsParams(Params):
    column: NumericColumn = Field(description="the column of numbers")
    every_s: float = Field(
        default=0.0, ge=0, le=7 * 86400, description="how often it reports, in event time; 0: at each event"
    )
    reset: bool = Field(default=False, description="start again from zero after each report")
    key: ColumnName | None = Field(
        default=None,
        title="For each",
        description="each value of this column has its own statistics; empty: the stream's key",
    )


class RunningStatistics(KeyColumns):
    """Gives the count, mean, standard deviation, minimum and maximum of a column, for each key.

    With `every_s` a report is due at each full multiple of that time (UTC). It is emitted with the first
    event of its key after that. So the last values of a key that falls silent are reported when its next
    event arrives, and there are no reports for times without events. With `every_s: 0` each event gives a
    row.

    Events are taken one by one in their order (Welford's method), so the result does not depend on batches.
    Null values are ignored. A mean or deviation that is too large for a number is null.

    Output: the key's column, if there is one, `count`, `mean`, `stddev`, `minimum` and `maximum`. The event
    time is that of the report.
    """

    type = "running-statistics"
    title = "Running statistics"
    summary = "Count, mean, deviation, minimum and maximum for each key"
    category = "state"
    icon = "chart-spline"
    Params = RunningStatisticsParams
    state_params = frozenset({"column", "key"})
    other_columns = "more"
    keeps = "the statistics so far: it starts again with the next row"
    passes_on = False
    example = {"column": "value", "every_s": 10}

    params: RunningStatisticsParams

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

    def process_key(self, rows: KeyedRows, first: int, end: int, state: dict[str, Any]) -> None:
        values, times_ms = rows.floats(self.params.column), rows.times_ms
        every_ms = max(round(self.params.every_s * 1000), 1) if self.params.every_s else 0
        found, due_ms = Statistics(*state.get("statistics", ())), state.pop("due_ms", None)
        for place in range(first, end):
            now_ms, value = times_ms[place], values[place]
            if due_ms is not None and now_ms >= due_ms:
                # The next event sets the next time, so a key that is silent for a year has no reports to
                # catch up on.
                rows.made.append((place, due_ms, *found.report()))
                due_ms = None
                if self.params.reset:
                    found = Statistics()
            if value is not None:
                found.add(value)
            if not every_ms:
                rows.made.append((place, now_ms, *found.report()))
            elif due_ms is None:
                due_ms = (now_ms // every_ms + 1) * every_ms
        state["statistics"] = found.kept()
        if due_ms is not None:
            state["due_ms"] = due_ms

    def readable_state(self, state: Any, inputs: Mapping[str, StreamSchema]) -> Any:
        due_ms = state.get("due_ms")
        due = {} if due_ms is None else {"reports_at": f"{utc(due_ms * 1000)} UTC"}
        return {**asdict(Statistics(*state["statistics"])), **due}


@dataclass(slots=True)
class Statistics:
    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    minimum: float | None = None
    maximum: float | None = None

    def add(self, value: float) -> None:
        """Welford's method: exact enough over billions of values, without keeping a list."""
        self.count += 1
        delta = value - self.mean
        self.mean += delta / self.count
        self.squares += delta * (value - self.mean)
        if self.minimum is None or value < self.minimum:
            self.minimum = value
        if self.maximum is None or value > self.maximum:
            self.maximum = value

    def kept(self) -> list[Any]:
        """Returns it as the state has it: its fields in their order."""
        return [self.count, self.mean, self.squares, self.minimum, self.maximum]

    def report(self) -> tuple[int, float | None, float | None, float | None, float | None]:
        """Returns count, mean, standard deviation, minimum and maximum. What is too large is None."""
        variance = finite(self.squares / (self.count - 1)) if self.count > 1 else None
        deviation = None if variance is None else math.sqrt(variance)
        return self.count, finite(self.mean) if self.count else None, deviation, self.minimum, self.maximum
