"""Avro schemas: the columns that a schema has, and the schema for a stream's columns. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pipeline_runtime.model.schema import FieldType, StreamSchema

SCHEMA_CHARACTERS_MAX = 100_000
TYPES_MAX = 5_000
_DEPTH_MAX = 50
_DIGITS_MAX = 100
"""The most digits of a decimal, and the most of them behind its point."""
_DENSITIES = tuple(2.0**power for power in range(-4, 13))

_TYPES = {
    "boolean": FieldType.BOOLEAN,
    "int": FieldType.INTEGER,
    "long": FieldType.INTEGER,
    "float": FieldType.NUMBER,
    "double": FieldType.NUMBER,
    "string": FieldType.STRING,
    "enum": FieldType.STRING,
}
_LOGICAL_TYPES = {
    "date": FieldType.TIMESTAMP,
    "decimal": FieldType.NUMBER,
    "uuid": FieldType.STRING,
    "time-millis": FieldType.STRING,
    "time-micros": FieldType.STRING,
    "timestamp-millis": FieldType.TIMESTAMP,
    "timestamp-micros": FieldType.TIMESTAMP,
    "local-timestamp-millis": FieldType.TIMESTAMP,
    "local-timestamp-micros": FieldType.TIMESTAMP,
}
_MADE_AS: dict[FieldType, Any] = {
    FieldType.BOOLEAN: "boolean",
    FieldType.INTEGER: "long",
    FieldType.NUMBER: "double",
    FieldType.STRING: "string",
    FieldType.TIMESTAMP: {"type": "long", "logicalType": "timestamp-micros"},
}


_BYTES = {"null": 0, "float": 4, "double": 8}
"""The least bytes of a value, where it is not one."""


class SchemaInvalid(ValueError):
    """A text is no Avro schema that can be used. The message says why."""


@dataclass(frozen=True)
class AvroSchema:
    """A schema as fastavro has parsed it."""

    parsed: Any
    named: Mapping[str, Any]  # by full name
    values_per_byte: float = 0.0  # the most that arrays and maps make of each byte of a record

    def target(self, schema: Any) -> Any:
        """Returns what a name stands for, or the schema itself."""
        return self.named.get(schema, schema) if isinstance(schema, str) else schema


@dataclass(frozen=True)
class AvroColumn:
    """A field, also of a record in the record, that can be a column."""

    path: tuple[str, ...]
    type: FieldType


@lru_cache(maxsize=256)
def avro_schema(text: str) -> AvroSchema:
    """Returns the schema that a text in JSON says. Raises SchemaInvalid."""
    # Most nodes read no Avro.
    from fastavro.schema import parse_schema

    if len(text) > SCHEMA_CHARACTERS_MAX:
        raise SchemaInvalid(f"the Avro schema has more than {SCHEMA_CHARACTERS_MAX:,} characters")
    named: dict[str, Any] = {}
    try:
        found = AvroSchema(parse_schema(json.loads(text), named), named)
    except RecursionError as error:
        raise SchemaInvalid("the Avro schema is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise SchemaInvalid(f"the Avro schema is not JSON: {error.msg} at character {error.pos}") from error
    except Exception as error:  # fastavro has no base of its errors
        raise SchemaInvalid(f"it is no Avro schema: {error or type(error).__name__}") from error
    _check(found)
    return replace(found, values_per_byte=_density(found))


def _check(whole: AvroSchema) -> None:
    """Refuses what a small record could make very many objects, or a very deep one, of: each value that is
    repeated takes at least a byte."""
    left: list[tuple[Any, tuple[str, ...], bool]] = [(whole.parsed, (), False)]
    seen = 0
    while left:
        schema, outside, is_repeated = left.pop()
        schema, seen = whole.target(schema), seen + 1
        if seen > TYPES_MAX:
            raise SchemaInvalid(f"the Avro schema has more than {TYPES_MAX:,} types in each other")
        if isinstance(schema, list):  # which of them it is takes a byte
            left += [(branch, outside, is_repeated) for branch in schema if branch != "null"]
            continue
        if is_repeated and _is_empty(schema):
            raise SchemaInvalid("an array or map of the Avro schema has values that take no bytes")
        if not isinstance(schema, dict):
            continue
        if schema.get("logicalType") == "decimal":
            _check_decimal(schema)
        name = schema.get("name", "")
        if name and name in outside:
            raise SchemaInvalid(f'the type "{name}" of the Avro schema holds itself: that is not read')
        if len(outside) >= _DEPTH_MAX:
            raise SchemaInvalid(f"the Avro schema is nested more than {_DEPTH_MAX} deep")
        inside = (*outside, name)
        left += [(field["type"], inside, is_repeated) for field in schema.get("fields", ())]
        left += [(schema[part], inside, True) for part in ("items", "values") if part in schema]


def _check_decimal(schema: Mapping[str, Any]) -> None:
    for part in ("precision", "scale"):
        if schema.get(part, 0) > _DIGITS_MAX:
            raise SchemaInvalid(
                f"a decimal of the Avro schema has the {part} {schema[part]}: at most {_DIGITS_MAX} is read"
            )


def _density(whole: AvroSchema) -> float:
    """Returns the most values that arrays and maps make of each byte, rounded up to a power of two."""
    repeated = list(_repeated(whole, whole.parsed))
    if not repeated:
        return 0.0
    fitting = (each for each in _DENSITIES if all(_beyond(whole, item, each) <= 0 for item in repeated))
    return next(fitting, float(TYPES_MAX))


def _repeated(whole: AvroSchema, schema: Any) -> Iterator[Any]:
    """Yields the types of the entries of all arrays and maps."""
    schema = whole.target(schema)
    if isinstance(schema, list):
        for branch in schema:
            yield from _repeated(whole, branch)
    elif isinstance(schema, dict):
        for field in schema.get("fields", ()):
            yield from _repeated(whole, field["type"])
        for part in ("items", "values"):
            if part in schema:
                yield schema[part]
                yield from _repeated(whole, schema[part])


def _beyond(whole: AvroSchema, schema: Any, density: float) -> float:
    """Returns by how many values one of this type may exceed `density` for each of its bytes."""
    schema = whole.target(schema)
    if isinstance(schema, list):  # a byte says which of them it is
        return max((_beyond(whole, branch, density) for branch in schema), default=0) - density
    kind = schema.get("type") if isinstance(schema, dict) else schema
    if kind in ("record", "error"):
        return 1 + sum(_beyond(whole, field["type"], density) for field in schema["fields"])
    return 1 - density * (schema["size"] if kind == "fixed" else _BYTES.get(str(kind), 1))


def _is_empty(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return bool(schema == "null")
    kind = schema.get("type")
    return kind == "null" or (kind == "fixed" and not schema["size"]) or schema.get("fields") == []


def columns_in(schema: AvroSchema) -> tuple[AvroColumn, ...]:
    """Returns the fields of a record's schema that can be columns, as they lie there. Those of a record in
    the record are among them; arrays, maps, bytes and choices of several types are not."""
    return tuple(_columns(schema, schema.parsed, ()))


def _columns(whole: AvroSchema, schema: Any, path: tuple[str, ...]) -> Iterator[AvroColumn]:
    schema = without_null(whole, schema)
    if isinstance(schema, dict) and schema.get("type") in ("record", "error"):
        for field in schema["fields"]:
            yield from _columns(whole, field["type"], (*path, field["name"]))
    elif path and (found := _type_of(schema)) is not None:
        yield AvroColumn(path, found)


def without_null(whole: AvroSchema, schema: Any) -> Any:
    """Returns the one type that a value may have besides null. Of several types the choice itself."""
    schema = whole.target(schema)
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        return whole.target(others[0]) if len(others) == 1 else schema
    return schema


def _type_of(schema: Any) -> FieldType | None:
    if isinstance(schema, str):
        return _TYPES.get(schema)
    if not isinstance(schema, dict):
        return None
    return _LOGICAL_TYPES.get(schema.get("logicalType", ""), _TYPES.get(schema.get("type", "")))


def schema_text_of(schema: StreamSchema, name: str) -> str:
    """Returns the Avro schema of a stream's rows, as JSON. Each field may be null."""
    fields = [
        {"name": field.name, "type": ["null", _MADE_AS[field.type]], "default": None}
        for field in schema.fields
    ]
    return json.dumps({"type": "record", "name": name, "fields": fields})


def record_fields(schema: AvroSchema) -> Mapping[str, Any] | None:
    """Returns the fields of a record's schema by name, or None if it is no record's."""
    found = schema.target(schema.parsed)
    if not isinstance(found, dict) or found.get("type") != "record":
        return None
    return {field["name"]: field for field in found["fields"]}


def has_default(whole: AvroSchema, field: Mapping[str, Any]) -> bool:
    """Returns whether a row may lack the field."""
    schema = whole.target(field["type"])
    return "default" in field or schema == "null" or (isinstance(schema, list) and "null" in schema)
