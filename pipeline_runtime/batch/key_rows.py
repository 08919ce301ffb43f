"""Runs a KeyedProcessor on the rows of one key after another."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.batch.key_output import KeyOutput, OutputForms
from pipeline_runtime.batch.rows import Inputs, Letter, Ports, in_order, python_values, rejected
from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.model.texts import texts
from pipeline_runtime.operators.row import OutputRow, Row
from pipeline_runtime.operators.sdk import KeyedProcessor
from pipeline_runtime.operators.tables import About, about_rows, quoted

Places = tuple[int, Sequence[int]]
"""Rows of one key: their port, by its place in the processor's Inputs, and their places in its table."""


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


class Stored(Protocol):
    """What is kept for a key. Both methods give and take the state and the timers."""

    def load(self, processor: KeyedProcessor) -> tuple[dict[str, Any], KeyTimers]:
        """Returns another copy each time. Raises ValueError if it was kept by a later version of the
        operator."""
        ...

    def save(self, state: Mapping[str, Any], timers: KeyTimers) -> None: ...


# -- a batch's rows ----------------------------------------------------------------------------------


class PortRows:
    """The rows of one port in the order of their offsets. A place is the number of a row, from 0."""

    def __init__(self, table: pa.Table, schema: StreamSchema) -> None:
        """Every row of the table has an event time."""
        self.table = table
        self._schema = schema
        self._not_finite: frozenset[int] | None = None
        times_us = table["_time"].cast(pa.int64()).to_numpy()
        self.times_ms: list[int] = (times_us // 1000).tolist()
        self.row = Row(schema.names, _Columns(table, schema), times_us.tolist())

    def quotable(self, place: int) -> Mapping[str, Any]:
        """Returns the values of a row for a dead letter."""
        self.row.place = place
        return dict(self.row)

    def about(self, place: int) -> About:
        """Returns what a dead letter says of a row."""
        return about_rows(self.table.slice(place, 1))[0]

    @property
    def not_finite(self) -> frozenset[int]:
        """The places of the rows that have an infinite number or none ("NaN"), which JSON cannot hold."""
        if self._not_finite is None:
            found: set[int] = set()
            for field in self._schema.fields:
                if field.type is FieldType.NUMBER:
                    fits = pc.fill_null(pc.is_finite(self.table[field.name]), fill_value=True)
                    if not pc.all(fits).as_py():
                        found.update(np.flatnonzero(~fits.to_numpy()).tolist())
            self._not_finite = frozenset(found)
        return self._not_finite


class _Columns(dict[str, list[Any]]):
    """The values of each column that is read."""

    def __init__(self, table: pa.Table, schema: StreamSchema) -> None:
        super().__init__()
        self._table = table
        self._schema = schema

    def __missing__(self, name: str) -> list[Any]:
        field = self._schema.field(name)
        if field is None:
            raise KeyError(name)
        self[name] = python_values(self._table[name], field.type)
        return self[name]


def by_key(
    ports: Ports, inputs: Inputs, key_field: str | None, letters: list[Letter]
) -> tuple[list[PortRows], dict[str, list[Places]]]:
    """Returns the rows of each port, and for each key where its rows are, those of the first port first.

    Keys are in the order in which they come. A row without a key has the empty text. A row without an event
    time goes to `letters`.
    """
    found: list[PortRows] = []
    keys: dict[str, list[Places]] = {}
    for port, (name, schema) in enumerate(inputs):
        table = in_order(ports[name])
        if table["_time"].null_count:
            untimed = table.filter(pc.is_null(table["_time"]))
            rows, known = untimed.select(schema.names).to_pylist(), about_rows(untimed)
            letters += [
                Letter("the row has no event time", quoted(row), *about)
                for row, about in zip(rows, known, strict=True)
            ]
            table = table.filter(pc.is_valid(table["_time"]))
        found.append(PortRows(table, schema))
        for key, places in _places_by_key(_keys(table, schema, key_field)):
            keys.setdefault(key, []).append((port, places))
    return found, keys


def _keys(table: pa.Table, schema: StreamSchema, key_field: str | None) -> pa.ChunkedArray:
    field = None if key_field is None else schema.field(key_field)
    keys = table["_key"] if field is None else texts(table[field.name])
    return pc.fill_null(keys, "") if keys.null_count else keys


def _places_by_key(keys: pa.ChunkedArray) -> Iterator[tuple[str, list[int]]]:
    if len(keys) < 2:
        yield from ((key, [place]) for place, key in enumerate(keys.to_pylist()))
        return
    encoded = pc.dictionary_encode(pa.concat_arrays(keys.chunks))
    codes, first = encoded.indices.to_numpy(), 0
    places = np.argsort(codes, kind="stable").tolist()
    ends = np.cumsum(np.bincount(codes, minlength=len(encoded.dictionary))).tolist()
    for key, end in zip(encoded.dictionary.to_pylist(), ends, strict=True):
        yield key, places[first:end]
        first = end


# -- the processor -----------------------------------------------------------------------------------


class KeyRows:
    """A processor and the rows of one batch."""

    def __init__(
        self, processor: KeyedProcessor, inputs: Inputs, forms: OutputForms, ports: Sequence[PortRows]
    ) -> None:
        self._processor = processor
        self._ports = ports
        self._calls = [_call(processor, port, name) for port, (name, _) in enumerate(inputs)]
        self.output = KeyOutput(forms, ports)

    def process(self, key: str, rows: Sequence[Places], stored: Stored) -> None:
        """Runs the processor on one key's rows, in this order. `stored` has the key's state, and has the new
        one then. A row that fails goes to the output's dead letters."""
        state, timers = stored.load(self._processor)
        # What a failed row has done to the state is undone by running the good ones again: to copy the state
        # before each row would cost more than the processing itself.
        good: list[Places] = []
        for port, places in rows:
            while (failed := self._run(key, port, places, state, timers)) is not None:
                number, error = failed
                good.append((port, places[:number]))
                state, timers = stored.load(self._processor)
                for again, its_places in good:
                    if (unlike := self._run(key, again, its_places, state, timers, keeps=False)) is not None:
                        raise unlike[1]
                # So that many failures do not run all good rows again for each.
                stored.save(state, timers)
                good.clear()
                given, place = self._ports[port], places[number]
                letter = rejected(given.quotable(place), error, given.about(place))
                self.output.letters.append(letter)
                places = places[number + 1 :]
            good.append((port, places))
        stored.save(state, timers)

    def _run(
        self,
        key: str,
        port: int,
        places: Sequence[int],
        state: dict[str, Any],
        timers: KeyTimers,
        *,
        keeps: bool = True,
    ) -> tuple[int, Exception] | None:
        """Processes these rows. Returns which of them fails first, as its number in `places`, and why. With
        `keeps` false, their output rows are not kept."""
        row, times_ms, call = self._ports[port].row, self._ports[port].times_ms, self._calls[port]
        pending, output = timers.times, self.output
        for number, place in enumerate(places):
            row.place = place
            try:
                fired = self._fired(key, times_ms[place], state, timers) if pending else ()
                made = call(key, row, state, timers)
                # A generator changes the state while it is read.
                found = [*made] if made else ()
                if keeps and (found or fired):
                    output.add(key, port, times_ms[place], found, fired)
            except Exception as error:  # whatever the operator raises
                return number, error
        return None

    def _fired(
        self, key: str, now_ms: int, state: dict[str, Any], timers: KeyTimers
    ) -> list[tuple[int, OutputRow]]:
        """Fires the timers that a row's time has reached. Returns the output rows, each with its time."""
        found: list[tuple[int, OutputRow]] = []
        while (due := timers.due(now_ms)) is not None:
            found += [(due, each) for each in self._processor.on_timer(key, due, state, timers) or ()]
        return found


def _call(processor: KeyedProcessor, port: int, name: str) -> Callable[..., Iterable[OutputRow] | None]:
    if port == 0:
        return processor.process
    return lambda key, row, state, timers: processor.process_other(name, key, row, state, timers)
