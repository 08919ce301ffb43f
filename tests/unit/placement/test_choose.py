"""Where groups go: pins, the least loaded node, and clear refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline_runtime.placement.choose import NoPlacement, choose, choose_target, place
from pipeline_runtime.placement.constraints import Candidate, Ground, GroupToPlace
from pipeline_runtime.placement.links import ways_of_streams
from tests.oracles.spanedge import GeoGroup, Latencies, site_groups


def node(
    name: str, elements: int = 0, up: bool = True, ready: bool = True, cordoned: bool = False
) -> Candidate:
    return Candidate(name, up, ready, "cordoned" if cordoned else None, elements)


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
    leaves = GroupToPlace("g", 1, without=frozenset({"a"}))

    def target(*nodes: Candidate, planned: str = "") -> str:
        return choose_target(leaves, nodes, {"g": "a"}, planned=planned).node

    assert target(node("a"), node("b", elements=7)) == "b"
    assert target(node("a"), node("b", 7), node("c"), planned="b") == "b"
    assert target(node("a"), node("b", 7), node("c", up=False), planned="c") == "b"
    with pytest.raises(NoPlacement):
        target(node("a"), planned="a")


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


SITES = [
    Candidate("hall-1", True, True, None, 5, place="hall"),
    Candidate("hall-2", True, True, None, 3, place="hall"),
    Candidate("yard-1", True, True, None, 0, place="yard"),
    Candidate("cloud", True, True, None, 0, place="cloud"),
]
LATENCIES = {
    ("hall", "yard"): 60.0,
    ("yard", "hall"): 55.0,
    ("hall", "cloud"): 30.0,
    ("yard", "cloud"): 35.0,
    ("cloud", "hall"): 30.0,
    ("cloud", "yard"): 30.0,
}


def placed_by_latency(*groups: GroupToPlace, nodes: list[Candidate] = SITES) -> dict[str, tuple[str, str]]:
    placed, faults = place(groups, nodes, ground=Ground(LATENCIES))
    assert not faults
    return {group: (found.node, found.why) for group, found in placed.items()}


def test_a_group_goes_nearest_to_all_that_it_reads_and_there_to_the_fewest_elements() -> None:
    """In whatever order they are given."""
    groups = [
        GroupToPlace("total", 1, reads=frozenset({"a", "b"})),
        GroupToPlace("of-a", 1, reads=frozenset({"a"})),
        GroupToPlace("a", 1, pin="hall-1"),
        GroupToPlace("b", 1, pin="yard-1"),
    ]
    found = placed_by_latency(*groups)
    assert found["of-a"] == (
        "hall-2",
        "nearest to what it reads: at the same site, with the fewest elements of 2",
    )
    # 35 ms at most; in the hall it would be 55, in the yard 60.
    assert found["total"] == ("cloud", "nearest to what it reads: at most 35 ms")
    assert placed_by_latency(*reversed(groups)) == found


def test_what_is_as_near_or_not_known_goes_by_the_elements() -> None:
    groups = [GroupToPlace("a", 1, pin="hall-1"), GroupToPlace("b", 1, reads=frozenset({"a"}))]
    close, _ = place(groups, SITES, ground=Ground({("hall", "yard"): 9.0, ("hall", "cloud"): 4.0}))
    unknown, _ = place(groups, SITES)
    assert close["b"].node == unknown["b"].node == "cloud"
    assert close["b"].why == unknown["b"].why == "the fewest elements are there: none"


def test_streams_go_by_the_broker_so_what_is_near_it_is_near_all() -> None:
    """Halls near each other, and far from the broker at the cloud, do not get what reads from them."""
    between = {("hall", "yard"): 2.0, ("yard", "hall"): 2.0, ("hall", "cloud"): 30.0, ("yard", "cloud"): 35.0}
    groups = [
        GroupToPlace("a", 1, pin="hall-1"),
        GroupToPlace("b", 1, pin="yard-1"),
        GroupToPlace("total", 1, reads=frozenset({"a", "b"})),
    ]

    def total(to_broker: dict[str, float], given: dict[tuple[str, str], float]) -> tuple[str, str]:
        ways = ways_of_streams({**between, **given}, to_broker, given)
        placed, _ = place(groups, SITES, ground=Ground(ways))
        return placed["total"].node, placed["total"].why

    far = {"hall": 30.0, "yard": 35.0, "cloud": 0.5}
    assert total({}, {})[0] == "yard-1"
    assert total(far, {}) == ("cloud", "nearest to what it reads: at most 35.5 ms, by the broker")
    # What a person says counts whatever was measured.
    node, why = total(
        far, {("hall", "cloud"): 90.0, ("yard", "cloud"): 90.0, ("hall", "yard"): 2.0, ("yard", "hall"): 2.0}
    )
    assert (node, why) == ("yard-1", "nearest to what it reads: at most 2 ms, with the fewest elements of 3")
    # A site that is too new to have measured it is not near.
    assert total({"hall": 30.0, "yard": 50.0}, {})[0] == "hall-2"


def test_a_busy_node_is_not_taken_for_being_near() -> None:
    groups = [GroupToPlace("a", 1, pin="hall-1"), GroupToPlace("b", 1, reads=frozenset({"a"}))]
    busy = [replace(each, cpu_ratio=0.9 if each.place == "hall" else 0.1) for each in SITES]
    assert placed_by_latency(*groups, nodes=busy)["b"] == ("cloud", "nearest to what it reads: at most 30 ms")
    # Where all are, near is as good as far.
    busy = [replace(each, cpu_ratio=0.9) for each in SITES]
    assert placed_by_latency(*groups, nodes=busy)["b"][0] == "cloud"


def test_a_site_is_kept_to_and_where_nobody_can_take_it_the_fault_says_so() -> None:
    found = placed_by_latency(GroupToPlace("a", 1, site="hall"))
    assert found["a"] == ("hall-2", "at hall, as the draft says; the fewest elements are there: 3 elements")
    cordoned = [replace(each, closed="cordoned" if each.place == "hall" else None) for each in SITES]
    _, [fault] = place([GroupToPlace("a", 1, site="hall")], cordoned)
    assert (
        "is set to run at hall: no node can take it (hall-1 is cordoned, hall-2 is cordoned)" in fault.message
    )
    _, [fault] = place([GroupToPlace("a", 1, site="attic")], SITES)
    assert (
        fault.message == "is set to run at attic, but no node is there; add one there, or choose another site"
    )


def test_it_is_the_site_that_spanedges_scheduler_takes() -> None:
    """The oracle itself is tested on the example of the original: test_spanedge.py."""
    groups = [GroupToPlace("near-a", 1, pin="hall-1"), GroupToPlace("near-b", 1, pin="yard-1")]
    for group, origins in (("x", {"near-a"}), ("y", {"near-a", "near-b"})):
        found, _ = place(
            [*groups, GroupToPlace(group, 1, reads=frozenset(origins))], SITES, ground=Ground(LATENCIES)
        )
        sited = site_groups(
            [
                GeoGroup("near-a", frozenset({"hall"})),
                GeoGroup("near-b", frozenset({"yard"})),
                GeoGroup(group, reads=frozenset(origins)),
            ],
            Latencies(
                ("cloud", "hall", "yard"),
                ((0.0, 30.0, 30.0), (30.0, 0.0, 60.0), (35.0, 55.0, 0.0)),
            ),
        )
        assert [next(each.place for each in SITES if each.name == found[group].node)] == [*sited[group].sites]
