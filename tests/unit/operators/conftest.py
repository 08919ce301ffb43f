"""One Spark session for all operators' tests, and factories of frames and contexts."""

import json
import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_runtime.model.schema import Field, StreamSchema
from pipeline_runtime.operators.recording import arrow_type
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.operators.sdk import OperatorContext, SchemaMismatch
from pipeline_runtime.trial import SPARK, at
from tests.waiting import PATIENCE_S


@pytest.fixture(scope="session")
def registry():
    return default_registry()


@pytest.fixture
def spark():
    session = SPARK.session()
    assert session.conf.get("spark.sql.ansi.enabled") == "true"
    return session


def schema_of(key=None, **types):
    return StreamSchema(fields=tuple(Field(name=n, type=t) for n, t in types.items()), key=key)


def dicts(rows, schema):
    """Rows as tuples (seconds, *data columns) as `trial` takes them."""
    return [
        {"_time": at(seconds), **dict(zip(schema.names, values, strict=True))} for seconds, *values in rows
    ]


@pytest.fixture
def frame(spark):
    """A factory: rows as tuples (seconds, *data columns) of a schema become a batch frame with the meta
    columns, as the runtime gives it."""

    def make(schema, rows, **more):
        arrays = [
            pa.array([row[i + 1] for row in rows], arrow_type(field.type))
            for i, field in enumerate(schema.fields)
        ]
        times = pa.array([at(row[0]) for row in rows], pa.timestamp("us", "UTC"))
        keys = [None if schema.key is None else str(row[1 + schema.names.index(schema.key)]) for row in rows]
        meta = {
            "_key": pa.array(keys, pa.string()),
            "_time": times,
            "_batch_time": times,
            "_partition": pa.array([0] * len(rows), pa.int32()),
            "_offset": pa.array(range(len(rows)), pa.int64()),
        } | {name: pa.array(values) if isinstance(values, list) else values for name, values in more.items()}
        table = pa.table([*arrays, *meta.values()], names=[*schema.names, *meta])
        return spark.createDataFrame(table)

    return make


@pytest.fixture
def operator(registry):
    def make(type_, params=None, **options):
        return registry.create(type_, params or {}, **options)

    return make


@pytest.fixture
def run(frame, tmp_path):
    """Run a transform operator over rows; gives its output rows as dicts, ordered by time."""

    def of(operator, rows, schema, **more):
        inputs = {"in": schema} if isinstance(schema, StreamSchema) else schema
        given = {"in": rows} if isinstance(schema, StreamSchema) else rows
        output = operator.output_schema(inputs)
        context = OperatorContext("element", output, inputs, tmp_path, lambda reference: Path(reference))
        frames = {port: frame(inputs[port], given[port], **more) for port in inputs}
        result = operator.transform(frames, context)
        in_arrow = operator.arrow(context)
        if in_arrow is not None:
            made = in_arrow({port: each.toArrow() for port, each in frames.items()})
            assert_alike(made, result.toArrow(), output)
        assert set(result.columns) >= {*output.names, "_time"}
        for field in output.fields:
            assert result.toArrow().schema.field(field.name).type == arrow_type(field.type), field.name
        return result.toArrow().sort_by("_time").to_pylist()

    return of


def assert_alike(made, by_spark, output):
    """An operator's rows in Arrow are those that Spark makes; of a rejected one only the reason counts."""
    names = [*output.names, "_time", *(["_reject"] if "_reject" in by_spark.column_names else [])]
    rows = [made.to_pylist(), by_spark.to_pylist()]
    for each in rows:
        for row in each:
            row.setdefault("_reject", None)
    told = [
        [row["_reject"] if row["_reject"] is not None else [row[name] for name in names] for row in each]
        for each in rows
    ]
    assert told[0] == told[1]
    for field in output.fields:
        assert made.schema.field(field.name).type == arrow_type(field.type), field.name


@pytest.fixture
def stream(frame, spark, tmp_path):
    """Run a transform operator as a streaming query, one batch per list of rows (of each port, when the
    schemas are given by port); a batch whose `flush` is true has rows that only move the watermark."""

    def of(operator, schemas, batches, flush=None):
        inputs = {"in": schemas} if isinstance(schemas, StreamSchema) else schemas
        sources = {}
        for port, schema in inputs.items():
            work = Path(tempfile.mkdtemp(dir=tmp_path))
            for number, batch in enumerate(batches):
                rows = batch if isinstance(schemas, StreamSchema) else batch[port]
                flushing = flush is not None and flush[number]
                table = frame(schema, rows, _flush=pa.array([flushing] * len(rows), pa.bool_())).toArrow()
                pq.write_table(table, work / f"{number}.parquet")
                os.utime(work / f"{number}.parquet", (number, number))
            source = spark.readStream.schema(spark.read.parquet(str(work)).schema)
            sources[port] = source.option("maxFilesPerTrigger", 1).parquet(str(work))
        context = OperatorContext("e", operator.output_schema(inputs), inputs, tmp_path, Path)
        found = []
        query = (
            operator.transform(sources, context)
            .writeStream.outputMode(operator.output_mode)
            .option("checkpointLocation", tempfile.mkdtemp(dir=tmp_path))
            .trigger(availableNow=True)
            .foreachBatch(lambda batch, _: found.extend(batch.toArrow().to_pylist()))
            .start()
        )
        assert query.awaitTermination(PATIENCE_S)
        return sorted(found, key=lambda row: row["_time"])

    return of


@pytest.fixture
def context(tmp_path):
    def make(operator, **inputs):
        return OperatorContext(
            "element", operator.output_schema(inputs), inputs, tmp_path, lambda ref: tmp_path / ref
        )

    return make


class RecordedTimers:
    """Timers as the runtime keeps them for one key."""

    def __init__(self):
        self.times = set()

    def set(self, time_ms):
        self.times.add(time_ms)

    def cancel(self, time_ms):
        self.times.discard(time_ms)


@pytest.fixture
def process():
    return keyed_output


def keyed_output(operator, rows, key="k"):
    """What a keyed processor makes of (seconds, row) pairs of one key: as in the runtime, timers that a row's
    time has reached fire before the row. The state is put away as JSON after each row, as behind a batch of
    one."""
    state, timers, output = {}, RecordedTimers(), []
    for seconds, row in rows:
        now_ms = int(at(seconds).timestamp() * 1000)
        for time_ms in sorted(t for t in timers.times if t <= now_ms):
            timers.cancel(time_ms)
            output += operator.on_timer(key, time_ms, state, timers)
        output += operator.process(key, {**row, "_time": at(seconds)}, state, timers)
        state = json.loads(json.dumps(state))
    json.dumps(output, default=str, allow_nan=False)  # as on its way to the topic
    return output


@pytest.fixture
def mismatch():
    """The paths of all that an operator's output_schema complains about."""

    def of(operator, **inputs):
        with pytest.raises(SchemaMismatch) as caught:
            operator.output_schema(inputs)
        return [caught.value.path, *(fault.path for fault in caught.value.more)]

    return of
