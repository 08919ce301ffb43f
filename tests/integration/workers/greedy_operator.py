"""An operator of a user's own package that asks for more memory than Java has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame

from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.sdk import DataFrameOperator, OperatorContext, Params


class GreedyParams(Params):
    pass


class Greedy(DataFrameOperator):
    """Hands its rows on. Of one of v = 13 it makes a text of two thousand million characters, as expressions
    could before they were bounded: Spark ends its Java process then."""

    type = "greedy"
    title = "Greedy"
    summary = "Takes all memory for 13"
    category = "transform"
    icon = "bomb"
    Params = GreedyParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        return inputs["in"]

    def transform(self, inputs: dict[str, DataFrame], ctx: OperatorContext) -> DataFrame:
        return inputs["in"].where("length(repeat(k, cast(if(v = 13, 2000000000, 1) as int))) > 0")


def installed_in(directory: Path) -> Path:
    """Writes a user's package that has the operator. Returns the directory that Python finds it in."""
    info = directory / "fogline_greedy-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fogline-greedy\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[fogline.operators]\ngreedy = {__name__}:Greedy\n")
    return directory
