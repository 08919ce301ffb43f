"""Runs a KeyedProcessor on Spark's transformWithState: rows in offset order, one state per key.

All keys are in one Spark group, whose map state has an entry for each: PySpark makes a DataFrame for each
group of a batch, which costs more than what a key's few rows do.

Rows cross to Python and back as JSON text. PySpark hands rows over one tuple at a time and converts
each cell by way of pandas, which makes integers with nulls floats: one text per row is faster than its
cells, keeps every type, and is what the sink needs anyway.
"""

from __future__ import annotations

import gc
import json
from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import islice
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators.sdk import KeyedProcessor
from pipeline_runtime.spark.encode import JSON_OPTIONS
from pipeline_runtime.spark.text_map import KEY_SCHEMA, TEXT_SCHEMA, TextMap

# Whose states are in memory together: they may be large.
_KEYS_AT_ONCE = 256
_OUTPUT = "_out string, _key string, _time_ms long, _value string"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def apply_keyed(
    processor: KeyedProcessor,
    frames: Mapping[str, DataFrame],
    element: str,
    input_schemas: Mapping[str, StreamSchema],
    output_schema: StreamSchema,
) -> DataFrame:
    """`frames`: data columns and meta columns of each port. Gives the tagged columns of spark.frame."""
    field = processor.key_field()
    key = F.col(field).cast("string") if field is not None else F.col("_key")
    ports = [port.name for port in processor.inputs if port.name in frames]
    rows = [
        frames[port].select(
            F.lit(0).alias("all"),
            # The key of rows without one is the empty text: a null would be lost between batches.
            F.coalesce(key, F.lit("")).alias("key"),
            F.lit(index).alias("port"),
            F.col("_partition").alias("partition"),
            F.col("_offset").alias("offset"),
            F.unix_micros("_time").alias("time_us"),
            F.to_json(F.struct(*input_schemas[port].names), JSON_OPTIONS).alias("data"),
        )
        for index, port in enumerate(ports)
    ]
    inputs = tuple((port, input_schemas[port]) for port in ports)
    # All keys are one group, so nothing is shuffled: a second stage would cost each batch 17 ms.
    return (
        reduce(DataFrame.union, rows)
        .coalesce(1)
        .groupBy("all")
        .transformWithStateInPandas(
            statefulProcessor=_AllKeys(processor, element, inputs, output_schema),
            outputStructType=_OUTPUT,
            outputMode="Append",
            timeMode="None",
        )
    )


Inputs = Sequence[tuple[str, StreamSchema]]
"""The connected ports and what comes there, the first one first."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A row as it crosses to Python."""

    data: str  # JSON
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
        self._instants = [
            [field.name for field in schema.fields if field.type is FieldType.TIMESTAMP]
            for _, schema in inputs
        ]
        self._outputs = outputs

    def process(
        self,
        key: str,
        ordered: Sequence[Arrived],
        stored: KeyState,
        output: list[tuple[str, str | None, int, str]],
    ) -> None:
        """`ordered`: of each port in offset order. Puts what comes of it into `output`."""
        state, timers = stored.load(self._processor)
        # What failed rows have done to the state is undone by running the good ones again: to copy
        # the state before each row would cost more than the processing itself.
        good: list[tuple[dict[str, Any], int, str | None]] = []
        # All of a key's rows in one go: a call of the parser for each costs as much as the parsing.
        parsed = json.loads("[" + ",".join([each.data for each in ordered]) + "]")
        for each, row in zip(ordered, parsed, strict=True):
            now_ms, other = each.time_us // 1000, self._others[each.port]
            try:
                self._complete(row, each)
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
                output.append(self._rejected(each, error))
        stored.save(state, timers)

    def _complete(self, row: dict[str, Any], arrived: Arrived) -> None:
        for name in self._instants[arrived.port]:
            if row[name] is not None:
                row[name] = datetime.fromisoformat(row[name])
        row["_time"] = _EPOCH + timedelta(microseconds=arrived.time_us)

    def _encoded(self, item: dict[str, Any], key: str) -> tuple[str, str | None, int, str]:
        data = {name: item.get(name) for name in self._outputs.names}
        field = self._outputs.key
        record_key = key if field is None else _text(data[field])
        time_ms = int((item["_time"] - _EPOCH) / timedelta(milliseconds=1))
        return (f"{self._element}.out", record_key, time_ms, _encode(data))

    def _rejected(self, arrived: Arrived, error: Exception) -> tuple[str, str | None, int, str]:
        letter = {"reason": f"{type(error).__name__}: {error}", "raw": arrived.data}
        text = json.dumps(letter, ensure_ascii=False)
        return (f"{self._element}.dead", None, arrived.time_us // 1000, text)


class _AllKeys(StatefulProcessor):
    def __init__(
        self, processor: KeyedProcessor, element: str, inputs: Inputs, outputs: StreamSchema
    ) -> None:
        self._version = processor.state_version
        self._rows = KeyedRows(processor, element, inputs, outputs)

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._states = TextMap(handle.getMapState("keys", KEY_SCHEMA, TEXT_SCHEMA))
        _freeze_once()

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        output: list[tuple[str, str | None, int, str]] = []
        ordered = _by_key(rows)
        names = iter(ordered)
        while some := list(islice(names, _KEYS_AT_ONCE)):
            states = {name: KeyState(text, self._version) for name, text in self._states.get(some)}
            for name, state in states.items():
                self._rows.process(name, ordered[name], state, output)
            self._states.put((name, state.text) for name, state in states.items())
        if output:
            yield pd.DataFrame(output, columns=["_out", "_key", "_time_ms", "_value"])

    def close(self) -> None:
        """Nothing is held open."""


_frozen = False


def _freeze_once() -> None:
    """As the source's reader does, which runs in another process: else all modules are looked through after
    every batch, 65 ms of CPU. Here, when this process has imported and connected what it needs."""
    global _frozen
    if not _frozen:
        gc.collect()
        gc.freeze()
        _frozen = True


def _by_key(frames: Iterator[pd.DataFrame]) -> dict[str, list[Arrived]]:
    """Key -> its rows of one batch, of each port in offset order."""
    rows = [row for frame in frames for row in frame.itertuples(index=False, name=None)]
    rows.sort(key=lambda row: row[-5:-2])  # port, partition, offset
    keys: dict[str, list[Arrived]] = {}
    for *_, key, port, _partition, _offset, time_us, data in rows:
        keys.setdefault(key, []).append(Arrived(data, time_us, port))
    return keys


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _instant(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} is not JSON")


# One encoder for all rows: json.dumps with these arguments makes a new one for each.
_encode = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), default=_instant, allow_nan=False
).encode
