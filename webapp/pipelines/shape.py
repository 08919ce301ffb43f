"""Reads the groups, the names and the kinds of elements from a document or draft."""

from __future__ import annotations

from typing import Any

from pipeline_runtime.model.names import element_name, group_name
from pipeline_runtime.operators.registry import OperatorUnknown, default_registry
from pipeline_runtime.operators.sdk import ViewOperator


def metadata_of(document: dict[str, Any]) -> dict[str, Any]:
    return _mapping(document.get("metadata"))


def elements_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the elements that have an id, in the document's order."""
    return [element for element in _mappings(document, "elements") if isinstance(element.get("id"), str)]


def element_of(document: dict[str, Any], id: str) -> dict[str, Any] | None:
    return next((element for element in elements_of(document) if element["id"] == id), None)


def drawn_groups(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the groups that the user has drawn, in their form in the document."""
    return _mappings(document, "groups")


def group_of(document: dict[str, Any], element: str) -> str:
    """Returns the group in which an element runs: the drawn one, or else its own."""
    for group in drawn_groups(document):
        members = group.get("elements")
        if isinstance(members, list) and element in members and isinstance(group.get("id"), str):
            return str(group["id"])
    return element


def groups_of(document: dict[str, Any]) -> dict[str, list[str]]:
    """Returns group -> its elements, in the document's order."""
    drawn = {
        member: str(group["id"])
        for group in reversed(drawn_groups(document))
        if isinstance(group.get("id"), str) and isinstance(group.get("elements"), list)
        for member in group["elements"]
        if isinstance(member, str)
    }
    found: dict[str, list[str]] = {}
    for element in elements_of(document):
        found.setdefault(drawn.get(element["id"], element["id"]), []).append(element["id"])
    return found


def apart_of(document: dict[str, Any]) -> dict[str, set[str]]:
    """Returns element -> the elements with which it must not share a node. It is enough that one of the two
    says so."""
    found: dict[str, set[str]] = {}
    for element in elements_of(document):
        others = element.get("apart")
        for other in others if isinstance(others, list | tuple) else ():
            found.setdefault(element["id"], set()).add(str(other))
            found.setdefault(str(other), set()).add(element["id"])
    return found


def names_of(document: dict[str, Any]) -> dict[str, str]:
    """Returns the id of each element and group -> the name that users see."""
    names = {element["id"]: _name(element) for element in elements_of(document)}
    members = groups_of(document)
    for group in drawn_groups(document):
        id = group.get("id")
        if isinstance(id, str) and id in members:
            names[id] = group_name(group.get("title"), [names[member] for member in members[id]])
    return names


def _name(element: dict[str, Any]) -> str:
    type_ = str(element.get("type"))
    registry = default_registry()
    operator_title = registry.get(type_).title if type_ in registry else None
    return element_name(element["id"], type_, element.get("title"), operator_title)


def is_view(type_: object) -> bool:
    """Returns whether the element is a view: the dashboard shows it, and no node runs it."""
    try:
        return issubclass(default_registry().get(str(type_)), ViewOperator)
    except OperatorUnknown:
        return False


def goes_by_clock(element: dict[str, Any]) -> bool:
    """Returns whether the node's clock sets the times of the element's rows, or changes its results."""
    params = _mapping(element.get("params"))
    match element.get("type"):
        case "generator":
            return True
        case "csv-replay":
            return params.get("restamp") is not False
        case _:
            return "_batch_time" in str(params)


def _mappings(document: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Returns the readable entries of `spec.<key>`."""
    items = _mapping(document.get("spec")).get(key)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
