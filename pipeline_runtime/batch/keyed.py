"""Runs a KeyedProcessor: rows in offset order, one state per key."""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice, repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.batch.fields import Fields
from pipeline_runtime.batch.gate_messages import KeepStates, StatesOf
from pipeline_runtime.batch.rows import (
    BY_OFFSET,
    EPOCH,
    Asked,
    Inputs,
    Letter,
    Ports,
    Processed,
    current_state,
    instants,
    python_values,
    rejected,
)
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.texts import texts
from pipeline_runtime.operators.sdk import KeyedProcessor

# The states of so many keys are in memory together: a state may be large.
_KEYS_AT_ONCE = 256
_MILLISECOND = timedelta(milliseconds=1)


class KeyedWork:
    """Implements rows.ProcessorWork."""

    def __init__(self, processor: KeyedProcessor, inputs: Inputs, outputs: StreamSchema) -> None:
        self._version = processor.state_version
        self._key_field = processor.key_field()
        self._inputs = inputs
        self._rows = KeyedRows(processor, inputs, outputs)

    def process(
        self, ports: Ports, gate: Asked, task: int = 0, *, at_end: bool = False, batch_time_ms: int = 0
    ) -> Processed:
        """See rows.ProcessorWork. A keyed processor keeps no row back, so it does nothing more `at_end`."""
        keys = self._by_key(ports)
        output = KeyedOutput()
        names = iter(keys)
        while some := list(islice(names, _KEYS_AT_ONCE)):
            changed: list[tuple[str, str]] = []
            for name, stored in zip(some, gate.ask(StatesOf(some, task)), strict=True):
                state = KeyState(stored, self._version)
                self._rows.process(name, keys[name], state, output)
                if state.text != stored:
                    changed.append((name, state.text))
            gate.ask(KeepStates(changed))
        return Processed(self._rows.table(output), output.letters)

    def _by_key(self, ports: Ports) -> dict[str, list[Arrived]]:
        """The rows of each key in one batch; those of one port are in offset order."""
        keys: defaultdict[str, list[Arrived]] = defaultdict(list)
        for place, (port, schema) in enumerate(self._inputs):
            # Arrow sorts the columns: to sort tuples in Python takes as long as all else that is done here.
            table = ports[port].sort_by(BY_OFFSET)
            names = self._keys(table, schema).to_pylist()
            for key, row in zip(names, self._rows_of(table, place), strict=True):
                keys[key].append(row)
        return keys

    def _keys(self, table: pa.Table, schema: StreamSchema) -> pa.ChunkedArray:
        """The key of each row; a row without one has the empty text."""
        field = None if self._key_field is None else schema.field(self._key_field)
        return table["_key"] if field is None else pc.coalesce(texts(table[field.name]), "")

    def _rows_of(self, table: pa.Table, place: int) -> Iterator[Arrived]:
        schema = self._inputs[place][1]
        values = [python_values(table[field.name], field.type) for field in schema.fields]
        times_us = table["_time"].cast(pa.int64()).to_pylist()
        times_ms = [time_us // 1000 for time_us in times_us]
        return zip(zip(*values, instants(times_us), strict=True), times_ms, repeat(place))


# -- a key -------------------------------------------------------------------------------------------


Arrived = tuple[tuple[Any, ...], int, int]
"""A row as it has come: its values, in the order of its port's fields, and behind them its moment; its time,
ms; its port, by its place in the processor's Inputs. To name these takes as long as to make a row of them."""


class KeyTimers:
    """Event-time timers of one key, in rising order."""

    def __init__(self, times: Iterable[int]) -> None:
        self.times = sorted(times)

    def set(self, time_ms: int) -> None:
        if not self._has(time_ms):
            insort(self.times, time_ms)

    def cancel(self, time_ms: int) -> None:
        if self._has(time_ms):
            del self.times[bisect_left(self.times, time_ms)]

    def _has(self, time_ms: int) -> bool:
        place = bisect_left(self.times, time_ms)
        return place < len(self.times) and self.times[place] == time_ms

    def due(self, now_ms: int) -> int | None:
        return self.times.pop(0) if self.times and self.times[0] <= now_ms else None


class KeyState:
    """What is kept for one key; each row works on a copy that is dropped when the row fails."""

    def __init__(self, stored: str | None, version: int = 1) -> None:
        """`version`: of the state, as it is kept from now on; 1 is not written down."""
        self._text = stored or json.dumps({"state": {}, "timers": [], "version": version})
        self._version = version

    def load(self, processor: KeyedProcessor | None = None) -> tuple[dict[str, Any], KeyTimers]:
        """`processor`: makes a state of its version of an earlier one. ValueError: it is of a later one."""
        data = json.loads(self._text)
        state = data["state"]
        if processor is not None:
            state = current_state(state, data.get("version", 1), processor)
        return state, KeyTimers(data["timers"])

    def save(self, state: Mapping[str, Any], timers: KeyTimers) -> None:
        data: dict[str, Any] = {"state": state, "timers": timers.times}
        if self._version > 1:
            data["version"] = self._version
        self._text = json.dumps(data, separators=(",", ":"))

    @property
    def text(self) -> str:
        return self._text


Made = tuple[datetime, int, Mapping[str, Any]]
"""An output row, behind the time that it has if it does not say another: a datetime, and the same in ms."""


def process_row(
    processor: KeyedProcessor,
    key: str,
    row: dict[str, Any],
    state: dict[str, Any],
    timers: KeyTimers,
    now_ms: int,
    other: str | None = None,
) -> list[Made]:
    """The timers that the row's time (`now_ms`) has reached, then the row itself. `other`: the port that it
    comes from, if that is not the first."""
    out: list[Made] = []
    now = row["_time"]
    while (due := timers.due(now_ms)) is not None:
        when = EPOCH + timedelta(milliseconds=due)
        out += [(when, due, item) for item in processor.on_timer(key, due, state, timers)]
    if other is None:
        made = processor.process(key, row, state, timers)
    else:
        made = processor.process_other(other, key, row, state, timers)
    out += [(now, now_ms, item) for item in made]
    return out


class KeyedOutput:
    """What comes of a batch: failed rows, and rows as tuples of key, time in ms, and the output's fields."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.letters: list[Letter] = []


class KeyedRows:
    """A processor on the rows of one key after another."""

    def __init__(self, processor: KeyedProcessor, inputs: Inputs, outputs: StreamSchema) -> None:
        self._processor = processor
        self._others = [None if index == 0 else port for index, (port, _) in enumerate(inputs)]
        self._names = [(*schema.names, "_time") for _, schema in inputs]
        self._fields = Fields(outputs)

    def process(self, key: str, ordered: Sequence[Arrived], stored: KeyState, output: KeyedOutput) -> None:
        """Run the processor on one key's rows, and put what comes of them into `output`.

        The rows of one port are in offset order. `stored` has the key's state, and has the new one then.
        """
        state, timers = stored.load(self._processor)
        # What failed rows have done to the state is undone by running the good ones again: to copy
        # the state before each row would cost more than the processing itself.
        good: list[tuple[dict[str, Any], int, str | None]] = []
        for values, now_ms, port in ordered:
            row, other = self._row(port, values), self._others[port]
            try:
                made = process_row(self._processor, key, row, state, timers, now_ms, other)
                if made:
                    output.rows += [self._values(each, key) for each in made]
                good.append((row, now_ms, other))
            except Exception as error:
                state, timers = stored.load(self._processor)
                for earlier, earlier_ms, earlier_other in good:
                    process_row(self._processor, key, earlier, state, timers, earlier_ms, earlier_other)
                # So that many failures do not run all good rows again for each.
                stored.save(state, timers)
                good.clear()
                output.letters.append(rejected(self._row(port, values[:-1]), error))
        stored.save(state, timers)

    def table(self, output: KeyedOutput) -> pa.Table:
        """The rows as columns: the output's fields, `_key` and `_time`."""
        nothing = [()] * (2 + self._fields.count)
        keys, times_ms, *values = zip(*output.rows, strict=True) if output.rows else nothing
        return self._fields.table(values, keys, times_ms)

    def _row(self, port: int, values: tuple[Any, ...]) -> dict[str, Any]:
        return dict(zip(self._names[port], values))  # noqa: B905 - to compare lengths takes as long again

    def _values(self, made: Made, key: str) -> tuple[Any, ...]:
        """Raises TypeError or ValueError where a value does not fit its field."""
        when, when_ms, item = made
        time = item.get("_time", when)
        if time is not when:  # most rows have the time of the row that they come from
            when_ms = (time - EPOCH) // _MILLISECOND
        return key, when_ms, *self._fields.fitted(item)
