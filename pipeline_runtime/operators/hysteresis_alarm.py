"""Alert: a condition that begins and ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field, model_validator

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import EACH_KEY
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NumericColumn, SchemaCheck
from pipeline_runtime.operators.key_columns import KeyColumns
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.lineage import Came, TracedRow, is_same, ms_in, up_to, with_value
from pipeline_runtime.operators.sdk import Params


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


class HysteresisAlarm(KeyColumns):
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
    passes_on = False
    example = {"column": "temperature", "raise_at": 80, "clear_at": 70, "for_s": 10}

    params: HysteresisAlarmParams

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        column, is_mine = self.params.column, self.is_of_key(made)
        lasted_ms = ms_in(made.values.get("lasted")) if made.values.get("alarm") == "cleared" else 0

        def then(rows: Sequence[TracedRow]) -> Sequence[TracedRow]:
            own = with_value(rows, column)
            raised_ms = made.time_ms - (lasted_ms or 0)
            # The row with which the alarm was raised, then back to the first of those beyond the limit.
            place = next(
                (at for at, row in enumerate(own) if row.time_ms == raised_ms and self._raises(row)), 0
            )
            while place > 0 and self._raises(own[place - 1]):
                place -= 1
            return own[place:]

        is_trigger = is_same(made, {column: column})
        return {"in": Came(None, made.time_ms, up_to(is_mine, is_trigger, then))}

    def _raises(self, row: TracedRow) -> bool:
        return self._goes_on(row.values[self.params.column])

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

    def process_key(self, rows: KeyedRows, first: int, end: int, state: dict[str, Any]) -> None:
        above, values, times_ms = self.params.above, rows.floats(self.params.column), rows.times_ms
        if state.get("above", above) != above:
            state.clear()  # from now on it is about the other side
        raised_ms, since_ms, worst = state.get("raised_ms"), state.get("since_ms"), state.get("worst")
        for place in range(first, end):
            value, now_ms = values[place], times_ms[place]
            if value is None:
                continue
            if raised_ms is None:
                if not self._goes_on(value):
                    since_ms = worst = None
                    continue
                worst, least_s = self._farther(value, worst), self.params.for_s
            else:
                if not self._ended(value):
                    since_ms, worst = None, self._farther(value, worst)
                    continue
                least_s = self.params.clear_for_s
            since_ms = now_ms if since_ms is None else min(now_ms, since_ms)
            if now_ms - since_ms < least_s * 1000:
                continue
            if raised_ms is None:
                rows.made.append((place, now_ms, "raised", value, since_ms, None, worst))
                raised_ms = now_ms
            else:
                lasted_s = max(0, now_ms - raised_ms) / 1000
                rows.made.append((place, now_ms, "cleared", value, since_ms, lasted_s, worst))
                raised_ms = worst = None
            since_ms = None
        kept = {"above": above, "raised_ms": raised_ms, "since_ms": since_ms, "worst": worst}
        state.clear()
        state.update({name: each for name, each in kept.items() if each is not None})

    def _goes_on(self, value: float) -> bool:
        """Returns whether the value is beyond the limit that raises the alarm."""
        return value > self.params.raise_at if self.params.above else value < self.params.raise_at

    def _ended(self, value: float) -> bool:
        return value <= self.params.clear_at if self.params.above else value >= self.params.clear_at

    def _farther(self, one: float, other: float | None) -> float:
        if other is None:
            return one
        return max(one, other) if self.params.above else min(one, other)
