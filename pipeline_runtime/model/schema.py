"""The schema of a stream: its typed fields, and which of them is the key."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

COLUMNS_MAX = 2000
"""The most columns of one stream."""


class FieldType(StrEnum):
    """The type of a column."""

    INTEGER = "integer"  # 64 bit
    NUMBER = "number"  # double
    STRING = "string"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"  # UTC, microseconds; ISO 8601 on the wire

    @property
    def words(self) -> str:
        """Returns the type's name in messages for people."""
        return _TYPE_WORDS[self]


_TYPE_WORDS = {
    FieldType.INTEGER: "a whole number",
    FieldType.NUMBER: "a number",
    FieldType.STRING: "text",
    FieldType.BOOLEAN: "true or false",
    FieldType.TIMESTAMP: "a time",
}


def types_in_words(kinds: Iterable[FieldType]) -> str:
    """Returns 'a number', or 'text or a time'. Whole numbers count as numbers."""
    wanted = list(kinds)
    if FieldType.NUMBER in wanted:
        wanted = [kind for kind in wanted if kind is not FieldType.INTEGER]
    return " or ".join(kind.words for kind in wanted)


class Field(BaseModel):
    """A column of a stream."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    type: FieldType
    unit: str | None = None


class StreamSchema(BaseModel):
    """The content of a stream's records.

    `key` names the field whose text is the record's Kafka key; without a key it is None. Event time is no
    field: it is the record's own timestamp, and the `_time` column of every frame.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    fields: tuple[Field, ...]
    key: str | None = None

    def field(self, name: str) -> Field | None:
        return next((field for field in self.fields if field.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)
