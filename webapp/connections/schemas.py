"""Responses about connections. None of them holds a secret."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from pipeline_runtime.model.schema import FieldType


class ConnectionItem(TypedDict):
    name: str
    kind: str
    title: str
    """what people call the kind"""
    fields: dict[str, Any] | None
    """without the secret ones; null for everybody but an admin"""
    secrets: list[str]
    """which secret fields are set"""
    secrets_lost: bool
    """they cannot be opened with the present FOGLINE_SECRET_KEY, and have to be entered again"""
    simulated: bool
    """of a machine that comes with Fogline: nobody makes, changes or deletes it"""
    changed_at: str | None
    changed_by: str | None
    used_by: list[str]
    """the elements of deployed pipelines that use it, in words"""


class ConnectionKind(TypedDict):
    kind: str
    title: str
    form: dict[str, Any]
    """the JSON Schema of its fields; `x-secret` marks those that are sealed"""


class FoundPart(TypedDict):
    """A part that becomes a column: a field of a message, a column of a table."""

    name: str
    type: FieldType | None
    key: bool
    """one of the columns by which the system finds a row"""


class FoundThing(TypedDict):
    path: str
    title: str
    type: str
    """of its values, in the words of the system"""
    unit: str
    inner: bool
    """there is more below it"""
    usable: bool
    """an element may read or write it"""
    holds: FieldType | None
    """the type of a column for its values, if it is one value"""
    value: str | int | float | bool | None
    """the last one"""
    within: list[str]
    """the titles of what it lies in, where a search has found it"""
    parts: list[FoundPart]


class ConnectionTested(TypedDict):
    node: str
    works: bool
    words: str
    rows: list[dict[str, Any]]
    """the first ones"""
    found: list[FoundThing]
