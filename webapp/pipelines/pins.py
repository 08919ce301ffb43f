"""Where a document pins its elements, and where they run. Pure.

What runs is moved by hand, by a drain or by a restoration. If a draft pinned an element to the place it was
moved from, the pin follows, since otherwise the next deployment would move it back without a word. If the
draft pins it anywhere else, that was intended and stays; the difference to what runs is shown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from webapp.pipelines.schemas import Elsewhere
from webapp.pipelines.shape import elements_of, groups_of


def pins_of(document: dict[str, Any]) -> dict[str, str]:
    """Returns element -> the node that it is pinned to."""
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
    """Returns the document with `elements` pinned to `target` that were pinned to `origin`, and which those
    are."""
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
    """Returns the deployed document with the draft's pins for what runs. Deploying moves nothing that runs,
    so these are no difference; `elsewhere` reports them. `groups` are those that have a node."""
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


def elsewhere(draft: dict[str, Any], deployed: dict[str, Any], places: Mapping[str, str]) -> list[Elsewhere]:
    """Returns [{"element", "pinned", "node"}] for elements that run on another node than the draft pins them
    to."""
    pins = pins_of(draft)
    if not pins:
        return []
    runs_on = {
        id: places[group] for group, ids in groups_of(deployed).items() if group in places for id in ids
    }
    return [
        {"element": id, "pinned": pin, "node": runs_on[id]}
        for id, pin in pins.items()
        if id in runs_on and runs_on[id] != pin
    ]
