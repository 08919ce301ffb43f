"""Runs a group's batches, one after the other, in a task of Spark's that ends with the query.

Of what Spark does for a batch (plan it, call the sink, start a task, carry the rows from one Python process
to Java and on to the next) most groups need nothing: their processors are Python, their other elements have
an Arrow form (`TransformOperator.arrow`), what they read the gate has granted, and the replica keeps their
state. So their task stays: it asks the gate for the rows of one batch after another, and hands over what
comes of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.batch.columns import column
from pipeline_runtime.batch.encode import json_texts
from pipeline_runtime.batch.gate_client import GateClient, Slice
from pipeline_runtime.batch.inputs import GroupInput, operator_context, operator_of
from pipeline_runtime.batch.processors import processor_inputs, processor_work
from pipeline_runtime.batch.reader import GroupReader
from pipeline_runtime.batch.rows import (
    TAGGED,
    Inputs,
    PortRows,
    ProcessorWork,
    Tagged,
    dead,
    tagged,
)
from pipeline_runtime.batch.streams import behind, needed_streams, read_again
from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.expressions.arrow import floored
from pipeline_runtime.operators.sdk import (
    ArrowTransform,
    KeyedProcessor,
    Operator,
    Processor,
    SinkOperator,
    SourceOperator,
    TransformOperator,
)
from pipeline_runtime.operators.tables import RAW, REJECT, quoted_rows, with_column

# Their texts are the same, whether Spark makes them or Arrow.
_KEY_TYPES = (FieldType.STRING, FieldType.INTEGER, FieldType.BOOLEAN)
_META = ("_key", "_time", "_batch_time", "_partition", "_offset")


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
    """Until the gate lets go of the task."""
    while (granted := gate.ask("rows", token=token, task=task)) is not None:
        made = work.made_of([Slice(**part) for part in granted], task)
        gate.ask("done", payload=packed(made), task=task)


class GroupWork:
    """All elements of a group, but for what Spark runs on a processor's rows."""

    def __init__(self, gate: GateClient, reader: GroupReader) -> None:
        self._gate = gate
        self._reader = reader
        self._spec = spec = reader.spec
        found = staying(spec, reader.files, reader.directory)
        assert found is not None, f"{spec.id} is Spark's to run"
        self._staying = found
        self._needed = needed_streams(spec)
        self._ports = {item.id: dict(item.inputs) for item in spec.elements}
        self._read_inside = {source for id in found.elements for source in self._ports[id].values()}
        self._processor: ProcessorWork | None = None
        if found.processor is not None:
            self._processor = processor_work(spec, found.processor, reader.files, reader.directory)
            self._processor_inputs = processor_inputs(spec, found.processor)
            self._processor_key = _grouped_by(operator_of(spec, found.processor))

    def made_of(self, slices: Sequence[Slice], task: int) -> pa.Table:
        """What comes of a batch's rows, as batch.rows.TAGGED says."""
        streams = self._read([part for part in slices if part.input >= 0])
        left = [self._encoded(source, rows) for source, rows in streams.items() if source in self._needed]
        for id in self._staying.elements:
            source = f"{id}.out"
            if source in streams:  # what the group reads from outside
                continue
            given = {port: streams[each] for port, each in self._ports[id].items()}
            if id == self._staying.processor:
                at_end = any(part.input < 0 for part in slices)
                made = self._processed(given, task, at_end=at_end)
                if source in self._read_inside:
                    batch_time_ms = slices[0].batch_time_ms if slices else 0
                    streams[source] = read_again(made, source, self._spec, batch_time_ms)
            else:
                rows = _keyed(self._spec.schemas[source], self._staying.transforms[id](given))
                good, bad = _apart(rows)
                made = self._encoded(source, rows if source in self._needed else bad)
                streams[source] = good
            left.append(made)
        return pa.concat_tables(left)

    def _read(self, slices: Sequence[Slice]) -> dict[str, pa.Table]:
        """Of each input its rows."""
        streams = {}
        for item in self._reader.inputs:
            mine = [part for part in slices if part.input == item.index]
            batches = [batch for part in mine for batch in self._reader.read(part)]
            rows = pa.Table.from_batches(batches, self._reader.schema)
            data = {name: rows[column(item.index, name)] for name in item.schema.names}
            table = pa.table({**data, **{name: rows[name] for name in _META}})
            streams[item.source] = table if item.key_field is None else _keyed(item.schema, table)
        return streams

    def _processed(self, given: Mapping[str, pa.Table], task: int, *, at_end: bool) -> pa.Table:
        assert self._processor is not None
        arrived = _port_rows(self._processor_inputs, given, self._processor_key)
        return self._processor.made_of(arrived, self._gate, task, at_end=at_end)

    def _encoded(self, source: str, rows: pa.Table) -> pa.Table:
        """As TAGGED; rows with `_reject`, or with a number that JSON does not have, as dead letters."""
        schema = self._spec.schemas[source]
        values = json_texts(rows, schema)
        made = pa.table(
            {
                "_out": pa.repeat(source, rows.num_rows),
                "_key": rows["_key"],
                "_time_ms": floored(rows["_time"].cast(pa.int64()), 1000),
                "_value": values,
            },
            schema=TAGGED,
        )
        bad = pc.is_null(values)
        if REJECT in rows.column_names:
            bad = pc.or_(bad, pc.is_valid(rows[REJECT]))
        if not pc.any(bad).as_py():
            return made
        letters = tagged(_letters(source.partition(".")[0], rows.filter(bad), schema))
        return pa.concat_tables([made.filter(pc.invert(bad)), letters])


def _keyed(schema: StreamSchema, rows: pa.Table) -> pa.Table:
    """`_key` as it would be read from the stream's topic: a group gives what its elements give apart."""
    return rows if schema.key is None else with_column(rows, "_key", rows[schema.key].cast(pa.string()))


def _apart(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows that go on, and those with `_reject`."""
    if REJECT not in rows.column_names:
        return rows, rows.slice(0, 0)
    own = [name for name in (REJECT, RAW) if name in rows.column_names]
    good = pc.is_null(rows[REJECT])
    return rows.filter(good).drop_columns(own), rows.filter(pc.invert(good))


def _letters(element: str, rows: pa.Table, schema: StreamSchema) -> list[Tagged]:
    """Of rows that were rejected, or have a number that JSON does not have."""
    reasons, raws = (
        rows[name].to_pylist() if name in rows.column_names else [None] * rows.num_rows
        for name in (REJECT, RAW)
    )
    return [
        dead(element, reason or "ValueError: a number is not finite: JSON has no such", raw or text)
        for reason, raw, text in zip(reasons, raws, quoted_rows(rows, schema.names), strict=True)
    ]


def _port_rows(inputs: Inputs, given: Mapping[str, pa.Table], key: str | None) -> Iterator[PortRows]:
    """`key`: the field that a keyed processor groups by; None: the record's key."""
    for place, (port, schema) in enumerate(inputs):
        rows = given[port]
        keys = rows["_key"] if key is None else rows[key].cast(pa.string())
        columns = {
            # The key of rows without one is the empty text.
            "key": pc.fill_null(keys, ""),
            "partition": rows["_partition"],
            "offset": rows["_offset"],
            "time_us": rows["_time"].cast(pa.int64()),
            **{column(place, name): rows[name] for name in schema.names},
        }
        for batch in pa.table(columns).combine_chunks().to_batches():
            yield place, batch


def packed(rows: pa.Table) -> memoryview:
    """What comes of a batch, for the gate."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return memoryview(sink.getvalue())


def unpacked(payload: bytes) -> pa.Table:
    with pa.ipc.open_stream(payload) as stream:
        return stream.read_all()
