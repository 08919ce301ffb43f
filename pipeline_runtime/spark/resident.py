"""Runs a group's batches, one after the other, in a task of Spark's that ends with the query.

Of what Spark does for a batch (plan it, call the sink, start a task, carry the rows from one Python process
to Java and on to the next) a processor needs nothing: it is Python, it reads what the gate has granted, and
the replica keeps its state. So where nothing stands before it but topics and sources, its task stays: it
asks the gate for the rows of one batch after another, and hands over what comes of each. So does the task of
a source that has a group of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.sdk import KeyedProcessor, Operator, Processor
from pipeline_runtime.spark.columns import column
from pipeline_runtime.spark.gate_client import GateClient, Slice
from pipeline_runtime.spark.inputs import GroupInput, operator_of
from pipeline_runtime.spark.processors import processor_inputs, processor_work
from pipeline_runtime.spark.rows import PortRows, Tagged, encoded, python_values, rejected, tagged
from pipeline_runtime.spark.slices import GroupReader

# Their texts are the same, whether Spark makes them or Arrow.
_KEY_TYPES = (FieldType.STRING, FieldType.INTEGER, FieldType.BOOLEAN)


# -- of which groups ---------------------------------------------------------------------------------


def can_stay(operator: Operator, inputs: Sequence[GroupInput]) -> bool:
    """Whether Arrow makes the same keys of these inputs' rows as Spark, or none are asked for."""
    if not isinstance(operator, KeyedProcessor):
        return True
    for item in inputs:
        name = _key_field(operator, item)
        field = item.schema.field(name) if name is not None else None
        if field is not None and field.type not in _KEY_TYPES:
            return False
    return True


def partitions_apart(operator: Operator, inputs: Sequence[GroupInput]) -> int:
    """How many partitions have no key in common, if they are written as they are said to be: by the key that
    the processor groups by. A row without a key may be in any of them; replica.tasks notices that."""
    if not isinstance(operator, KeyedProcessor):
        return 1
    [item, *others] = inputs
    key = item.schema.key
    by_record = item.topic is not None and key is not None and operator.key_field() in (None, key)
    return item.partitions if by_record and not others else 1


def _key_field(operator: Operator, item: GroupInput) -> str | None:
    """None: the record's key."""
    own = operator.key_field() if isinstance(operator, KeyedProcessor) else None
    return own or item.key_field


# -- in a worker process of Spark's ------------------------------------------------------------------


class Work(Protocol):
    def made_of(self, slices: Sequence[Slice], task: int) -> pa.RecordBatch:
        """What comes of a batch's rows, as spark.rows.TAGGED says."""
        ...


def work_of(gate: GateClient, reader: GroupReader, element: str) -> Work:
    operator = operator_of(reader.spec, element)
    if isinstance(operator, Processor):
        return ProcessorBatches(gate, reader, element, operator)
    return SourceBatches(reader, element)


def run_batches(gate: GateClient, work: Work, token: int, task: int) -> None:
    """Until the gate lets go of the task."""
    while (granted := gate.ask("rows", token=token, task=task)) is not None:
        made = work.made_of([Slice(**part) for part in granted], task)
        gate.ask("done", payload=packed(made), task=task)


class ProcessorBatches:
    """Implements Work."""

    def __init__(self, gate: GateClient, reader: GroupReader, element: str, processor: Processor) -> None:
        self._gate = gate
        self._reader = reader
        [item] = [item for item in reader.spec.elements if item.id == element]
        sources = [item.inputs[port] for port, _ in processor_inputs(reader.spec, element)]
        # Of each input the ports that read it, by their place.
        self._ports = [
            [place for place, source in enumerate(sources) if source == read.source] for read in reader.inputs
        ]
        fields = [_key_field(processor, read) for read in reader.inputs]
        self._keys = ["_key" if name is None else column(place, name) for place, name in enumerate(fields)]
        self._work = processor_work(reader.spec, element, reader.files, reader.directory)

    def made_of(self, slices: Sequence[Slice], task: int) -> pa.RecordBatch:
        with_rows = [part for part in slices if part.input >= 0]
        arrived = (rows for part in with_rows for rows in self._rows(part))
        return self._work.made_of(arrived, self._gate, task, at_end=len(with_rows) < len(slices))

    def _rows(self, part: Slice) -> Iterator[PortRows]:
        names = self._reader.inputs[part.input].schema.names
        for batch in self._reader.read(part):
            key = batch[self._keys[part.input]].cast(pa.string())
            meta = {
                # The key of rows without one is the empty text.
                "key": pc.fill_null(key, ""),
                "partition": batch["_partition"],
                "offset": batch["_offset"],
                "time_us": batch["_time"].cast(pa.int64()),
            }
            for place in self._ports[part.input]:
                data = {column(place, name): batch[column(part.input, name)] for name in names}
                yield place, pa.record_batch({**meta, **data})


class SourceBatches:
    """Implements Work: a source's rows, as they are."""

    def __init__(self, reader: GroupReader, element: str) -> None:
        self._reader = reader
        self._element = element
        [self._input] = reader.inputs

    def made_of(self, slices: Sequence[Slice], task: int) -> pa.RecordBatch:
        return tagged(
            [row for part in slices for batch in self._reader.read(part) for row in self._rows(batch)]
        )

    def _rows(self, batch: pa.RecordBatch) -> Iterator[Tagged]:
        schema, place = self._input.schema, self._input.index
        values = [python_values(batch[column(place, field.name)], field.type) for field in schema.fields]
        times_us = batch["_time"].cast(pa.int64()).to_pylist()
        for key, time_us, row in zip(
            batch["_key"].to_pylist(), times_us, zip(*values, strict=True), strict=True
        ):
            data = dict(zip(schema.names, row, strict=True))
            try:
                yield self._input.source, key, time_us // 1000, encoded(data)
            except ValueError as error:  # a number that JSON does not have
                yield rejected(self._element, data, time_us // 1000, error)


def packed(rows: pa.RecordBatch) -> memoryview:
    """What comes of a batch, for the gate."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    return memoryview(sink.getvalue())


def unpacked(payload: bytes) -> pa.Table:
    with pa.ipc.open_stream(payload) as stream:
        return stream.read_all()
