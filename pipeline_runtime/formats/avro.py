"""Turns Avro records into values like those of JSON, and rows into Avro records.

Values keep their types: a time is a datetime, a decimal a Decimal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import cache
from io import BytesIO
from typing import Any

from pipeline_runtime.formats.avro_schema import AvroSchema, record_fields, without_null
from pipeline_runtime.formats.malformed import Malformed, Unwritable

VALUES_MAX = 2_000_000
"""The most values that the arrays and maps of one record may make, by its length."""
_ERROR_CHARACTERS_MAX = 300
_LARGEST = {"float": 3.4028234663852886e38, "double": sys.float_info.max}
_BITS = {"int": 32, "long": 64}
_DECIMAL_BYTES_MAX = 64
"""Longer ones make a number in a time that grows with the square of their length."""
_EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)


def decoded(body: bytes, writer: AvroSchema, reader: AvroSchema | None = None) -> Any:
    """Returns the value that was written by a schema, as `reader` sees it if there is one. Raises
    Malformed."""
    from fastavro import schemaless_reader  # most nodes read no Avro

    _bound_decimals()
    source = BytesIO(body)
    if len(body) * writer.values_per_byte > VALUES_MAX:
        raise Malformed(
            f"the record has {len(body):,} bytes, and the arrays and maps of its Avro schema could hold more"
            f" than {VALUES_MAX:,} values in them: at most"
            f" {VALUES_MAX / writer.values_per_byte:,.0f} bytes are read"
        )
    try:
        found = schemaless_reader(source, writer.parsed, None if reader is None else reader.parsed)
    except Exception as error:  # of many kinds: whatever stands there instead of a value
        raise Malformed(f"the record does not fit its Avro schema: {_why(error)}") from error
    left = len(body) - source.tell()
    if left:
        raise Malformed(
            f"the record does not fit its Avro schema: {left} bytes are left after the row. It may have been"
            " written by another schema"
        )
    return found


@cache
def _bound_decimals() -> None:
    """Lets fastavro, in this process, refuse decimals of very many digits."""
    from fastavro.read import LOGICAL_READERS

    for name in ("bytes-decimal", "fixed-decimal"):
        LOGICAL_READERS[name] = _bounded(LOGICAL_READERS[name])


def _bounded(read: Callable[..., Any]) -> Callable[..., Any]:
    def bounded(data: bytes, *schemas: Any) -> Any:
        if len(data) > _DECIMAL_BYTES_MAX:
            raise ValueError(f"a decimal has {len(data):,} bytes: at most {_DECIMAL_BYTES_MAX} are read")
        return read(data, *schemas)

    return bounded


def _why(error: Exception) -> str:
    if isinstance(error, EOFError | IndexError):
        return "it is cut off, or was written by another schema"
    return f"{type(error).__name__}: {error}"[:_ERROR_CHARACTERS_MAX]


class AvroWriter:
    """Writes rows by one schema, which is that of a record."""

    def __init__(self, schema: AvroSchema) -> None:
        self._parsed = schema.parsed
        self._fitting = {
            name: _fitting(without_null(schema, field["type"]))
            for name, field in (record_fields(schema) or {}).items()
        }

    def written(self, row: Mapping[str, Any]) -> bytes:
        """Returns the row's bytes. Columns that the schema lacks are left out. Raises Unwritable."""
        from fastavro import schemaless_writer

        target = BytesIO()
        try:
            record = {
                name: None if row[name] is None else fit(row[name])
                for name, fit in self._fitting.items()
                if name in row
            }
            schemaless_writer(target, self._parsed, record)
        except Exception as error:  # of many kinds: whatever a value is
            raise Unwritable(f"it does not fit the Avro schema: {_why(error)}") from error
        return target.getvalue()


def _fitting(schema: Any) -> Callable[[Any], Any]:
    """Returns what makes a column's value one that fastavro writes by this schema."""
    logical = schema.get("logicalType", "") if isinstance(schema, dict) else ""
    plain = schema.get("type") if isinstance(schema, dict) else schema
    if logical in ("timestamp-millis", "timestamp-micros"):
        return _moment
    if logical in ("local-timestamp-millis", "local-timestamp-micros"):
        return lambda value: _moment(value).replace(tzinfo=None)
    if logical == "date":
        return lambda value: date.fromisoformat(str(value)[:10])
    if logical == "decimal":
        step = Decimal(1).scaleb(-int(schema.get("scale", 0)))
        return lambda value: Decimal(str(value)).quantize(step, context=_EXACT)
    if plain in _LARGEST:
        return lambda value: _number(value, _LARGEST[plain])
    if plain in _BITS and not logical:
        return lambda value: _whole(value, _BITS[plain])
    if plain == "boolean":
        return _truth
    return lambda value: value


def _number(value: Any, largest: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a number is needed")
    if abs(value) > largest:
        raise ValueError(f"{value} is too large for the field")
    return float(value)


def _whole(value: Any, bits: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("a whole number is needed")
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"{value} is no whole number of {bits} bits")
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false is needed")
    return value


def _moment(value: Any) -> datetime:
    found = datetime.fromisoformat(value)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
