"""The rows around events, for one key: which recordings there are, and which rows wait for an event.

The result does not depend on which of two streams is read first, the rows' or the events'. A row waits until
no event can reach it any more, and a recording is kept until no row or event can.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import (
    EACH_KEY,
    KEPT_MAX,
    ByKey,
    TooManyKept,
    from_state,
    moment,
    to_state,
)
from pipeline_runtime.operators.columns import ColumnName, FlagColumn, SchemaCheck
from pipeline_runtime.operators.sdk import OutputRow, Params, Row

DAY_S = 86_400
RECORDINGS_MAX = 1_000

_RECORDED = (
    SchemaField(name="recording", type=FieldType.INTEGER),
    SchemaField(name="offset_s", type=FieldType.NUMBER, unit="s"),
)


class AroundParams(Params):
    event: FlagColumn = Field(
        description="a column that is true in the row of an event (derive it from others)"
    )
    before_s: float = Field(default=20.0, ge=0, le=DAY_S)
    after_s: float = Field(default=70.0, ge=0, le=DAY_S)
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)


class Recorder(ByKey):
    """State: `waiting` holds rows with their time `_ms`, sorted by it. `recordings` holds [number, time of
    its first event, from, until] in ms for each recording, and `count` their number so far. `rows_ms` and
    `events_ms` are the times of the newest row, and of the newest row that said whether there is an event. Up
    to `told_ms` all events are known."""

    params: AroundParams

    @property
    def _before_ms(self) -> int:
        return round(self.params.before_s * 1000)

    def recorded(self, schema: StreamSchema, check: SchemaCheck) -> StreamSchema:
        """Returns the schema of the output for rows of this schema."""
        self.key_of(schema, check)
        fields = (*schema.fields, *_RECORDED)
        check.unique([field.name for field in fields], "inputs.in")
        return StreamSchema(fields=fields, key=self.params.key or schema.key)

    def saw_event_row(self, row: Row, state: dict[str, Any]) -> Iterator[OutputRow]:
        """Handles a row that says whether there is an event. Yields the waiting rows that belong to its
        recording."""
        at_ms = row.time_ms
        if row[self.params.event]:
            yield from self._saw_event(at_ms, state)
        self._events_are_at(at_ms, state)

    def _saw_event(self, at_ms: int, state: dict[str, Any]) -> Iterator[OutputRow]:
        """Makes recordings that touch one recording."""
        from_ms, until_ms = at_ms - self._before_ms, at_ms + round(self.params.after_s * 1000)
        recordings = state.setdefault("recordings", [])
        for recording in recordings:
            if from_ms <= recording[3] and until_ms >= recording[2]:
                recording[2:] = [min(from_ms, recording[2]), max(until_ms, recording[3])]
                break
        else:
            if len(recordings) >= RECORDINGS_MAX:
                raise TooManyKept(f"{RECORDINGS_MAX} recordings wait for their rows already")
            state["count"] = state.get("count", 0) + 1
            recording = [state["count"], at_ms, from_ms, until_ms]
            recordings.append(recording)
        waiting = state.get("waiting", [])
        start = bisect_left(waiting, recording[2], key=_time)
        end = bisect_left(waiting, recording[3] + 1, key=_time)
        taken = waiting[start:end]
        del waiting[start:end]
        for each in taken:
            row = {name: from_state(value) for name, value in each.items() if name != "_ms"}
            yield {**row, "_time": moment(each["_ms"]), **_recorded(recording, each["_ms"])}

    def _events_are_at(self, at_ms: int, state: dict[str, Any]) -> None:
        # Two rows have to say so: otherwise one from a clock that is ahead would make all waiting rows
        # forgotten.
        state["told_ms"] = min(at_ms, state.get("events_ms", at_ms))
        state["events_ms"] = at_ms
        waiting = state.get("waiting", [])
        del waiting[: bisect_left(waiting, state["told_ms"] - self._before_ms, key=_time)]
        self._forget(state)

    def saw_row(self, row: Row, state: dict[str, Any]) -> Iterator[OutputRow]:
        """Yields the row if it belongs to a recording. Otherwise it waits, if an event can still reach it."""
        at_ms = state["rows_ms"] = row.time_ms
        recordings = state.get("recordings", [])
        found = next((each for each in recordings if each[2] <= at_ms <= each[3]), None)
        self._forget(state)
        if found is not None:
            yield row.plus(**_recorded(found, at_ms))
        elif at_ms >= state.get("told_ms", at_ms) - self._before_ms:
            self._wait(row, at_ms, state.setdefault("waiting", []))

    def _wait(self, row: Mapping[str, Any], at_ms: int, waiting: list[dict[str, Any]]) -> None:
        if len(waiting) >= KEPT_MAX:
            # A row from a clock that is ahead must not keep others from being recorded.
            del waiting[bisect_left(waiting, at_ms + self._before_ms + 1, key=_time) :]
        if len(waiting) >= KEPT_MAX:
            raise TooManyKept(
                f"{KEPT_MAX} rows wait for an event already; record less before it, or aggregate first"
            )
        data = {name: to_state(value) for name, value in row.items()}
        insort(waiting, {**data, "_ms": at_ms}, key=_time)

    def _forget(self, state: dict[str, Any]) -> None:
        """Forgets recordings that neither rows nor events can reach any more."""
        if "rows_ms" in state and "told_ms" in state:
            past_ms = min(state["rows_ms"], state["told_ms"]) - self._before_ms
            state["recordings"] = [each for each in state.get("recordings", []) if each[3] >= past_ms]


def _time(row: Mapping[str, Any]) -> int:
    at_ms: int = row["_ms"]
    return at_ms


def _recorded(recording: list[int], at_ms: int) -> dict[str, Any]:
    return {"recording": recording[0], "offset_s": (at_ms - recording[1]) / 1000}
