"""State: statistics of everything so far, per key, reported at a steady pace. The example of an
event-by-event operator with a timer: read it before you write your own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import ByKey, finite, number
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NumericColumn, SchemaCheck
from pipeline_runtime.operators.sdk import Params, Timers


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


class RunningStatistics(ByKey):
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

    def process(
        self, key: str, row: dict[str, Any], state: dict[str, Any], timers: Timers
    ) -> Iterable[dict[str, Any]]:
        if self.params.key is not None:
            value = row[self.params.key]
            state["key"] = value.isoformat() if isinstance(value, datetime) else value
        value = row[self.params.column]
        if value is not None:
            _add(state, float(number(value)))
        if self.params.every_s == 0:
            yield self._report(state, row["_time"])
        elif "due_ms" not in state:
            step_ms = max(round(self.params.every_s * 1000), 1)
            time_ms = math.floor(row["_time"].timestamp() * 1000)
            state["due_ms"] = (time_ms // step_ms + 1) * step_ms
            timers.set(state["due_ms"])

    def on_timer(
        self, key: str, time_ms: int, state: dict[str, Any], timers: Timers
    ) -> Iterable[dict[str, Any]]:
        # The next event sets the next timer, so a key that is silent for a year has no reports to catch up
        # on.
        state.pop("due_ms", None)
        yield self._report(state, datetime.fromtimestamp(time_ms / 1000, UTC))
        if self.params.reset:
            for name in ("count", "mean", "squares", "minimum", "maximum"):
                state.pop(name, None)

    def _report(self, state: dict[str, Any], time: datetime) -> dict[str, Any]:
        count = state.get("count", 0)
        variance = finite(state["squares"] / (count - 1)) if count > 1 else None
        report: dict[str, Any] = {
            "_time": time,
            "count": count,
            "mean": finite(state.get("mean")),
            "stddev": math.sqrt(variance) if variance is not None else None,
            "minimum": state.get("minimum"),
            "maximum": state.get("maximum"),
        }
        if self.params.key is not None:
            report[self.params.key] = state["key"]
        return report


def _add(state: dict[str, Any], value: float) -> None:
    """Welford's method: exact enough over billions of values, without keeping a list."""
    count = state.get("count", 0) + 1
    mean = state.get("mean", 0.0)
    delta = value - mean
    mean += delta / count
    state["count"], state["mean"] = count, mean
    state["squares"] = state.get("squares", 0.0) + delta * (value - mean)
    if count == 1 or value < state["minimum"]:
        state["minimum"] = value
    if count == 1 or value > state["maximum"]:
        state["maximum"] = value
