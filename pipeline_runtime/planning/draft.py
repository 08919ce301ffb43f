"""A pipeline document as far as it can be read, although it may have faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline_runtime.model.faults import join_path


@dataclass(frozen=True)
class DraftElement:
    """An element as far as the draft can be read. Malformed parts are left out."""

    index: int
    id: str
    type: str
    params: Mapping[str, Any]
    inputs: Mapping[str, str]
    node: str | None
    site: str | None
    apart: tuple[str, ...]
    title: str | None

    def path(self, *parts: str | int) -> str:
        return join_path("spec", "elements", self.index, *parts)


@dataclass(frozen=True)
class DraftGroup:
    index: int
    id: str
    elements: tuple[str, ...]
    title: str | None

    def path(self, *parts: str | int) -> str:
        return join_path("spec", "groups", self.index, *parts)


def read_draft(data: Any) -> tuple[list[DraftElement], list[DraftGroup]]:
    """Returns the elements and groups of a document or draft. What is not of the right form is left out."""
    spec = data.get("spec") if isinstance(data, Mapping) else None
    spec = spec if isinstance(spec, Mapping) else {}
    elements = [
        DraftElement(
            index=index,
            id=_text(raw.get("id")) or "",
            type=_text(raw.get("type")) or "",
            params=_mapping(raw.get("params")),
            inputs={
                port: source
                for port, source in _mapping(raw.get("inputs")).items()
                if isinstance(port, str) and isinstance(source, str)
            },
            node=_text(raw.get("node")),
            site=_text(raw.get("site")),
            apart=tuple(other for other in _sequence(raw.get("apart")) if isinstance(other, str)),
            title=_text(raw.get("title")),
        )
        for index, raw in _items(spec.get("elements"))
    ]
    groups = [
        DraftGroup(
            index,
            _text(raw.get("id")) or "",
            tuple(member for member in _sequence(raw.get("elements")) if isinstance(member, str)),
            _text(raw.get("title")),
        )
        for index, raw in _items(spec.get("groups"))
    ]
    return elements, groups


def _items(value: Any) -> list[tuple[int, Mapping[str, Any]]]:
    return [(index, item) for index, item in enumerate(_sequence(value)) if isinstance(item, Mapping)]


def _sequence(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else ()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
