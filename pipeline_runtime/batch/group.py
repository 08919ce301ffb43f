"""Runs a group's batches, one after the other, in a Spark task that ends with the query.

For each batch Spark would make a plan, call the sink, start a task, and carry the rows from one Python
process to Java and on to the next. A group of Fogline's own operators needs none of that. Its operators are
Python over Arrow tables, the gate grants what they read, and the replica keeps their state. So the task
stays: it asks the gate for the rows of one batch after another, and gives it what each batch makes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.batch.encoded import with_bodies
from pipeline_runtime.batch.facts import GroupFacts
from pipeline_runtime.batch.gate_client import GateClient
from pipeline_runtime.batch.gate_messages import FLUSH, PartProcessed, Slice, SlicesOf
from pipeline_runtime.batch.held_states import HeldStates
from pipeline_runtime.batch.output import BatchOutput, Destinations, OutputBuilder, packed
from pipeline_runtime.batch.processors import processor_work
from pipeline_runtime.batch.reader import GroupReader, conformed, input_schema, with_meta
from pipeline_runtime.batch.rows import Asked, Processed, ProcessorWork
from pipeline_runtime.batch.written import as_written
from pipeline_runtime.operators.sdk import TransformOperator
from pipeline_runtime.operators.tables import with_column


def run_batches(gate: GateClient, work: GroupWork, token: int, task: int) -> None:
    """Run one batch after another, until the gate lets go of the task."""
    try:
        while (slices := gate.ask(SlicesOf(token, task))) is not None:
            output = work.run(slices, task)
            if not any(part.followed for part in slices):  # else nobody writes it
                output = with_bodies(as_written(output, work.spec, work.registries), work.encoded_here)
            # The gate answers one request after the other, so the next batch can be asked for at once.
            gate.tell(PartProcessed(task, packed(output)))
    finally:
        work.stop()


class GroupWork:
    """All elements of a group that has no DataFrame."""

    def __init__(self, gate: Asked, reader: GroupReader) -> None:
        self._gate = gate
        self._reader = reader
        self.registries = reader.registries
        self.spec = spec = reader.spec
        facts = GroupFacts(spec, reader.files, reader.directory)
        self._transforms = {
            id: operator.arrow(facts.context(id))
            for id, operator in facts.operators.items()
            if isinstance(operator, TransformOperator)
        }
        self._processor_id = facts.processor
        # In topological order.
        self._elements = [id for id in facts.operators if id in self._transforms or id == self._processor_id]
        self._destinations = Destinations.of(spec)
        own = self._destinations.own_partitions
        self.encoded_here = {source for source, partitions in own.items() if partitions == 1}
        self._ports = {item.id: dict(item.inputs) for item in spec.elements}
        self._read_inside = {source for id in self._elements for source in self._ports[id].values()}
        self._processor: ProcessorWork | None = None
        if self._processor_id is not None:
            self._processor = processor_work(
                spec, self._processor_id, reader.files, reader.directory, HeldStates()
            )

    def run(self, slices: Sequence[Slice], task: int) -> BatchOutput:
        """Read a batch's rows, run all elements on them, and return what they make."""
        output = OutputBuilder(self._destinations)
        self._reader.expect(slices)
        read = self._read(slices)
        streams = {source: output.add(source, rows) for source, rows in read.items()}
        batch_time_ms = slices[0].batch_time_ms if slices else 0
        at_end = any(part.input == FLUSH for part in slices)
        for id in self._elements:
            source = f"{id}.out"
            if source in streams:  # what the group reads from outside
                continue
            given = {port: streams[each] for port, each in self._ports[id].items()}
            if id == self._processor_id:
                made = self._processed(given, task, at_end=at_end, batch_time_ms=batch_time_ms)
                output.reject(id, made.letters)
                rows = made.rows
                if source in self._read_inside:
                    rows = with_meta(rows, batch_time_ms)
            else:
                schema = self.spec.schemas[source]
                rows = conformed(self._transforms[id](given), schema)
            streams[source] = output.add(source, rows, new_keys=id != self._processor_id)
        return output.output()

    def stop(self) -> None:
        """Nothing is read ahead any more."""
        self._reader.stop()

    def _read(self, slices: Sequence[Slice]) -> dict[str, pa.Table]:
        """Returns the rows of each input, by its stream."""
        streams = {}
        for item in self._reader.inputs:
            mine = [part for part in slices if part.input == item.index]
            parts = [rows for part in mine for rows in self._reader.read(part)]
            streams[item.source] = (
                pa.concat_tables(parts) if parts else input_schema(item.schema).empty_table()
            )
        self._reader.go_on()
        return streams

    def _processed(
        self, given: Mapping[str, pa.Table], task: int, *, at_end: bool, batch_time_ms: int
    ) -> Processed:
        assert self._processor is not None
        # A processor is given the empty text as the key of a row without one.
        ports = {
            port: with_column(rows, "_key", pc.coalesce(rows["_key"], ""))
            if rows["_key"].null_count
            else rows
            for port, rows in given.items()
        }
        return self._processor.process(ports, self._gate, task, at_end=at_end, batch_time_ms=batch_time_ms)
