"""Where groups go: pins, the least loaded node, and clear refusals."""

from __future__ import annotations

import pytest

from pipeline_runtime.placement.choose import (
    Candidate,
    GroupToPlace,
    NoPlacement,
    choose,
    choose_target,
    place,
)


def node(
    name: str, elements: int = 0, up: bool = True, ready: bool = True, cordoned: bool = False
) -> Candidate:
    return Candidate(name, up, ready, cordoned, elements)


def test_the_fewest_elements_win_and_equals_go_by_name() -> None:
    groups = [GroupToPlace("g1", 1), GroupToPlace("g2", 1), GroupToPlace("g3", 1)]
    placed = choose(groups, [node("b"), node("a"), node("c", elements=5)])
    assert placed == {"g1": "a", "g2": "b", "g3": "a"}


def test_a_pin_is_obeyed_and_counts_as_load() -> None:
    groups = [GroupToPlace("free", 1), GroupToPlace("pinned", 3, pin="a")]
    assert choose(groups, [node("a"), node("b", elements=2)]) == {"pinned": "a", "free": "b"}


def test_a_pinned_node_may_still_be_starting() -> None:
    assert choose([GroupToPlace("g", 1, pin="a")], [node("a", ready=False)]) == {"g": "a"}


@pytest.mark.parametrize(
    "other", [node("x", up=False), node("x", ready=False), node("x", cordoned=True)], ids=lambda n: repr(n)
)
def test_nothing_new_goes_where_it_cannot_run(other: Candidate) -> None:
    assert choose([GroupToPlace("g", 1)], [other, node("y", elements=9)]) == {"g": "y"}


def test_a_running_group_without_a_pin_stays() -> None:
    assert choose([GroupToPlace("g", 1)], [node("a", 9, cordoned=True), node("b")], {"g": "a"}) == {"g": "a"}


def test_every_group_without_a_place_is_named() -> None:
    groups = [GroupToPlace("g1", 1, pin="nowhere"), GroupToPlace("g2", 1, pin="a"), GroupToPlace("g3", 1)]
    with pytest.raises(NoPlacement) as refused:
        choose(groups, [node("a", up=False), node("b", cordoned=True)])
    assert {fault.group for fault in refused.value.faults} == {"g1", "g2", "g3"}
    text = str(refused.value)
    assert "'nowhere', which does not exist; registered nodes: a, b" in text
    assert "a, which does not answer" in text
    assert "b is cordoned" in text


def test_a_target_is_never_the_node_that_is_left() -> None:
    assert choose_target("g", 1, "a", [node("a"), node("b", elements=7)]) == "b"
    assert choose_target("g", 1, "a", [node("a"), node("b", 7), node("c")], planned="b") == "b"
    assert choose_target("g", 1, "a", [node("a"), node("b", 7), node("c", up=False)], planned="c") == "b"
    with pytest.raises(NoPlacement):
        choose_target("g", 1, "a", [node("a")])


def test_what_it_was_chosen_by_is_said_for_later() -> None:
    def then(*nodes: Candidate, pin: str | None = None) -> str:
        placed, _ = place([GroupToPlace("g", 1, pin, "the document pins it there")], nodes)
        return placed["g"].then

    assert (
        then(node("a", 2), node("b", 1)) == "it had the fewest elements (1) of the 2 nodes that could take it"
    )
    assert then(node("a"), node("b", cordoned=True), node("c", up=False)) == (
        "it was the only node that could take it; b was cordoned, c did not answer"
    )
    away = [node(name, ready=False) for name in "bcdef"]
    assert then(node("a"), *away).endswith(
        "; b was still starting, c was still starting, d was still starting and 2 more could not"
    )
    assert then(node("a"), pin="a") == "the document pins it there"
