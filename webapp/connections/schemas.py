"""Responses about connections. None of them holds a secret."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict


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
    changed_at: str
    changed_by: str | None
    used_by: list[str]
    """the elements of deployed pipelines that use it, in words"""


class ConnectionKind(TypedDict):
    kind: str
    title: str
    form: dict[str, Any]
    """the JSON Schema of its fields; `x-secret` marks those that are sealed"""


class FoundThing(TypedDict):
    path: str
    title: str
    type: str
    unit: str
    inner: bool
    """there is more below it"""


class ConnectionTested(TypedDict):
    node: str
    works: bool
    words: str
    rows: list[dict[str, Any]]
    """the first ones"""
    found: list[FoundThing]
