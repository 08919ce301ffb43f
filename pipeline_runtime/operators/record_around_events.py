"""State: what was before and after the events of another stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators.by_key import TooManyKept
from pipeline_runtime.operators.columns import SchemaCheck
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.lineage import Came, Found, TracedRow, named, same_row
from pipeline_runtime.operators.recordings import AroundParams, Recorder, Recordings
from pipeline_runtime.operators.sdk import Port


class RecordAroundEvents(Recorder):
    """Passes on only the rows of `in` around the events of the stream `events`: from `before_s` before an
    event to `after_s` after it, both included. Recordings that overlap become one. *Record around an event*
    does the same with the events of its own stream.

    Each row of `events` says how far that stream is: a row of `in` waits until `events` is `before_s` past
    it. So connect a stream that has the column `event` in every row, such as a window aggregate with a
    derived column. Do not connect a stream from which a filter has removed the rows without an event. The
    recording is the same whichever of the two streams comes first, and even if one stops for some time.

    At most 20,000 rows wait for each key. A further row goes to the dead letters until older rows have left.
    At 100 rows per second, that happens when `events` is 200 s behind. At most 1,000 recordings of a key are
    open at once. An event that would begin another one goes to the dead letters. Both streams need the column
    `key`. If `key` is empty, `events` needs the column that is the key of `in`.

    Output: the columns of `in`, `recording` (1, 2, … for each key) and `offset_s`, the time from the
    recording's first event, which is negative before it.
    """

    type = "record-around-events"
    title = "Record around events of another stream"
    summary = "Keeps the rows around the events of another stream"
    category = "state"
    icon = "disc-3"
    Params = AroundParams
    inputs = (Port("in", "the rows to record"), Port("events", "rows that say whether there is an event"))
    state_params = frozenset({"event", "key"})
    keeps = "the rows from before an event, and the recordings that are in progress"
    example = {"event": "alarm", "before_s": 20, "after_s": 70}

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        span, is_mine = self.events_ms(made), self.is_of_key(made)

        def events(rows: Sequence[TracedRow]) -> Found:
            return self.events_of(made, [row for row in rows if is_mine(row)])

        return {"in": same_row(made, named(inputs["in"].names)), "events": Came(*span, events)}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema, events = inputs["in"], inputs["events"]
        with SchemaCheck() as check:
            check.column(events, self.params.event, "params.event", (FieldType.BOOLEAN,))
            if self.params.key is not None:
                check.column(events, self.params.key, "params.key")
            elif schema.key is not None and events.field(schema.key) is None:
                check.fail("inputs.events", f'it has no column "{schema.key}", the key of the input "in"')
            return self.recorded(schema, check)

    def process_key(self, key: str, ports: Mapping[str, KeyedRows], recordings: Recordings) -> None:
        rows, events = ports["in"], ports["events"]
        for place in range(*rows.spans.get(key, (0, 0))):
            self.saw_row(place, recordings, rows, tells=False)
        is_event = events.values(self.params.event)
        for place in range(*events.spans.get(key, (0, 0))):
            at_ms = events.times_ms[place]
            if is_event[place]:
                try:
                    self.saw_event(key, at_ms, recordings, rows)
                except TooManyKept as error:
                    events.reject(place, error)
                    continue
            recordings.saw_events_until(at_ms)
