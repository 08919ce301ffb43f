"""Backup locations: the problem, the published algorithm, and ours."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.placement.recovery import (
    Link,
    Places,
    RecoveryGroup,
    RecoveryNode,
    RecoveryProblem,
    rejected,
)
from pipeline_runtime.placement.recovery_plan import plan_recovery
from tests.fog import fog
from tests.oracles.recovery_faults import faults, total_s
from tests.oracles.recovery_published import plan_published

LOOKS = 300
SIZES = st.tuples(st.integers(1, 30), st.integers(3, 12), st.integers(0, 10**6), st.sampled_from([1.0, 3.0]))


def group(name: str, node: str, **more: float) -> RecoveryGroup:
    given_ = {"cpu": 1.0, "backup_bytes": 100.0, "store_bytes_per_s": 1.0} | more
    return RecoveryGroup(name, node, **given_)


def line(*groups: RecoveryGroup, width: float = 10.0, spare: float = 1.0) -> RecoveryProblem:
    """Nodes a - b - c - d."""
    nodes = [RecoveryNode(name, spare, 50.0) for name in "abcd"]
    return RecoveryProblem(nodes, [Link(*pair, width) for pair in ("ab", "bc", "cd")], groups)


def named(problem: RecoveryProblem, plan: dict[str, Places | None]) -> dict[str, str | None]:
    return {
        group: None if places is None else "".join(problem.nodes[at].name for at in places)
        for group, places in plan.items()
    }


# --- the problem


def test_a_way_has_the_fewest_links_and_of_those_the_widest() -> None:
    nodes = [RecoveryNode(name, 1, 50) for name in "ad"]
    links = [Link("a", "x", 9), Link("x", "d", 2), Link("a", "y", 5), Link("y", "d", 4), Link("d", "a", 1)]
    direct = RecoveryProblem(nodes, links, [])
    assert direct.ways[0, 1].tolist() == [4]
    assert direct.fetch[0, 1] == 0.5, "half of it"
    around = RecoveryProblem(nodes, links[:-1], [])
    assert around.ways[0, 1].tolist() == [2, 3]
    assert (around.fetch[0, 1], around.fetch[0, 0]) == (2, 50)


def test_nodes_that_cannot_reach_each_other_and_groups_on_no_node_are_refused() -> None:
    with pytest.raises(ValueError, match="no link leads from a to b"):
        RecoveryProblem([RecoveryNode("a", 1, 1), RecoveryNode("b", 1, 1)], [], [])
    with pytest.raises(ValueError, match="g runs on no node here"):
        RecoveryProblem([RecoveryNode("a", 1, 1)], [], [group("g", "z")])


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ({"g": Places(0, 1)}, ["g would be lost with the node that it runs on"]),
        ({"g": Places(1, 0)}, ["g would be lost with the node that it runs on"]),
        ({"g": Places(1, 2), "h": Places(1, 1)}, ["the link b - c carries 5 of 4 bytes/s when a has failed"]),
        ({"g": Places(1, 1), "h": Places(1, 1)}, ["b runs 2.00 cores more than its 1.00 when a has failed"]),
        ({"g": Places(1, 1), "h": Places(2, 2)}, []),
        ({"g": Places(1, 1), "h": None}, []),
    ],
)
def test_each_node_is_let_fail_and_what_does_not_fit_is_named(
    places: dict[str, Places | None], words: list[str]
) -> None:
    """A group fetches at 2 bytes/s, half of 4, while the neighbour's group still stores 3."""
    problem = line(group("g", "a"), group("h", "a"), group("far", "b", store_bytes_per_s=3.0), width=4.0)
    assert faults(problem, {**places, "h": places.get("h"), "far": Places(2, 2)}) == words


# --- the published algorithm


def test_published_first_the_urgent_ones_to_the_nearest_node() -> None:
    problem = line(group("late", "a", latency_ms=9), group("urgent", "a", latency_ms=1))
    assert named(problem, plan_published(problem)) == {"urgent": "bb", "late": "cc"}


def test_published_groups_of_different_nodes_share_cpu_since_one_fails_at_a_time() -> None:
    problem = line(group("g", "a"), group("h", "c"))
    assert named(problem, plan_published(problem)) == {"g": "bb", "h": "bb"}


def test_published_phase_two_as_printed_sends_over_a_link_that_is_full() -> None:
    """The way from a is used up by the first, and b has no CPU left."""
    problem = line(group("g", "a", store_bytes_per_s=8.0), group("h", "a", store_bytes_per_s=8.0))
    printed, tested = plan_published(problem), plan_published(problem, tested=True)
    assert named(problem, tested) == {"g": "bb", "h": None}
    assert named(problem, printed)["g"] == "bb"
    assert printed["h"] is not None
    assert any("the link a - b carries 16 of 10" in fault for fault in faults(problem, printed))


# --- ours


@settings(max_examples=30)
@given(SIZES)
def test_a_plan_holds_whatever_node_fails_and_costs_no_less_than_it_can(
    size: tuple[int, int, int, float],
) -> None:
    problem = fog(*size[:3], tight=size[3])
    plan = plan_recovery(problem, looks=LOOKS)
    assert faults(problem, plan) == []
    if not rejected(plan):
        assert total_s(problem, plan) >= problem.alone_s().sum() * (1 - 1e-9)


def test_two_that_store_where_a_group_sends_from_make_room_together() -> None:
    """a has the fastest disk, and a link of 10 on which two store 4 each; its own group sends 8."""
    nodes = [RecoveryNode("a", 1, 100.0), *(RecoveryNode(name, 1, 50.0) for name in "bcd")]
    links = [Link("a", "hub", 10.0), *(Link(name, "hub", 100.0) for name in "bcd")]
    others = [group(name, name, store_bytes_per_s=4.0) for name in "bc"]
    problem = RecoveryProblem(nodes, links, [group("g", "a", cpu=0.1, store_bytes_per_s=8.0), *others])
    assert named(problem, plan_recovery(problem, looks=0)) == {"g": None, "b": "aa", "c": "aa"}
    plan = plan_recovery(problem)
    assert (rejected(plan), faults(problem, plan)) == ([], [])


def test_where_there_is_no_other_node_everything_is_rejected() -> None:
    problem = RecoveryProblem([RecoveryNode("a", 9, 50)], [], [group("g", "a")])
    assert plan_recovery(problem) == plan_published(problem) == {"g": None}


@settings(max_examples=30)
@given(SIZES)
def test_repair_rejects_no_more_and_local_search_costs_no_more(size: tuple[int, int, int, float]) -> None:
    problem = fog(*size[:3], tight=size[3])
    before, after = plan_recovery(problem, looks=0), plan_recovery(problem, looks=LOOKS)
    assert len(rejected(after)) <= len(rejected(before))
    if len(rejected(after)) == len(rejected(before)):
        assert total_s(problem, after) <= total_s(problem, before) * (1 + 1e-9)


@settings(max_examples=30)
@given(SIZES, st.randoms(use_true_random=False))
def test_other_names_and_another_order_change_nothing(
    size: tuple[int, int, int, float], random: Random
) -> None:
    problem = fog(*size[:3], tight=size[3])
    plan, other = plan_recovery(problem, looks=LOOKS), relabelled(problem, random)
    again = plan_recovery(other, looks=LOOKS)
    assert len(rejected(again)) == len(rejected(plan))
    assert total_s(other, again) == pytest.approx(total_s(problem, plan))


def relabelled(problem: RecoveryProblem, random: Random) -> RecoveryProblem:
    names = [node.name for node in problem.nodes]
    called = dict(zip(names, random.sample(names, len(names)), strict=True))

    nodes = [replace(node, name=called[node.name]) for node in problem.nodes]
    links = [
        replace(link, a=called.get(link.a, link.a), b=called.get(link.b, link.b)) for link in problem.links
    ]
    groups = [replace(group, node=called[group.node]) for group in problem.groups]
    for items in (nodes, links, groups):
        random.shuffle(items)
    return RecoveryProblem(nodes, links, groups)


@settings(max_examples=30)
@given(SIZES)
def test_what_is_planned_stays_as_it_is(size: tuple[int, int, int, float]) -> None:
    problem = fog(*size[:3], tight=size[3])
    plan = plan_recovery(problem, looks=LOOKS)
    again = plan_recovery(problem, plan, looks=LOOKS)
    if not rejected(plan):
        assert again == plan
    elif again != plan:
        assert len(rejected(again)) < len(rejected(plan)), "nothing moves but to make room"


def test_when_a_node_is_gone_only_what_lay_there_goes_elsewhere() -> None:
    problem = fog(20, 8, 1)
    plan = plan_recovery(problem)
    assert not rejected(plan)
    gone = max(
        range(8), key=lambda node: sum(places is not None and node in places for places in plan.values())
    )
    nodes = [
        RecoveryNode(node.name, 0.0 if at == gone else node.cpu_spare, node.disk_bytes_per_s)
        for at, node in enumerate(problem.nodes)
    ]
    again = plan_recovery(RecoveryProblem(nodes, problem.links, problem.groups), plan)
    moved = {name for name, places in again.items() if places != plan[name]}
    assert moved == {name for name, places in plan.items() if places is not None and places.redeploy == gone}
