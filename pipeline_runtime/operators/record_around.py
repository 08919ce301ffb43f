"""State: what was before and after an event."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import (
    EACH_KEY,
    KEPT_MAX,
    ByKey,
    TooManyKept,
    given,
    kept,
    moment,
    time_ms,
)
from pipeline_runtime.operators.columns import ColumnName, FlagColumn, SchemaCheck
from pipeline_runtime.operators.sdk import Params, Timers

DAY_S = 86_400


class RecordAroundParams(Params):
    event: FlagColumn = Field(description="true in the row of an event (derive it from others)")
    before_s: float = Field(default=20.0, ge=0, le=DAY_S)
    after_s: float = Field(default=70.0, ge=0, le=DAY_S)
    key: ColumnName | None = Field(default=None, description=EACH_KEY)


class RecordAround(ByKey):
    """Hands on the rows around an event alone (pre- and post-trigger): from `before_s` before it to `after_s`
    after it, both included.

    A row is an event where its column `event` is true. Another event within a recording extends it, so that
    overlapping ones are one and no row is there twice; one outside of it begins the next. Rows from before
    the event come with it, in the order in which they had come and with their own event time; those after it
    come as they arrive. Rows are told by their own event time, so one that comes late is recorded if it is of
    the time of the newest recording, and else waits for the next event.

    Of each key at most 20,000 rows wait, none longer than `before_s`; one beyond goes to the dead letters
    until older ones have left.

    Output: the input's columns, `recording` (1, 2, … of its key) and `offset_s`, the time from the
    recording's first event, which is negative before it.
    """

    type = "record-around"
    title = "Record around an event"
    summary = "The rows from some seconds before an event to some after"
    category = "state"
    icon = "disc"
    Params = RecordAroundParams
    state_params = frozenset({"event", "key"})
    keeps = "the rows of the time before, and the recording that goes on"
    example = {"event": "alarm", "before_s": 20, "after_s": 70}

    params: RecordAroundParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            check.column(schema, self.params.event, "params.event", (FieldType.BOOLEAN,))
            self.key_of(schema, check)
            fields = (
                *schema.fields,
                SchemaField(name="recording", type=FieldType.INTEGER),
                SchemaField(name="offset_s", type=FieldType.NUMBER, unit="s"),
            )
            check.unique([field.name for field in fields], "inputs.in")
        return StreamSchema(fields=fields, key=self.params.key or schema.key)

    def process(
        self, key: str, row: dict[str, Any], state: dict[str, Any], timers: Timers
    ) -> Iterable[dict[str, Any]]:
        now_ms = time_ms(row)
        waiting: list[dict[str, Any]] = state.setdefault("waiting", [])
        is_in = state.get("from_ms", math.inf) <= now_ms <= state.get("until_ms", -math.inf)
        if row[self.params.event]:
            until_ms = now_ms + round(self.params.after_s * 1000)
            if is_in:
                state["until_ms"] = max(until_ms, state["until_ms"])
            else:
                state["recording"] = state.get("recording", 0) + 1
                state["event_ms"], state["until_ms"] = now_ms, until_ms
                state["from_ms"] = now_ms - round(self.params.before_s * 1000)
            yield from self._from_before(waiting, state)
        elif not is_in:
            self._wait(waiting, row, now_ms)
            return
        yield self._recorded(row, state, now_ms)

    def _wait(self, waiting: list[dict[str, Any]], row: dict[str, Any], now_ms: int) -> None:
        from_ms = now_ms - round(self.params.before_s * 1000)
        gone = next((index for index, each in enumerate(waiting) if each["_ms"] >= from_ms), len(waiting))
        del waiting[:gone]
        if len(waiting) >= KEPT_MAX:
            # What is from a clock that is ahead stands before those that may go.
            waiting[:] = [each for each in waiting if from_ms <= each["_ms"] <= now_ms]
        if len(waiting) >= KEPT_MAX:
            raise TooManyKept(
                f"{KEPT_MAX} rows wait for an event already; lessen before_s, or aggregate first"
            )
        data = {name: kept(value) for name, value in row.items() if name != "_time"}
        waiting.append({**data, "_ms": now_ms})

    def _from_before(self, waiting: list[dict[str, Any]], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """What waits and is of the recording; the rest waits on."""
        rest = []
        for each in waiting:
            at_ms = each["_ms"]
            if state["from_ms"] <= at_ms <= state["until_ms"]:
                row = {name: given(value) for name, value in each.items() if name != "_ms"}
                yield self._recorded({**row, "_time": moment(at_ms)}, state, at_ms)
            else:
                rest.append(each)
        waiting[:] = rest

    def _recorded(self, row: dict[str, Any], state: dict[str, Any], at_ms: int) -> dict[str, Any]:
        offset_s = (at_ms - state["event_ms"]) / 1000
        return {**row, "recording": state["recording"], "offset_s": offset_s}
