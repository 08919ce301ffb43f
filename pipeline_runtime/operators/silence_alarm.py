"""Alert: nothing comes any more."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.accumulators import column_of, readable
from pipeline_runtime.operators.columns import ColumnName, SchemaCheck
from pipeline_runtime.operators.event_time import DIGITS, sortable, utc
from pipeline_runtime.operators.lineage import Came, Found, TracedRow, equal, ms_of
from pipeline_runtime.operators.sdk import BatchProcessor, OperatorContext, Params, States
from pipeline_runtime.operators.severity import HOW_SERIOUS, Severity

TICK_S_MIN, TICK_S_MAX = 1.0, 5.0
TICKS_AT_ONCE = 2
"""The element's clock goes on by no more than so many ticks from one batch to the next. When there was none
for longer, the element did not run, and rows that it has not read may be waiting."""
_SEEN, _WAITS = "seen ", "waits "


class SilenceAlarmParams(Params):
    for_s: float = Field(
        ge=2,
        le=7 * 86_400,
        title="Nothing for, in seconds",
        description="the alarm is raised when no row has come for this long",
    )
    key: ColumnName | None = Field(
        default=None,
        title="Each value of",
        description="the rows of each value of this column are waited for separately; empty: any row counts",
    )
    severity: Severity = Field(default=Severity.WARNING, description=HOW_SERIOUS)


class SilenceAlarm(BatchProcessor):
    """Raises an alarm when no row has come for `for_s`, and clears it with the next row.

    The element uses the time at which rows arrive here, not their event time, because a silent source has no
    event time. Time in which the element does not run does not count: after a pause or a restoration, the
    element first reads the rows that have come meanwhile. It looks ten times in `for_s`, but not more than
    once a second and not less than every 5 s. So an alarm may be late by one such interval.

    Without `key`, the element waits for rows from its start on, and so also for the first row. With `key`, it
    waits for rows of the keys that have come before. A recording that has ended is not silent.

    Output: the key's column, if there is one, `alarm` (raised or cleared), `since` (when the last row before
    had come) and `silent_s` (for how many seconds none had come while the element ran). The event time is
    that of the alarm.
    """

    type = "silence-alarm"
    title = "Silence alarm"
    summary = "Raises an alarm when no row has come for some time"
    category = "alert"
    icon = "hourglass"
    Params = SilenceAlarmParams
    state_params = frozenset({"key"})
    other_columns = "more"
    keeps = "when the last rows came: it waits for them as if they had just come"
    follow = "exact"
    example = {"for_s": 60}

    params: SilenceAlarmParams

    def ticks_s(self) -> float:
        return min(max(self.params.for_s / 10, TICK_S_MIN), TICK_S_MAX)

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        is_mine = equal(made, () if self.params.key is None else (self.params.key,))
        since_ms = ms_of(made.values.get("since")) or made.time_ms

        def chosen(rows: Sequence[TracedRow]) -> Found:
            own = [row for row in rows if is_mine(row)]
            before = [row for row in own if row.time_ms <= since_ms][-1:]
            after = [row for row in own if since_ms < row.time_ms <= made.time_ms][:1]
            return Found([*before, *after], _BY_ARRIVAL, whole=bool(before))

        return {"in": Came(None, made.time_ms, chosen)}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        key = self.params.key
        with SchemaCheck() as check:
            field = None if key is None else check.column(inputs["in"], key, "params.key")
            fields = (
                *(() if field is None else (field,)),
                SchemaField(name="alarm", type=FieldType.STRING),
                SchemaField(name="since", type=FieldType.TIMESTAMP),
                SchemaField(name="silent_s", type=FieldType.NUMBER, unit="s"),
            )
            check.unique([each.name for each in fields], "params.key")
        return StreamSchema(fields=fields, key=key)

    def process_batch(
        self, inputs: Mapping[str, pa.Table], states: States, ctx: OperatorContext, *, at_end: bool
    ) -> pa.Table:
        now_ms = states.batch_time_ms
        [kept] = states.get([None])
        clock_ms, before_ms = kept or (0, now_ms)
        passed_ms = min(max(0, now_ms - before_ms), int(TICKS_AT_ONCE * self.ticks_s() * 1000))
        clock_ms += passed_ms
        states.put(None, [clock_ms, now_ms])
        told: list[tuple[str, str, int, int]] = []  # the key's text, the alarm, since and for how long in ms
        came = self._came(inputs["in"], first=kept is None)
        for name, seen in zip(came, states.get([_SEEN + name for name in came]), strict=True):
            if seen is not None:
                last_ms, at_ms, raised = seen
                states.put(_waits(last_ms, name), None)
                if raised:
                    told.append((name, "cleared", at_ms, clock_ms - last_ms))
            states.put(_SEEN + name, [clock_ms, now_ms, False])
            states.put(_waits(clock_ms, name), True)
        until_ms = clock_ms - int(self.params.for_s * 1000)
        for waits in states.between(_waits(0, ""), _waits(until_ms + 1, "")) if until_ms >= 0 else ():
            name = waits[len(_WAITS) + DIGITS :]
            if name in came:
                continue
            [(last_ms, at_ms, _)] = states.get([_SEEN + name])
            states.put(waits, None)
            states.put(_SEEN + name, [last_ms, at_ms, True])
            told.append((name, "raised", at_ms, clock_ms - last_ms))
        return self._table(told, now_ms, ctx.output_schema)

    def _came(self, rows: pa.Table, *, first: bool) -> dict[str, None]:
        """Returns the texts of the keys of which a row has come, in a fixed order. Without keys, the element
        begins to wait when it starts."""
        if self.params.key is None:
            return {"[null]": None} if rows.num_rows or first else {}
        values = rows[self.params.key]
        plain = values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values
        return dict.fromkeys(
            json.dumps([value], ensure_ascii=False) for value in pc.unique(plain).to_pylist()
        )

    def _table(self, told: list[tuple[str, str, int, int]], now_ms: int, outputs: StreamSchema) -> pa.Table:
        columns: dict[str, Any] = {}
        if self.params.key is not None:
            keys = [json.loads(name)[0] for name, *_ in told]
            columns[self.params.key] = column_of(keys, self.params.key, outputs)
        columns["alarm"] = pa.array([alarm for _, alarm, *_ in told], pa.string())
        columns["since"] = column_of([at_ms * 1000 for _, _, at_ms, _ in told], "since", outputs)
        columns["silent_s"] = pa.array([for_ms / 1000 for *_, for_ms in told], pa.float64())
        times = pa.array([now_ms * 1000] * len(told), pa.int64())
        return pa.table({**columns, "_time": times.cast(pa.timestamp("us", "UTC"))})

    def readable_key(self, key: str) -> str:
        if key.startswith(_SEEN):
            return f"last row of {readable(json.loads(key[len(_SEEN) :]))}"
        return f"waits for {readable(json.loads(key[len(_WAITS) + DIGITS :]))}"

    def readable_state(self, state: Any, inputs: Mapping[str, StreamSchema]) -> Any:
        if not isinstance(state, list):
            return state
        _, at_ms, raised = state
        return {"came": f"{utc(at_ms * 1000)} UTC", "alarm": "raised" if raised else None}


_BY_ARRIVAL = (
    "An alarm about silence goes by when rows came here. "
    "These are the rows around the silence by their own time."
)


def _waits(last_ms: int, name: str) -> str:
    """Returns the key of what waits, in the order in which it becomes due."""
    return f"{_WAITS}{sortable(last_ms)}{name}"
