"""Alert: a condition that begins and ends."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationInfo, field_validator, model_validator

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import EACH_KEY
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NumericColumn, SchemaCheck
from pipeline_runtime.operators.key_columns import KeySegments, key_portions
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.lineage import Came, TracedRow, is_same, ms_in, ms_of, up_to, with_value
from pipeline_runtime.operators.sdk import Params, States
from pipeline_runtime.operators.severity import HOW_SERIOUS, Severity


class HysteresisAlarmParams(Params):
    column: NumericColumn = Field(description="the column of numbers to watch")
    direction: Literal["above", "below"] = Field(
        default="above",
        description="whether values above the limit raise the alarm, or values below it",
    )
    raise_at: float = Field(description="the alarm is raised when the value is beyond this limit")
    clear_at: float = Field(
        description="the alarm is cleared at this limit: at most Raise at for an alarm above, else at least"
    )
    for_s: float = Field(
        default=0.0,
        ge=0,
        le=7 * 86_400,
        title="Seconds beyond the limit before it is raised",
        description="how long the value must stay beyond the limit without a break",
    )
    clear_for_s: float = Field(
        default=0.0,
        ge=0,
        le=7 * 86_400,
        title="Seconds back before it is cleared",
        description="how long the value must stay back before the alarm is cleared",
    )
    key: ColumnName | None = Field(
        default=None, title="For each", description=EACH_KEY, json_schema_extra={"x-first": True}
    )
    severity: Severity = Field(default=Severity.WARNING, description=HOW_SERIOUS)

    @property
    def above(self) -> bool:
        """Returns whether the alarm is about values that are too high."""
        return self.direction == "above"

    @field_validator("clear_at")
    @classmethod
    def _on_the_right_side(cls, clear_at: float, info: ValidationInfo) -> float:
        # a value that has a fault of its own is not there
        raise_at, direction = info.data.get("raise_at"), info.data.get("direction")
        if raise_at is None or direction is None:
            return clear_at
        if direction == "above" and clear_at > raise_at:
            raise ValueError(f"has to be at most Raise at, which is {raise_at:.15g}, for an alarm above")
        if direction == "below" and clear_at < raise_at:
            raise ValueError(f"has to be at least Raise at, which is {raise_at:.15g}, for an alarm below")
        return clear_at

    @model_validator(mode="after")
    def _apart(self) -> HysteresisAlarmParams:
        if self.raise_at == self.clear_at and not self.for_s and not self.clear_for_s:
            raise ValueError(
                "raise and clear the alarm at different limits, or only after some time; otherwise it flaps"
            )
        return self


class HysteresisAlarm(KeySegments):
    """Raises an alarm when a value has been too high (or too low) for some time, and clears the alarm when
    the value is back.

    With `direction: above`, the element raises the alarm above `raise_at`, and clears it at `clear_at` or
    below. With `direction: below`, it raises the alarm below `raise_at`, and clears it at `clear_at` or
    above. A `clear_at` on the wrong side of `raise_at` is refused. A value between the two limits changes
    nothing. So a value that moves around one limit does not raise and clear the alarm again and again.

    The element raises the alarm when the value has been beyond the limit for `for_s` of event time. It clears
    the alarm when the value has been back for `clear_for_s`. A single value on the other side starts that
    time again. Null is ignored. The element takes rows in the order in which they arrive. It writes one row
    when it raises the alarm, and one when it clears it. Time passes only when rows arrive, so each output row
    comes with an input row.

    The output has the key's column, if there is one, and the column with the value. `alarm` is raised or
    cleared. `since` is the time at which the value went beyond the limit, or came back. `lasted` is for a
    cleared alarm: the seconds since it was raised. `worst` is the farthest value since the value went beyond
    the limit.
    """

    type = "hysteresis-alarm"
    title = "Alarm with hysteresis"
    summary = "Raises an alarm while a value stays beyond a limit"
    category = "alert"
    icon = "siren"
    Params = HysteresisAlarmParams
    state_params = frozenset({"column", "direction", "key"})
    other_columns = "more"
    keeps = "whether the alarm is raised: it may be raised a second time"
    passes_on = False
    example = {"column": "temperature", "direction": "above", "raise_at": 80, "clear_at": 70, "for_s": 10}

    params: HysteresisAlarmParams

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        column, is_mine, told = self.params.column, self.is_of_key(made), made.values.get("alarm")
        lasted_ms = ms_in(made.values.get("lasted")) if told == "cleared" else 0
        # No row of those beyond the limit is earlier than that. What is cleared does not say it of them.
        from_ms = ms_of(made.values.get("since")) if told == "raised" else None

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
        return {"in": Came(from_ms, made.time_ms, up_to(is_mine, is_trigger, then))}

    def _raises(self, row: TracedRow) -> bool:
        return bool(self._goes_on(row.values[self.params.column]))

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

    def process_keys(self, ports: Mapping[str, KeyedRows], states: States) -> None:
        rows = ports["in"]
        values = rows.array(self.params.column)  # a null is NaN, which is on no side
        beyond, back = (np.flatnonzero(side(values)).tolist() for side in (self._goes_on, self._ended))
        for some in key_portions(rows.spans):
            for key, stored in zip(some, states.get(some), strict=True):
                states.put(key, self._taken(rows, *rows.spans[key], beyond, back, stored or {}))

    def _taken(
        self,
        rows: KeyedRows,
        first: int,
        end: int,
        beyond: Sequence[int],
        back: Sequence[int],
        state: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Takes the rows of one key, and returns its new state. `beyond` and `back` are places of the rows
        that can raise an alarm and clear one. What lies between is passed over."""
        values, times_ms = rows.floats(self.params.column), rows.times_ms
        raised_ms, since_ms, worst = state.get("raised_ms"), state.get("since_ms"), state.get("worst")
        place = first
        while place < end:
            before, place = place, _next(back if raised_ms is not None else beyond, place, end)
            passed = [value for value in values[before:place] if value is not None]
            if passed:
                since_ms = None
                worst = None if raised_ms is None else self._farthest(passed, worst)
            if place == end:
                break
            value, now_ms = values[place], times_ms[place]
            assert value is not None, "a null is on no side"
            if raised_ms is None:
                worst = self._farthest([value], worst)
            since_ms = now_ms if since_ms is None else min(now_ms, since_ms)
            least_s = self.params.for_s if raised_ms is None else self.params.clear_for_s
            if now_ms - since_ms >= least_s * 1000:
                if raised_ms is None:
                    rows.made.append((place, now_ms, "raised", value, since_ms, None, worst))
                    raised_ms = now_ms
                else:
                    lasted_s = max(0, now_ms - raised_ms) / 1000
                    rows.made.append((place, now_ms, "cleared", value, since_ms, lasted_s, worst))
                    raised_ms = worst = None
                since_ms = None
            place += 1
        kept = {"raised_ms": raised_ms, "since_ms": since_ms, "worst": worst}
        return {name: each for name, each in kept.items() if each is not None}

    def _goes_on(self, value: Any) -> Any:
        """Returns whether the value, or each of an array, is beyond the limit that raises the alarm."""
        return value > self.params.raise_at if self.params.above else value < self.params.raise_at

    def _ended(self, value: Any) -> Any:
        return value <= self.params.clear_at if self.params.above else value >= self.params.clear_at

    def _farthest(self, values: Sequence[float], worst: float | None) -> float:
        """Returns which of the values and the one before them is farthest, of equal ones the last."""
        found = [*reversed(values), *([] if worst is None else [worst])]
        return max(found) if self.params.above else min(found)


def _next(places: Sequence[int], place: int, end: int) -> int:
    """Returns the first of the places from `place` on, or `end`."""
    at = bisect_left(places, place)
    return min(places[at], end) if at < len(places) else end
