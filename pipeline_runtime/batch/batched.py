"""Runs a BatchProcessor: a batch's rows at once, as Arrow columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.batch.columns import column
from pipeline_runtime.batch.decode import ARROW_TYPES, TIMESTAMP
from pipeline_runtime.batch.rows import (
    BY_OFFSET,
    Asked,
    Inputs,
    PortRows,
    Tagged,
    current_state,
    dead,
    encoded,
    python_values,
    rejected,
    tagged,
)
from pipeline_runtime.operators.expressions.javatexts import text_of
from pipeline_runtime.operators.sdk import BatchProcessor, OperatorContext
from pipeline_runtime.operators.tables import RAW, REJECT

_KEYS_AT_ONCE = 10_000


class BatchWork:
    """Implements rows.ProcessorWork."""

    def __init__(self, processor: BatchProcessor, inputs: Inputs, ctx: OperatorContext) -> None:
        self._processor = processor
        self._inputs = inputs
        self._ctx = ctx

    def made_of(
        self, arrived: Iterable[PortRows], gate: Asked, task: int = 0, *, at_end: bool = False
    ) -> pa.Table:
        ports: dict[int, list[pa.RecordBatch]] = {}
        for place, batch in arrived:
            ports.setdefault(place, []).append(batch)
        given = {
            port: self._table(place, ports.get(place, [])) for place, (port, _) in enumerate(self._inputs)
        }
        states = GateStates(gate, task, self._processor)
        made = self._processor.process_batch(given, states, self._ctx, at_end=at_end)
        states.hand_over()
        return tagged(list(self._rows(made)))

    def _table(self, place: int, batches: Sequence[pa.RecordBatch]) -> pa.Table:
        """Of one port, as the processor is given it."""
        schema = self._inputs[place][1]
        if not batches:
            meta = {
                "_key": pa.string(),
                "_time": TIMESTAMP,
                "_partition": pa.int32(),
                "_offset": pa.int64(),
            }
            types = {field.name: ARROW_TYPES[field.type] for field in schema.fields}
            return pa.schema([*types.items(), *meta.items()]).empty_table()
        table = pa.Table.from_batches(batches).sort_by(BY_OFFSET)
        return pa.table(
            {
                **{name: table[column(place, name)] for name in schema.names},
                "_key": table["key"],
                "_time": table["time_us"].cast(TIMESTAMP),
                "_partition": table["partition"],
                "_offset": table["offset"],
            }
        )

    def _rows(self, made: pa.Table) -> Iterator[Tagged]:
        element, outputs = self._ctx.element, self._ctx.output_schema
        if REJECT in made.column_names:
            letters = made.filter(pc.is_valid(made[REJECT]))
            for reason, raw in zip(letters[REJECT].to_pylist(), letters[RAW].to_pylist(), strict=True):
                yield dead(element, reason, raw)
            made = made.filter(pc.is_null(made[REJECT]))
        values = [python_values(made[field.name], field.type) for field in outputs.fields]
        times_us = made["_time"].cast(TIMESTAMP).cast(pa.int64()).to_pylist()
        keys = made["_key"].to_pylist() if "_key" in made.column_names else [None] * made.num_rows
        for time_us, key, row in zip(times_us, keys, zip(*values, strict=True), strict=True):
            data = dict(zip(outputs.names, row, strict=True))
            record_key = key if outputs.key is None else _key_text(data[outputs.key])
            try:
                yield f"{element}.out", record_key, time_us // 1000, encoded(data)
            except ValueError as error:  # a number that JSON does not have
                yield rejected(element, data, error)


class GateStates:
    """Implements sdk.States for one batch."""

    def __init__(self, gate: Asked, task: int, processor: BatchProcessor) -> None:
        self._gate = gate
        self._task = task
        self._processor = processor
        self._changed: dict[str | None, str | None] = {}

    def get(self, keys: Sequence[str | None]) -> list[Any]:
        texts: list[str | None] = []
        for place in range(0, len(keys), _KEYS_AT_ONCE):
            texts += self._gate.ask("states", keys=keys[place : place + _KEYS_AT_ONCE], task=self._task)
        return [None if text is None else self._value(text) for text in texts]

    def between(self, first: str, end: str) -> dict[str, Any]:
        found = self._gate.ask("between", first=first, end=end)
        return {key: self._value(text) for key, text in found}

    def keys(self, first: str, end: str, most: int) -> list[str]:
        found: list[str] = self._gate.ask("keys", first=first, end=end, most=most)
        return found

    def put(self, key: str | None, value: Any) -> None:
        self._changed[key] = None if value is None else state_text(value, self._processor)

    def hand_over(self) -> None:
        if self._changed:
            self._gate.ask("keep", states=list(self._changed.items()))

    def _value(self, text: str) -> Any:
        data = json.loads(text)
        return current_state(data["state"], data.get("version", 1), self._processor)


def _key_text(value: Any) -> str | None:
    """As Spark writes it, and as it is read from the topic: true, not True."""
    return None if value is None else text_of(value)


def state_text(value: Any, processor: BatchProcessor) -> str:
    """As the replica keeps it."""
    data, version = {"state": value}, processor.state_version
    if version > 1:
        data["version"] = version
    return json.dumps(data, separators=(",", ":"))
