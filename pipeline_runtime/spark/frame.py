"""A group's elements as one DataFrame whose rows are tagged with where they go (see spark.tagged).

At most one element of a group has state. Elements before it are part of the query; elements behind
it run on the collected rows (`after`), since a second branch of the query would run the state twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession, functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

from pipeline_runtime.batch.group import partitions_apart, staying
from pipeline_runtime.batch.inputs import GroupInput, group_inputs, operator_context, operator_of
from pipeline_runtime.batch.processors import processor_inputs
from pipeline_runtime.batch.streams import behind, needed_streams, sink_streams
from pipeline_runtime.model.ids import DEAD
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.sdk import (
    Operator,
    Processor,
    SinkOperator,
    SourceOperator,
    TransformOperator,
)
from pipeline_runtime.spark.handed_over import apply_processor
from pipeline_runtime.spark.schema import column, source_schema, spark_schema
from pipeline_runtime.spark.source import FORMAT
from pipeline_runtime.spark.tagged import TAGGED, stream_of

_JSON_OPTIONS = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
_DATA_META = ("_key", "_time", "_batch_time", "_partition", "_offset")


class GroupFrame:
    """Compiles one group. `files`: file reference -> local path; `directory`: the replica's."""

    def __init__(self, spec: GroupSpec, files: Mapping[str, str], directory: Path) -> None:
        self.spec = spec
        self.inputs: tuple[GroupInput, ...] = group_inputs(spec)
        self._files = files
        self._directory = directory
        self._operators: dict[str, Operator] = {item.id: operator_of(spec, item.id) for item in spec.elements}
        self._ports = {item.id: dict(item.inputs) for item in spec.elements}
        stateful = [id for id, operator in self._operators.items() if operator.stateful]
        self._stateful = stateful[0] if stateful else None
        self._late = behind(spec, self._stateful)
        self._staying = staying(spec, files, directory)
        # Here, since each batch asks for them.
        self.sinks = sink_streams(spec)
        self._needed = needed_streams(spec)

    @property
    def output_mode(self) -> str:
        return self._operators[self._stateful].output_mode if self._stateful else "append"

    @property
    def processor(self) -> str | None:
        """Its processor, if it has one: then the replica keeps the group's state, and Spark none."""
        found = self._stateful is not None and isinstance(self._operators[self._stateful], Processor)
        return self._stateful if found else None

    @property
    def resident(self) -> bool:
        """Whether its batches are run by tasks that stay (batch.group)."""
        return self._staying is not None

    @property
    def stateful(self) -> bool:
        return self._stateful is not None

    @property
    def kept_by_replica(self) -> bool:
        """Its state, or only where it stands: nothing that Spark writes of it is of use, then."""
        return self.processor is not None or self.resident

    @property
    def tasks_max(self) -> int:
        """How many may share a batch: each has whole partitions."""
        return partitions_apart(self.spec, self.inputs, self.processor)

    @property
    def flushes(self) -> bool:
        return any(operator.flushes for operator in self._operators.values())

    def open_sink(self, element: str):  # type: ignore[no-untyped-def]
        operator = self._operators[element]
        assert isinstance(operator, SinkOperator)
        return operator.open(self._context(element))

    def query_frame(self, session: SparkSession, gate_address: str) -> DataFrame:
        """The streaming frame of all elements that are not behind the stateful one; that of a resident group
        has no rows, as the gate gets them."""
        gated = session.readStream.format(FORMAT).option("gate", gate_address)
        if self.resident:
            return gated.schema(spark_schema(TAGGED)).load()
        elements = [id for id in self._operators if id not in self._late]
        return self._tagged(self._streams(gated), elements, gate_address)

    def after(self, session: SparkSession, collected: pa.Table, batch_time_ms: int) -> pa.Table:
        """Run the elements behind the stateful one on its collected rows; adds theirs to the table."""
        source = f"{self._stateful}.out"
        table = stream_of(collected, source, self.spec, batch_time_ms)
        if table.num_rows == 0:
            return collected
        frame = self._tagged({source: session.createDataFrame(table)}, list(self._late))
        return pa.concat_tables([collected, frame.toArrow().cast(collected.schema)])

    def in_order(self, collected: pa.Table) -> pa.Table:
        """The collected rows with those of Spark's own state by event time: Spark gives them in no
        order, and the readers of a key expect them one after the other."""
        if self._stateful is None or self.processor is not None:
            return collected
        mine = pc.equal(collected["_out"], f"{self._stateful}.out")
        others = collected.filter(pc.invert(mine))
        return pa.concat_tables([others, collected.filter(mine).sort_by("_time_ms")])

    @property
    def has_late_elements(self) -> bool:
        """Whether `after` has something to do."""
        run = self._staying.elements if self._staying is not None else ()
        return not set(self._late) <= set(run)

    # --- building

    def _streams(self, gated: DataStreamReader) -> dict[str, DataFrame]:
        """Of the group's inputs."""
        source = gated.schema(spark_schema(source_schema([item.schema for item in self.inputs]))).load()
        return {item.source: self._input_frame(source, item) for item in self.inputs}

    def _input_frame(self, source: DataFrame, item: GroupInput) -> DataFrame:
        # One input needs no filter, so Spark plans a plain projection over the source.
        frame = source if len(self.inputs) == 1 else source.filter(F.col("_input") == item.index)
        columns = [F.col(column(item.index, name)).alias(name) for name in item.schema.names]
        return frame.select(*columns, *_DATA_META, "_flush")

    def _tagged(
        self, streams: dict[str, DataFrame], elements: list[str], gate_address: str = ""
    ) -> DataFrame:
        branches: list[DataFrame] = []
        for source, frame in streams.items():
            element = source.partition(".")[0]
            if source in self._needed and element != self._stateful:
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
                branches.append(apply_processor(operator, frames, id, inputs, gate_address))
                continue
            frame = self._apply(id, operator, streams)
            has_rejects = "_reject" in frame.columns
            leaves = f"{id}.out" in self._needed or (id == self._stateful and self._late)
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
        assert isinstance(operator, TransformOperator), operator
        if operator.flushes:
            return operator.transform(frames, self._context(id))
        data = {port: _data_only(frame) for port, frame in frames.items()}
        result = _keyed(self.spec.schemas.get(f"{id}.out"), operator.transform(data, self._context(id)))
        if not self.flushes or id in self._late:
            return result
        # The rows that close a window at the end of its input go around what stands before it.
        for frame in frames.values():
            flush = frame.filter(F.col("_flush")).select("_time", "_flush")
            result = result.unionByName(flush, allowMissingColumns=True)
        return result.fillna({"_flush": False})

    def _context(self, id: str):  # type: ignore[no-untyped-def]
        return operator_context(self.spec, id, self._files, self._directory)

    def _encode(self, element: str, source: str, frame: DataFrame) -> DataFrame:
        schema = self.spec.schemas[source]
        frame = _data_only(frame)
        value = F.to_json(F.struct(*[F.col(name) for name in schema.names]), _JSON_OPTIONS)
        key = _key_column(schema, frame)
        out = F.lit(source)
        if "_reject" in frame.columns:
            rejected = F.col("_reject").isNotNull()
            raw = F.col("_raw") if "_raw" in frame.columns else value
            out = F.when(rejected, F.lit(f"{element}.{DEAD}")).otherwise(out)
            reason = F.struct(F.col("_reject").alias("reason"), raw.alias("raw"))
            value = F.when(rejected, F.to_json(reason)).otherwise(value)
        return frame.select(
            out.alias("_out"),
            key.alias("_key"),
            F.unix_millis(F.col("_time")).alias("_time_ms"),
            value.alias("_value"),
        )


def _key_column(schema: StreamSchema, frame: DataFrame):  # type: ignore[no-untyped-def]
    if schema.key is not None:
        return F.col(schema.key).cast("string")
    return F.col("_key") if "_key" in frame.columns else F.lit(None).cast("string")


def _keyed(schema: StreamSchema | None, frame: DataFrame) -> DataFrame:
    """`_key` as it would be read from the stream's topic: a group gives what its elements give apart."""
    if schema is None or schema.key is None:
        return frame
    return frame.withColumn("_key", _key_column(schema, frame))


def _data_only(frame: DataFrame) -> DataFrame:
    if "_flush" not in frame.columns:
        return frame
    return frame.filter(~F.col("_flush")).drop("_flush")
