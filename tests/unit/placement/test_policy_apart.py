"""Groups of one pipeline stand apart: how many a node runs, what leaves, where to; that all comes to rest."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.placement.policy.evaluate import evaluate
from pipeline_runtime.placement.policy.facts import GroupNow, Latency, Move, NodeNow, Sample, Verdict
from pipeline_runtime.placement.policy.rules import Apart, CpuAbove, LatencyAbove, Policy, Spread

NOW_S = 10_000.0
RULE = Apart(kind="apart", pipeline="p")
APART = Policy("apart", RULE)


def node(name: str, cpu: float = 0.3) -> NodeNow:
    return NodeNow(name, [Sample(NOW_S - 30 * back, cpu) for back in (2, 1, 0)])


def group(id: str, at: str, state_bytes: int = 0, pipeline: str = "p") -> GroupNow:
    return GroupNow(id, id, at, 10, state_bytes, pipeline=pipeline, elements=(id,))


A, B, C = node("a"), node("b"), node("c")
NODES = (A, B, C)
FOUR = (group("g", "a", 9), group("h", "a", 5), group("i", "a", 7), group("j", "b"))


def look(
    groups: tuple[GroupNow, ...],
    policy: Policy = APART,
    nodes: tuple[NodeNow, ...] = NODES,
    moves: tuple[Move, ...] = (),
) -> list[Verdict]:
    return evaluate([policy], nodes, groups, moves, NOW_S)


def said(found: list[Verdict]) -> list[tuple[str, str, str | None, str | None]]:
    return [(each.node, each.code, each.group, each.target) for each in found]


@pytest.mark.parametrize(("groups", "most"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)])
def test_half_of_them_is_usual(groups: int, most: int) -> None:
    assert RULE.limit(groups) == most
    assert RULE.model_copy(update={"most": 1}).limit(groups) == 1


def test_what_is_too_many_goes_to_where_the_fewest_are() -> None:
    found = look(FOUR)
    assert said(found) == [("a", "move", "h", "c"), ("b", "calm", None, None)]
    assert found[0].why == (
        "a runs 3 of the 4 groups of p, more than 2;"
        " c has none of them, and would reach 40 % of its CPU with h."
    )
    assert found[1].why == "b runs 1 of the 4 groups of p, and at most 2 may run on one node."
    # Among nodes with as many groups, the least busy one is taken. A pinned group goes last.
    pinned = (FOUR[0], replace(FOUR[1], pinned=True), *FOUR[2:], group("x", "c", pipeline="q"))
    assert said(look(pinned, nodes=(A, node("b", 0.5), C)))[0] == ("a", "move", "i", "c")
    assert said(look(FOUR[:3], nodes=(A, node("b", 0.1), C)))[0] == ("a", "move", "h", "b")


def test_one_after_another() -> None:
    under_way = Move("h", "a", "c", NOW_S - 5)
    assert said(look(FOUR, moves=(under_way,)))[0] == ("a", "moving", None, None)
    rule = RULE.model_copy(update={"most": 1})
    rest = (group("g", "a"), group("i", "a"), group("h", "c"))
    done = replace(under_way, ended_s=NOW_S - 2, done=True, policy="apart")
    # What was moved rests; c has one already.
    assert said(look(rest, replace(APART, rule=rule), moves=(done,)))[0] == ("a", "move", "g", "b")


def test_where_it_is_not_possible_all_stays_and_it_says_why() -> None:
    three = (*FOUR[:3], group("j", "b"), group("k", "b"))
    rule = RULE.model_copy(update={"most": 2})
    found = look(three, replace(APART, rule=rule), nodes=(A, B, replace(C, refusal="is cordoned")))
    assert {each.code for each in found} == {"no-target", "calm"}
    assert found[0].why == "No node can take h: b has 2 of the 5 groups of p, c is cordoned."
    found = look(FOUR, nodes=(A, node("b", 0.78), node("c", 0.75)))
    assert found[0].why == (
        "No node can take h: b would reach 88 % of its CPU, more than 80 %,"
        " c would reach 85 % of its CPU, more than 80 %."
    )
    alone = look(FOUR[:3], nodes=(A,))
    assert alone[0].why == "No node can take h: there is no other node."
    silent = look(FOUR, nodes=(replace(A, samples=()), B, C))
    assert silent[0].code == "unknown"


def test_a_budget_and_rest() -> None:
    spent = tuple(Move(f"{i}", "x", "y", NOW_S - 900, NOW_S - 800, True, "apart") for i in range(6))
    assert said(look(FOUR, moves=spent))[0] == ("a", "budget", "h", "c")
    by_hand = Move("h", "c", "a", NOW_S - 100, NOW_S - 90, True)
    assert said(look(FOUR, moves=(by_hand,)))[:2] == [
        ("a", "resting", "h", None),
        ("a", "move", "i", "c"),
    ]


def test_other_policies_keep_to_it() -> None:
    """What it has taken away none brings back."""
    groups = (*FOUR[:2], group("i", "b"), group("j", "b"), group("x", "c", pipeline="q"))
    late = [Latency(NOW_S - 30 * back, 900.0) for back in (2, 1, 0)]
    slow = tuple(replace(each, latencies=late) if each.id == "g" else each for each in groups)
    hot = (node("a", 0.9), node("b", 0.1), replace(C, refusal="is cordoned"))
    for rule in (
        CpuAbove(kind="cpu", threshold=0.8, for_s=60),
        Spread(kind="spread", difference=0.4, for_s=60),
        LatencyAbove(kind="latency", pipeline="p", element="g", ms=500, for_s=60),
    ):
        other = Policy("other", rule)
        assert "move" in {each.code for each in evaluate([other], hot, slow, (), NOW_S)}
        found = [e for e in evaluate([APART, other], hot, slow, (), NOW_S) if e.policy == "other" and e.group]
        assert {each.code for each in found} == {"no-target"}
        assert all("b has 2 of the 4 groups of p" in each.why for each in found)


@settings(max_examples=30, deadline=None)
@given(
    homes=st.lists(st.integers(0, 3), min_size=1, max_size=8),
    most=st.none() | st.integers(1, 4),
    cpu=st.lists(st.floats(0.0, 0.95), min_size=4, max_size=4),
    budget=st.integers(2, 10),
)
def test_it_comes_to_rest(homes: list[int], most: int | None, cpu: list[float], budget: int) -> None:
    """No node ever comes to have more than the limit by a move, no group is moved twice; in the end each node
    keeps to it, or no other could take more."""
    names = [f"n{i}" for i in range(4)]
    policy = replace(APART, rule=RULE.model_copy(update={"most": most}), moves_per_hour=budget)
    at = {f"g{i}": names[home] for i, home in enumerate(homes)}
    limit = policy.rule.limit(len(homes))  # type: ignore[union-attr]
    moves: list[Move] = []
    verdicts: list[Verdict] = []
    for step in range(8 * 120 // budget + 40):
        now_s = 30.0 * step
        nodes = [NodeNow(n, [Sample(now_s, cpu[i])]) for i, n in enumerate(names)]
        groups = [group(id, home) for id, home in at.items()]
        verdicts = evaluate([policy], nodes, groups, moves, now_s)
        for verdict in verdicts:
            if verdict.code == "move":
                id, target = str(verdict.group), str(verdict.target)
                moves.append(Move(id, at[id], target, now_s, now_s, True, policy.name))
                at[id] = target
                assert sum(1 for home in at.values() if home == target) <= limit
    assert len({move.group for move in moves}) == len(moves)
    assert {each.code for each in verdicts} <= {"calm", "no-target", "resting"}
