"""Alert: a condition that begins and ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field, model_validator

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import EACH_KEY, ByKey, moment, number, time_ms
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NumericColumn, SchemaCheck
from pipeline_runtime.operators.sdk import Params, Timers


class HysteresisAlarmParams(Params):
    column: NumericColumn
    raise_at: float = Field(description="the alarm is raised when the value is beyond that")
    clear_at: float = Field(
        description="and cleared when it is back behind that; at or below raise_at: for values too high"
    )
    for_s: float = Field(default=0.0, ge=0, le=7 * 86_400, description="raised only after so long in one go")
    clear_for_s: float = Field(default=0.0, ge=0, le=7 * 86_400, description="likewise before it is cleared")
    key: ColumnName | None = Field(default=None, description=EACH_KEY)

    @property
    def above(self) -> bool:
        """It is about values that are too high."""
        return self.clear_at <= self.raise_at

    @model_validator(mode="after")
    def _apart(self) -> HysteresisAlarmParams:
        if self.raise_at == self.clear_at and not self.for_s and not self.clear_for_s:
            raise ValueError("raise_at and clear_at differ, or for_s says how long: else it flaps")
        return self


class HysteresisAlarm(ByKey):
    """Raises an alarm when a value has been too high (or too low) for some time, and clears it when it is
    back.

    With `clear_at` at or below `raise_at` it is about values that are too high: raised above `raise_at`,
    cleared at `clear_at` or below; else about values that are too low. What lies between the two changes
    nothing, so that a value around one limit does not raise and clear all the time. `for_s` in one go beyond,
    by event time, raises it; a single value that is not ends that. Null says nothing. Rows are taken in the
    order in which they come. One row when it is raised, one when it is cleared: with the row at which that is
    seen, since time passes by rows alone.

    Output: the key's column, if there is one, `alarm` (raised or cleared), the column, `since` (when it began
    to be beyond, or behind), `lasted_s` (of a cleared one: from raised to cleared) and `worst`, the value
    farthest beyond since it began to be beyond.
    """

    type = "hysteresis-alarm"
    title = "Alarm with hysteresis"
    summary = "Raised when a value stays beyond a limit, cleared when it is back"
    category = "alert"
    icon = "siren"
    Params = HysteresisAlarmParams
    state_params = frozenset({"column", "key"})
    keeps = "whether the alarm is raised: it may be raised once more"
    example = {"column": "temperature", "raise_at": 80, "clear_at": 70, "for_s": 10}

    params: HysteresisAlarmParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            source = check.column(schema, self.params.column, "params.column", NUMERIC)
            unit = source.unit if source is not None else None
            fields = (
                *self.key_of(schema, check),
                SchemaField(name="alarm", type=FieldType.STRING),
                SchemaField(name=self.params.column, type=FieldType.NUMBER, unit=unit),
                SchemaField(name="since", type=FieldType.TIMESTAMP),
                SchemaField(name="lasted_s", type=FieldType.NUMBER, unit="s"),
                SchemaField(name="worst", type=FieldType.NUMBER, unit=unit),
            )
            check.unique([field.name for field in fields], "params.column")
        return StreamSchema(fields=fields, key=self.params.key or schema.key)

    def process(
        self, key: str, row: dict[str, Any], state: dict[str, Any], timers: Timers
    ) -> Iterable[dict[str, Any]]:
        if row[self.params.column] is None:
            return
        value, now_ms = float(number(row[self.params.column])), time_ms(row)
        if state.get("above", self.params.above) != self.params.above:
            state.clear()  # it is about the other side from now on
        state["above"] = self.params.above
        raised_ms = state.get("raised_ms")
        goes = self._goes_on(value) if raised_ms is None else not self._ended(value)
        if raised_ms is None and not goes:
            for name in ("since_ms", "worst"):
                state.pop(name, None)
            return
        if raised_ms is None or goes:
            state["worst"] = self._farther(value, state.get("worst", value))
        if raised_ms is not None and goes:
            state.pop("since_ms", None)
            return
        since_ms = state["since_ms"] = min(now_ms, state.get("since_ms", now_ms))
        least_s = self.params.for_s if raised_ms is None else self.params.clear_for_s
        if now_ms - since_ms < least_s * 1000:
            return
        del state["since_ms"]
        said = {self.params.column: value, "since": moment(since_ms), "worst": state["worst"]}
        if raised_ms is None:
            state["raised_ms"] = now_ms
            yield self.keyed(row, alarm="raised", lasted_s=None, **said)
        else:
            del state["raised_ms"], state["worst"]
            yield self.keyed(row, alarm="cleared", lasted_s=max(0, now_ms - raised_ms) / 1000, **said)

    def _goes_on(self, value: float) -> bool:
        """Beyond what raises it."""
        return value > self.params.raise_at if self.params.above else value < self.params.raise_at

    def _ended(self, value: float) -> bool:
        return value <= self.params.clear_at if self.params.above else value >= self.params.clear_at

    def _farther(self, one: float, other: float) -> float:
        return max(one, other) if self.params.above else min(one, other)
