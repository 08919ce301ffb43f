"""Tests policies: each rule by itself, and that a changing load moves no group back and forth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.placement.policy.evaluate import evaluate
from pipeline_runtime.placement.policy.facts import GAP_S, GroupNow, Move, NodeNow, Sample, Verdict
from pipeline_runtime.placement.policy.lasting import beyond_since
from pipeline_runtime.placement.policy.look import REST_S, TRY_AGAIN_S, share_of
from pipeline_runtime.placement.policy.rules import MARGIN, BatteryBelow, CpuAbove, Policy
from pipeline_runtime.placement.policy.threshold import value_of
from tests.chosen import examples

NOW_S = 10_000.0
ABOVE_80 = CpuAbove(kind="cpu", threshold=0.8, for_s=60)
BUSY = Policy("busy", ABOVE_80)
EMPTYING = Policy("emptying", BatteryBelow(kind="battery", threshold=0.2, for_s=0))


def node(name: str, *cpu: float, **fields: object) -> NodeNow:
    """With a sample every 30 s, the last one now."""
    samples = [Sample(NOW_S - 30 * back, value) for back, value in enumerate(reversed(cpu))][::-1]
    return NodeNow(name, samples, **fields)  # type: ignore[arg-type]


def battery(name: str, level: float | None, cpu: float = 0.1, on_battery: bool = True) -> NodeNow:
    return NodeNow(name, [Sample(NOW_S, cpu, level, on_battery)])


def group(id: str, at: str = "edge-a", rows: float = 100, state: int = 0, **fields: object) -> GroupNow:
    return GroupNow(id, id, at, rows, state, **fields)  # type: ignore[arg-type]


def of(found: list[Verdict], name: str = "edge-a") -> list[tuple[str, str | None, str | None]]:
    return [(each.code, each.group, each.target) for each in found if each.node == name]


HOT = node("edge-a", 0.9, 0.9, 0.9)
COOL = node("cloud", 0.1, 0.1, 0.1)


def test_the_busiest_group_leaves_a_hot_node() -> None:
    found = evaluate([BUSY], [HOT, COOL], [group("power", rows=40), group("mean", rows=60)], [], NOW_S)
    assert of(found) == [("move", "mean", "cloud")]
    assert of(found, "cloud") == [("calm", None, None)]
    assert found[0].why == (
        "The CPU of edge-a has been above 80 %; mean is the busiest that fits elsewhere, about 54 % of the"
        " CPU; cloud has room, it would reach 64 % of its CPU."
    )


def test_what_does_not_fit_stays_and_the_next_one_goes() -> None:
    groups = [group("power", rows=30), group("mean", rows=70)]
    found = evaluate([BUSY], [HOT, node("cloud", 0.2, 0.2, 0.2)], groups, [], NOW_S)
    assert of(found) == [("no-target", "mean", None), ("move", "power", "cloud")]
    assert found[0].why == "No node can take mean: cloud would reach 83 % of its CPU, more than 70 %."


@pytest.mark.parametrize(
    ("nodes", "groups", "moves", "code"),
    [
        ([node("edge-a", 0.5), COOL], [group("g")], [], "calm"),
        ([node("edge-a", 0.5, 0.9, 0.9), COOL], [group("g")], [], "not-yet"),
        ([node("edge-a"), COOL], [group("g")], [], "unknown"),
        ([HOT, COOL], [], [], "empty"),
        ([replace(HOT, draining=True), COOL], [group("g")], [], "draining"),
        ([HOT, COOL], [group("g"), group("h")], [Move("h", "edge-a", "cloud", NOW_S - 5)], "moving"),
        ([HOT, COOL], [group("g", refusal="it is being deployed")], [], "refused"),
        ([HOT, COOL], [group("g")], [Move("g", "x", "y", NOW_S - 99, NOW_S - REST_S + 9, True)], "resting"),
        ([HOT], [group("g")], [], "no-target"),
        ([HOT, replace(COOL, refusal="is cordoned")], [group("g")], [], "no-target"),
        ([HOT, node("cloud", 0.1, 0.7, 0.1)], [group("g")], [], "no-target"),
        ([HOT, COOL], [group("g")], [Move("h", "x", "cloud", NOW_S - 5)], "no-target"),
        ([HOT, COOL], [group("g")], [Move("h", "x", "cloud", NOW_S - 50, NOW_S - 40, True)], "no-target"),
    ],
)
def test_why_nothing_is_moved(
    nodes: list[NodeNow], groups: list[GroupNow], moves: list[Move], code: str
) -> None:
    found = evaluate([BUSY], nodes, groups, moves, NOW_S)
    assert [each for each, _, _ in of(found)] == [code]


def test_a_move_begins_the_time_anew_on_both_its_nodes() -> None:
    nodes = [HOT, node("cloud", *([0.1] * 9))]
    moves = [Move("h", "edge-a", "edge-b", NOW_S - 40, NOW_S - 35, True)]
    assert of(evaluate([BUSY], nodes, [group("g")], moves, NOW_S)) == [("not-yet", None, None)]


def test_a_budget_is_of_the_policys_own_moves_in_the_last_hour() -> None:
    ended = [Move(f"{i}", "x", "y", NOW_S - 3000, NOW_S - 2900, True, "busy") for i in range(6)]
    groups = [group("g", rows=1), group("rest", rows=99, refusal="it has failed")]
    assert of(evaluate([BUSY], [HOT, COOL], groups, ended, NOW_S))[1] == ("budget", "g", "cloud")
    others = [replace(move, policy=None) for move in ended]
    assert of(evaluate([BUSY], [HOT, COOL], groups, others, NOW_S))[1] == ("move", "g", "cloud")
    old = [replace(move, at_s=NOW_S - 3601) for move in ended]
    assert of(evaluate([BUSY], [HOT, COOL], groups, old, NOW_S))[1] == ("move", "g", "cloud")


def test_two_hot_nodes_do_not_send_to_the_same_at_once() -> None:
    nodes = [HOT, replace(HOT, name="edge-b"), node("cloud", 0.0, 0.0, 0.0)]
    groups = [group("a", rows=1), group("a2", rows=2), group("b", "edge-b", 1), group("b2", "edge-b", 2)]
    found = evaluate([BUSY], nodes, groups, [], NOW_S)
    assert of(found) == [("move", "a2", "cloud")]
    assert {code for code, _, _ in of(found, "edge-b")} == {"no-target"}


def test_advice_stays_while_it_fits() -> None:
    nodes = [HOT, COOL, node("edge-b", 0.2, 0.2, 0.2)]
    groups = [group("g", rows=49), group("h", rows=51)]
    assert of(evaluate([BUSY], nodes, groups, [], NOW_S)) == [("move", "h", "cloud")]
    assert of(evaluate([BUSY], nodes, groups, [], NOW_S, {"g": "edge-b"})) == [("move", "g", "edge-b")]
    full = [HOT, COOL, node("edge-b", 0.6, 0.6, 0.6)]
    assert of(evaluate([BUSY], full, groups, [], NOW_S, {"g": "edge-b"})) == [("move", "g", "cloud")]


def test_a_share_is_of_cores_not_of_ratios() -> None:
    small, big = replace(HOT, cores=2), replace(node("cloud", 0.5, 0.5, 0.5), cores=16)
    assert of(evaluate([BUSY], [small, big], [group("g")], [], NOW_S)) == [("move", "g", "cloud")]
    assert share_of(group("g", rows=0), [group("g", rows=0), group("h", rows=0)], 0.6) == 0.3


def test_hysteresis() -> None:
    def since(*cpu: float) -> tuple[float | None, bool]:
        return beyond_since(ABOVE_80, node("n", *cpu).samples, value_of(ABOVE_80))

    assert since(0.9, 0.9) == (NOW_S - 30, False)
    assert since(0.9, 0.9, 0.9) == (NOW_S - 60, True)
    assert since(0.9, 0.75, 0.9, 0.9)[1] is False  # not in one go
    assert since(0.9, 0.9, 0.9, 0.75)[1] is True  # not over yet
    assert since(0.9, 0.9, 0.9, 0.69) == (None, False)
    with_a_gap = [Sample(0, 0.9), Sample(GAP_S + 1, 0.9), Sample(GAP_S + 31, 0.9)]
    assert beyond_since(ABOVE_80, with_a_gap, value_of(ABOVE_80)) == (GAP_S + 1, False)


# -- batteries -------------------------------------------------------------------------------------------


def test_off_a_battery_the_least_state_leaves_first() -> None:
    groups = [group("big", state=9), group("small", state=1), group("none", rows=1), group("busy", rows=2)]
    nodes, moves, order = [battery("edge-a", 0.1), battery("cloud", None, 0.0)], [], []
    while any(each.node == "edge-a" for each in groups):
        [(code, id, target)] = of(evaluate([EMPTYING], nodes, groups, moves, NOW_S))
        assert (code, target) == ("move", "cloud")
        order.append(id)
        groups = [replace(each, node="cloud") if each.id == id else each for each in groups]
        moves.append(Move(str(id), "edge-a", "cloud", NOW_S, NOW_S, done=True))
    assert order == ["busy", "none", "small", "big"]


def test_no_battery_that_is_low_takes_what_leaves_another() -> None:
    nodes = [battery("edge-a", 0.1), battery("edge-b", 0.25), battery("edge-c", 0.05, on_battery=False)]
    assert of(evaluate([EMPTYING], nodes, [group("g")], [], NOW_S)) == [("move", "g", "edge-c")]
    found = evaluate([EMPTYING], nodes[:2], [group("g")], [], NOW_S)
    assert found[0].why == "No node can take g: edge-b is on battery itself, at 25 %."


def test_a_battery_does_not_wait_for_room() -> None:
    """It prefers nodes that stay under the CPU's threshold; else it takes the one that is least busy."""
    dying, busy, full = battery("edge-a", 0.1, 0.5), battery("b", None, 0.65), battery("c", None, 0.99)
    free = battery("z", None, 0.1)
    both = [BUSY, EMPTYING]
    assert of(evaluate(both, [dying, full, busy, free], [group("g")], [], NOW_S))[0] == ("move", "g", "z")
    assert of(evaluate(both, [dying, full, busy], [group("g")], [], NOW_S))[0] == ("move", "g", "b")


def test_a_battery_on_mains_is_none_that_runs_down() -> None:
    nodes = [battery("edge-a", 0.05, on_battery=False), battery("cloud", None)]
    found = evaluate([EMPTYING], nodes, [group("g")], [], NOW_S)
    assert of(found) == [("calm", None, None)]
    assert of(found, "cloud") == [("unknown", None, None)]


def test_off_a_battery_a_group_rests_only_after_a_failure() -> None:
    nodes = [battery("edge-a", 0.1), battery("cloud", None)]
    just = Move("g", "x", "edge-a", NOW_S - 9, NOW_S - 1, done=True)
    assert of(evaluate([EMPTYING], nodes, [group("g")], [just], NOW_S))[0][0] == "move"
    failed = replace(just, done=False)
    assert of(evaluate([EMPTYING], nodes, [group("g")], [failed], NOW_S))[0][0] == "resting"
    earlier = replace(failed, ended_s=NOW_S - TRY_AGAIN_S)
    assert of(evaluate([EMPTYING], nodes, [group("g")], [earlier], NOW_S))[0][0] == "move"


# -- load that flaps ---------------------------------------------------------------------------------------


class World:
    """Nodes whose CPU is what their groups use, and moves that take effect at once."""

    def __init__(self, policy: Policy, nodes: int, homes: list[int]) -> None:
        self.policy = policy
        self.names = [f"n{i}" for i in range(nodes)]
        self.groups = [group(f"g{i}", f"n{home % nodes}") for i, home in enumerate(homes)]
        self.samples: dict[str, list[Sample]] = {name: [] for name in self.names}
        self.moves: list[Move] = []

    def step(self, now_s: float, load: Callable[[str], float]) -> None:
        for name in self.names:
            used = sum(load(each.id) for each in self.groups if each.node == name)
            self.samples[name].append(Sample(now_s, min(1.0, used)))
        self.groups = [replace(each, rows_per_s=load(each.id)) for each in self.groups]
        nodes = [NodeNow(name, self.samples[name]) for name in self.names]
        for verdict in evaluate([self.policy], nodes, self.groups, self.moves, now_s):
            if verdict.code == "move":
                self.moves.append(
                    Move(
                        str(verdict.group),
                        verdict.node,
                        str(verdict.target),
                        now_s,
                        now_s,
                        True,
                        self.policy.name,
                    )
                )
                self.groups = [
                    replace(each, node=str(verdict.target)) if each.id == verdict.group else each
                    for each in self.groups
                ]


STEPS = 240  # of 30 s: two hours


@settings(max_examples=30, deadline=None)
@given(swings=st.lists(st.floats(-0.09, 0.15), min_size=STEPS, max_size=STEPS))
def test_load_that_flaps_around_the_threshold_moves_nothing_when_it_is_never_above_for_long(
    swings: list[float],
) -> None:
    world = World(BUSY, 2, [0, 0])
    for i, swing in enumerate(swings):
        # Each third sample is under the threshold, so it is never above for 60 s in one go.
        both = ABOVE_80.threshold + (-abs(swing) if i % 3 == 2 else swing)
        world.step(30.0 * i, lambda id, both=both: both / 2)  # type: ignore[misc]
    assert world.moves == []


@settings(max_examples=30, deadline=None)
@given(data=st.data(), homes=st.lists(st.integers(0, 2), min_size=1, max_size=5))
def test_whatever_the_load_does_a_group_rests_and_a_budget_is_kept(
    data: st.DataObject, homes: list[int]
) -> None:
    policy = replace(BUSY, moves_per_hour=data.draw(st.integers(1, 6)))
    world = World(policy, 3, homes)
    levels = data.draw(
        st.lists(
            st.lists(st.floats(0, 0.9), min_size=len(homes), max_size=len(homes)), min_size=1, max_size=12
        )
    )
    long = data.draw(st.integers(1, 40))  # how many samples it stays at a level
    for i in range(STEPS):
        now = levels[i // long % len(levels)]
        world.step(30.0 * i, lambda id, now=now: now[int(id[1:])])  # type: ignore[misc]
    for each in world.groups:
        own = [move.at_s for move in world.moves if move.group == each.id]
        assert all(later - earlier >= REST_S for earlier, later in pairwise(own))
    at = [move.at_s for move in world.moves]
    assert all(sum(1 for t in at if s <= t < s + 3600) <= policy.moves_per_hour for s in at)


@settings(max_examples=examples(50), deadline=None)
@given(loads=st.lists(st.floats(0.01, 0.95), min_size=1, max_size=6), homes=st.lists(st.integers(0, 2)))
def test_load_that_stays_comes_to_rest(loads: list[float], homes: list[int]) -> None:
    """Steady load moves no group twice: what comes to a node leaves it under the threshold, so it stays."""
    world = World(replace(BUSY, moves_per_hour=60), 3, [*homes, *([0] * len(loads))][: len(loads)])
    for i in range(STEPS):
        world.step(30.0 * i, lambda id: loads[int(id[1:])])
    moved = [move.group for move in world.moves]
    assert len(moved) == len(set(moved)) <= len(loads)


def test_a_policy_that_could_never_act_is_refused() -> None:
    with pytest.raises(ValueError, match="threshold"):
        CpuAbove(kind="cpu", threshold=MARGIN, for_s=60)
    with pytest.raises(ValueError, match="threshold"):
        BatteryBelow(kind="battery", threshold=1.0, for_s=1)
