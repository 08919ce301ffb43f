"""Runs a keyed group's batches, one after the other, in one task of Spark's that ends with the query.

Of what Spark does for a batch (plan it, call the sink, start a task, carry the rows from one Python process
to Java and on to the next) a keyed processor needs nothing: it is Python, it reads what the gate has granted,
and the replica keeps its state. So where nothing stands before it but topics and sources, its one task stays:
it asks the gate for the rows of one batch after another, and hands over what comes of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.sdk import KeyedProcessor
from pipeline_runtime.spark.columns import column
from pipeline_runtime.spark.gate_client import GateClient, Slice
from pipeline_runtime.spark.inputs import GroupInput, operator_of
from pipeline_runtime.spark.keyed import KeyedWork, PortRows, keyed_inputs
from pipeline_runtime.spark.slices import GroupReader

# Their texts are the same, whether Spark makes them or Arrow.
_KEY_TYPES = (FieldType.STRING, FieldType.INTEGER, FieldType.BOOLEAN)


def can_stay(processor: KeyedProcessor, inputs: Iterable[GroupInput]) -> bool:
    """Whether Arrow makes the same keys of these inputs' rows as Spark."""
    for item in inputs:
        name = _key_field(processor, item)
        field = item.schema.field(name) if name is not None else None
        if field is not None and field.type not in _KEY_TYPES:
            return False
    return True


def partitions_apart(processor: KeyedProcessor, inputs: Sequence[GroupInput]) -> int:
    """How many partitions have no key in common, if they are written as they are said to be: by the key that
    the processor groups by. A row without a key may be in any of them; replica.tasks notices that."""
    [item, *others] = inputs
    key = item.schema.key
    by_record = item.topic is not None and key is not None and processor.key_field() in (None, key)
    return item.partitions if by_record and not others else 1


def _key_field(processor: KeyedProcessor, item: GroupInput) -> str | None:
    """None: the record's key. Fogline's own topics have the stream's key as that; a user's may have any."""
    own = item.topic is None or item.external
    return processor.key_field() or (item.schema.key if own else None)


class ResidentTask:
    """In a worker process of Spark's."""

    def __init__(self, gate: GateClient, reader: GroupReader, element: str) -> None:
        self._gate = gate
        self._reader = reader
        processor = operator_of(reader.spec, element)
        assert isinstance(processor, KeyedProcessor)
        [item] = [item for item in reader.spec.elements if item.id == element]
        sources = [item.inputs[port] for port, _ in keyed_inputs(reader.spec, element)]
        # Of each input the ports that read it, by their place.
        self._ports = [
            [place for place, source in enumerate(sources) if source == read.source] for read in reader.inputs
        ]
        fields = [_key_field(processor, read) for read in reader.inputs]
        self._keys = ["_key" if name is None else column(place, name) for place, name in enumerate(fields)]
        self._work = KeyedWork.of(reader.spec, element)

    def run(self, token: int, task: int) -> None:
        """Until the gate lets go of it."""
        while (granted := self._gate.ask("rows", token=token, task=task)) is not None:
            slices = [Slice(**part) for part in granted]
            keys = self._work.by_key(rows for part in slices for rows in self._rows(part))
            made = self._work.process(keys, self._gate, task)
            self._gate.ask("done", payload=packed(made), task=task)

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


def packed(rows: pa.RecordBatch) -> memoryview:
    """What comes of a batch, for the gate."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    return memoryview(sink.getvalue())


def unpacked(payload: bytes) -> pa.Table:
    with pa.ipc.open_stream(payload) as stream:
        return stream.read_all()
