"""Schemas that a schema registry keeps: by number, and under subjects.

Who reads or writes records does not ask the registry: whoever has the connection's secrets does
(connectors.schema_registry), and hands over what it answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NoReturn, Protocol

from pipeline_runtime.formats.avro import decoded
from pipeline_runtime.formats.avro_schema import AvroSchema, SchemaInvalid, avro_schema
from pipeline_runtime.formats.malformed import Malformed

AVRO = "AVRO"
PREFIX_BYTES = 5
"""A zero, and four bytes that number the schema."""
NUMBER_MAX = (1 << 31) - 1
"""Confluent's registry gives no larger numbers."""
_WHY_CHARACTERS_MAX = 300
_KINDS = {"JSON": "JSON Schema", "PROTOBUF": "Protobuf"}
"""What people call the kinds of schemas that Confluent's registry has besides Avro."""


def has_prefix(value: bytes) -> bool:
    return len(value) >= PREFIX_BYTES and value[0] == 0


def prefix(number: int) -> bytes:
    return b"\0" + number.to_bytes(PREFIX_BYTES - 1)


class SchemaRegistryError(RuntimeError):
    """The registry does not answer, does not have a schema, or does not take one. Whoever needs it has to
    wait. The message is one line of sentences."""

    number: int | None = None
    """The schema that a record needs."""
    place: int | None = None
    """The record: its place among those that are read, or its offset where the topic is known."""


class NoSuchSchema(SchemaRegistryError):
    """The registry answers, and has no schema of that number."""


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema as a registry has it. A number stands for the same schema for ever."""

    kind: str  # AVRO, or another one
    text: str
    refers: bool = False  # to other schemas

    @property
    def digest(self) -> str:
        """Returns a text that tells this schema from all others."""
        return sha256(json.dumps([self.kind, self.text, self.refers]).encode()).hexdigest()[:16]


class Registry(Protocol):
    """A schema registry. Each method raises SchemaRegistryError."""

    def schema(self, number: int) -> RegisteredSchema: ...

    def number(self, subject: str, schema: str) -> int:
        """Returns the number of an Avro schema under a subject, where it is registered if it is new."""
        ...


Registries = Callable[[str], Registry]
"""Returns the registry that a connection of this name leads to. Raises SchemaRegistryError."""


def no_registry(name: str) -> NoReturn:
    """Implements Registries where nobody can ask one."""
    raise SchemaRegistryError(f'the schema registry "{name}" is not asked here.')


class NumberedReader:
    """Reads records of Avro that begin with the number of their schema. For one batch or a part of it: it
    asks once for each number."""

    def __init__(self, registry: Registry, own: AvroSchema | None) -> None:
        """`own`: the reader's schema, if it has one."""
        self._registry = registry
        self._own = own
        self._known: dict[int, AvroSchema | Malformed] = {}

    def value(self, record: bytes) -> Any:
        """Returns the record's value. Raises Malformed, SchemaRegistryError."""
        if not has_prefix(record):
            raise Malformed(
                "the record does not begin with a schema registry's prefix: a zero, and the schema's number"
            )
        number = int.from_bytes(record[1:PREFIX_BYTES])
        if number > NUMBER_MAX:
            raise Malformed(
                f"the record begins with {number} as its schema's number, which no registry gives"
            )
        if number not in self._known:
            try:
                self._known[number] = _writers(number, self._registry.schema(number))
            except SchemaRegistryError as error:
                error.number = number
                raise
        writer = self._known[number]
        if isinstance(writer, Malformed):
            raise Malformed(str(writer))
        return decoded(record[PREFIX_BYTES:], writer, self._own)


def _writers(number: int, found: RegisteredSchema) -> AvroSchema | Malformed:
    """Returns the schema, or why no record of it can be read."""
    if found.kind != AVRO:
        kind = _KINDS.get(found.kind, found.kind)
        return Malformed(f"the schema {number} of the registry is {kind}, and only Avro is read")
    if found.refers:
        return Malformed(f"the schema {number} of the registry refers to other schemas, which is not read")
    try:
        return avro_schema(found.text)
    except SchemaInvalid as error:
        why = f"the schema {number} of the registry cannot be used: {error}"
        return Malformed(why[:_WHY_CHARACTERS_MAX])
