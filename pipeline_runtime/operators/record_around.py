"""State: what was before and after an event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators.columns import SchemaCheck
from pipeline_runtime.operators.recordings import AroundParams, Recorder
from pipeline_runtime.operators.sdk import Timers


class RecordAround(Recorder):
    """Hands on the rows around an event alone (pre- and post-trigger): from `before_s` before it to `after_s`
    after it, both included. Where the events are another stream's, take *Record around others' events*.

    A row is an event where its column `event` is true. Recordings that overlap are one, so that no row is
    there twice. Rows from before the event come with it, by their event time, which they keep; those after
    it come as they arrive. Rows are told by their own event time, so one that comes late is recorded if it
    is of the time of a recording, up to `before_s` after that, and else waits for the next event.

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
    Params = AroundParams
    state_params = frozenset({"event", "key"})
    keeps = "the rows of the time before, and the recording that goes on"
    version = 2
    example = {"event": "alarm", "before_s": 20, "after_s": 70}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            check.column(schema, self.params.event, "params.event", (FieldType.BOOLEAN,))
            return self.recorded(schema, check)

    def process(
        self, key: str, row: dict[str, Any], state: dict[str, Any], timers: Timers
    ) -> Iterable[dict[str, Any]]:
        yield from self.told(row, state)
        yield from self.saw_row(row, state)
