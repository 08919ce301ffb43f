"""Arrow's tables as operators handle them: what `frames` is for Spark's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.expressions import Compiled
from pipeline_runtime.operators.expressions.arrow import Evaluation, can_evaluate

REJECT, RAW = "_reject", "_raw"
"""Columns, see `TransformOperator.transform`."""


def is_in_arrow(compiled: Compiled) -> bool:
    parts = (compiled.node, compiled.failed)
    return all(can_evaluate(part, compiled.types) for part in parts if part is not None)


@dataclass(frozen=True)
class Evaluated:
    values: pa.ChunkedArray
    failed: pa.ChunkedArray | None  # never null; None: in no row


def evaluated(compiled: Compiled, rows: pa.Table) -> Evaluated:
    """Of an expression that `is_in_arrow`."""
    evaluation = Evaluation(rows, compiled.types)
    values = evaluation.column(compiled.node, compiled.type)
    if compiled.failed is None:
        return Evaluated(values, None)
    failed = evaluation.column(compiled.failed, FieldType.BOOLEAN)
    return Evaluated(values, failed if pc.any(failed).as_py() else None)


def with_column(rows: pa.Table, name: str, values: Any) -> pa.Table:
    """Added or replaced."""
    if name in rows.column_names:
        rows = rows.drop_columns([name])
    return rows.append_column(name, values)


def rejecting(rows: pa.Table, failed: pa.ChunkedArray | None, reason: str) -> pa.Table:
    """With `_reject` set where it failed; the first reason counts."""
    if failed is None:
        return rows
    reasons = pc.if_else(failed, reason, pa.scalar(None, pa.string()))
    if REJECT in rows.column_names:
        reasons = pc.coalesce(rows[REJECT], reasons)
    return with_column(rows, REJECT, reasons)


def is_rejected(rows: pa.Table) -> Any:
    return pc.is_valid(rows[REJECT]) if REJECT in rows.column_names else pa.scalar(False)
