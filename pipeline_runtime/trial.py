"""Runs an operator over rows as a node would, without Kafka, for the operator's tests.

    rows = [{"_time": at(0), "value": 1.0}, {"_time": at(1), "value": 3.0}]
    trial(Difference(DifferenceParams(column="value")), rows, schema).rows

With a `seed`, the rows are cut into batches at random. Between batches the state moves, as it does when the
element is migrated: it is written down and read by a new operator. A repeatable operator gives the same rows.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.expressions.casts import text_of
from pipeline_runtime.operators.recording import arrow_type
from pipeline_runtime.operators.sdk import (
    DataFrameOperator,
    Operator,
    OperatorContext,
    Processor,
    TransformOperator,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline_runtime.batch.gate_messages import KeepStates, Request

START = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
Row = Mapping[str, Any]
A = TypeVar("A")
_ELEMENT = "element"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PATIENCE_S = 600
TIMES_US = pa.timestamp("us", "UTC")


def at(seconds: float) -> datetime:
    """Returns the event time so many seconds after the beginning of a trial."""
    return START + timedelta(seconds=seconds)


@dataclass
class Outcome:
    # the rows it gives, in order, each with its `_time`
    """What an operator has made of the rows of a trial."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)  # the reasons of the rows in its dead letters


def trial(
    operator: Operator,
    rows: Iterable[Mapping[str, Any]],
    schema: StreamSchema,
    *,
    others: Mapping[str, tuple[Iterable[Mapping[str, Any]], StreamSchema]] | None = None,
    seed: int | None = None,
) -> Outcome:
    """Runs the operator over `rows` and returns its outcome.

    `rows` are those of the first input, with data columns and `_time`, in the order of their offsets.
    `others` holds the rows of further inputs. Without a `seed` all rows are one batch. With one, the order of
    the inputs is random, too.

    Transforms and processors need no Spark; for a processor that `flushes`, the input ends after the rows.
    Operators with a DataFrame start Spark once, and have one input. Raises TypeError for other operators: use
    `trial_source` or `trial_sink` (trial_io.py) for a source or a sink.
    """
    first, *_ = operator.inputs
    given = {first.name: (list(rows), schema)}
    given |= {port: (list(more), each) for port, (more, each) in (others or {}).items()}
    schemas = {port: each for port, (_, each) in given.items()}
    resolved = type(operator)(operator.resolve(schemas), operator.describe_file)
    batches = _cut({port: each for port, (each, _) in given.items()}, seed)
    if isinstance(resolved, Processor):
        return processed(resolved, batches, schemas)
    if isinstance(resolved, TransformOperator):
        return _transformed(resolved, batches, schemas)
    if isinstance(resolved, DataFrameOperator) and not others:
        return _by_spark(resolved, [batch[first.name] for batch in batches], schema, moves=seed is not None)
    raise TypeError(f"{operator.type} gives no rows, or has a DataFrame and several inputs")


def _cut(inputs: Mapping[str, Sequence[Row]], seed: int | None) -> Iterator[dict[str, Sequence[Row]]]:
    """Yields batches: the rows by port."""
    if seed is None:
        yield dict(inputs)
        return
    chance, left = random.Random(seed), dict(inputs)
    while left := {port: rows for port, rows in left.items() if rows}:
        more = {port: chance.choice([0, 1, 1, 2, 3, 5, 8, 20]) for port in left}
        batch = {port: rows[: more[port]] for port, rows in left.items()}
        if any(batch.values()):
            yield batch
        left = {port: rows[more[port] :] for port, rows in left.items()}


def _key(operator_key: str | None, row: Mapping[str, Any], schema: StreamSchema) -> str:
    name = operator_key or schema.key
    return text_of(row[name] if name is not None else None) or ""


# -- processors --------------------------------------------------------------------------------------


class StatesInMemory:
    """Implements batch.rows.Asked for states, as a replica does whose batches are committed at once."""

    def __init__(self) -> None:
        self.kept: dict[str | None, bytes] = {}

    def ask(self, request: Request[A]) -> A:
        keeper: Any = self  # of the keeper's methods it has those for states
        return request.answered_by(keeper)

    def tell(self, request: Request[None]) -> None:
        self.ask(request)

    def states_of(self, keys: Sequence[str | None], task: int) -> list[bytes | None]:
        return [self.kept.get(key) for key in keys]

    def states_between(self, first: str, end: str) -> list[tuple[str, bytes]]:
        return [(key, self.kept[key]) for key in self._keys(first, end)]

    def keys_between(self, first: str, end: str, most: int) -> list[str]:
        return self._keys(first, end)[:most]

    def keep_states(self, kept: KeepStates) -> None:
        for key, data in zip(kept.keys, kept.states, strict=True):
            self.kept.pop(key, None)
            if data is not None:
                self.kept[key] = data

    def _keys(self, first: str, end: str) -> list[str]:
        return sorted(key for key in self.kept if key is not None and first <= key < end)


def processed(
    operator: Processor,
    batches: Iterable[Mapping[str, Sequence[Row]]],
    schemas: Mapping[str, StreamSchema],
    *,
    ends: bool = True,
    times_ms: Sequence[int] = (),
    states: StatesInMemory | None = None,
) -> Outcome:
    """Run a processor on batches, each with the rows of each port, and on the input's end if it `flushes` and
    `ends` is true. Each batch gets a new operator with the state that the one before has left. A row may say
    its `_partition`, an integer. `times_ms` says when each batch begins; without it all begin at 0.
    The states of keys are read from `states` and left there."""
    from pipeline_runtime.batch.processors import work_of

    inputs = [(port.name, schemas[port.name]) for port in operator.inputs if port.name in schemas]
    states, found, output = states or StatesInMemory(), Outcome(), operator.output_schema(schemas)
    with tempfile.TemporaryDirectory() as directory:
        context = OperatorContext(_ELEMENT, output, schemas, Path(directory), Path)
        offset = 0
        end: list[Mapping[str, Sequence[Row]]] = [{}] if ends and operator.flushes else []
        for batch, time_ms in zip([*batches, *end], chain(times_ms, repeat(0))):  # noqa: B905 - one is endless
            ports = {}
            for port, schema in inputs:
                ports[port] = port_table(batch.get(port, ()), schema, offset)
                offset += ports[port].num_rows
            moved = type(operator)(operator.params, operator.describe_file)
            made = work_of(moved, inputs, context).process(
                ports, states, at_end=not batch, batch_time_ms=time_ms
            )
            found.rows += made.rows.drop_columns("_key").to_pylist()
            found.rejected += [letter.reason for letter in made.letters]
    return found


def port_table(rows: Sequence[Row], schema: StreamSchema, offset: int = 0) -> pa.Table:
    """Rows as a processor's port has them (batch.rows.Ports); the first one lies at `offset`."""
    table = table_of(rows, schema)
    columns = {
        "_key": pa.array([_key(None, row, schema) for row in rows], pa.string()),
        "_time": table["_time"],
        "_partition": pa.array([row.get("_partition", 0) for row in rows], pa.int32()),
        "_offset": pa.array(range(offset, offset + len(rows)), pa.int64()),
    }
    return pa.table({**{name: table[name] for name in schema.names}, **columns})


# -- transforms --------------------------------------------------------------------------------------


def _transformed(
    operator: TransformOperator,
    batches: Iterable[Mapping[str, Sequence[Row]]],
    schemas: Mapping[str, StreamSchema],
) -> Outcome:
    output, found = operator.output_schema(schemas), Outcome()
    context = OperatorContext(_ELEMENT, output, schemas, Path(), Path)
    for batch in batches:
        given = {port: _with_meta(batch.get(port, ()), schema) for port, schema in schemas.items()}
        for row in operator.arrow(context)(given).to_pylist():
            _take_row(found, row, output)
    return found


def _take_row(found: Outcome, row: Mapping[str, Any], output: StreamSchema) -> None:
    if row.get("_reject") is not None:
        found.rejected.append(row["_reject"])
    else:
        found.rows.append({name: row[name] for name in (*output.names, "_time")})


# -- operators with a DataFrame ----------------------------------------------------------------------


def _by_spark(
    operator: DataFrameOperator,
    batches: Sequence[Sequence[Mapping[str, Any]]],
    schema: StreamSchema,
    moves: bool,
) -> Outcome:
    """Runs a streaming query with one file for each batch. With `moves`, each batch has a query of its own,
    which goes on from a copy of the state of the one before."""
    found = Outcome()
    with tempfile.TemporaryDirectory() as directory:
        work, left = Path(directory), Path(directory) / "state"
        for number, batch in enumerate(batches):
            _write(work / "rows" / f"{number}.parquet", batch, schema)
            state = work / f"state-{number}"
            if moves and left.exists():
                shutil.copytree(left, state)
            moved = type(operator)(operator.params, operator.describe_file)
            _run(moved, work, state, schema, found)
            left = state
    return found


def _write(path: Path, batch: Sequence[Mapping[str, Any]], schema: StreamSchema) -> None:
    import pyarrow.parquet as pq

    path.parent.mkdir(exist_ok=True)
    rows = _with_meta(batch, schema)
    flush = pa.array([False] * len(batch), pa.bool_())
    pq.write_table(rows.append_column("_flush", flush), path)


def _with_meta(batch: Sequence[Mapping[str, Any]], schema: StreamSchema) -> pa.Table:
    """The rows as an operator is given them."""
    table = table_of(batch, schema)
    keys = [None if schema.key is None else _key(None, row, schema) for row in batch]
    meta = {
        "_key": pa.array(keys, pa.string()),
        "_batch_time": table["_time"],
        "_partition": pa.array([0] * len(batch), pa.int32()),
        "_offset": pa.array(range(len(batch)), pa.int64()),
    }
    for name, values in meta.items():
        table = table.append_column(name, values)
    return table


def table_of(rows: Sequence[Row], schema: StreamSchema) -> pa.Table:
    """Returns a table with the data columns and `_time`."""
    columns = {
        each.name: pa.array([row.get(each.name) for row in rows], arrow_type(each.type))
        for each in schema.fields
    }
    return pa.table({**columns, "_time": pa.array([row["_time"] for row in rows], TIMES_US)})


def _run(operator: DataFrameOperator, work: Path, state: Path, schema: StreamSchema, found: Outcome) -> None:
    spark = SPARK.session()
    source = spark.readStream.schema(spark.read.parquet(str(work / "rows")).schema)
    frame = source.option("maxFilesPerTrigger", 1).parquet(str(work / "rows"))
    if not operator.flushes:
        frame = frame.drop("_flush")
    output = operator.output_schema({"in": schema})
    context = OperatorContext(_ELEMENT, output, {"in": schema}, work, Path)

    def take(batch: Any, _: int) -> None:
        # The rows of a batch have no order of their own.
        for row in batch.toArrow().sort_by("_time").to_pylist():
            _take_row(found, row, output)

    query = (
        operator.transform({"in": frame}, context)
        .writeStream.outputMode(operator.output_mode)
        .option("checkpointLocation", str(state))
        .trigger(availableNow=True)
        .foreachBatch(take)
        .start()
    )
    if not query.awaitTermination(_PATIENCE_S):
        query.stop()
        raise TimeoutError(f"Spark was not done with a batch after {_PATIENCE_S} s")


class TrialSpark:
    """A session with settings of its own in this process's Spark. It shares the Spark that runs already,
    since a process has only one; if that was stopped, it starts a new one."""

    def __init__(self) -> None:
        self._context: object = None
        self._session: SparkSession | None = None

    def session(self) -> SparkSession:
        from pyspark.sql import SparkSession

        from pipeline_runtime.spark.session import use_worker_python

        use_worker_python()
        base = (
            SparkSession.builder.master("local[1]")
            .appName("fogline-trial")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
            .getOrCreate()
        )
        if self._session is None or self._context is not base.sparkContext:
            self._context, self._session = base.sparkContext, base.newSession()
            for name, value in _SETTINGS.items():
                self._session.conf.set(name, value)
        return self._session


_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    # A node has no batches without rows: the next rows close a window there. Here each window is closed that
    # may be.
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
}
SPARK = TrialSpark()
