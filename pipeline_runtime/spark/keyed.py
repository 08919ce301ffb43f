"""Runs a KeyedProcessor on Spark's transformWithState: rows in offset order, one state per key."""

from __future__ import annotations

import json
from bisect import insort
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators.sdk import KeyedProcessor
from pipeline_runtime.spark.columns import spark_types

_GROUP = "_group"


def apply_keyed(
    processor: KeyedProcessor, frame: DataFrame, input_schema: StreamSchema, output_schema: StreamSchema
) -> DataFrame:
    """`frame`: data columns and meta columns. Gives data columns, `_time`, `_reject`, `_raw`."""
    field = processor.key_field()
    key = F.col(field).cast("string") if field is not None else F.col("_key")
    # The key of rows without one is the empty text: a null would be a group of its own per batch.
    grouped = frame.withColumn(_GROUP, F.coalesce(key, F.lit(""))).groupBy(_GROUP)
    return grouped.transformWithStateInPandas(
        statefulProcessor=_PerKey(processor, input_schema, output_schema),
        outputStructType=_output_type(output_schema),
        outputMode="Append",
        timeMode="None",
    )


def _output_type(schema: StreamSchema) -> StructType:
    fields = list(spark_types(schema))
    fields += [
        StructField("_time", TimestampType()),
        StructField("_reject", StringType()),
        StructField("_raw", StringType()),
    ]
    return StructType(fields)


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

    def __init__(self, stored: str | None) -> None:
        self._text = stored or '{"state":{},"timers":[]}'

    def load(self) -> tuple[dict[str, Any], KeyTimers]:
        data = json.loads(self._text)
        return data["state"], KeyTimers(data["timers"])

    def save(self, state: Mapping[str, Any], timers: KeyTimers) -> None:
        self._text = json.dumps({"state": state, "timers": timers.times}, separators=(",", ":"))

    @property
    def text(self) -> str:
        return self._text


def process_row(
    processor: KeyedProcessor, key: str, row: dict[str, Any], time_ms: int, state: dict[str, Any], timers: KeyTimers
) -> list[dict[str, Any]]:
    """The timers that the row's time has reached, then the row itself."""
    out: list[dict[str, Any]] = []
    while (due := timers.due(time_ms)) is not None:
        when = pd.Timestamp(due, unit="ms", tz="UTC")
        out += [{"_time": when, **item} for item in processor.on_timer(key, due, state, timers)]
    out += [{"_time": row["_time"], **item} for item in processor.process(key, row, state, timers)]
    return out


class _PerKey(StatefulProcessor):
    def __init__(self, processor: KeyedProcessor, inputs: StreamSchema, outputs: StreamSchema) -> None:
        self._processor = processor
        self._inputs = inputs
        self._columns = [*outputs.names, "_time", "_reject", "_raw"]

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("key", "text string")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        name = key[0]
        stored = KeyState(self._state.get()[0] if self._state.exists() else None)
        frames = list(rows)
        frame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
        output: list[dict[str, Any]] = []
        state, timers = stored.load()
        # A snapshot is parsed back only after a row has failed: serialising each row's state would
        # cost more than the processing itself.
        pending: list[tuple[dict[str, Any], int]] = []
        for row, time_ms in _ordered_rows(frame, self._inputs):
            try:
                output += process_row(self._processor, name, row, time_ms, state, timers)
                pending.append((row, time_ms))
            except Exception as error:  # noqa: BLE001 - whatever a user's code raises rejects its row
                state, timers = stored.load()
                for done, done_ms in pending:
                    process_row(self._processor, name, done, done_ms, state, timers)
                output.append(_rejection(row, error))
        stored.save(state, timers)
        self._state.update((stored.text,))
        if output:
            columns = {column: [item.get(column) for item in output] for column in self._columns}
            yield pd.DataFrame(columns, dtype=object)

    def close(self) -> None:
        """Nothing is held open."""


def _rejection(row: dict[str, Any], error: Exception) -> dict[str, Any]:
    data = {name: value for name, value in row.items() if not name.startswith("_")}
    return {
        "_time": row["_time"],
        "_reject": f"{type(error).__name__}: {error}",
        "_raw": json.dumps(data, default=str),
    }


def _ordered_rows(frame: pd.DataFrame, schema: StreamSchema) -> Iterator[tuple[dict[str, Any], int]]:
    """(row, its event time in ms), in the order of the partitions' offsets."""
    offsets = frame["_offset"]
    if not offsets.is_monotonic_increasing or frame["_partition"].nunique() > 1:
        frame = frame.sort_values(["_partition", "_offset"], kind="stable")
    names = [*schema.names, "_time"]
    columns = [_values(frame[field.name], field.type) for field in schema.fields]
    times = frame["_time"].dt.tz_localize("UTC")
    times_ms = (frame["_time"].astype("datetime64[ms]").astype("int64")).tolist()
    for values, time_ms in zip(zip(*columns, times.tolist(), strict=True), times_ms, strict=True):
        yield dict(zip(names, values, strict=True)), time_ms


def _values(column: pd.Series, kind: FieldType) -> list[Any]:
    """Plain Python values; pandas' stand-ins for null (NaN, NaT) become None."""
    values = column.tolist()
    if column.hasnans:
        values = [None if value is None or value != value else value for value in values]
    if kind is FieldType.INTEGER and column.dtype.kind == "f":
        values = [None if value is None else int(value) for value in values]
    return values
