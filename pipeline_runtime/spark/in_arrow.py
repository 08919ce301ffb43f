"""Fogline's own operators in a DataFrame: Spark hands them its rows as Arrow columns (`mapInArrow`).

That is how they run in a group whose batches Spark plans (spark.planned): in its Python processes. A
processor asks the gate for the states that it needs, and tells the gate what becomes of them: the replica
keeps the states, not Spark (see checkpoint.keyed_state).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, functions as F
from pyspark.sql.pandas.functions import arrow_udf

from pipeline_runtime.batch.decode import TIMESTAMP
from pipeline_runtime.batch.gate_client import GateClient, gate, is_connected
from pipeline_runtime.batch.gate_messages import Describe
from pipeline_runtime.batch.processors import processor_inputs, processor_work
from pipeline_runtime.batch.reader import input_schema
from pipeline_runtime.batch.rows import Inputs, Ports, ProcessorWork, keyed, port_schema
from pipeline_runtime.garbage import freeze
from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.model.texts import texts
from pipeline_runtime.operators.sdk import OperatorContext, TransformOperator
from pipeline_runtime.operators.tables import RAW, REJECT
from pipeline_runtime.spark.schema import column, spark_schema
from pipeline_runtime.spark.tagged import tagged

META = ("_key", "_time", "_batch_time", "_partition", "_offset")
_OUTPUT = "_out string, _key string, _time_ms long, _value string"


def apply_processor(
    frames: Mapping[str, DataFrame],
    element: str,
    inputs: Inputs,
    gate_address: str,
) -> DataFrame:
    """`frames`: data columns and meta columns of each port, with `_flush` where the group has that. Gives the
    tagged columns of spark.tagged."""
    rows = [
        frames[port].select(
            # The key of rows without one is the empty text.
            F.coalesce(F.col("_key"), F.lit("")).alias("key"),
            F.lit(index).alias("port"),
            F.col("_partition").alias("partition"),
            F.col("_offset").alias("offset"),
            F.unix_micros("_time").alias("time_us"),
            (F.col("_flush") if "_flush" in frames[port].columns else F.lit(False)).alias("flush"),
            *[quoted(name).alias(column(index, name)) for name in schema.names],
        )
        for index, (port, schema) in enumerate(inputs)
    ]
    # One task has all rows of a key, whatever partitions they come from; nothing is shuffled for it, since a
    # second stage would cost each batch 17 ms.
    frame = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), rows).coalesce(1)
    return frame.mapInArrow(_body(gate_address, element), _OUTPUT)


def _body(address: str, element: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def process(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # By its name: Spark sends what is in here for each batch, with all that it refers to.
        from pipeline_runtime.spark.in_arrow import process_batches

        return process_batches(address, element, batches)

    return process


def apply_transform(
    operator: TransformOperator, frames: Mapping[str, DataFrame], ctx: OperatorContext
) -> DataFrame:
    """`frames`: data columns and meta columns of each port. Gives the data columns of the operator's output,
    meta columns, `_reject` and `_raw`."""
    rows = [
        frame.select(
            F.lit(place).alias("_port"),
            *META,
            *[quoted(name).alias(column(place, name)) for name in ctx.input_schemas[port].names],
        )
        for place, (port, frame) in enumerate(frames.items())
    ]
    frame = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), rows)
    ports = tuple(frames)

    def process(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pipeline_runtime.spark.in_arrow import transformed  # as in `_body`

        return transformed(operator, ports, ctx, batches)

    return frame.mapInArrow(process, spark_schema(_transformed_schema(ctx.output_schema)))


def _transformed_schema(schema: StreamSchema) -> pa.Schema:
    return pa.schema([*input_schema(schema), (REJECT, pa.string()), (RAW, pa.string())])


def quoted(name: str) -> Column:
    """The column of that name, whatever characters it has."""
    return F.col("`" + name.replace("`", "``") + "`")


def key_column(schema: StreamSchema, name: str) -> Column:
    """The text of a column, as it is the key of a record."""
    field = schema.field(name)
    type_ = FieldType.STRING if field is None else field.type
    if type_ in (FieldType.NUMBER, FieldType.TIMESTAMP):  # Spark's text would be another one
        of_arrow: Column = arrow_udf(_texts, "string")(quoted(name))  # type: ignore[call-overload]
        return of_arrow
    return quoted(name).cast("string")


def _texts(values: pa.Array) -> pa.Array:
    return texts(values)  # Spark goes by the types that are written here


# -- a batch, in Spark's Python process --------------------------------------------------------------


def transformed(
    operator: TransformOperator, ports: Sequence[str], ctx: OperatorContext, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rows as `apply_transform` selects them, to its columns."""
    function, wanted = operator.arrow(ctx), _transformed_schema(ctx.output_schema)
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        given = {}
        for place, port in enumerate(ports):
            mine = rows.filter(pc.equal(rows["_port"], place))
            data = {name: mine[column(place, name)] for name in ctx.input_schemas[port].names}
            given[port] = pa.table({**data, **{name: mine[name] for name in META}})
        made = keyed(function(given), ctx.output_schema)
        for name in (REJECT, RAW):
            if name not in made.column_names:
                made = made.append_column(name, pa.nulls(made.num_rows, pa.string()))
        yield from made.select(wanted.names).cast(wanted).to_batches()


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
