"""State: the time from one event to the one that answers it."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field, model_validator

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.model.texts import texts
from pipeline_runtime.operators.by_key import EACH_KEY, KEPT_MAX, TooManyKept
from pipeline_runtime.operators.columns import ColumnName, SchemaCheck
from pipeline_runtime.operators.key_columns import KeySegments, key_portions
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.lineage import Came, Found, TracedRow, first_place, ms_of
from pipeline_runtime.operators.sdk import FileDescriber, Params, States

DAY_S = 86_400
FIRST, SECOND = "first", "second"
NAMES = (FieldType.STRING, FieldType.BOOLEAN, FieldType.INTEGER)


class TimeBetweenParams(Params):
    column: ColumnName = Field(
        description="the column that says what happened, such as the signal of an edge"
    )
    first: str = Field(
        min_length=1,
        max_length=200,
        title="Value that begins",
        description="its value for the event that begins",
    )
    second: str = Field(
        min_length=1,
        max_length=200,
        title="Value that answers",
        description="its value for the event that answers",
    )
    within_s: float = Field(
        default=60.0,
        gt=0,
        le=7 * DAY_S,
        title="How long to wait for the answer, in seconds",
        description="how long to wait for the answer",
    )
    debounce_s: float = Field(
        default=0.0,
        ge=0,
        le=DAY_S,
        title="Repeats count once within, in seconds",
        description="the same event within this time is a duplicate",
    )
    delay_s: float = Field(
        default=0.0,
        ge=0,
        le=DAY_S,
        title="How late a row may come, in seconds",
        description="how late a row may arrive; each event waits for so long",
    )
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)

    @model_validator(mode="after")
    def _differ(self) -> TimeBetweenParams:
        if self.first == self.second:
            raise ValueError("choose two different values for first and second")
        return self


class TimeBetween(KeySegments):
    """Pairs each event with the next one that answers it, and gives the time between them.

    An event is a row whose `column` is `first` or `second` (as text; true and false are the words `true` and
    `false`). Of other rows, only the event time counts. The element takes the events of a key in the order of
    their event time: it takes an event when a row of the key arrives whose time is `delay_s` later. So an
    event that comes less than `delay_s` late still keeps its place. A `first` waits for its answer: the next
    `second` within `within_s`. The element also reports events without a partner:

    | outcome | |
    |---|---|
    | matched | `interval_s` is the time from the first to the second |
    | unanswered | no second came within `within_s` of this first, or another first came before it |
    | unexpected | no first waits for this second |
    | duplicate | the same event again within `debounce_s`; it changes nothing |
    | late | it arrived more than `delay_s` late, after a later one was taken; it changes nothing |

    A row from a clock that is far ahead makes all following rows late, as in a window aggregate. If a key
    falls silent, its last events stay. At most 20,000 events of a key wait. A further event goes to the dead
    letters.

    Output: the key's column, if there is one, `outcome`, `event` (the value of the event; for a pair that of
    the second), `interval_s`, `first_at` and `second_at`. The event time is that of the event; for a pair
    that of the second.
    """

    type = "time-between"
    title = "Time between events"
    summary = "Pairs events, measures the time between them, and reports missing ones"
    category = "state"
    icon = "timer"
    Params = TimeBetweenParams
    state_params = frozenset({"column", "first", "second", "key"})
    other_columns = "more"
    keeps = "the event that waits for its answer, and those that wait for late rows"
    passes_on = False
    example = {"column": "signal", "first": "bm05", "second": "bm08", "within_s": 10}

    params: TimeBetweenParams

    def __init__(self, params: TimeBetweenParams, describe_file: FileDescriber | None = None) -> None:
        super().__init__(params, describe_file)
        self._delay_ms = round(params.delay_s * 1000)
        self._within_ms, self._debounce_ms = params.within_s * 1000, params.debounce_s * 1000

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        is_mine, outcome = self.is_of_key(made), made.values.get("outcome")
        within_ms, debounce_ms, delay_ms = (
            round(each * 1000) for each in (self.params.within_s, self.params.debounce_s, self.params.delay_s)
        )
        from_ms = made.time_ms
        if outcome == "matched":
            from_ms = ms_of(made.values.get("first_at")) or from_ms
        elif outcome == "duplicate":
            from_ms -= debounce_ms
        until_ms = made.time_ms + delay_ms + (within_ms + 1 if outcome == "unanswered" else 0)

        def chosen(rows: Sequence[TracedRow]) -> Found:
            own = [row for row in rows if is_mine(row) and row.time_ms >= from_ms]
            places = [place for place, row in enumerate(own) if row.time_ms == made.time_ms]
            # It was reported with the first row that is so much later, and not before it came.
            end = max([first_place(own, until_ms), *places])
            return Found(own[: end + 1])

        return {"in": Came(from_ms, None, chosen)}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            check.column(schema, self.params.column, "params.column", NAMES)
            fields = (
                *self.key_of(schema, check),
                SchemaField(name="outcome", type=FieldType.STRING),
                SchemaField(name="event", type=FieldType.STRING),
                SchemaField(name="interval_s", type=FieldType.NUMBER, unit="s"),
                SchemaField(name="first_at", type=FieldType.TIMESTAMP),
                SchemaField(name="second_at", type=FieldType.TIMESTAMP),
            )
            check.unique([field.name for field in fields], "params.key")
        return StreamSchema(fields=fields, key=self.params.key or schema.key)

    def process_keys(self, ports: Mapping[str, KeyedRows], states: States) -> None:
        rows = ports["in"]
        words = texts(rows.table[self.params.column])
        kinds = np.full(len(words), "", object)
        for kind, word in ((FIRST, self.params.first), (SECOND, self.params.second)):
            kinds[pc.fill_null(pc.equal(words, word), fill_value=False).to_numpy()] = kind
        kinds = rows.by_place(kinds)
        events = np.flatnonzero(kinds != "").tolist()
        for some in key_portions(rows.spans):
            for key, stored in zip(some, states.get(some), strict=True):
                state = stored or {}
                self._take_rows(rows, *rows.spans[key], kinds, events, state)
                states.put(key, state)

    def _take_rows(
        self,
        rows: KeyedRows,
        first: int,
        end: int,
        kinds: NDArray[Any],
        events: Sequence[int],
        state: dict[str, Any],
    ) -> None:
        """Takes the rows of one key. Rows that are no event are passed over as far as no time has come with
        them. `events` are the places of those that are one."""
        times_ms, delay_ms = rows.times_ms, self._delay_ms
        given_up_ms = delay_ms + math.floor(self._within_ms) + 1
        waiting: list[list[Any]] = state.setdefault("waiting", [])
        newest = _newest(times_ms[first:end], state.get("newest_ms", times_ms[first]))
        number, place = bisect_left(events, first), first
        while place < end:
            next_event = events[number] if number < len(events) else end
            due_ms = [waiting[0][0] + delay_ms] if waiting else []
            if (opened_ms := state.get("open_ms")) is not None:
                due_ms.append(opened_ms + given_up_ms)
            if due_ms:
                # No time is due before the next event, so only the rows up to there are looked through.
                due = bisect_left(newest, min(due_ms), place - first, min(next_event, end) - first)
                next_event = min(next_event, first + due)
            place = next_event
            if place >= end:
                break
            number += number < len(events) and events[number] == place
            if not self._take_row(rows, place, newest[place - first], kinds[place], waiting, state):
                # Its time counts no more than the row.
                before_ms = newest[place - first - 1] if place > first else state["newest_ms"]
                newest[place - first :] = [before_ms, *_newest(times_ms[place + 1 : end], before_ms)]
            place += 1
        state["newest_ms"] = newest[-1]

    def _take_row(
        self,
        rows: KeyedRows,
        place: int,
        newest_ms: int,
        kind: str,
        waiting: list[list[Any]],
        state: dict[str, Any],
    ) -> bool:
        """Takes a row. Returns whether there was room for it."""
        now_ms, until_ms = rows.times_ms[place], newest_ms - self._delay_ms
        if not waiting and kind and now_ms <= until_ms:
            self._take(rows, place, state, now_ms, kind)
            self._give_up(rows, place, state, until_ms)
            return True
        ready = bisect_right(waiting, [until_ms, SECOND])
        if kind:
            if now_ms > until_ms and len(waiting) - ready >= KEPT_MAX:
                rows.reject(place, TooManyKept(_TOO_MANY.format(KEPT_MAX)))
                return False
            insort(waiting, [now_ms, kind])
            ready += now_ms <= until_ms
        for at_ms, what in waiting[:ready]:
            self._take(rows, place, state, at_ms, what)
        del waiting[:ready]
        self._give_up(rows, place, state, until_ms)
        return True

    def numbers_of(self) -> tuple[str, ...]:
        return ()

    def _take(self, rows: KeyedRows, place: int, state: dict[str, Any], at_ms: int, kind: str) -> None:
        last_ms, last_kind = state.get("last") or [at_ms, ""]
        if at_ms < last_ms:
            self._report(rows, place, "late", kind, at_ms)
            return
        if kind == last_kind and self._debounce_ms and at_ms - last_ms <= self._debounce_ms:
            self._report(rows, place, "duplicate", kind, at_ms)
            return
        self._give_up(rows, place, state, at_ms)
        state["last"] = [at_ms, kind]
        opened_ms = state.pop("open_ms", None)
        if kind == FIRST:
            if opened_ms is not None:
                self._report(rows, place, "unanswered", FIRST, opened_ms)
            state["open_ms"] = at_ms
        elif opened_ms is None:
            self._report(rows, place, "unexpected", SECOND, at_ms)
        else:
            interval_s = (at_ms - opened_ms) / 1000
            rows.made.append((place, at_ms, "matched", self.params.second, interval_s, opened_ms, at_ms))

    def _give_up(self, rows: KeyedRows, place: int, state: dict[str, Any], until_ms: int) -> None:
        opened_ms = state.get("open_ms")
        if opened_ms is not None and until_ms - opened_ms > self._within_ms:
            del state["open_ms"]
            self._report(rows, place, "unanswered", FIRST, opened_ms)

    def _report(self, rows: KeyedRows, place: int, outcome: str, kind: str, at_ms: int) -> None:
        """Reports an event without a partner."""
        if kind == FIRST:
            rows.made.append((place, at_ms, outcome, self.params.first, None, at_ms, None))
        else:
            rows.made.append((place, at_ms, outcome, self.params.second, None, None, at_ms))


def _newest(times_ms: Sequence[int], before_ms: int) -> list[int]:
    """Returns for each time the newest up to there."""
    return [*accumulate(times_ms, max, initial=before_ms)][1:]


_TOO_MANY = "{} events of this key wait for late rows already; shorten the delay"
