"""Runs a group's batches, one after the other, in a task of Spark's that ends with the query.

Of what Spark does for a batch (plan it, call the sink, start a task, carry the rows from one Python process
to Java and on to the next) most groups need nothing: their processors are Python, their other elements have
an Arrow form (`TransformOperator.arrow`), what they read the gate has granted, and the replica keeps their
state. So their task stays: it asks the gate for the rows of one batch after another, and hands over what
comes of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.batch.gate_client import GateClient
from pipeline_runtime.batch.gate_messages import PartProcessed, Slice, SlicesOf
from pipeline_runtime.batch.inputs import GroupInput, operator_context, operator_of
from pipeline_runtime.batch.output import BatchOutput, Destinations, OutputBuilder, packed
from pipeline_runtime.batch.processors import processor_inputs, processor_work
from pipeline_runtime.batch.reader import GroupReader, input_schema, keyed, with_meta
from pipeline_runtime.batch.rows import Letter, ProcessorWork
from pipeline_runtime.batch.streams import behind
from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.sdk import (
    ArrowTransform,
    KeyedProcessor,
    Operator,
    Processor,
    SinkOperator,
    SourceOperator,
    TransformOperator,
)
from pipeline_runtime.operators.tables import with_column

# Their texts are the same, whether Spark makes them or Arrow.
_KEY_TYPES = (FieldType.STRING, FieldType.INTEGER, FieldType.BOOLEAN)


# -- of which groups ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Staying:
    """What a group's task runs that stays."""

    elements: tuple[str, ...]  # in topological order; sources and sinks are not among them
    transforms: Mapping[str, ArrowTransform]
    processor: str | None


def staying(spec: GroupSpec, files: Mapping[str, str], directory: Path) -> Staying | None:
    """None: the group has something that only Spark can run. What stands behind a processor Spark can run by
    itself, on its rows; so that is left out where Arrow cannot."""
    operators = {item.id: operator_of(spec, item.id) for item in spec.elements}
    processor = next((id for id, each in operators.items() if isinstance(each, Processor)), None)
    late = behind(spec, processor)
    transforms: dict[str, ArrowTransform] = {}
    for id, operator in operators.items():
        if not isinstance(operator, TransformOperator):
            continue
        found = operator.arrow(operator_context(spec, id, files, directory))
        if found is not None:
            transforms[id] = found
        elif id not in late:
            return None
    run = [id for id, each in operators.items() if not isinstance(each, SourceOperator | SinkOperator)]
    if not set(late) <= transforms.keys():
        run = [id for id in run if id not in late]
    keys = [_key_field_type(schema) for schema in spec.schemas.values()]
    keys += [_processor_key_type(spec, operator, id) for id, operator in operators.items()]
    if any(key is not None and key not in _KEY_TYPES for key in keys):
        return None
    return Staying(tuple(run), transforms, processor)


def _grouped_by(operator: Operator) -> str | None:
    return operator.key_field() if isinstance(operator, KeyedProcessor) else None


def _key_field_type(schema: StreamSchema) -> FieldType | None:
    field = schema.field(schema.key) if schema.key is not None else None
    return None if field is None else field.type


def _processor_key_type(spec: GroupSpec, operator: Operator, element: str) -> FieldType | None:
    name = _grouped_by(operator)
    if name is None:
        return None
    fields = [schema.field(name) for _, schema in processor_inputs(spec, element)]
    return next((field.type for field in fields if field is not None), None)


def partitions_apart(spec: GroupSpec, inputs: Sequence[GroupInput], processor: str | None) -> int:
    """How many tasks may share a batch: each has whole partitions, and no key is in two of them, if they are
    written as they are said to be, by the key that the processor groups by. A row without a key may be in any
    of them; batch.tasks notices that."""
    if processor is None:
        return sum(len(item.end_keys()) for item in inputs)
    operator, [item, *others] = operator_of(spec, processor), inputs
    [element] = [each for each in spec.elements if each.id == processor]
    if not isinstance(operator, KeyedProcessor) or others or set(element.inputs.values()) != {item.source}:
        return 1
    key = item.schema.key
    by_record = item.topic is not None and key is not None and _grouped_by(operator) in (None, key)
    return item.partitions if by_record else 1


# -- in a worker process of Spark's ------------------------------------------------------------------


def run_batches(gate: GateClient, work: GroupWork, token: int, task: int) -> None:
    """Run one batch after another, until the gate lets go of the task."""
    while (slices := gate.ask(SlicesOf(token, task))) is not None:
        output = work.run(slices, task)
        gate.ask(PartProcessed(task, packed(output)))


class GroupWork:
    """All elements of a group, but for what Spark runs on a processor's rows."""

    def __init__(self, gate: GateClient, reader: GroupReader) -> None:
        self._gate = gate
        self._reader = reader
        self._spec = spec = reader.spec
        found = staying(spec, reader.files, reader.directory)
        assert found is not None, f"{spec.id} is Spark's to run"
        self._staying = found
        self._destinations = Destinations.of(spec)
        self._ports = {item.id: dict(item.inputs) for item in spec.elements}
        self._read_inside = {source for id in found.elements for source in self._ports[id].values()}
        self._processor: ProcessorWork | None = None
        if found.processor is not None:
            self._processor = processor_work(spec, found.processor, reader.files, reader.directory)

    def run(self, slices: Sequence[Slice], task: int) -> BatchOutput:
        """Read a batch's rows, and run all elements on them."""
        output = OutputBuilder(self._destinations)
        streams = {source: output.add(source, rows) for source, rows in self._read(slices).items()}
        batch_time_ms = slices[0].batch_time_ms if slices else 0
        at_end = any(part.input < 0 for part in slices)
        for id in self._staying.elements:
            source = f"{id}.out"
            if source in streams:  # what the group reads from outside
                continue
            given = {port: streams[each] for port, each in self._ports[id].items()}
            if id == self._staying.processor:
                rows, letters = self._processed(given, task, at_end=at_end)
                output.reject(id, [reason for reason, _ in letters], [raw for _, raw in letters])
                if source in self._read_inside:
                    rows = with_meta(rows, batch_time_ms)
            else:
                rows = keyed(self._staying.transforms[id](given), self._spec.schemas[source])
            streams[source] = output.add(source, rows)
        return output.output()

    def _read(self, slices: Sequence[Slice]) -> dict[str, pa.Table]:
        """The rows of each input."""
        streams = {}
        for item in self._reader.inputs:
            mine = [part for part in slices if part.input == item.index]
            parts = [rows for part in mine for rows in self._reader.read(part)]
            empty = input_schema(item.schema).empty_table()
            streams[item.source] = pa.concat_tables(parts) if parts else empty
        return streams

    def _processed(
        self, given: Mapping[str, pa.Table], task: int, *, at_end: bool
    ) -> tuple[pa.Table, Sequence[Letter]]:
        assert self._processor is not None
        # A processor is given the empty text as the key of a row without one.
        ports = {
            port: with_column(rows, "_key", pc.coalesce(rows["_key"], ""))
            if rows["_key"].null_count
            else rows
            for port, rows in given.items()
        }
        made = self._processor.process(ports, self._gate, task, at_end=at_end)
        return made.rows, made.letters
