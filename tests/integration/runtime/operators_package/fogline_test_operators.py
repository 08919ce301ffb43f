"""Operators of a user's own package, installed for the tests by an entry point: they fail when asked to."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, functions as F

from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.sdk import (
    DataFrameOperator,
    KeyedProcessor,
    OperatorContext,
    OutputRow,
    Params,
    Port,
    Row,
    Timers,
)


class FragileParams(Params):
    plan_flag: str  # while this file exists, the plan cannot be made
    row_flag: str  # while this file exists, a row with v = 13 cannot be processed


class Fragile(DataFrameOperator):
    """Hands its rows on, but for one with v = 666; raises while a file exists."""

    type = "fragile"
    title = "Fragile"
    summary = "Fails when asked to"
    category = "transform"
    icon = "bomb"
    Params = FragileParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        return inputs["in"]

    def transform(self, inputs: dict[str, DataFrame], ctx: OperatorContext) -> DataFrame:
        if Path(self.params.plan_flag).exists():
            raise LookupError("the plan cannot be made today")
        flag = self.params.row_flag

        def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                if Path(flag).exists() and 13 in batch.column("v").to_pylist():
                    raise ArithmeticError("13 is more than I can bear")
                yield batch

        frame = inputs["in"]
        refused = F.when(F.col("v") == 666, F.lit("no such number"))
        return frame.mapInArrow(check, frame.schema).withColumn("_reject", refused)


class SparkPairsParams(Params):
    within_s: int


class SparkPairs(DataFrameOperator):
    """Pairs the `v` of rows of one `k`, with a state that Spark keeps."""

    type = "spark-pairs"
    title = "Pairs"
    summary = "A join of Spark's"
    category = "join"
    icon = "merge"
    Params = SparkPairsParams
    inputs = (Port("left"), Port("right"))
    stateful = True
    follow = "exact"

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        names = {"k": FieldType.STRING, "v": FieldType.NUMBER, "right_v": FieldType.NUMBER}
        return StreamSchema(fields=tuple(Field(name=name, type=type_) for name, type_ in names.items()))

    def transform(self, inputs: dict[str, DataFrame], ctx: OperatorContext) -> DataFrame:
        sides = []
        for side, frame in inputs.items():
            v = F.col("v").cast("double").alias(f"{side}_v")
            columns = (F.col("k").alias(f"{side}_k"), v, F.col("_time").alias(f"{side}_time"))
            sides.append(frame.withWatermark("_time", "1 second").select(*columns))
        within = f"INTERVAL {self.params.within_s} SECONDS"
        near = f"right_time BETWEEN left_time - {within} AND left_time + {within}"
        found = sides[0].join(sides[1], F.expr(f"left_k = right_k AND {near}"))
        later = F.greatest("left_time", "right_time").alias("_time")
        return found.select(F.col("left_k").alias("k"), F.col("left_v").alias("v"), "right_v", later)


class PickyParams(Params):
    pass


class Picky(KeyedProcessor):
    """The sum so far of each key's `v`. A negative one is refused, after the state was changed."""

    type = "picky"
    title = "Picky sum"
    summary = "Sums what it likes"
    category = "state"
    icon = "sigma"
    Params = PickyParams

    def key_field(self) -> str | None:
        return None

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        return StreamSchema(fields=inputs["in"].fields, key=inputs["in"].key)

    def process(self, key: str, row: Row, state: dict[str, Any], timers: Timers) -> Iterable[OutputRow]:
        state["sum"] = state.get("sum", 0) + row["v"]
        if row["v"] < 0:
            raise ValueError(f"{row['v']} is negative")
        yield {"k": row["k"], "v": state["sum"]}


class Frozen(Picky):
    """For each row, how many objects its process spares when it collects garbage."""

    type = "frozen"
    title = "Frozen"
    summary = "Says what is frozen"

    def process(self, key: str, row: Row, state: dict[str, Any], timers: Timers) -> Iterable[OutputRow]:
        yield {"k": row["k"], "v": gc.get_freeze_count()}


class EndlessParams(Params):
    flag: str  # while this file exists, no row is ever done; the process leaves its id beside it


class Endless(Picky):
    """Sums, or never ends."""

    type = "endless"
    title = "Endless sum"
    summary = "Never ends when asked to"
    Params = EndlessParams

    def process(self, key: str, row: Row, state: dict[str, Any], timers: Timers) -> Iterable[OutputRow]:
        flag = Path(self.params.flag)
        if flag.exists():
            flag.with_name(str(os.getpid())).touch()
        while flag.exists():
            pass
        return super().process(key, row, state, timers)
