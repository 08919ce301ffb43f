"""A draft follows a move exactly where it pinned the place that was left."""

from __future__ import annotations

import copy
from typing import Any

from webapp.pipelines.pins import moved_pins, pins_of, with_pins_of


def document(*groups: dict[str, Any], **pins: str | None) -> dict[str, Any]:
    elements = [
        {"id": id, "type": "filter", "params": {}} | ({"node": node} if node else {})
        for id, node in pins.items()
    ]
    return {"metadata": {"name": "p"}, "spec": {"elements": elements, "groups": list(groups)}}


def test_what_was_pinned_to_the_place_it_left_is_pinned_to_the_new_one() -> None:
    draft = document(x="a", y="a", z="c", w=None)
    before = copy.deepcopy(draft)
    moved, followed = moved_pins(draft, ["x", "z", "w", "gone"], "a", "b")
    assert followed == ["x"], "not what is pinned elsewhere, to nothing, or not there any more"
    assert pins_of(moved) == {"x": "b", "y": "a", "z": "c"}
    assert draft == before


def test_a_draft_that_follows_nothing_stays_as_it_is() -> None:
    for draft in (document(x="c"), {}, {"spec": {"elements": "none"}}, {"spec": {"elements": [7, {}]}}):
        assert moved_pins(draft, ["x"], "a", "b") == (draft, [])


def test_where_the_draft_pins_what_runs_is_nothing_to_deploy() -> None:
    deployed = document(x="a", y="a", z=None)
    for draft in (document(x="b", y=None, z="c"), document(x="a", y="a", z=None)):
        assert with_pins_of(draft, deployed, "xyz") == draft
    nulls = document(x="a", y="a", z=None)
    nulls["spec"]["elements"][0]["node"] = None
    assert with_pins_of(nulls, deployed, "xyz") == nulls, "as an editor writes that it is not pinned"


def test_but_all_else_that_differs_is() -> None:
    deployed = document(x="a", y="a")
    changed = document(x="b", y="a")
    changed["spec"]["elements"][0]["params"] = {"condition": "v > 1"}
    assert with_pins_of(changed, deployed, "xy") == document(x="b", y="a")
    assert with_pins_of(document(x="b"), deployed, "xy") == document(x="b", y="a")
    assert with_pins_of(document(x="b", y="b"), deployed, "x") == document(x="b", y="a"), "y has no node yet"
