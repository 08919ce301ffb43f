"""Runs a BatchProcessor: a batch's rows at once, as Arrow columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.batch.decode import TIMESTAMP, arrow_schema
from pipeline_runtime.batch.gate_messages import KeepStates, KeysBetween, StatesBetween, StatesOf
from pipeline_runtime.batch.rows import Asked, Inputs, Ports, Processed, current_state, in_ms, in_order
from pipeline_runtime.model.texts import texts
from pipeline_runtime.operators.sdk import BatchProcessor, OperatorContext
from pipeline_runtime.operators.tables import RAW, REJECT

_KEYS_AT_ONCE = 10_000
_UNREAD = ""  # which is no state's text


class BatchWork:
    """Implements rows.ProcessorWork."""

    def __init__(self, processor: BatchProcessor, inputs: Inputs, ctx: OperatorContext) -> None:
        self._processor = processor
        self._inputs = inputs
        self._ctx = ctx
        self._columns = arrow_schema(ctx.output_schema)

    def process(
        self, ports: Ports, gate: Asked, task: int = 0, *, at_end: bool = False, batch_time_ms: int = 0
    ) -> Processed:
        given = {port: in_order(ports[port]) for port, _ in self._inputs}
        states = GateStates(gate, task, self._processor, batch_time_ms)
        made = self._processor.process_batch(given, states, self._ctx, at_end=at_end)
        states.hand_over()
        return self._processed(made)

    def _processed(self, made: pa.Table) -> Processed:
        letters = []
        if REJECT in made.column_names:
            marked = made.filter(pc.is_valid(made[REJECT]))
            letters = list(zip(marked[REJECT].to_pylist(), marked[RAW].to_pylist(), strict=True))
            made = made.filter(pc.is_null(made[REJECT]))
        outputs = self._ctx.output_schema
        rows = made.select(outputs.names)
        if not rows.schema.equals(self._columns):  # a cast takes its time, even if nothing is to be done
            rows = rows.cast(self._columns)
        key = None if outputs.key is None else outputs.field(outputs.key)
        if key is not None:
            keys = texts(rows[key.name])
        elif "_key" in made.column_names:
            keys = made["_key"]
        else:
            keys = pa.nulls(made.num_rows, pa.string())
        times = in_ms(made["_time"]).cast(TIMESTAMP)
        return Processed(rows.append_column("_key", keys).append_column("_time", times), letters)


class GateStates:
    """Implements sdk.States for one batch."""

    def __init__(self, gate: Asked, task: int, processor: BatchProcessor, batch_time_ms: int = 0) -> None:
        self.batch_time_ms = batch_time_ms
        self._gate = gate
        self._task = task
        self._processor = processor
        self._read: dict[str | None, str | None] = {}
        self._changed: dict[str | None, str | None] = {}

    def get(self, keys: Sequence[str | None]) -> list[Any]:
        texts: list[str | None] = []
        for place in range(0, len(keys), _KEYS_AT_ONCE):
            texts += self._gate.ask(StatesOf(keys[place : place + _KEYS_AT_ONCE], self._task))
        self._read.update(zip(keys, texts, strict=True))
        return [None if text is None else self._value(text) for text in texts]

    def between(self, first: str, end: str) -> dict[str, Any]:
        return {key: self._value(text) for key, text in self._gate.ask(StatesBetween(first, end))}

    def keys(self, first: str, end: str, most: int) -> list[str]:
        return self._gate.ask(KeysBetween(first, end, most))

    def put(self, key: str | None, value: Any) -> None:
        text = None if value is None else state_text(value, self._processor)
        if key in self._changed or text != self._read.pop(key, _UNREAD):
            self._changed[key] = text

    def hand_over(self) -> None:
        if self._changed:
            self._gate.ask(KeepStates(list(self._changed.items())))

    def _value(self, text: str) -> Any:
        data = json.loads(text)
        return current_state(data["state"], data.get("version", 1), self._processor)


def state_text(value: Any, processor: BatchProcessor) -> str:
    """Returns the text of a state as the replica keeps it."""
    data, version = {"state": value}, processor.state_version
    if version > 1:
        data["version"] = version
    return json.dumps(data, separators=(",", ":"))
