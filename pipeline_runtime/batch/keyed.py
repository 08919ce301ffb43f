"""Runs a KeyedProcessor: rows in offset order, one state per key."""

from __future__ import annotations

import json
from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice, repeat
from typing import Any

import pyarrow as pa

from pipeline_runtime.batch.columns import column
from pipeline_runtime.batch.rows import (
    BY_OFFSET,
    EPOCH,
    Asked,
    Inputs,
    PortRows,
    Tagged,
    current_state,
    encoded,
    instants,
    key_text,
    python_values,
    rejected,
    tagged,
)
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.sdk import KeyedProcessor

# Whose states are in memory together: they may be large.
_KEYS_AT_ONCE = 256


class KeyedWork:
    """Implements rows.ProcessorWork."""

    def __init__(
        self, processor: KeyedProcessor, element: str, inputs: Inputs, outputs: StreamSchema
    ) -> None:
        self._version = processor.state_version
        self._inputs = inputs
        self._rows = KeyedRows(processor, element, inputs, outputs)

    def made_of(
        self, arrived: Iterable[PortRows], gate: Asked, task: int = 0, *, at_end: bool = False
    ) -> pa.Table:
        """Its rows are out as they come, so `at_end` there is nothing to do."""
        keys = self._by_key(arrived)
        output: list[Tagged] = []
        names = iter(keys)
        while some := list(islice(names, _KEYS_AT_ONCE)):
            changed: list[tuple[str, str]] = []
            for name, stored in zip(some, gate.ask("states", keys=some, task=task), strict=True):
                state = KeyState(stored, self._version)
                self._rows.process(name, keys[name], state, output)
                if state.text != stored:
                    changed.append((name, state.text))
            gate.ask("keep", states=changed)
        return tagged(output)

    def _by_key(self, arrived: Iterable[PortRows]) -> dict[str, list[Arrived]]:
        """Key -> its rows of one batch, of each port in offset order."""
        keys: defaultdict[str, list[Arrived]] = defaultdict(list)
        ports: dict[int, list[pa.RecordBatch]] = {}
        for index, batch in arrived:
            ports.setdefault(index, []).append(batch)
        for index, batches in sorted(ports.items()):
            # Compared as columns: as tuples of Python's it takes as long as all else that is done here.
            table = pa.Table.from_batches(batches).sort_by(BY_OFFSET)
            for key, row in zip(table["key"].to_pylist(), self._rows_of(table, index), strict=True):
                keys[key].append(row)
        return keys

    def _rows_of(self, table: pa.Table, index: int) -> Iterator[Arrived]:
        """Of one port."""
        schema = self._inputs[index][1]
        values = [python_values(table[column(index, field.name)], field.type) for field in schema.fields]
        times_us = table["time_us"].to_pylist()
        times_ms = [time_us // 1000 for time_us in times_us]
        return zip(zip(*values, instants(times_us), strict=True), times_ms, repeat(index))


# -- a key -------------------------------------------------------------------------------------------


Arrived = tuple[tuple[Any, ...], int, int]
"""A row as it has come: its values, in the order of its port's fields, and behind them its moment; its time,
ms; its port, by its place in the processor's Inputs. To name these takes as long as to make a row of them."""


class KeyTimers:
    """Event-time timers of one key, in rising order."""

    def __init__(self, times: Iterable[int]) -> None:
        self.times = sorted(times)

    def set(self, time_ms: int) -> None:
        if time_ms not in self.times:
            insort(self.times, time_ms)

    def cancel(self, time_ms: int) -> None:
        if time_ms in self.times:
            self.times.remove(time_ms)

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


def process_row(
    processor: KeyedProcessor,
    key: str,
    row: dict[str, Any],
    state: dict[str, Any],
    timers: KeyTimers,
    now_ms: int,
    other: str | None = None,
) -> list[dict[str, Any]]:
    """The timers that the row's time (`now_ms`) has reached, then the row itself. `other`: the port that it
    comes from, if that is not the first."""
    out: list[dict[str, Any]] = []
    now = row["_time"]
    while (due := timers.due(now_ms)) is not None:
        when = EPOCH + timedelta(milliseconds=due)
        out += [{"_time": when, **item} for item in processor.on_timer(key, due, state, timers)]
    if other is None:
        made = processor.process(key, row, state, timers)
    else:
        made = processor.process_other(other, key, row, state, timers)
    for item in made:
        out.append({"_time": now, **item})
    return out


class KeyedRows:
    """A processor on the rows of one key after another."""

    def __init__(
        self, processor: KeyedProcessor, element: str, inputs: Inputs, outputs: StreamSchema
    ) -> None:
        self._processor = processor
        self._element = element
        self._others = [None if index == 0 else port for index, (port, _) in enumerate(inputs)]
        self._names = [(*schema.names, "_time") for _, schema in inputs]
        self._outputs = outputs

    def process(
        self,
        key: str,
        ordered: Sequence[Arrived],
        stored: KeyState,
        output: list[Tagged],
    ) -> None:
        """`ordered`: of each port in offset order. Puts what comes of it into `output`."""
        state, timers = stored.load(self._processor)
        # What failed rows have done to the state is undone by running the good ones again: to copy
        # the state before each row would cost more than the processing itself.
        good: list[tuple[dict[str, Any], int, str | None]] = []
        for values, now_ms, port in ordered:
            row, other = self._row(port, values), self._others[port]
            try:
                made = process_row(self._processor, key, row, state, timers, now_ms, other)
                if made:
                    output += [self._encoded(item, key) for item in made]
                good.append((row, now_ms, other))
            except Exception as error:
                state, timers = stored.load(self._processor)
                for earlier, earlier_ms, earlier_other in good:
                    process_row(self._processor, key, earlier, state, timers, earlier_ms, earlier_other)
                # So that many failures do not run all good rows again for each.
                stored.save(state, timers)
                good.clear()
                output.append(rejected(self._element, self._row(port, values[:-1]), error))
        stored.save(state, timers)

    def _row(self, port: int, values: tuple[Any, ...]) -> dict[str, Any]:
        return dict(zip(self._names[port], values))  # noqa: B905 - to compare lengths takes as long again

    def _encoded(self, item: dict[str, Any], key: str) -> Tagged:
        data = {name: item.get(name) for name in self._outputs.names}
        field = self._outputs.key
        record_key = key if field is None else key_text(data[field])
        time_ms = int((item["_time"] - EPOCH) / timedelta(milliseconds=1))
        return (f"{self._element}.out", record_key, time_ms, encoded(data))
