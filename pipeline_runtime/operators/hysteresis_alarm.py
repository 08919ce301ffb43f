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
    raise_at: float = Field(description="the alarm is raised when the value is beyond this limit")
    clear_at: float = Field(
        description="the alarm is cleared at this limit; above the other one, low values raise the alarm"
    )
    for_s: float = Field(
        default=0.0,
        ge=0,
        le=7 * 86_400,
        title="Beyond it for, s",
        description="how long the value must stay beyond the limit without a break",
    )
    clear_for_s: float = Field(
        default=0.0,
        ge=0,
        le=7 * 86_400,
        title="Back for, s",
        description="how long the value must stay back before the alarm is cleared",
    )
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)

    @property
    def above(self) -> bool:
        """Returns whether the alarm is about values that are too high."""
        return self.clear_at <= self.raise_at

    @model_validator(mode="after")
    def _apart(self) -> HysteresisAlarmParams:
        if self.raise_at == self.clear_at and not self.for_s and not self.clear_for_s:
            raise ValueError(
                "raise and clear the alarm at different limits, or only after some time; otherwise it flaps"
            )
        return self


class HysteresisAlarm(ByKey):
    """Raises an alarm when a value has been too high (or too low) for some time, and clears it when the value
    is back.

    If `clear_at` is at or below `raise_at`, the alarm is about values that are too high: it is raised above
    `raise_at` and cleared at `clear_at` or below. Otherwise it is about values that are too low. A value
    between the two limits changes nothing, so that a value around one limit does not raise and clear the
    alarm all the time.

    The alarm is raised when the value has been beyond the limit for `for_s` of event time. A single value
    that is not beyond it starts that time again. Null is ignored. Rows are taken in the order in which they
    arrive. There is one output row when the alarm is raised and one when it is cleared. Each comes with an
    input row, because time passes by rows alone.

    Output: the key's column, if there is one, `alarm` (raised or cleared), the column, `since` (when the
    value went beyond the limit, or came back), `lasted` (for a cleared alarm: the time since it was raised)
    and `worst`, the value farthest beyond the limit in that time.
    """

    type = "hysteresis-alarm"
    title = "Alarm with hysteresis"
    summary = "Raises an alarm while a value stays beyond a limit"
    category = "alert"
    icon = "siren"
    Params = HysteresisAlarmParams
    state_params = frozenset({"column", "key"})
    other_columns = "more"
    keeps = "whether the alarm is raised: it may be raised a second time"
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
                SchemaField(name="lasted", type=FieldType.NUMBER, unit="s"),
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
            state.clear()  # from now on it is about the other side
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
            yield self.keyed(row, alarm="raised", lasted=None, **said)
        else:
            del state["raised_ms"], state["worst"]
            yield self.keyed(row, alarm="cleared", lasted=max(0, now_ms - raised_ms) / 1000, **said)

    def _goes_on(self, value: float) -> bool:
        """Returns whether the value is beyond the limit that raises the alarm."""
        return value > self.params.raise_at if self.params.above else value < self.params.raise_at

    def _ended(self, value: float) -> bool:
        return value <= self.params.clear_at if self.params.above else value >= self.params.clear_at

    def _farther(self, one: float, other: float) -> float:
        return max(one, other) if self.params.above else min(one, other)
