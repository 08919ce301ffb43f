"""A draft as the browser tests' model of it: what an edit has to make of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Draft:
    """What is compared: each element without its kind, the notes' texts, and what runs as one."""

    elements: dict[str, dict[str, Any]]
    notes: list[str] = field(default_factory=list)
    groups: list[list[str]] = field(default_factory=list)

    @classmethod
    def of(cls, document: dict[str, Any]) -> Draft:
        spec = document["spec"]
        elements = {each["id"]: {key: each[key] for key in each if key != "id"} for each in spec["elements"]}
        groups = [sorted(group["elements"]) for group in spec.get("groups", [])]
        return cls(elements, [note["text"] for note in spec.get("notes", [])], groups)

    def lane(self, id: str) -> str:
        element = self.elements[id]
        if element["type"] == "live-chart":
            return "views"
        kinds = [f"{kind} {element[kind]}" for kind in ("node", "site") if kind in element]
        return kinds[0] if kinds else "anywhere"

    def with_their_groups(self, ids: list[str]) -> list[str]:
        """And what runs as one with them, which moves along."""
        return sorted({*ids, *(id for group in self.groups if set(group) & set(ids) for id in group)})

    def reads(self, id: str, of: str) -> bool:
        """Whether rows of the other one arrive at it, over any path."""
        source = self.elements[id].get("inputs", {}).get("in")
        return source is not None and (source == of or self.reads(source, of))

    def remove(self, ids: list[str]) -> None:
        for id in ids:
            del self.elements[id]
        for element in self.elements.values():
            if element.get("inputs", {}).get("in") in ids:
                del element["inputs"]
        left = [[id for id in group if id not in ids] for group in self.groups]
        self.groups = [group for group in left if group]
