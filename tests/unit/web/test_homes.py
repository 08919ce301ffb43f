"""Laws of the way home: a pin says where an element belongs; without one it belongs where it was put last."""

from __future__ import annotations

from typing import Any

import django

django.setup()

from webapp.handovers.homes import Moved, elsewhere, home_of  # noqa: E402


def document(*groups: dict[str, Any], **pins: str | None) -> dict[str, Any]:
    elements = [
        {"id": id, "type": "filter", "params": {}} | ({"node": node} if node else {})
        for id, node in pins.items()
    ]
    return {"metadata": {"name": "p"}, "spec": {"elements": elements, "groups": list(groups)}}


def move(
    origin: str, target: str, reason: str = "", restores: bool = False, by: str | None = None, at: str = "now"
) -> Moved:
    return Moved(origin, target, restores, reason, by, at)


def drained(origin: str, target: str) -> Moved:
    return move(origin, target, f"drain of {origin}", by=None)


def test_what_runs_elsewhere_than_the_draft_pins_it_is_named_with_the_reason() -> None:
    deployed = document({"id": "g", "elements": ["x", "y"]}, x="a", y="a", z="a", w=None)
    places = {"g": "b", "z": "a", "w": "b"}
    found = elsewhere(deployed, deployed, places, {"g": [drained("a", "b")]})
    assert [(each["element"], each["home"], each["node"], each["why"], each["at"]) for each in found] == [
        ("x", "a", "b", "a was drained", "now"),
        ("y", "a", "b", "a was drained", "now"),
    ]
    assert elsewhere(document(x="b", y="b"), deployed, places, {}) == []
    assert elsewhere(document(new="c"), deployed, places, {}) == [], "what does not run yet"
    (changed,) = elsewhere(document(z="c"), deployed, places, {})
    assert changed["why"] == "the draft was changed since it was deployed"


def test_what_has_no_pin_belongs_where_it_was_before_drains_and_failures() -> None:
    free, places = document(x=None), {"x": "c"}
    failed = move("b", "c", "automatically, 3.1 s after b fell silent", restores=True)
    (found,) = elsewhere(free, free, places, {"x": [failed, drained("a", "b")]})
    assert (found["home"], found["pinned"], found["why"]) == ("a", False, "b fell silent")
    assert (
        elsewhere(free, free, {"x": "a"}, {"x": [move("c", "a", by="ada"), failed, drained("a", "b")]}) == []
    )
    at_site = document(x=None)
    at_site["spec"]["elements"][0]["site"] = "hall"
    assert elsewhere(at_site, at_site, places, {"x": [failed]}) == [], "any node of its site is home"


def test_where_somebody_or_a_policy_put_it_is_home() -> None:
    assert home_of([]) is None
    assert home_of([move("a", "b", by="ada")]) is None
    assert home_of([move("a", "b", "policy calm")]) is None
    assert home_of([drained("b", "c"), move("a", "b", by="ada"), drained("x", "a")]) == "b"
    assert home_of([move("b", "b", restores=True), drained("a", "b")]) == "a", "a rewind says nothing"


def test_each_reason_has_words() -> None:
    moves = [
        drained("a", "b"),
        move("a", "b", "shutdown of a"),
        move("a", "b", "automatically, 3.1 s after a fell silent", restores=True),
        move("a", "b", restores=True, by="ada"),
        move("a", "b", "policy calm"),
        move("a", "b", by="ada"),
    ]
    assert [each.why for each in moves] == [
        "a was drained",
        "a was stopped",
        "a fell silent",
        "ada restored it",
        "the policy calm moved it",
        "ada moved it",
    ]
