"""Spark frames as operators handle them. pyspark is imported when a frame is there, not before:
checking a pipeline needs no JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline_runtime.operators.expressions.sparksql import quote_name, quote_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame


def with_columns(frame: DataFrame, columns: Sequence[tuple[str, str]]) -> DataFrame:
    """The frame with columns (name, SQL) added or replaced, all computed from the frame as it was."""
    new = dict(columns)
    kept = [quote_name(name) for name in frame.columns if name not in new]
    return frame.selectExpr(*kept, *(f"{sql} AS {quote_name(name)}" for name, sql in columns))


def rejecting(frame: DataFrame, failures: Sequence[tuple[str, str]]) -> DataFrame:
    """The frame with `_reject` set where a condition (SQL, reason) holds; the first one counts."""
    if not failures:
        return frame
    whens = " ".join(f"WHEN {condition} THEN {quote_text(reason)}" for condition, reason in failures)
    sql = f"CASE {whens} END"
    if "_reject" in frame.columns:
        sql = f"coalesce(`_reject`, {sql})"
    return with_columns(frame, [("_reject", f"cast({sql} as string)")])
