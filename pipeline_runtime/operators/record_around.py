"""State: what was before and after an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators.by_key import TooManyKept
from pipeline_runtime.operators.columns import SchemaCheck
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.lineage import Came, Found, TracedRow, is_same, named
from pipeline_runtime.operators.recordings import AroundParams, Recorder, Recordings


class RecordAround(Recorder):
    """Passes on only the rows around an event (pre- and post-trigger): from `before_s` before it to `after_s`
    after it, both included. If the events are in another stream, use *Record around events of another
    stream*.

    A row is an event if its column `event` is true. Recordings that overlap become one, so no row appears
    twice. The element emits the rows from before the event together with the event, and they keep their event
    time. It emits later rows as they arrive. Only a row's own event time decides. So the element records a
    row that arrives late if the row belongs to a recording that ended at most `before_s` ago. Otherwise the
    row waits for the next event, or is dropped if it is more than `before_s` old.

    At most 20,000 rows wait for each key, and none longer than `before_s`. A further row goes to the dead
    letters until older rows have left.

    Output: the input's columns, `recording` (1, 2, … for each key) and `offset_s`, the time from the
    recording's first event, which is negative before it.
    """

    type = "record-around"
    title = "Record around an event"
    summary = "Keeps the rows from some seconds before an event to some seconds after it"
    category = "state"
    icon = "disc"
    Params = AroundParams
    state_params = frozenset({"event", "key"})
    keeps = "the rows from before an event, and the recording that is in progress"
    version = 2
    example = {"event": "alarm", "before_s": 20, "after_s": 70}

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        span, is_mine = self.events_ms(made), self.is_of_key(made)
        is_it = is_same(made, named(inputs["in"].names))

        def chosen(rows: Sequence[TracedRow]) -> Found:
            """The row, and the events of its recording."""
            own = [row for row in rows if is_mine(row)]
            events = self.events_of(made, own)
            found = [row for row in own if is_it(row) or any(row is event for event in events.rows)]
            return Found(found, events.bound) if any(map(is_it, found)) else Found(())

        return {"in": Came(*span, chosen)}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            check.column(schema, self.params.event, "params.event", (FieldType.BOOLEAN,))
            return self.recorded(schema, check)

    def process_key(self, key: str, ports: Mapping[str, KeyedRows], recordings: Recordings) -> None:
        rows = ports["in"]
        is_event, times_ms = rows.values(self.params.event), rows.times_ms
        for place in range(*rows.spans[key]):
            if is_event[place]:
                try:
                    self.saw_event(key, times_ms[place], recordings, rows)
                except TooManyKept as error:
                    rows.reject(place, error)
                    continue
            self.saw_row(place, recordings, rows, tells=True)
