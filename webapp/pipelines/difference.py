"""Compares two documents, element by element."""

from __future__ import annotations

from typing import Any

from webapp.pipelines.schemas import Change, ChangedElement, Difference, GroupsChange
from webapp.pipelines.shape import drawn_groups, elements_of

IGNORED = ("ui",)  # the places of elements in the drawing


def difference(old: dict[str, Any], new: dict[str, Any]) -> Difference:
    before = {element["id"]: element for element in elements_of(old)}
    after = {element["id"]: element for element in elements_of(new)}
    changed: list[ChangedElement] = []
    for id in before.keys() & after.keys():
        changes = _changes(_bare(before[id]), _bare(after[id]), "")
        if changes:
            changed.append({"id": id, "changes": changes})
    groups: GroupsChange = {"from": _groups(old), "to": _groups(new)}
    return {
        "added": [element for id, element in after.items() if id not in before],
        "removed": [element for id, element in before.items() if id not in after],
        "changed": sorted(changed, key=lambda item: str(item["id"])),
        "groups": groups if groups["from"] != groups["to"] else None,
    }


def _bare(element: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in element.items() if key not in IGNORED}


def _groups(document: dict[str, Any]) -> list[Any]:
    return [_bare(group) for group in drawn_groups(document)]


def _changes(old: Any, new: Any, path: str) -> list[Change]:
    if isinstance(old, dict) and isinstance(new, dict):
        found: list[Change] = []
        for key in sorted(old.keys() | new.keys()):
            found += _changes(old.get(key), new.get(key), f"{path}.{key}" if path else key)
        return found
    return [] if old == new else [{"path": path, "from": old, "to": new}]
