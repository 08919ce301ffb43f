"""Runs a group that has a user's DataFrame operator: Spark plans each batch of the group.

All elements are one DataFrame, whose rows are tagged with where they go (spark.tagged). Fogline's own
operators run in it by Arrow (spark.in_arrow).

At most one element of a group has state. Elements before it are part of the query; elements behind
it run on the collected rows (`_after`), since a second branch of the query would run the state twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession, functions as F

from pipeline_runtime.batch.facts import GroupFacts
from pipeline_runtime.batch.inputs import GroupInput
from pipeline_runtime.batch.processors import processor_inputs
from pipeline_runtime.batch.streams import behind
from pipeline_runtime.model.ids import DEAD
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.sdk import (
    DataFrameOperator,
    Operator,
    Processor,
    SinkOperator,
    SourceOperator,
    TransformOperator,
)
from pipeline_runtime.spark.in_arrow import META, apply_processor, apply_transform, key_column, quoted
from pipeline_runtime.spark.schema import column, source_schema
from pipeline_runtime.spark.tagged import stream_of

_JSON_OPTIONS = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


class PlannedGroup:
    """Compiles a group."""

    def __init__(self, group: GroupFacts) -> None:
        self._group = group
        self.spec = group.spec
        self._operators = group.operators
        self._ports = {item.id: dict(item.inputs) for item in group.spec.elements}
        self._stateful = group.stateful
        self._late = behind(group.spec, group.stateful)

    @property
    def output_mode(self) -> str:
        return self._operators[self._stateful].output_mode if self._stateful else "append"

    def frame(self, gated: DataFrame, gate_address: str) -> DataFrame:
        """The tagged frame of all elements that are not behind the stateful one. `gated`: the rows of all
        inputs, as spark.schema says."""
        elements = [id for id in self._operators if id not in self._late]
        streams = {item.source: self._input_frame(gated, item) for item in self._group.inputs}
        return self._tagged(streams, elements, gate_address)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows of all inputs."""
        return source_schema([item.schema for item in self._group.inputs])

    def completed(self, session: SparkSession, collected: pa.Table, batch_time_ms: int) -> pa.Table:
        """A batch's rows as the query gave them, in order, and with what the elements behind the stateful one
        make of them."""
        return self._after(session, self._in_order(collected), batch_time_ms)

    def _after(self, session: SparkSession, collected: pa.Table, batch_time_ms: int) -> pa.Table:
        if not self._late:
            return collected
        source = f"{self._stateful}.out"
        table = stream_of(collected, source, self.spec, batch_time_ms)
        if table.num_rows == 0:
            return collected
        frame = self._tagged({source: session.createDataFrame(table)}, self._late)
        return pa.concat_tables([collected, frame.toArrow().cast(collected.schema)])

    def _in_order(self, collected: pa.Table) -> pa.Table:
        """Those of Spark's own state by event time: Spark gives them in no order, and the readers of a key
        expect them one after the other."""
        if self._stateful is None or self._group.processor is not None:
            return collected
        mine = pc.equal(collected["_out"], f"{self._stateful}.out")
        others = collected.filter(pc.invert(mine))
        return pa.concat_tables([others, collected.filter(mine).sort_by("_time_ms")])

    # --- building

    def _input_frame(self, source: DataFrame, item: GroupInput) -> DataFrame:
        # One input needs no filter, so Spark plans a plain projection over the source.
        frame = source if len(self._group.inputs) == 1 else source.filter(F.col("_input") == item.index)
        columns = [quoted(column(item.index, name)).alias(name) for name in item.schema.names]
        return frame.select(*columns, *META, "_flush")

    def _tagged(
        self, streams: dict[str, DataFrame], elements: Sequence[str], gate_address: str = ""
    ) -> DataFrame:
        branches: list[DataFrame] = []
        for source, frame in streams.items():
            element = source.partition(".")[0]
            if source in self._group.needed and element != self._stateful:
                branches.append(self._encode(element, source, frame))
        for id in elements:
            operator = self._operators[id]
            if isinstance(operator, SourceOperator | SinkOperator) or f"{id}.out" in streams:
                continue
            if isinstance(operator, Processor):
                # It is the stateful one, so all that reads it is behind it and runs on its rows.
                frames = {port: streams[source] for port, source in self._ports[id].items()}
                if not operator.flushes:
                    frames = {port: _data_only(frame) for port, frame in frames.items()}
                inputs = processor_inputs(self.spec, id)
                branches.append(apply_processor(frames, id, inputs, gate_address))
                continue
            frame = self._apply(id, operator, streams)
            has_rejects = "_reject" in frame.columns
            leaves = f"{id}.out" in self._group.needed or (id == self._stateful and self._late)
            if leaves:
                branches.append(self._encode(id, f"{id}.out", frame))
            elif has_rejects:
                rejected = frame.filter(F.col("_reject").isNotNull())
                branches.append(self._encode(id, f"{id}.out", rejected))
            kept = frame.filter(F.col("_reject").isNull()) if has_rejects else frame
            streams[f"{id}.out"] = kept.drop("_reject", "_raw")
        return reduce(DataFrame.unionByName, branches)

    def _apply(self, id: str, operator: Operator, streams: dict[str, DataFrame]) -> DataFrame:
        frames = {port: streams[source] for port, source in self._ports[id].items()}
        schema, context = self.spec.schemas.get(f"{id}.out"), self._group.context(id)
        if isinstance(operator, DataFrameOperator) and operator.flushes:
            return _keyed(schema, operator.transform(frames, context))
        data = {port: _data_only(frame) for port, frame in frames.items()}
        if isinstance(operator, DataFrameOperator):
            result = _keyed(schema, operator.transform(data, context))
        else:
            assert isinstance(operator, TransformOperator), operator
            result = apply_transform(operator, data, context)
        if not self._group.flushes or id in self._late:
            return result
        # The rows that close a window at the end of its input go around what stands before it.
        for frame in frames.values():
            flush = frame.filter(F.col("_flush")).select("_time", "_flush")
            result = result.unionByName(flush, allowMissingColumns=True)
        return result.fillna({"_flush": False})

    def _encode(self, element: str, source: str, frame: DataFrame) -> DataFrame:
        schema = self.spec.schemas[source]
        frame = _data_only(frame)
        value = F.to_json(F.struct(*[quoted(name) for name in schema.names]), _JSON_OPTIONS)
        out = F.lit(source)
        if "_reject" in frame.columns:
            rejected = F.col("_reject").isNotNull()
            raw = F.coalesce(F.col("_raw"), value) if "_raw" in frame.columns else value
            out = F.when(rejected, F.lit(f"{element}.{DEAD}")).otherwise(out)
            known = [
                F.col(f"_{name}").alias(name)
                for name in ("partition", "offset", "key")
                if f"_{name}" in frame.columns
            ]
            known.append(F.unix_millis(F.col("_time")).alias("time_ms"))
            reason = F.struct(F.col("_reject").alias("reason"), raw.alias("raw"), *known)
            value = F.when(rejected, F.to_json(reason)).otherwise(value)
        return frame.select(
            out.alias("_out"),
            (F.col("_key") if "_key" in frame.columns else F.lit(None).cast("string")).alias("_key"),
            F.unix_millis(F.col("_time")).alias("_time_ms"),
            value.alias("_value"),
        )


def _keyed(schema: StreamSchema | None, frame: DataFrame) -> DataFrame:
    """`_key` as it would be read from the stream's topic: a group gives what its elements give apart."""
    if schema is None or schema.key is None:
        return frame
    return frame.withColumn("_key", key_column(schema, schema.key))


def _data_only(frame: DataFrame) -> DataFrame:
    if "_flush" not in frame.columns:
        return frame
    return frame.filter(~F.col("_flush")).drop("_flush")
