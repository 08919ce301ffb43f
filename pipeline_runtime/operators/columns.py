"""Columns in parameters: how they are typed in a form, and how they are checked against a schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pipeline_runtime.model.faults import Instead, did_you_mean, listed, nearest, words_for_pattern
from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema, types_in_words
from pipeline_runtime.operators.expressions import (
    ColumnUnknown,
    Compiled,
    ExpressionInvalid,
    compile_expression,
    parse,
    with_column,
)
from pipeline_runtime.operators.sdk import SchemaMismatch


def _syntax(text: str) -> str:
    try:
        parse(text)
    except ExpressionInvalid as error:
        raise ValueError(str(error)) from error
    return text


def _one_character(value: str) -> str:
    value = {"tab": "\t", "\\t": "\t"}.get(value, value)
    if len(value) != 1 or not value.isascii() or value in '"\r\n\0':
        raise ValueError('a delimiter is one character, such as , or ;, or the word "tab"')
    return value


Delimiter = Annotated[
    str,
    Field(description='one character, or the word "tab"', json_schema_extra={"maxLength": 3}),
    AfterValidator(_one_character),
]
"""The character between two cells of a line."""

Decimal = Literal[".", ","]
"""The character before the decimals of a number."""

ColumnName = Annotated[str, Field(min_length=1, max_length=120, json_schema_extra={"format": "column"})]
"""A column of the input. Forms offer the existing ones."""

NEW_COLUMN = words_for_pattern(
    r"^[^_`\x00-\x1f.][^`\x00-\x1f]*$",
    "a column's name does not begin with an underscore or a dot, and has no backquotes",
)
NewColumn = Annotated[str, Field(min_length=1, max_length=120, pattern=NEW_COLUMN)]
"""The name of a new column. Names with a leading underscore are Fogline's own."""

ExpressionText = Annotated[
    str,
    Field(min_length=1, max_length=2000, json_schema_extra={"format": "expression"}),
    AfterValidator(_syntax),
]

ConditionText = Annotated[
    str,
    Field(min_length=1, max_length=2000, json_schema_extra={"format": "expression", "x-result": "boolean"}),
    AfterValidator(_syntax),
]
"""An expression that is true or false; `SchemaCheck.expression` with FieldType.BOOLEAN checks it. An editor
offers rows of comparisons to build it."""

NUMERIC = (FieldType.INTEGER, FieldType.NUMBER)

NumericColumn = Annotated[
    str,
    Field(
        min_length=1,
        max_length=120,
        json_schema_extra={"format": "column", "x-column": {"types": ["integer", "number"]}},
    ),
]
"""A column of numbers in the input; `SchemaCheck.column` with NUMERIC checks it. An editor offers such
columns, and refuses a stream whose column of this name has another type."""

SIGNALS = (FieldType.BOOLEAN, *NUMERIC)

SignalColumn = Annotated[
    str,
    Field(
        min_length=1,
        max_length=120,
        json_schema_extra={"format": "column", "x-column": {"types": ["boolean", "integer", "number"]}},
    ),
]
"""A column of numbers, or of true and false."""

FlagColumn = Annotated[
    str,
    Field(
        min_length=1,
        max_length=120,
        json_schema_extra={"format": "column", "x-column": {"types": ["boolean"]}},
    ),
]
"""A column of true and false."""


UNIT = "the unit of its values, which is shown beside them; nothing is converted"


class ColumnType(BaseModel):
    """A column of outside data: its name and type."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: NewColumn = Field(description="the name of the new column")
    type: FieldType = Field(default=FieldType.STRING, description="the type of its values")
    unit: str | None = Field(default=None, max_length=40, description=UNIT)

    def field(self) -> SchemaField:
        return SchemaField(name=self.name, type=self.type, unit=self.unit)


class SchemaCheck:
    """Collects what does not fit, so that the user is told all of it at once.

    `with SchemaCheck() as check:` raises one SchemaMismatch at its end if there was any.
    """

    def __init__(self) -> None:
        self.faults: list[SchemaMismatch] = []

    def __enter__(self) -> SchemaCheck:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None and self.faults:
            first, *more = self.faults
            raise SchemaMismatch(first.path, first.message, tuple(more), first.instead)

    def fail(self, path: str, message: str, instead: Iterable[Instead] = ()) -> None:
        """`instead`: what would do in place of the parameter at `path`."""
        self.faults.append(SchemaMismatch(path, message, instead=tuple(instead)))

    def column(
        self, schema: StreamSchema, name: str, path: str, kinds: Sequence[FieldType] = tuple(FieldType)
    ) -> SchemaField | None:
        """The field, or None after reporting that it is unknown or of another kind."""
        field = schema.field(name)
        if field is None:
            hint = did_you_mean(name, schema.names)
            message = f'there is no column "{name}"{hint} (the input has {listed(schema.names)})'
            self.fail(path, message, _columns_instead(schema, name, kinds))
        elif field.type not in kinds:
            message = f'"{name}" is {field.type.words}, but {types_in_words(kinds)} is needed'
            self.fail(path, message, _columns_instead(schema, name, kinds))
            return None
        return field

    def expression(
        self, schema: StreamSchema, text: str, path: str, kind: FieldType | None = None
    ) -> Compiled | None:
        try:
            compiled = compile_expression(text, schema)
        except ColumnUnknown as error:
            self.fail(path, str(error), _expressions_instead(schema, text, error.column, kind))
            return None
        except ExpressionInvalid as error:
            self.fail(path, str(error))
            return None
        if kind is not None and compiled.type is not kind:
            self.fail(path, f"it is {compiled.type.words}, but {kind.words} is needed")
            return None
        return compiled

    def unique(self, names: Sequence[str], path: str) -> None:
        """Checks that column names differ, also for Spark, which ignores the case of letters."""
        seen: dict[str, str] = {}
        for name in names:
            if name.lower() in seen:
                self.fail(path, f'two columns are named "{name}"; give one of them another name')
            seen[name.lower()] = name


def schema_of_columns(
    columns: Sequence[ColumnType], key: str | None, more: Sequence[SchemaField] = ()
) -> StreamSchema:
    """Returns the schema of rows that come from outside with these columns. `more`: what comes after them.
    Raises SchemaMismatch."""
    schema = StreamSchema(fields=(*(column.field() for column in columns), *more), key=key)
    with SchemaCheck() as check:
        check.unique(schema.names, "params.columns")
        if key is not None:
            check.column(schema, key, "params.key")
    return schema


_INSTEAD_MAX = 3
_TRIED_MAX = 12
"""The most columns that are tried in an expression: each is checked as a whole."""


def _columns_instead(schema: StreamSchema, name: str, kinds: Sequence[FieldType]) -> list[Instead]:
    fitting = [field.name for field in schema.fields if field.type in kinds]
    return [Instead(column=each, value=each) for each in nearest(name, fitting)[:_INSTEAD_MAX]]


def _expressions_instead(
    schema: StreamSchema, text: str, unknown: str, kind: FieldType | None
) -> Iterator[Instead]:
    """Yields the expression with each column that does in place of the unknown one.

    A column does if the expression is right with it, or only lacks another column.
    """
    found = 0
    for column in nearest(unknown, schema.names)[:_TRIED_MAX]:
        changed = with_column(text, unknown, column)
        try:
            compiled = compile_expression(changed, schema)
        except ColumnUnknown as error:
            fits = error.column != unknown
        except ExpressionInvalid:
            fits = False
        else:
            fits = kind is None or compiled.type is kind
        if fits:
            yield Instead(column=column, value=changed)
            found += 1
        if found == _INSTEAD_MAX:
            return
