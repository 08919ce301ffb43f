"""Hands a group's processor its rows, where Spark runs other elements of the group before it.

Spark hands them over as Arrow columns (`mapInArrow`), batch by batch, to one of its Python processes. That
process asks the gate for the states that it needs, and tells the gate what becomes of them: the replica keeps
the states, not Spark (see checkpoint.keyed_state). Where the group has no such element, the process has the
rows from the gate itself (see batch.group).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, functions as F

from pipeline_runtime.batch.decode import TIMESTAMP
from pipeline_runtime.batch.gate_client import GateClient, gate, is_connected
from pipeline_runtime.batch.gate_messages import Describe
from pipeline_runtime.batch.processors import processor_inputs, processor_work
from pipeline_runtime.batch.rows import Inputs, Ports, ProcessorWork, port_schema
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.sdk import KeyedProcessor, Processor
from pipeline_runtime.spark.garbage import freeze
from pipeline_runtime.spark.schema import column
from pipeline_runtime.spark.tagged import tagged

_OUTPUT = "_out string, _key string, _time_ms long, _value string"


def apply_processor(
    processor: Processor,
    frames: Mapping[str, DataFrame],
    element: str,
    inputs: Inputs,
    gate_address: str,
) -> DataFrame:
    """`frames`: data columns and meta columns of each port, with `_flush` where the group has that. Gives the
    tagged columns of spark.frame."""
    rows = [
        frames[port].select(
            # The key of rows without one is the empty text.
            F.coalesce(_key(processor), F.lit("")).alias("key"),
            F.lit(index).alias("port"),
            F.col("_partition").alias("partition"),
            F.col("_offset").alias("offset"),
            F.unix_micros("_time").alias("time_us"),
            (F.col("_flush") if "_flush" in frames[port].columns else F.lit(False)).alias("flush"),
            *[F.col(name).alias(column(index, name)) for name in schema.names],
        )
        for index, (port, schema) in enumerate(inputs)
    ]
    # One task has all rows of a key, whatever partitions they come from; nothing is shuffled for it, since a
    # second stage would cost each batch 17 ms.
    frame = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), rows).coalesce(1)
    return frame.mapInArrow(_body(gate_address, element), _OUTPUT)


def _key(processor: Processor):  # type: ignore[no-untyped-def]
    field = processor.key_field() if isinstance(processor, KeyedProcessor) else None
    return F.col(field).cast("string") if field is not None else F.col("_key")


def _body(address: str, element: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def process(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # By its name: what is in here is made anew in each batch, with all that it refers to.
        from pipeline_runtime.spark.handed_over import process_batches

        return process_batches(address, element, batches)

    return process


# -- a batch, in Spark's Python process --------------------------------------------------------------


def process_batches(
    address: str, element: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """One batch's rows, as `apply_processor` selects them, to `_OUTPUT`."""
    client = gate(address)
    arrived = list(batches)
    at_end = any(pc.any(batch["flush"]).as_py() for batch in arrived)
    work, spec = _work(client, address, element)
    made = work.process(by_port(arrived, processor_inputs(spec, element)), client, at_end=at_end)
    rows = tagged(element, made, spec.schemas[f"{element}.out"])
    if rows.num_rows:
        yield from rows.to_batches()


def by_port(batches: Sequence[pa.RecordBatch], inputs: Inputs) -> Ports:
    """The rows that hold data, of rows as `apply_processor` selects them."""
    rows = pa.Table.from_batches(batches) if batches else None
    data = None if rows is None else rows.filter(pc.invert(rows["flush"]))
    ports = {}
    for place, (port, schema) in enumerate(inputs):
        target = port_schema(schema)
        if data is None:
            ports[port] = target.empty_table()
            continue
        mine = data.filter(pc.equal(data["port"], place))
        columns = [mine[column(place, name)] for name in schema.names]
        columns += [mine["key"], mine["time_us"].cast(TIMESTAMP), mine["partition"], mine["offset"]]
        ports[port] = pa.table(columns, schema=target)
    return ports


_works: dict[tuple[str, str], tuple[ProcessorWork, GroupSpec]] = {}


def _work(client: GateClient, address: str, element: str) -> tuple[ProcessorWork, GroupSpec]:
    """This worker process's work for that gate, and its group."""
    found = _works.get((address, element))
    if found is None:
        # Spark uses its worker processes for all groups: those that have left the node are dropped here.
        departed = [key for key in _works if not is_connected(key[0])]
        for each in departed:
            del _works[each]
        group = client.ask(Describe())
        spec = GroupSpec.model_validate(group.spec)
        work = processor_work(spec, element, group.files, Path(group.directory))
        found = _works[address, element] = work, spec
        freeze(dropped=bool(departed))
    return found
