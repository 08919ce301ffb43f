"""Spread and pack."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.placement.policy.evaluate import evaluate
from pipeline_runtime.placement.policy.facts import GroupNow, Move, NodeNow, Sample
from pipeline_runtime.placement.policy.look import REST_S
from pipeline_runtime.placement.policy.replay import Past, replay
from pipeline_runtime.placement.policy.rules import BatteryBelow, CpuAbove, Pack, Policy, Spread
from tests.chosen import examples

NOW_S = 10_000.0
EVEN = Policy("even", Spread(kind="spread", difference=0.35, for_s=60))
FEW = Policy("few", Pack(kind="pack", threshold=0.8, for_s=60))

Said = list[tuple[str, str, str | None, str | None]]


def node(name: str, *cpu: float) -> NodeNow:
    """With a sample every 30 s, the last one now."""
    samples = [Sample(NOW_S - 30 * back, value) for back, value in enumerate(reversed(cpu))][::-1]
    return NodeNow(name, samples)


def group(id: str, at: str, rows: float = 100) -> GroupNow:
    return GroupNow(id, id, at, rows)


def said(policy: Policy, nodes: list[NodeNow], groups: list[GroupNow], moves: tuple[Move, ...] = ()) -> Said:
    found = evaluate([policy], nodes, groups, moves, NOW_S)
    return [(each.node, each.code, each.group, each.target) for each in found if each.code != "calm"]


HIGH, LOW, MIDDLE = node("a", *[0.7] * 3), node("b", *[0.1] * 3), node("c", *[0.4] * 3)


def test_what_narrows_the_difference_goes_to_the_least_busy_node() -> None:
    # With all of it, b would be busier than a is now.
    groups = [group("g", "a", 60), group("h", "a", 40)]
    assert said(EVEN, [HIGH, LOW, MIDDLE], groups) == [("a", "move", "g", "b")]
    assert said(EVEN, [HIGH, LOW, MIDDLE], groups[:1]) == [("a", "no-target", "g", None)]
    assert said(EVEN, [HIGH, MIDDLE], groups) == []  # 30 points are not too many
    assert said(EVEN, [HIGH, replace(LOW, refusal="is cordoned"), MIDDLE], groups) == []


@pytest.mark.parametrize(
    ("nodes", "moves"),
    [
        ([node("a", 0.5, 0.3, 0.7), LOW], ()),
        ([HIGH, node("b", 0.1, 0.6, 0.1)], ()),
        ([node("a", 0.7), LOW], ()),
        ([HIGH, LOW], (Move("x", "a", "c", NOW_S - 50, NOW_S - 40, True),)),
    ],
)
def test_a_difference_has_to_last(nodes: list[NodeNow], moves: tuple[Move, ...]) -> None:
    groups = [group("g", "a", 60), group("h", "a", 40)]
    assert said(EVEN, nodes, groups, moves) == [("a", "not-yet", None, None)]


def test_nothing_is_spread_to_where_a_battery_runs_down() -> None:
    weak = replace(LOW, samples=[replace(each, battery_ratio=0.15, on_battery=True) for each in LOW.samples])
    night = Policy("night", BatteryBelow(kind="battery", threshold=0.2, for_s=0))
    groups = [group("g", "a", 60), group("h", "a", 40)]
    found = evaluate([EVEN, night], [HIGH, weak], groups, [], NOW_S)
    assert "move" not in [each.code for each in found]
    # Nor by a policy of the CPU.
    busy = Policy("busy", CpuAbove(kind="cpu", threshold=0.6, for_s=60))
    found = evaluate([busy, night], [HIGH, weak], groups, [], NOW_S)
    assert {each.why for each in found if each.code == "no-target"} == {
        f"No node can take {id}: b is on battery itself, at 15 %." for id in "gh"
    }


def test_the_least_busy_node_is_emptied_when_all_of_it_fits_on_busier_ones() -> None:
    groups = [group("g", "b", 60), group("h", "b", 40), group("i", "a"), group("j", "c")]
    # g to where the least room is left: a would reach 76 %.
    assert said(FEW, [HIGH, LOW, MIDDLE], groups) == [("b", "move", "g", "c")]
    [verdict] = [each for each in evaluate([FEW], [HIGH, LOW, MIDDLE], groups, [], NOW_S) if each.group]
    assert verdict.why == (
        "All that b runs fits on nodes that are busier; c has room, it would reach 46 % of its CPU."
    )
    assert said(FEW, [HIGH, LOW, replace(MIDDLE, refusal="is cordoned")], groups) == []
    assert said(FEW, [HIGH, LOW, MIDDLE], groups[:3]) == []  # c runs nothing: it is not begun with
    kept = replace(groups[0], refusal="it has failed")
    assert said(FEW, [HIGH, LOW, MIDDLE], [kept, *groups[1:]]) == []


def test_packing_goes_on_one_group_after_another() -> None:
    groups = [group("g", "c"), group("h", "b"), group("j", "c")]
    just = Move("g", "b", "c", NOW_S - 30, NOW_S - 20, True, "few")
    assert said(FEW, [LOW, MIDDLE], groups, (just,)) == []  # c is watched first
    long_ago = replace(just, at_s=NOW_S - 90, ended_s=NOW_S - 80)
    assert said(FEW, [LOW, MIDDLE], groups, (long_ago,)) == [("b", "move", "h", "c")]
    under_way = Move("g", "b", "x", NOW_S - 5)
    assert said(FEW, [LOW, MIDDLE], groups, (under_way,)) == [("b", "moving", None, None)]


def test_a_budget() -> None:
    spent = tuple(Move(f"{i}", "x", "y", NOW_S - 900, NOW_S - 800, True, "few") for i in range(6))
    groups = [group("h", "b"), group("j", "c")]
    assert said(FEW, [LOW, MIDDLE], groups, spent) == [("b", "budget", "h", "c")]


def test_both_are_tried_on_the_past() -> None:
    history = {
        name: [Sample(30.0 * i, cpu) for i in range(40)] for name, cpu in (("a", 0.7), ("b", 0.1), ("c", 0.4))
    }
    groups = [group("g", "a", 60), group("h", "a", 40), group("k", "b"), group("j", "c")]
    nodes = [NodeNow(name, ()) for name in "abc"]
    assert [(act.group, act.target) for act in replay(EVEN, Past(history), nodes, groups).acts] == [
        ("g", "b")
    ]
    assert [(act.group, act.target) for act in replay(FEW, Past(history), nodes, groups).acts] == [("k", "c")]


@settings(max_examples=examples(40), deadline=None)
@given(
    policy=st.sampled_from([EVEN, FEW]),
    budget=st.integers(1, 20),
    loads=st.lists(st.floats(0.01, 0.6), min_size=1, max_size=6),
    homes=st.lists(st.integers(0, 2), min_size=6, max_size=6),
)
def test_load_that_stays_comes_to_rest(
    policy: Policy, budget: int, loads: list[float], homes: list[int]
) -> None:
    """Four hours. Nothing goes back to where it just came from, and in the last hour nothing moves."""
    policy, names = replace(policy, moves_per_hour=budget), ["a", "b", "c"]
    groups = [group(f"g{i}", names[homes[i]], 100 * load) for i, load in enumerate(loads)]
    samples: dict[str, list[Sample]] = {name: [] for name in names}
    moves: list[Move] = []
    for step in range(480):
        now_s = 30.0 * step
        for name in names:
            used = sum(each.rows_per_s / 100 for each in groups if each.node == name)
            samples[name].append(Sample(now_s, min(1.0, used)))
        nodes = [NodeNow(name, samples[name][-120:]) for name in names]
        for verdict in evaluate([policy], nodes, groups, moves, now_s):
            if verdict.code == "move":
                id, target = str(verdict.group), str(verdict.target)
                moves.append(Move(id, verdict.node, target, now_s, now_s, True, policy.name))
                groups = [replace(each, node=target) if each.id == id else each for each in groups]
    assert all(move.at_s < 3 * 3600 for move in moves)
    for id in {move.group for move in moves}:
        own = [move for move in moves if move.group == id]
        assert all(later.at_s - earlier.at_s >= REST_S for earlier, later in pairwise(own))
    for earlier, later in pairwise(moves):
        assert (later.group, later.origin, later.target) != (earlier.group, earlier.target, earlier.origin)
    at = [move.at_s for move in moves]
    assert all(sum(1 for t in at if s <= t < s + 3600) <= budget for s in at)
