"""Compares the pins of a document with the nodes on which its elements run. Pure.

If a user moves an element by hand, and the draft pinned the element to the node that it left, the draft's pin
moves, too. All other pins stay: after a drain, a restoration or a policy's move, and if the draft pins the
element to any other place. The dashboard shows the difference to the running elements (`handovers/homes.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from webapp.pipelines.shape import elements_of, groups_of


def pins_of(document: dict[str, Any]) -> dict[str, str]:
    """Returns element -> the node to which the document pins it."""
    return {
        element["id"]: element["node"]
        for element in elements_of(document)
        if isinstance(element.get("node"), str)
    }


def pinned_elements(document: dict[str, Any]) -> set[str]:
    """Returns the elements that are pinned to a node or a site."""
    at_site = {element["id"] for element in elements_of(document) if isinstance(element.get("site"), str)}
    return at_site | pins_of(document).keys()


def moved_pins(
    document: dict[str, Any], elements: Collection[str], origin: str, target: str
) -> tuple[dict[str, Any], list[str]]:
    """Returns the document in which `elements` that were pinned to `origin` are pinned to `target`. Also
    returns these elements."""
    pins = pins_of(document)
    followed = [id for id in elements if pins.get(id) == origin]
    if not followed:
        return document, []
    items = [
        {**item, "node": target} if isinstance(item, dict) and item.get("id") in followed else item
        for item in document["spec"]["elements"]
    ]
    return {**document, "spec": {**document["spec"], "elements": items}}, followed


def with_pins_of(draft: dict[str, Any], deployed: dict[str, Any], groups: Collection[str]) -> dict[str, Any]:
    """Returns the deployed document with the draft's pins for running elements. A deployment moves no running
    element, so such pins are no difference; `elsewhere` reports them. `groups` are the groups that have a
    node."""
    if pins_of(draft) == pins_of(deployed):
        return deployed
    running = {id for group, ids in groups_of(deployed).items() if group in groups for id in ids}
    wanted = {element["id"]: element for element in elements_of(draft) if element["id"] in running}
    elements = [
        {key: value for key, value in item.items() if key != "node"}
        | ({"node": wanted[item["id"]]["node"]} if "node" in wanted[item["id"]] else {})
        if isinstance(item, dict) and item.get("id") in wanted
        else item
        for item in deployed["spec"]["elements"]
    ]
    return {**deployed, "spec": {**deployed["spec"], "elements": elements}}
