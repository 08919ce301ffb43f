"""Runs a KeyedProcessor: rows in offset order, one state per key.

A Python process of Spark's has a batch's rows as Arrow columns. It asks the gate for the states of the
batch's keys, and tells it what becomes of them: the replica keeps them, not Spark (see
checkpoint.keyed_state).

Where its group reads nothing else, the process has the rows from the gate itself (see spark.resident). Behind
other elements of its group Spark hands them over, batch by batch (`mapInArrow`).
"""

from __future__ import annotations

import json
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import islice, repeat
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, functions as F

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.sdk import KeyedProcessor
from pipeline_runtime.spark.columns import column
from pipeline_runtime.spark.garbage import freeze
from pipeline_runtime.spark.gate_client import GateClient, gate, is_connected
from pipeline_runtime.spark.inputs import operator_of

# Whose states are in memory together: they may be large.
_KEYS_AT_ONCE = 256
_OUTPUT = "_out string, _key string, _time_ms long, _value string"
TAGGED = pa.schema(
    [("_out", pa.string()), ("_key", pa.string()), ("_time_ms", pa.int64()), ("_value", pa.string())]
)
_BY_OFFSET = [("partition", "ascending"), ("offset", "ascending")]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Inputs = Sequence[tuple[str, StreamSchema]]
"""The connected ports and what comes there, the first one first."""
PortRows = tuple[int, pa.RecordBatch]
"""Of one of the Inputs, by its place: `key`, `partition`, `offset`, `time_us`, and the input's columns."""
Tagged = tuple[str, str | None, int, str]
"""A row of TAGGED."""


def apply_keyed(
    processor: KeyedProcessor,
    frames: Mapping[str, DataFrame],
    element: str,
    inputs: Inputs,
    gate_address: str,
) -> DataFrame:
    """`frames`: data columns and meta columns of each port. Gives the tagged columns of spark.frame."""
    field = processor.key_field()
    key = F.col(field).cast("string") if field is not None else F.col("_key")
    rows = [
        frames[port].select(
            # The key of rows without one is the empty text.
            F.coalesce(key, F.lit("")).alias("key"),
            F.lit(index).alias("port"),
            F.col("_partition").alias("partition"),
            F.col("_offset").alias("offset"),
            F.unix_micros("_time").alias("time_us"),
            *[F.col(name).alias(column(index, name)) for name in schema.names],
        )
        for index, (port, schema) in enumerate(inputs)
    ]
    # One task has all rows of a key, whatever partitions they come from; nothing is shuffled for it, since a
    # second stage would cost each batch 17 ms.
    frame = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), rows).coalesce(1)
    return frame.mapInArrow(_body(gate_address, element), _OUTPUT)


def _body(address: str, element: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def process(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # By its name: what is in here is made anew in each batch, with all that it refers to.
        from pipeline_runtime.spark.keyed import process_batches

        return process_batches(address, element, batches)

    return process


def keyed_inputs(spec: GroupSpec, element: str) -> Inputs:
    """Of a keyed processor of the group."""
    [item] = [item for item in spec.elements if item.id == element]
    ports = [port.name for port in operator_of(spec, element).inputs if port.name in item.inputs]
    return [(port, spec.schemas[item.inputs[port]]) for port in ports]


# -- a batch, in Spark's Python process --------------------------------------------------------------


def process_batches(
    address: str, element: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """One batch's rows, as `apply_keyed` selects them, to `_OUTPUT`."""
    client = gate(address)
    work = _work(client, address, element)
    made = work.process(work.by_key(work.by_port(batches)), client)
    if made.num_rows:
        yield made


class States(Protocol):
    """The gate: `states` gives those of `keys` as the newest committed batch has left them, `keep` tells it
    which this one changes (pipeline_runtime.replica.batch_planner)."""

    def ask(self, op: str, **arguments: Any) -> Any: ...


class KeyedWork:
    """A group's keyed processor, as one worker process runs it."""

    def __init__(
        self, processor: KeyedProcessor, element: str, inputs: Inputs, outputs: StreamSchema
    ) -> None:
        self._version = processor.state_version
        self._inputs = inputs
        self._rows = KeyedRows(processor, element, inputs, outputs)

    @staticmethod
    def of(spec: GroupSpec, element: str) -> KeyedWork:
        processor = operator_of(spec, element)
        assert isinstance(processor, KeyedProcessor)
        inputs = keyed_inputs(spec, element)
        return KeyedWork(processor, element, inputs, spec.schemas[f"{element}.out"])

    def by_port(self, batches: Iterable[pa.RecordBatch]) -> Iterator[PortRows]:
        """Of rows as `apply_keyed` selects them."""
        for batch in batches:
            for index in range(len(self._inputs)):
                alone = len(self._inputs) == 1
                yield index, batch if alone else batch.filter(pc.equal(batch["port"], index))

    def by_key(self, arrived: Iterable[PortRows]) -> dict[str, list[Arrived]]:
        """Key -> its rows of one batch, of each port in offset order."""
        keys: dict[str, list[Arrived]] = {}
        ports: dict[int, list[pa.RecordBatch]] = {}
        for index, batch in arrived:
            ports.setdefault(index, []).append(batch)
        for index, batches in sorted(ports.items()):
            # Compared as columns: as tuples of Python's it takes as long as all else that is done here.
            table = pa.Table.from_batches(batches).sort_by(_BY_OFFSET)
            for key, row in zip(table["key"].to_pylist(), self._rows_of(table, index), strict=True):
                keys.setdefault(key, []).append(row)
        return keys

    def _rows_of(self, table: pa.Table, index: int) -> Iterator[Arrived]:
        """Of one port."""
        schema = self._inputs[index][1]
        values = [python_values(table[column(index, field.name)], field.type) for field in schema.fields]
        names = schema.names
        rows = zip(*values, strict=True) if values else repeat((), table.num_rows)
        for time_us, row in zip(table["time_us"].to_pylist(), rows, strict=True):
            yield Arrived(dict(zip(names, row, strict=True)), time_us, index)

    def process(self, keys: Mapping[str, list[Arrived]], states: States, task: int = 0) -> pa.RecordBatch:
        """What comes of them, as TAGGED says; their states are the gate's then."""
        output: list[Tagged] = []
        names = iter(keys)
        while some := list(islice(names, _KEYS_AT_ONCE)):
            changed: dict[str, str] = {}
            for name, stored in zip(some, states.ask("states", keys=some, task=task), strict=True):
                state = KeyState(stored, self._version)
                self._rows.process(name, keys[name], state, output)
                if state.text != stored:
                    changed[name] = state.text
            states.ask("keep", states=changed)
        return tagged(output)


_works: dict[tuple[str, str], KeyedWork] = {}


def _work(client: GateClient, address: str, element: str) -> KeyedWork:
    """This worker process's, for that gate."""
    found = _works.get((address, element))
    if found is None:
        # Spark uses its worker processes for all groups: those that have left the node are dropped here.
        departed = [key for key in _works if not is_connected(key[0])]
        for each in departed:
            del _works[each]
        spec = GroupSpec.model_validate(client.ask("hello")["spec"])
        found = _works[address, element] = KeyedWork.of(spec, element)
        freeze(dropped=bool(departed))
    return found


def python_values(values: pa.ChunkedArray, type_: FieldType) -> list[Any]:
    if type_ is not FieldType.TIMESTAMP:
        return values.to_pylist()  # type: ignore[no-any-return]
    return [None if each is None else _instant_at(each) for each in values.cast(pa.int64()).to_pylist()]


def _instant_at(time_us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=time_us)


# -- a key -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arrived:
    """A row as it has come."""

    data: dict[str, Any]
    time_us: int
    port: int = 0  # of the processor's Inputs


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
        state, kept = data["state"], data.get("version", 1)
        if kept > self._version:
            raise ValueError(
                f"this state was kept by version {kept} of the operator, "
                f"and this is version {self._version}: install the later one"
            )
        if kept < self._version and processor is not None:
            state = processor.migrate(state, kept)
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
        when = _EPOCH + timedelta(milliseconds=due)
        out += [{"_time": when, **item} for item in processor.on_timer(key, due, state, timers)]
    if other is None:
        made = processor.process(key, row, state, timers)
    else:
        made = processor.process_other(other, key, row, state, timers)
    out += [{"_time": now, **item} for item in made]
    return out


class KeyedRows:
    """A processor on the rows of one key after another."""

    def __init__(
        self, processor: KeyedProcessor, element: str, inputs: Inputs, outputs: StreamSchema
    ) -> None:
        self._processor = processor
        self._element = element
        self._others = [None if index == 0 else port for index, (port, _) in enumerate(inputs)]
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
        for each in ordered:
            now_ms, other = each.time_us // 1000, self._others[each.port]
            row = {**each.data, "_time": _instant_at(each.time_us)}
            try:
                made = process_row(self._processor, key, row, state, timers, now_ms, other)
                output += [self._encoded(item, key) for item in made]
                good.append((row, now_ms, other))
            except Exception as error:
                state, timers = stored.load(self._processor)
                for earlier, earlier_ms, port in good:
                    process_row(self._processor, key, earlier, state, timers, earlier_ms, port)
                # So that many failures do not run all good rows again for each.
                stored.save(state, timers)
                good.clear()
                output.append(rejected(self._element, each.data, now_ms, error))
        stored.save(state, timers)

    def _encoded(self, item: dict[str, Any], key: str) -> Tagged:
        data = {name: item.get(name) for name in self._outputs.names}
        field = self._outputs.key
        record_key = key if field is None else _text(data[field])
        time_ms = int((item["_time"] - _EPOCH) / timedelta(milliseconds=1))
        return (f"{self._element}.out", record_key, time_ms, encoded(data))


# -- what comes of a row -----------------------------------------------------------------------------


def tagged(rows: Sequence[Tagged]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [[] for _ in TAGGED]
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, TAGGED, strict=True)],
        schema=TAGGED,
    )


def rejected(element: str, data: Mapping[str, Any], time_ms: int, error: Exception) -> Tagged:
    letter = {"reason": f"{type(error).__name__}: {error}", "raw": _encode_any(data)}
    return (f"{element}.dead", None, time_ms, json.dumps(letter, ensure_ascii=False))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _instant(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} is not JSON")


# One encoder for all rows: json.dumps with these arguments makes a new one for each.
encoded = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), default=_instant, allow_nan=False
).encode
_encode_any = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_instant).encode
"""Also of numbers that JSON does not have: what is rejected may have them."""
