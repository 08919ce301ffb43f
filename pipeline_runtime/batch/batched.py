"""Runs a BatchProcessor: a batch's rows at once, as Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.batch.decode import TIMESTAMP, arrow_schema
from pipeline_runtime.batch.held_states import HeldStates, Key, TaskStates, size_of
from pipeline_runtime.batch.kept import Kept, decoded, encoded
from pipeline_runtime.batch.rows import (
    Asked,
    Inputs,
    Letter,
    Ports,
    Processed,
    current_state,
    in_ms,
    in_order,
)
from pipeline_runtime.model.texts import texts
from pipeline_runtime.operators.sdk import BatchProcessor, OperatorContext
from pipeline_runtime.operators.tables import RAW, REJECT, about_rows

_UNREAD = b""  # which is no state


class BatchWork:
    """Implements rows.ProcessorWork."""

    def __init__(
        self,
        processor: BatchProcessor,
        inputs: Inputs,
        ctx: OperatorContext,
        held: HeldStates | None = None,
    ) -> None:
        """`held`: None for a task that does not stay."""
        self._held = held
        self._processor = processor
        self._inputs = inputs
        self._ctx = ctx
        self._columns = arrow_schema(ctx.output_schema)

    def process(
        self, ports: Ports, gate: Asked, task: int = 0, *, at_end: bool = False, batch_time_ms: int = 0
    ) -> Processed:
        given = {port: in_order(ports[port]) for port, _ in self._inputs}
        states = GateStates(TaskStates(gate, task, self._held), self._processor, batch_time_ms)
        made = self._processor.process_batch(given, states, self._ctx, at_end=at_end)
        states.hand_over()
        return self._processed(made)

    def _processed(self, made: pa.Table) -> Processed:
        letters = []
        if REJECT in made.column_names:
            marked = made.filter(pc.is_valid(made[REJECT]))
            told = zip(marked[REJECT].to_pylist(), marked[RAW].to_pylist(), about_rows(marked), strict=True)
            letters = [Letter(reason, raw, *about) for reason, raw, about in told]
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

    def __init__(self, states: TaskStates, processor: BatchProcessor, batch_time_ms: int = 0) -> None:
        self.batch_time_ms = batch_time_ms
        self._states = states
        self._processor = processor
        self._read: dict[Key, bytes | None] = {}
        self._changed: dict[Key, bytes | None] = {}

    def get(self, keys: Sequence[Key]) -> list[Any]:
        found = self._states.get(keys)
        self._read.update(zip(keys, found, strict=True))
        return [None if data is None else self._value(data) for data in found]

    def between(self, first: str, end: str) -> dict[str, Any]:
        found = self._states.between(first, end)
        self._read.update(found)
        return {key: self._value(data) for key, data in found}

    def keys(self, first: str, end: str, most: int) -> list[str]:
        return self._states.keys(first, end, most)

    def put(self, key: Key, value: Any) -> None:
        data = None if value is None else encoded(Kept(value, self._processor.state_version))
        if key in self._changed or data != self._read.get(key, _UNREAD):
            self._changed[key] = data

    def hand_over(self) -> None:
        sizes = [size_of(self._read[key]) if key in self._read else None for key in self._changed]
        self._states.keep([*self._changed], [*self._changed.values()], sizes)

    def _value(self, data: bytes) -> Any:
        kept = decoded(data)
        return current_state(kept.state, kept.version, self._processor)
