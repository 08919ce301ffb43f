"""Windows in which a node is to be empty."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.placement.policy.evaluate import evaluate
from pipeline_runtime.placement.policy.facts import GroupNow, Move, NodeNow, Sample
from pipeline_runtime.placement.policy.look import TRY_AGAIN_S
from pipeline_runtime.placement.policy.maintenance import closed, window
from pipeline_runtime.placement.policy.rules import WEEK_S, CpuAbove, Maintenance, Policy, rule_of
from tests.chosen import examples

BEGINS = datetime(2026, 11, 26, 2, tzinfo=UTC)
AT_S = BEGINS.timestamp()
RULE = Maintenance(
    kind="maintenance", of="node", name="edge-a", begins=BEGINS, minutes=120, weekly=False, lead_minutes=30
)
NIGHT = Policy("night", RULE, moves_per_hour=60)


def node(name: str, now_s: float, cpu: float = 0.1, site: str = "") -> NodeNow:
    return NodeNow(name, [Sample(now_s, cpu)], site=site or name)


def group(id: str, at: str = "edge-a", state: int = 0) -> GroupNow:
    return GroupNow(id, id, at, 100, state)


def test_nothing_goes_where_it_is_to_be_apart_from_what_runs() -> None:
    groups = [replace(group("g"), apart=frozenset({"other"})), group("other", "cloud")]
    nodes = [node("edge-a", AT_S), node("cloud", AT_S, 0.0), node("edge-b", AT_S, 0.5)]

    def found(*moves: Move) -> list[tuple[str, str | None, str]]:
        verdicts = evaluate([NIGHT], nodes, groups, moves, AT_S)
        return [(each.code, each.target, each.why) for each in verdicts]

    assert [each[:2] for each in found()] == [("move", "edge-b")]
    [(code, _, why)] = found(Move("other", "cloud", "edge-b", AT_S))
    assert code == "no-target"
    assert "edge-b runs other, from which it must stay apart" in why


def test_a_window_once() -> None:
    assert window(RULE, 0) == window(RULE, AT_S + 7199)
    found = window(RULE, AT_S)
    assert found is not None
    assert (found.leaves_s, found.begins_s, found.ends_s) == (AT_S - 1800, AT_S, AT_S + 7200)
    assert window(RULE, AT_S + 7200) is None


@given(now_s=st.floats(AT_S - WEEK_S, AT_S + 500 * WEEK_S))
def test_a_window_each_week_is_the_first_that_has_not_ended(now_s: float) -> None:
    found = window(RULE.model_copy(update={"weekly": True}), now_s)
    assert found is not None
    assert found.ends_s > now_s
    assert found.begins_s == AT_S or found.ends_s - WEEK_S <= now_s
    assert (found.begins_s - AT_S) % WEEK_S == 0


def test_all_that_a_node_runs_leaves_before_the_window_and_nothing_new_comes() -> None:
    before_s = AT_S - 1801
    groups = [group("large", state=9), group("small", state=1), group("other", "cloud")]

    def at(now_s: float, moves: tuple[Move, ...] = ()) -> list[tuple[str, str | None, str | None]]:
        nodes = [node("edge-a", now_s), node("cloud", now_s)]
        found = evaluate([NIGHT], nodes, groups, moves, now_s)
        assert {each.node for each in found} == {"edge-a"}  # it is about no other
        return [(each.code, each.group, each.target) for each in found]

    assert at(before_s) == [("calm", None, None)]
    assert at(AT_S - 1800) == [("move", "small", "cloud")]
    under_way = Move("small", "edge-a", "cloud", AT_S - 1800, policy="night")
    assert at(AT_S - 1790, (under_way,)) == [("moving", None, None)]
    groups[1] = group("small", "cloud", state=1)
    done = replace(under_way, ended_s=AT_S - 1780, done=True)
    assert at(AT_S - 1775, (done,)) == [("move", "large", "cloud")]  # at once
    groups[0] = group("large", "cloud")
    assert at(AT_S + 5) == [("empty", None, None)]
    assert at(AT_S + 7200) == [("calm", None, None)]


def test_what_the_verdict_says() -> None:
    now_s = AT_S - 60
    [found] = evaluate([NIGHT], [node("edge-a", now_s), node("cloud", now_s)], [group("g")], [], now_s)
    assert found.why == (
        "edge-a is to be empty from 2026-11-26 02:00 UTC to 2026-11-26 04:00 UTC; g has the least state of"
        " what can leave, so it is gone soonest; cloud has room, it would reach 20 % of its CPU."
    )


def test_no_other_policy_sends_anything_to_a_node_in_maintenance() -> None:
    hot = NodeNow("cloud", [Sample(AT_S - 30 * back, 0.9) for back in range(5, -1, -1)])
    busy = Policy("busy", CpuAbove(kind="cpu", threshold=0.8, for_s=60))
    found = evaluate([busy, NIGHT], [node("edge-a", AT_S), hot], [group("g", "cloud")], [], AT_S)
    [verdict] = [each for each in found if each.policy == "busy" and each.node == "cloud"]
    assert (verdict.code, verdict.why) == ("no-target", "No node can take g: edge-a is in maintenance.")


def test_of_a_site_all_nodes_are_closed_for_each_other() -> None:
    site = Policy("site", RULE.model_copy(update={"of": "site", "name": "plant"}))
    nodes = [node("edge-a", AT_S, site="plant"), node("edge-b", AT_S, site="plant"), node("cloud", AT_S, 0.5)]
    found = evaluate([site], nodes, [group("a"), group("b", "edge-b")], [], AT_S)
    assert [(each.code, each.target) for each in found] == [("move", "cloud"), ("move", "cloud")]
    assert closed([site], nodes, AT_S) == {"edge-a": AT_S + 7200, "edge-b": AT_S + 7200}
    assert closed([site], nodes, AT_S - 1801) == closed([site], nodes, AT_S + 7200) == {}


def test_a_busy_node_is_better_than_one_that_ends_and_a_failed_move_is_tried_again() -> None:
    busy = Policy("busy", CpuAbove(kind="cpu", threshold=0.5, for_s=60))
    nodes = [node("edge-a", AT_S), node("cloud", AT_S, 0.45), node("edge-b", AT_S, 0.9)]
    failed = Move("g", "edge-a", "cloud", AT_S - 20, AT_S - 10, done=False, policy="night")

    def code(now_s: float, moves: list[Move]) -> list[tuple[str, str | None]]:
        now = [replace(each, samples=[replace(each.samples[0], at_s=now_s)]) for each in nodes]
        found = evaluate([NIGHT, busy], now, [group("g")], moves, now_s)
        return [(each.code, each.target) for each in found if each.policy == "night"]

    assert code(AT_S, []) == [("move", "cloud")]
    assert code(AT_S, [failed]) == [("resting", None)]
    assert code(AT_S + TRY_AGAIN_S, [failed]) == [("move", "cloud")]


@settings(max_examples=examples(40), deadline=None)
@given(
    homes=st.lists(st.integers(0, 2), min_size=1, max_size=6),
    budget=st.integers(1, 8),
    lead=st.integers(0, 120),
)
def test_each_group_leaves_once_within_the_budget(homes: list[int], budget: int, lead: int) -> None:
    """Through the whole of a window, a look every 30 s: nothing comes back, before it is over or after."""
    policy = Policy("p", RULE.model_copy(update={"lead_minutes": lead}), moves_per_hour=budget)
    names = ["edge-a", "edge-b", "cloud"]
    groups = [group(f"g{i}", names[home]) for i, home in enumerate(homes)]
    moves: list[Move] = []
    for step in range(-300, 300):
        now_s = AT_S + 30.0 * step
        nodes = [node(name, now_s) for name in names]
        for verdict in evaluate([policy], nodes, groups, moves, now_s):
            if verdict.code == "move":
                id, target = str(verdict.group), str(verdict.target)
                moves.append(Move(id, verdict.node, target, now_s, now_s, True, "p"))
                groups = [replace(each, node=target) if each.id == id else each for each in groups]
    moved = [move.group for move in moves]
    assert len(moved) == len(set(moved))
    assert all(move.origin == "edge-a" and move.target != "edge-a" for move in moves)
    at = [move.at_s for move in moves]
    assert all(sum(1 for t in at if s <= t < s + 3600) <= budget for s in at)
    if len(moved) <= budget:
        assert not [each for each in groups if each.node == "edge-a"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"begins": "2026-11-26T02:00:00"},  # of no time zone
        {"begins": "0001-01-01T00:00:00+14:00"},
        {"minutes": 0},
        {"weekly": True, "minutes": 10_080},
        {"name": ""},
        {"threshold": 0.5},
    ],
)
def test_what_is_no_window(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        rule_of(RULE.model_dump(mode="json") | wrong)


def test_a_window_is_kept_in_utc() -> None:
    there = timezone(timedelta(hours=1))
    kept = rule_of(RULE.model_dump() | {"begins": BEGINS.astimezone(there)}).model_dump(mode="json")
    assert kept["begins"] == "2026-11-26T02:00:00Z"
    assert rule_of(kept) == RULE
