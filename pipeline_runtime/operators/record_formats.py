"""The format of the records of a user's topic: the parameters of the form, and the checks of these
parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, JsonValue

from pipeline_runtime.formats.avro_schema import (
    SCHEMA_CHARACTERS_MAX,
    AvroSchema,
    SchemaInvalid,
    avro_schema,
    columns_in,
    has_default,
    record_fields,
    schema_text_of,
    without_null,
)
from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.model.spec import RecordFormat
from pipeline_runtime.operators.columns import Decimal, Delimiter, SchemaCheck
from pipeline_runtime.operators.connections import connection_field
from pipeline_runtime.operators.schema_registry import SchemaRegistryConnection
from pipeline_runtime.operators.sdk import Params

_FORMATS: list[JsonValue] = [
    {"title": "JSON", "value": "json"},
    {"title": "Avro", "value": "avro", "with": ["avro_schema", "registry"]},
    {"title": "CSV", "value": "csv", "with": ["delimiter", "decimal", "names_line"]},
    {"title": "Text: the record is one value", "value": "text", "with": ["text_column"]},
]


class FormatParams(Params):
    """The parameters of a format."""

    format: Literal["json", "avro", "csv", "text"] = Field(
        default="json",
        json_schema_extra={"x-choices": _FORMATS, "x-first": True},
        description="how the value of a record is written",
    )
    avro_schema: str | None = Field(
        default=None,
        max_length=SCHEMA_CHARACTERS_MAX,
        title="Avro schema",
        description="the schema, as JSON; with a registry it may be left empty",
    )
    registry: str | None = connection_field(
        SchemaRegistryConnection,
        "the connection to a schema registry that speaks Confluent's protocol; each record then begins with"
        " its schema's number. Empty: none",
        title="Schema registry",
        default=None,
    )
    delimiter: Delimiter = Field(
        default=",", description='the character between two cells of CSV, or the word "tab"'
    )
    decimal: Decimal = Field(default=".", description="the character before the decimals of a number in CSV")
    names_line: bool = Field(
        default=False,
        title="A line of names",
        description="each record of CSV begins with a line that names its cells",
    )

    def record_format(self) -> RecordFormat | None:
        """Returns the format, or None for JSON."""
        match self.format:
            case "json":
                return None
            case "avro":
                return RecordFormat(kind="avro", avro=self.avro_schema or None, registry=self.registry)
            case "csv":
                return RecordFormat(
                    kind="csv", delimiter=self.delimiter, decimal=self.decimal, names=self.names_line
                )
            case "text":
                return RecordFormat(kind="text")


def schema_of(params: FormatParams, check: SchemaCheck) -> AvroSchema | None:
    """Returns the Avro schema of the form, or None if it has none or does not need it. Reports a fault of the
    schema."""
    if params.format != "avro" or not params.avro_schema:
        return None
    try:
        return avro_schema(params.avro_schema)
    except SchemaInvalid as error:
        check.fail("params.avro_schema", str(error))
        return None


def schema_fields(text: str) -> tuple[tuple[tuple[str, ...], SchemaField], ...]:
    """Returns the place and the type of each column in an Avro schema. A field of a record in the record
    becomes the column "outer_inner". Returns () if the text is no schema."""
    try:
        found = columns_in(avro_schema(text))
    except SchemaInvalid:
        return ()
    return tuple(
        (each.path, SchemaField(name="_".join(each.path), type=each.type))
        for each in found
        if not each.path[0].startswith("_")
    )


def check_written(params: FormatParams, schema: StreamSchema, check: SchemaCheck) -> None:
    """Reports why rows of this stream cannot be written in the format."""
    if params.format != "avro":
        return
    found = schema_of(params, check)
    if found is None:
        if not params.avro_schema:
            _check_names(schema.names, check)
        return
    fields = record_fields(found)
    if fields is None:
        check.fail("params.avro_schema", "the Avro schema is not that of a record, as a row is")
        return
    for name, field in fields.items():
        if name not in schema.names and not has_default(found, field):
            check.fail(
                "params.avro_schema", f'the input has no column "{name}", and the field has no default'
            )
        elif name in schema.names and isinstance(without_null(found, field["type"]), dict | list):
            _check_simple(found, field, check)


def _check_simple(schema: AvroSchema, field: dict[str, object], check: SchemaCheck) -> None:
    kind = without_null(schema, field["type"])
    if isinstance(kind, dict) and kind.get("type") in ("record", "error", "array", "map"):
        check.fail(
            "params.avro_schema",
            f'the field "{field["name"]}" is of the type {kind["type"]}: a column holds one value only',
        )


def _check_names(names: Sequence[str], check: SchemaCheck) -> None:
    """Reports column names that cannot be names in Avro, because Fogline makes the schema of the columns."""
    fields = tuple(SchemaField(name=name, type=FieldType.STRING) for name in names)
    try:
        avro_schema(schema_text_of(StreamSchema(fields=fields), "Row"))
    except SchemaInvalid as error:
        check.fail("params.format", f"the columns make no Avro schema ({error}): rename them by a Select")
