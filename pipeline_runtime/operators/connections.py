"""Connections: how to reach an outside system. All elements that use the system share its connection.

An admin makes a connection. An element names the connection in a parameter, and `connection_field` says which
kind it must have. Fields marked `Secret` are sealed in the database. No document, export, log or answer holds
them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar

from pydantic import Field, JsonValue, ValidationError

from pipeline_runtime.model.faults import pydantic_faults, words_for_pattern
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.operators.sdk import Operator, Params

_MARK = "x-secret"
_SECRET_HINT: dict[str, JsonValue] = {_MARK: True, "format": "password"}
Secret = Annotated[str, Field(max_length=20_000, json_schema_extra=_SECRET_HINT)]
"""A field of a connection that Fogline never shows again: a password, a token, a private key."""

NAME = words_for_pattern(
    r"^[a-z0-9][a-z0-9-]{0,59}$",
    "a connection's name consists of at most 60 small letters, digits and hyphens; it is no address",
)
HOST = words_for_pattern(
    r"^[A-Za-z0-9.:_-]{1,255}$",
    "a host is a name such as broker.plant.example, or an address such as 10.0.0.5, without a port",
)
Host = Annotated[str, Field(pattern=HOST, description="the name or address of its machine")]


class ConnectionFields(Params):
    """The base of all kinds of connections. Its fields are the fields of the form."""

    kind: ClassVar[str]
    title: ClassVar[str]
    # "module:function" of a pipeline_runtime.connectors.sdk.Probe, which *Test connection* runs
    probe: ClassVar[str]
    # "module:function" of a pipeline_runtime.connectors.sdk.Search; None if the system cannot be searched
    search: ClassVar[str | None] = None

    @classmethod
    def secrets(cls) -> frozenset[str]:
        """Returns the names of the fields that are sealed."""
        return frozenset(
            name
            for name, schema in cls.model_json_schema()["properties"].items()
            if any(part.get(_MARK) for part in (schema, *schema.get("anyOf", ())))
        )

    @property
    def hosts(self) -> tuple[str, ...]:
        """Returns the names or addresses of the system's machines. One of them is enough to connect. Fogline
        looks them up before a connector connects. It looks up nothing if the field `host` holds a URL, a path
        or a port."""
        host = getattr(self, "host", None)
        if not isinstance(host, str) or not re.fullmatch(HOST, host) or host.count(":") == 1:
            return ()
        return (host,)

    @property
    def where(self) -> str:
        """Returns where the connection leads, for messages: "broker.plant.example, port 1883"."""
        raise NotImplementedError


@dataclass(frozen=True)
class NamesConnection:
    """Marks a parameter as the name of a connection of this kind. The form reads the mark, too."""

    kind: type[ConnectionFields]

    def __call__(self, schema: dict[str, Any]) -> None:
        schema |= {"format": "connection", "x-kind": self.kind.kind}


_NAMED = "the name of the connection, which an admin makes on the page Connections"


def connection_field(
    kind: type[ConnectionFields], description: str = _NAMED, *, title: str | None = None, default: Any = ...
) -> Any:
    """Returns the field of a parameter that names a connection of this kind. With `default`, the connection
    is optional."""
    return Field(
        default=default,
        pattern=NAME,
        title=title,
        json_schema_extra=NamesConnection(kind),
        description=description,
    )


def connections_of(operator: type[Operator]) -> dict[str, type[ConnectionFields]]:
    """Returns the parameters of an operator that name connections, each with the kind that it needs."""
    marks = {name: field.json_schema_extra for name, field in operator.Params.model_fields.items()}
    return {name: mark.kind for name, mark in marks.items() if isinstance(mark, NamesConnection)}


CA: Any = Field(
    default=None,
    max_length=20_000,
    title="Certificate authority",
    description="the certificate (PEM) of the authority that has signed the server's certificate; empty: the"
    " authorities that this system trusts",
)
CERTIFICATE: Any = Field(
    default=None,
    max_length=20_000,
    title="Own certificate",
    description="the certificate (PEM) by which the server knows Fogline; empty: none",
)
PRIVATE_KEY: Any = Field(
    default=None, title="Own private key", description="the key (PEM) of the own certificate"
)


class TlsFields(ConnectionFields):
    """The base of connections that may be encrypted by TLS."""

    tls: bool = Field(default=False, title="TLS", description="encrypt what is sent")
    ca: str | None = CA
    certificate: str | None = CERTIFICATE
    private_key: Secret | None = PRIVATE_KEY


@cache
def kinds() -> dict[str, type[ConnectionFields]]:
    """Returns the kinds of connections that the installed operators need, by name."""
    found = (kind for operator in default_registry().all() for kind in connections_of(operator).values())
    return {each.kind: each for each in found}


def field_faults(kind: type[ConnectionFields], fields: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns (field, message) of every fault. The messages hold no values."""
    try:
        kind.model_validate(fields)
    except ValidationError as error:
        return [(path, message) for path, message, _, _ in pydantic_faults(error, known=kind.model_fields)]
    return []
