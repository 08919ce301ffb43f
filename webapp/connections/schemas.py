"""Responses about connections. No response holds a secret."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from pipeline_runtime.model.schema import FieldType


class ConnectionItem(TypedDict):
    name: str
    kind: str
    title: str
    """the name that people use for the kind"""
    fields: dict[str, Any] | None
    """the fields without the secret ones; null for everybody but an admin"""
    secrets: list[str]
    """the names of the secret fields that have a value"""
    secrets_lost: bool
    """whether the present FOGLINE_SECRET_KEY cannot open the secrets, so that an admin has to enter them
    again"""
    simulated: bool
    """whether the connection leads to a simulated machine of Fogline; nobody can make, change or delete such
    a connection"""
    changed_at: str | None
    changed_by: str | None
    used_by: list[str]
    """the elements of deployed pipelines that use the connection, as people read them"""


class ConnectionKind(TypedDict):
    kind: str
    title: str
    form: dict[str, Any]
    """the JSON Schema of the fields; `x-secret` marks the fields that Fogline seals"""


class FoundPart(TypedDict):
    """A part of the system that becomes a column: a field of a message, or a column of a table."""

    name: str
    type: FieldType | None
    key: bool
    """whether the system finds a row by this column, alone or together with others"""


class FoundThing(TypedDict):
    path: str
    title: str
    type: str
    """the type of the item's values, in the words of the system"""
    unit: str
    inner: bool
    """whether there are more items below this one"""
    usable: bool
    """whether an element may read or write the item"""
    holds: FieldType | None
    """the type of a column for the item's values; null if the item is not one value"""
    value: str | int | float | bool | None
    """the newest value of the item"""
    within: list[str]
    """the titles of all items above this one, for an item that a search has found"""
    parts: list[FoundPart]


class OfferedValue(TypedDict):
    """A value that the system shows, for a field of the connection. A person decides whether to accept it."""

    field: str
    value: str
    title: str
    """what accepts it, as a button says it"""


class ConnectionTested(TypedDict):
    node: str
    works: bool
    words: str
    rows: list[dict[str, Any]]
    """the first rows"""
    found: list[FoundThing]
    offer: OfferedValue | None
    """what an admin may accept, such as the certificate of a server that is not verified yet"""
