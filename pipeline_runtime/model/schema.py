"""The schema of a stream: typed fields, which of them is the key."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class FieldType(StrEnum):
    INTEGER = "integer"  # 64 bit
    NUMBER = "number"  # double
    STRING = "string"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"  # UTC, microseconds; ISO 8601 on the wire


class Field(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    type: FieldType
    unit: str | None = None


class StreamSchema(BaseModel):
    """What one record of a stream holds.

    `key` names the field whose text is the record's Kafka key; None: no key. Event time is not a
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
