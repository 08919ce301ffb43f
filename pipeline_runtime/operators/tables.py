"""Helpers for operators that work on Arrow tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.model.texts import texts
from pipeline_runtime.operators.expressions import Compiled
from pipeline_runtime.operators.expressions.arrow import Evaluated, evaluate

REJECT, RAW = "_reject", "_raw"
"""Column names, see `TransformOperator.arrow`."""
_ABOUT = ("_partition", "_offset", "_key", "_time")
"""What dead letters say of a row besides its values."""
_US = pa.timestamp("us", tz="UTC")

About = tuple[int | None, int | None, str | None, int | None]
"""What dead letters say of a row: partition, offset, key and event time in ms. What nobody knows is None."""


def evaluated(compiled: Compiled, rows: pa.Table) -> Evaluated:
    """Returns the value of an expression for each row, and where it has failed."""
    return evaluate(compiled.node, compiled.type, rows)


def with_column(rows: pa.Table, name: str, values: Any) -> pa.Table:
    """Returns the rows with this column added or replaced."""
    if name in rows.column_names:
        rows = rows.drop_columns([name])
    return rows.append_column(name, values)


def rejecting(rows: pa.Table, failed: pa.ChunkedArray | None, reason: str) -> pa.Table:
    """Returns the rows with `_reject` set in those that failed. The first reason counts."""
    if failed is None:
        return rows
    reasons = pc.if_else(failed, reason, pa.scalar(None, pa.string()))
    if REJECT in rows.column_names:
        reasons = pc.coalesce(rows[REJECT], reasons)
    return with_column(rows, REJECT, reasons)


def rejects(rows: pa.Table, names: Sequence[str], reasons: Sequence[str]) -> pa.Table:
    """Returns the rows as dead letters: the reason, the columns `names`, and what else is known of them."""
    raws = quoted_rows(rows, names)
    found = pa.table({REJECT: pa.array(reasons, pa.string()), RAW: pa.array(raws, pa.string())})
    for name in _ABOUT:
        if name in rows.column_names:
            found = found.append_column(name, rows[name])
    return found


def about_rows(rows: pa.Table) -> list[About]:
    """Returns what dead letters say of each row, as far as the rows have it. An operator is given the empty
    text as the key of a row without one."""
    unknown = pa.nulls(rows.num_rows)
    found = {name: rows[name] if name in rows.column_names else unknown for name in _ABOUT}
    times_us = found["_time"].cast(_US, safe=False).cast(pa.int64()).to_pylist()
    times_ms = [None if each is None else each // 1000 for each in times_us]
    keys = [each or None for each in found["_key"].to_pylist()]
    places = (found[name].to_pylist() for name in ("_partition", "_offset"))
    return list(zip(*places, keys, times_ms, strict=True))


def with_rejects(rows: pa.Table, *rejected: pa.Table | None) -> pa.Table:
    """Returns a batch's results with dead letters, which come from `rejects`."""
    found = [each for each in rejected if each is not None]
    return pa.concat_tables([rows, *found], promote_options="permissive") if found else rows


def quoted_rows(rows: pa.Table, names: Sequence[str]) -> list[str]:
    """Returns the rows as dead letters quote them."""
    rows = rows.select(names)
    for place, column in enumerate(rows.columns):
        if pa.types.is_timestamp(column.type):
            rows = rows.set_column(place, rows.column_names[place], texts(column))
    return [quoted(row) for row in rows.to_pylist()]


def json_instant(value: Any) -> str:
    """Returns a point in time as text, for an encoder."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} is not JSON")


quoted = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=json_instant).encode
"""Quotes a row for a dead letter, even one with numbers that JSON does not have."""


def is_rejected(rows: pa.Table) -> Any:
    return pc.is_valid(rows[REJECT]) if REJECT in rows.column_names else pa.scalar(False)
