"""Turns the values that a Python operator returns into an Arrow column for each field of its output."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from pipeline_runtime.batch.decode import ARROW_TYPES, TIMESTAMP
from pipeline_runtime.model.schema import FieldType, StreamSchema
from pipeline_runtime.model.texts import texts
from pipeline_runtime.operators.tables import json_instant

_INTEGER_MIN, _INTEGER_MAX = -(2**63), 2**63 - 1


class Fields:
    """The fields of an output, but for those whose columns are `given` as they are."""

    def __init__(self, schema: StreamSchema, given: Collection[str] = ()) -> None:
        self._schema = schema
        self._made = [field for field in schema.fields if field.name not in given]
        self._fitting = [(field.name, field.type, _FITTING[field.type]) for field in self._made]

    @property
    def count(self) -> int:
        return len(self._fitting)

    def fitted(self, item: Mapping[str, Any]) -> list[Any]:
        """The item's value for each field; a field that it lacks is null.

        Raises TypeError or ValueError where a value is not of its field's type.
        """
        values = []
        for name, type_, fit in self._fitting:
            value = item.get(name)
            if value is not None:
                value = fit(value)
                if value is None:
                    raise TypeError(f"the field {name} takes a {type_}, not {item[name]!r:.100}")
            values.append(value)
        return values

    def table(
        self,
        values: Sequence[Sequence[Any]],
        keys: Sequence[str],
        times_ms: Sequence[int],
        given: Mapping[str, pa.ChunkedArray] | None = None,
    ) -> pa.Table:
        """Columns of the fields, `_key` and `_time`, of values that `fitted` gave.

        `values`: a sequence for each field. `keys`: the records' keys of a stream without a key field.
        """
        made = {
            field.name: pa.chunked_array([pa.array(column, ARROW_TYPES[field.type])])
            for field, column in zip(self._made, values, strict=True)
        }
        found = {**made, **(given or {})}
        columns = {name: found[name] for name in self._schema.names}
        times = pa.array(times_ms, pa.int64()).cast(pa.timestamp("ms", tz="UTC")).cast(TIMESTAMP)
        key = self._schema.field(self._schema.key) if self._schema.key is not None else None
        key_texts = pa.array(keys, pa.string()) if key is None else texts(columns[key.name])
        return pa.table({**columns, "_key": key_texts, "_time": times})


# Each gives the value as Arrow takes it, or None where it does not fit.


def _number(value: Any) -> float | None:
    if type(value) is not float and (isinstance(value, bool) or not isinstance(value, int | float)):
        return None
    if not math.isfinite(value):
        raise ValueError("a number is infinite or NaN, which JSON does not have")
    return float(value)


def _integer(value: Any) -> int | None:
    fits = isinstance(value, int) and not isinstance(value, bool)
    return int(value) if fits and _INTEGER_MIN <= value <= _INTEGER_MAX else None


def _string(value: Any) -> str | None:
    if isinstance(value, datetime):
        return json_instant(value)
    return value if isinstance(value, str) else None


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _timestamp(value: Any) -> datetime | None:
    """Returns the time. It may be given as an ISO text, which is what a state keeps of a point in time."""
    found = datetime.fromisoformat(value) if isinstance(value, str) else value
    return found if isinstance(found, datetime) and found.tzinfo is not None else None


_FITTING: Mapping[FieldType, Callable[[Any], Any]] = {
    FieldType.NUMBER: _number,
    FieldType.INTEGER: _integer,
    FieldType.STRING: _string,
    FieldType.BOOLEAN: _boolean,
    FieldType.TIMESTAMP: _timestamp,
}
