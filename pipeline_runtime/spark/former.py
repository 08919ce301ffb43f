"""What Spark has kept of a processor, from before the replica kept that itself. It is read once.

Of keyed processors it kept the texts that the replica keeps now. Windows and aggregates were Spark's own
`groupBy(...).agg(...)`: of each group of rows it kept the buffers of its aggregate functions, one behind the
other. A function that several aggregates need stands there once, where the first of them needs it. A join was
Spark's own, too: it kept the rows of each side as they were given to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession, functions as F
from pyspark.sql.types import DataType, StructField, StructType, TimestampType

from pipeline_runtime.batch.batched import state_text
from pipeline_runtime.batch.inputs import operator_of
from pipeline_runtime.batch.processors import processor_inputs
from pipeline_runtime.checkpoint import spark_state
from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.operators import join, keyed_aggregate, window_aggregate
from pipeline_runtime.operators.accumulators import Group, Kind, Part
from pipeline_runtime.operators.aggregates import Function
from pipeline_runtime.operators.expressions.sparksql import quote_name
from pipeline_runtime.operators.join import Join
from pipeline_runtime.operators.keyed_aggregate import KeyedAggregate
from pipeline_runtime.operators.window_aggregate import Progress, WindowAggregate
from pipeline_runtime.spark.frame import GroupFrame

Call = tuple[str, str | None]
"""One of Spark's aggregate functions, and the column that it was of; None: of whole rows."""

_CALLS: dict[Function, tuple[str, ...]] = {
    Function.AVG: ("avg",),
    Function.MIN: ("min",),
    Function.MAX: ("max",),
    Function.SUM: ("try_sum",),
    Function.COUNT: ("count",),
    Function.FIRST: ("min_by",),
    Function.LAST: ("max_by",),
    Function.STDDEV: ("stddev_samp",),
    Function.RELATIVE_VARIATION: ("max", "min", "avg"),
}
_BY = ("valueWithExtremumOrdering", "_time", "_partition", "_offset")
# The names of each one's buffers.
_BUFFERS: dict[str, tuple[str, ...]] = {
    "avg": ("sum", "count"),
    "min": ("min",),
    "max": ("max",),
    "try_sum": ("sum",),
    "count": ("count",),
    "min_by": _BY,
    "max_by": _BY,
    "stddev_samp": ("n", "avg", "m2"),
}
# Spark's sum stayed null from where it did not fit a long any more; one that never fits again does so, too.
_OVERFLOWN = 10**40


def former_states(
    session: SparkSession, frame: GroupFrame, directory: Path
) -> Iterator[tuple[str | None, str]]:
    """The states of the group's processor, as the replica keeps them; `directory`: Spark's. Raises ValueError
    where they do not fit the processor."""
    assert frame.processor is not None, frame.spec.id
    processor, reader = operator_of(frame.spec, frame.processor), session.read.format("statestore")
    reader = reader.option("path", str(directory))
    if isinstance(processor, Join):
        yield from _of_join(reader, processor, dict(processor_inputs(frame.spec, frame.processor)), directory)
        return
    if not isinstance(processor, WindowAggregate | KeyedAggregate):
        for row in reader.option("stateVarName", "keys").load().toLocalIterator():
            yield row["user_map_key"]["key"], row["user_map_value"]["text"]
        return
    [(_, schema)] = processor_inputs(frame.spec, frame.processor)
    calls = [(name, item.column) for item in processor.params.aggregates for name in _CALLS[item.function]]
    if isinstance(processor, KeyedAggregate):
        calls.insert(0, ("max", keyed_aggregate.NEWEST.column))  # Spark made the time of its output first
    buffers = _Buffers(calls, schema, frame.never_null(session))
    parts = processor.accumulation(schema).parts
    if isinstance(processor, WindowAggregate):
        yield None, state_text(_progress(processor, directory).kept(), processor)
    for group, values in _groups(reader.load(), buffers):
        if isinstance(processor, WindowAggregate):
            _, *of_window = group  # without where it begins
            key = window_aggregate.state_key(tuple(of_window))
        else:
            key = keyed_aggregate.state_key(group)
        yield key, state_text([values[part] for part in parts], processor)


def _progress(processor: WindowAggregate, directory: Path) -> Progress:
    """Spark emitted the windows up to a watermark in the batch behind the one whose rows left it: so those
    between the newest two are in its state yet."""
    emitted_ms, complete_ms = _watermarks_ms(directory)
    return Progress(complete_ms * 1000 + processor.delay_us, emitted_ms * 1000)


def _watermarks_ms(directory: Path) -> tuple[int, int]:
    newest = spark_state.newest_done(directory)
    assert newest is not None, directory
    return spark_state.watermarks_ms(directory, newest[0])


def _of_join(
    reader: DataFrameReader, processor: Join, schemas: Mapping[str, StreamSchema], directory: Path
) -> Iterator[tuple[str | None, str]]:
    """Its watermark was that of both sides: nothing is late that was not."""
    sides = processor.sides(schemas)
    _, past_ms = _watermarks_ms(directory)
    newest_us = past_ms * 1000 + processor.delay_us
    yield None, state_text(join.Progress([newest_us] * len(sides)).kept(), processor)
    outputs = {name: item.name for name, item in processor.right_fields(*schemas.values())}
    for side in sides:
        of_right = side.port == "right"
        names = {name: outputs.get(name, "_right_key") if of_right else name for name in side.schema.names}
        names["_time"] = f"_{side.port}_time"
        kept = reader.option("joinSide", side.port).load().select(F.col("value.*"))
        rows = kept.select(*(F.col(quote_name(given)).alias(name) for name, given in names.items())).toArrow()
        for (slot_us, key), found in side.slots(side.keyed(rows)).items():
            yield side.name(slot_us, key), state_text(found, processor)


def _groups(frame: DataFrame, buffers: _Buffers) -> Iterator[tuple[Group, dict[Part, Any]]]:
    """What the rows of each group have in common, and what was kept of them."""
    found = list(_names(frame.schema["value"].dataType))
    if found != buffers.names:
        raise ValueError(f"what Spark has kept is not of these aggregates: {found}, not {buffers.names}")
    for row in _flat(frame).toLocalIterator():
        in_common = len(row) - len(found)
        yield tuple(row[:in_common]), buffers.parts(row[in_common:])


class _Buffers:
    """What Spark kept of each group of rows."""

    def __init__(self, calls: Iterable[Call], schema: StreamSchema, never_null: frozenset[str]) -> None:
        """`never_null`: columns whose count was to Spark that of the rows."""
        self._never_null = never_null
        self._of: dict[Call, tuple[str, ...]] = {}
        for name, column in calls:
            counts_rows = name == "count" and column in never_null
            call = (name, None if counts_rows else column)
            is_exact = name == "try_sum" and _is_integer(column, schema)
            self._of[call] = _BUFFERS[name] + (("isEmpty",) if is_exact else ())
        self.names = [name for names in self._of.values() for name in names]

    def parts(self, values: Iterable[Any]) -> dict[Part, Any]:
        """`values`: of `names`."""
        remaining, found = iter(values), dict[Part, Any]()
        for call, names in self._of.items():
            found |= _parts(call, list(islice(remaining, len(names))))
        if (rows := found.get(Part(Kind.ROWS))) is not None:
            found |= {Part(Kind.COUNT, column): rows for column in self._never_null}
        return found


def _is_integer(column: str | None, schema: StreamSchema) -> bool:
    field = schema.field(column or "")
    return field is not None and field.type is FieldType.INTEGER


def _parts(call: Call, values: Sequence[Any]) -> dict[Part, Any]:
    """Of one function's buffers."""
    match call, values:
        case ("avg", column), [total, count]:
            return {Part(Kind.TOTAL, column): total if count else None, Part(Kind.COUNT, column): count}
        case ("try_sum", column), [total, is_empty]:  # of integers
            return {Part(Kind.SUM, column): _OVERFLOWN if total is None and not is_empty else total}
        case ("try_sum", column), [total]:
            return {Part(Kind.TOTAL, column): total}
        case ("min_by" | "max_by" as name, column), [value, *place]:
            kind = Kind.FIRST if name == "min_by" else Kind.LAST
            return {Part(kind, column): None if value is None else [*place, value]}
        case ("stddev_samp", column), [count, mean, squares]:
            return {Part(Kind.MOMENTS, column): [int(count), mean, squares] if count else None}
        case ("count", None), [count]:
            return {Part(Kind.ROWS): count}
        case (name, column), [value]:
            return {Part(Kind(name), column): value}
    raise ValueError(f"{call[0]} does not keep {values}")


def _flat(frame: DataFrame) -> DataFrame:
    """All that is in key and value, one column for each; times in us. Spark gives several fields of a value
    the same name, so they are numbered."""
    columns: list[Column] = []
    for name in ("key", "value"):
        type_ = _numbered(frame.schema[name].dataType)
        columns += _plain(F.col(name).cast(type_), type_)
    return frame.select(*(column.alias(f"c{place}") for place, column in enumerate(columns)))


def _numbered(type_: DataType) -> DataType:
    if not isinstance(type_, StructType):
        return type_
    return StructType(
        [StructField(f"f{place}", _numbered(each.dataType)) for place, each in enumerate(type_)]
    )


def _plain(column: Column, type_: DataType) -> Iterator[Column]:
    if isinstance(type_, StructType):
        for field in type_:
            yield from _plain(column.getField(field.name), field.dataType)
    else:
        yield F.unix_micros(column) if isinstance(type_, TimestampType) else column


def _names(type_: DataType, name: str = "") -> Iterator[str]:
    if isinstance(type_, StructType):
        for field in type_:
            yield from _names(field.dataType, field.name)
    else:
        yield name
