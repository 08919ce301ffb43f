"""State: what was before and after the events of another stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators.columns import SchemaCheck
from pipeline_runtime.operators.recordings import AroundParams, Recorder
from pipeline_runtime.operators.sdk import Port, Timers


class RecordAroundEvents(Recorder):
    """Hands on the rows of `in` around the events of `events` alone, as *Record around an event* does with
    those of its own stream: from `before_s` before one to `after_s` after it, both included; recordings
    that overlap are one.

    `events` says with each of its rows how far it is: a row of `in` waits until `events` is `before_s` past
    it. So connect the stream that has the column `event` in each row, such as a window's with a column that
    is derived from it, not one that was filtered for it; and which of the two streams comes first, or
    stands still for some time, makes no difference to what is recorded.

    Of each key at most 20,000 rows wait; one beyond goes to the dead letters until older ones have left: at
    100 rows/s, when `events` is 200 s behind. Both streams need the column `key`, or the same key.

    Output: the columns of `in`, `recording` (1, 2, … of its key) and `offset_s`, the time from the
    recording's first event, which is negative before it.
    """

    type = "record-around-events"
    title = "Record around others' events"
    summary = "The rows from some seconds before another stream's event to some after"
    category = "state"
    icon = "disc-3"
    Params = AroundParams
    inputs = (Port("in", "the rows to record"), Port("events", "rows that say whether there is an event"))
    state_params = frozenset({"event", "key"})
    keeps = "the rows of the time before, and the recordings that go on"
    example = {"event": "alarm", "before_s": 20, "after_s": 70}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema, events = inputs["in"], inputs["events"]
        with SchemaCheck() as check:
            check.column(events, self.params.event, "params.event", (FieldType.BOOLEAN,))
            if self.params.key is not None:
                check.column(events, self.params.key, "params.key")
            elif schema.key is not None and events.field(schema.key) is None:
                check.fail("inputs.events", f'it has no column "{schema.key}", the key of the input "in"')
            return self.recorded(schema, check)

    def process(
        self, key: str, row: dict[str, Any], state: dict[str, Any], timers: Timers
    ) -> Iterable[dict[str, Any]]:
        return self.saw_row(row, state)

    def process_other(
        self, port: str, key: str, row: dict[str, Any], state: dict[str, Any], timers: Timers
    ) -> Iterable[dict[str, Any]]:
        return self.told(row, state)
