"""The rows around events, for one key: which recordings there are, and which rows wait for an event.

The result does not depend on which of two streams is read first, the rows' or the events'. A row waits until
no event can reach it any more, and a recording is kept until no row or event can.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import EACH_KEY, KEPT_MAX, TooManyKept
from pipeline_runtime.operators.columns import ColumnName, FlagColumn, SchemaCheck
from pipeline_runtime.operators.event_time import DIGITS, of_sortable, sortable, utc
from pipeline_runtime.operators.key_columns import KeySegments, key_portions
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.lineage import SAME_TIME, Found, TracedRow, between, ms_in
from pipeline_runtime.operators.sdk import Params, States
from pipeline_runtime.operators.waiting import Load, Row, Waiting

DAY_S = 86_400
RECORDINGS_MAX = 1_000
_SLOTS = 64  # among which the rows that wait for an event are divided
_SLOT_MS_MIN = 50
_OF_KEY, _OF_SLOT = "k", "w"  # how the keys of the states begin

_RECORDED = (
    SchemaField(name="recording", type=FieldType.INTEGER),
    SchemaField(name="offset_s", type=FieldType.NUMBER, unit="s"),
)


class AroundParams(Params):
    event: FlagColumn = Field(
        title="Column of the event",
        description="a column that is true in the row of an event (derive it from others)",
    )
    before_s: float = Field(
        default=20.0,
        ge=0,
        le=DAY_S,
        title="Seconds kept from before an event",
        description="from how long before an event rows are kept",
    )
    after_s: float = Field(
        default=70.0,
        ge=0,
        le=DAY_S,
        title="Seconds kept from after an event",
        description="until how long after an event rows are kept",
    )
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)


class Recordings:
    """The recordings of one key. In the state, `recordings` holds [number, time of its first event, from,
    until] in ms for each recording, and `count` their number so far. `rows_ms` and `events_ms` are the times
    of the newest row, and of the newest row that said whether there is an event. Up to `told_ms` all events
    are known. `waiting` are the slots of rows that wait, which are `width_ms` wide."""

    def __init__(self, state: Mapping[str, Any], params: AroundParams, load: Load) -> None:
        self._before_ms = round(params.before_s * 1000)
        self._after_ms = round(params.after_s * 1000)
        self._recordings: list[list[int]] = [[*each] for each in state.get("recordings", ())]
        self._count: int = state.get("count", 0)
        self._rows_ms: int | None = state.get("rows_ms")
        self._events_ms: int | None = state.get("events_ms")
        self._told_ms: int | None = state.get("told_ms")
        slots = state.get("waiting", ())
        width_ms = state["width_ms"] if slots else max(self._before_ms // _SLOTS, _SLOT_MS_MIN)
        self.waiting = Waiting(width_ms, slots, load)

    def kept(self) -> dict[str, Any]:
        """Returns it as the state has it."""
        return {
            "recordings": self._recordings,
            "count": self._count,
            "rows_ms": self._rows_ms,
            "events_ms": self._events_ms,
            "told_ms": self._told_ms,
            "waiting": self.waiting.kept(),
            "width_ms": self.waiting.width_ms,
        }

    def saw_event(self, at_ms: int) -> tuple[list[int], list[tuple[int, Row]]]:
        """Takes an event. Returns its recording, and the rows that waited for it, each behind its time.
        Raises TooManyKept."""
        from_ms, until_ms = at_ms - self._before_ms, at_ms + self._after_ms
        for recording in self._recordings:
            # Recordings that touch become one.
            if from_ms <= recording[3] and until_ms >= recording[2]:
                recording[2:] = [min(from_ms, recording[2]), max(until_ms, recording[3])]
                break
        else:
            if len(self._recordings) >= RECORDINGS_MAX:
                raise TooManyKept(
                    f"{RECORDINGS_MAX} recordings wait for their rows already; look for rarer events"
                )
            self._count += 1
            recording = [self._count, at_ms, from_ms, until_ms]
            self._recordings.append(recording)
        return recording, self.waiting.take(recording[2], recording[3])

    def saw_events_until(self, at_ms: int) -> None:
        """Takes the time of a row that says whether there is an event."""
        # Two rows have to say so: otherwise one from a clock that is ahead would make all waiting rows
        # forgotten.
        self._told_ms = self._told_by(at_ms)
        self._events_ms = at_ms
        self.waiting.drop_before(self._told_ms - self._before_ms)
        self._forget()

    def saw_row(self, at_ms: int, place: int, *, tells: bool) -> list[int] | None:
        """Returns the recording that the row belongs to. Otherwise it waits, if an event can still reach it.
        With `tells`, the row also says whether there is an event. Raises TooManyKept."""
        told_ms = self._told_by(at_ms) if tells else self._told_ms
        found = next((each for each in self._recordings if each[2] <= at_ms <= each[3]), None)
        waits = found is None and (told_ms is None or at_ms >= told_ms - self._before_ms)
        if waits and self.waiting.count >= KEPT_MAX:
            # A row from a clock that is ahead must not keep others from being recorded.
            before_ms = told_ms - self._before_ms if tells and told_ms is not None else None
            if not self.waiting.has_room(KEPT_MAX, before_ms, at_ms + self._before_ms):
                raise TooManyKept(
                    f"{KEPT_MAX} rows wait for an event already; record less before it, or aggregate first"
                )
        if tells:
            self.saw_events_until(at_ms)
        self._rows_ms = at_ms
        self._forget()
        if waits:
            self.waiting.insert(at_ms, place)
        return found

    def _told_by(self, at_ms: int) -> int:
        return at_ms if self._events_ms is None else min(at_ms, self._events_ms)

    def _forget(self) -> None:
        """Forgets recordings that neither rows nor events can reach any more."""
        if self._recordings and self._rows_ms is not None and self._told_ms is not None:
            past_ms = min(self._rows_ms, self._told_ms) - self._before_ms
            self._recordings = [each for each in self._recordings if each[3] >= past_ms]


class Recorder(KeySegments):
    """The base of operators that record. The state of a key is that of its Recordings. Each slot of the rows
    that wait has a state of its own."""

    params: AroundParams

    def recorded(self, schema: StreamSchema, check: SchemaCheck) -> StreamSchema:
        """Returns the schema of the output for rows of this schema."""
        self.key_of(schema, check)
        fields = (*schema.fields, *_RECORDED)
        check.unique([field.name for field in fields], "inputs.in")
        return StreamSchema(fields=fields, key=self.params.key or schema.key)

    def process_keys(self, ports: Mapping[str, KeyedRows], states: States) -> None:
        for some in key_portions(dict.fromkeys(chain.from_iterable(rows.spans for rows in ports.values()))):
            found = {
                key: Recordings(stored or {}, self.params, partial(_slots_of, key, states))
                for key, stored in zip(some, states.get([_OF_KEY + key for key in some]), strict=True)
            }
            self._read_newest(found, states)
            for key, recordings in found.items():
                self.process_key(key, ports, recordings)
                states.put(_OF_KEY + key, recordings.kept())
                for begin_ms, waiting in recordings.waiting.changed().items():
                    states.put(_slot_key(key, begin_ms), waiting and _as_kept(waiting, ports["in"]))

    def events_ms(self, made: TracedRow) -> tuple[int, int]:
        """Returns the time from the first to the last event that a recorded row may belong to, the row's own
        time included."""
        before_ms, after_ms = round(self.params.before_s * 1000), round(self.params.after_s * 1000)
        first_ms = self._first_ms(made)
        return min(first_ms, made.time_ms - after_ms), max(first_ms, made.time_ms + before_ms)

    def events_of(self, made: TracedRow, rows: Sequence[TracedRow]) -> Found:
        """Returns the events among the rows of a key by which a row was recorded: the first of its recording,
        and those that came behind it."""
        first_ms = self._first_ms(made)
        events = [row for row in between(rows, *self.events_ms(made)) if row.values.get(self.params.event)]
        places = [place for place, row in enumerate(events) if row.time_ms == first_ms]
        return Found(events[places[-1] if places else 0 :], SAME_TIME if len(places) > 1 else "")

    def _first_ms(self, made: TracedRow) -> int:
        return made.time_ms - (ms_in(made.values.get("offset_s")) or 0)

    @abstractmethod
    def process_key(self, key: str, ports: Mapping[str, KeyedRows], recordings: Recordings) -> None:
        """Processes the rows of one key."""

    def saw_event(self, key: str, at_ms: int, recordings: Recordings, rows: KeyedRows) -> None:
        """Emits the rows that waited for an event. Raises TooManyKept."""
        recording, waited = recordings.saw_event(at_ms)
        for time_ms, row in waited:
            place = row if isinstance(row, int) else rows.add_earlier(key, row[1:])
            rows.made.append((place, time_ms, *_recorded(recording, time_ms)))

    def saw_row(self, place: int, recordings: Recordings, rows: KeyedRows, *, tells: bool) -> None:
        """Emits a row if it belongs to a recording. With `tells`, it also says whether there is an event."""
        at_ms = rows.times_ms[place]
        try:
            recording = recordings.saw_row(at_ms, place, tells=tells)
        except TooManyKept as error:
            rows.reject(place, error)
            return
        if recording is not None:
            rows.made.append((place, at_ms, *_recorded(recording, at_ms)))

    def readable_key(self, key: str) -> str:
        if key.startswith(_OF_KEY):
            return key.removeprefix(_OF_KEY)
        begin_us = of_sortable(key[len(_OF_SLOT) :][:DIGITS])
        return f"{key[len(_OF_SLOT) + DIGITS :]}, rows that wait from {utc(begin_us)} UTC on"

    def readable_state(self, state: Any, inputs: Mapping[str, StreamSchema]) -> Any:
        if isinstance(state, list):
            return [_readable_row(row, inputs["in"]) for row in state]
        return {
            "recordings": state["count"],
            "in_progress": [
                {"number": number, "from": _readable_ms(from_ms), "until": _readable_ms(until_ms)}
                for number, _, from_ms, until_ms in state["recordings"]
            ],
        }

    def _read_newest(self, found: Mapping[str, Recordings], states: States) -> None:
        """Reads the slots to which most rows come, for all keys at once."""
        slots = [
            (recordings.waiting, begin_ms, _slot_key(key, begin_ms))
            for key, recordings in found.items()
            if (begin_ms := recordings.waiting.newest_ms) is not None
        ]
        if slots:
            for (waiting, begin_ms, _), rows in zip(
                slots, states.get([name for *_, name in slots]), strict=True
            ):
                waiting.give(begin_ms, rows)


def _slots_of(key: str, states: States, begins_ms: Sequence[int]) -> list[list[Row]]:
    return states.get([_slot_key(key, begin_ms) for begin_ms in begins_ms])


def _slot_key(key: str, begin_ms: int) -> str:
    return f"{_OF_SLOT}{sortable(begin_ms * 1000)}{key}"


def _readable_row(row: Sequence[Any], schema: StreamSchema) -> dict[str, Any]:
    found = {"time": _readable_ms(row[0])}
    for field, value in zip(schema.fields, row[1:], strict=True):
        is_time = field.type is FieldType.TIMESTAMP and value is not None
        found[field.name] = _readable_ms(value // 1000) if is_time else value
    return found


def _readable_ms(time_ms: int) -> str:
    return f"{utc(time_ms * 1000)} UTC"


def _as_kept(waiting: Sequence[tuple[int, Row]], rows: KeyedRows) -> list[list[Any]]:
    """Returns the rows of a slot, each as [event time in ms, *values]."""
    columns = rows.kept_values()
    return [
        [at_ms, *(column[row] for column in columns)] if isinstance(row, int) else row
        for at_ms, row in waiting
    ]


def _recorded(recording: Sequence[int], at_ms: int) -> tuple[int, float]:
    """Returns the number of the recording, and the time from its first event in s."""
    return recording[0], (at_ms - recording[1]) / 1000
