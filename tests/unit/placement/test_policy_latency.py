"""A budget of latency that is missed: where an element goes, and when nowhere would be better."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings, strategies as st

from pipeline_runtime.placement.policy.evaluate import evaluate
from pipeline_runtime.placement.policy.facts import GroupNow, Latency, Move, NodeNow, Sample, Verdict
from pipeline_runtime.placement.policy.look import REST_S
from pipeline_runtime.placement.policy.rules import LatencyAbove, Policy
from tests.chosen import examples

NOW_S = 10_000.0
LATE = Policy("late", LatencyAbove(kind="latency", pipeline="p", element="", ms=500, for_s=60))
LINKS = {
    ("plant", "cloud"): 40.0,
    ("cloud", "plant"): 40.0,
    ("plant", "depot"): 10.0,
    ("depot", "plant"): 10.0,
}


def node(name: str, site: str, cpu: float = 0.3) -> NodeNow:
    return NodeNow(name, [Sample(NOW_S - 30 * back, cpu) for back in (2, 1, 0)], site=site)


def group(id: str, at: str, *ms: float | None, inputs: tuple[str, ...] = ()) -> GroupNow:
    """With a latency every 30 s, the last one now."""
    points = [Latency(NOW_S - 30 * back, value) for back, value in enumerate(reversed(ms))][::-1]
    return GroupNow(id, id, at, 100, pipeline="p", elements=(id,), inputs=inputs, latencies=points)


PLANT, DEPOT, CLOUD = node("edge-a", "plant"), node("edge-b", "depot"), node("cloud-1", "cloud")
SOURCE = GroupNow("source", "source", "edge-a", 100, pipeline="other")
SLOW = group("mean", "cloud-1", 900, 900, 900, inputs=("source",))


def look(
    *groups: GroupNow,
    nodes: tuple[NodeNow, ...] = (PLANT, DEPOT, CLOUD),
    moves: list[Move] | None = None,
    links: dict[tuple[str, str], float] = LINKS,
    policy: Policy = LATE,
) -> list[Verdict]:
    return evaluate([policy], nodes, [SOURCE, *groups], moves or [], NOW_S, {}, links)


def said(found: list[Verdict]) -> list[tuple[str, str | None, str | None]]:
    return [(each.code, each.group, each.target) for each in found]


def test_what_waits_for_its_own_target_is_not_moved() -> None:
    [found] = look(replace(SLOW, latency_ms_target=900))
    assert found.code == "no-target"
    assert found.why == (
        "5 % of the batches of mean have taken more than 500 ms; its latency target is 900 ms, which it would"
        " keep to anywhere; give it a shorter one."
    )


def test_what_misses_its_target_too_is_moved() -> None:
    for target_ms in (500, 800):
        [found] = look(replace(SLOW, latency_ms_target=target_ms))
        assert found.code == "move"


def test_it_goes_to_the_node_that_is_nearest_to_what_it_reads() -> None:
    [found] = look(SLOW)
    assert (found.code, found.node, found.target) == ("move", "cloud-1", "edge-a")
    assert found.why == (
        "5 % of the batches of mean have taken more than 500 ms; edge-a is 0.0 ms away from what it reads,"
        " and it is 40.0 ms away now; edge-a would reach 60 % of its CPU."
    )


def test_when_the_nearest_is_too_busy_it_goes_to_the_next() -> None:
    assert said(look(SLOW, nodes=(replace(PLANT, samples=node("x", "y", 0.7).samples), DEPOT, CLOUD))) == [
        ("move", "mean", "edge-b")
    ]


def test_when_nothing_would_be_better_it_says_so() -> None:
    here = replace(SLOW, node="edge-a")
    [found] = look(here)
    assert found.code == "no-target"
    assert found.why == (
        "mean would be no better anywhere else: edge-b is neither nearer nor less busy,"
        " cloud-1 is neither nearer nor less busy."
    )
    [found] = look(SLOW, links={})  # nobody knows how far anything is
    assert (found.code, found.target) == ("move", "edge-a")  # but for what stands beside it
    [found] = look(SLOW, nodes=(DEPOT, CLOUD), links={})
    assert (found.code, "edge-b is not reached by what it reads" in found.why) == ("no-target", False)


def test_as_near_and_less_busy_is_better() -> None:
    busy, idle = node("edge-a", "plant", 0.7), node("edge-c", "plant", 0.1)
    alone = replace(SLOW, node="edge-a")
    other = GroupNow("other", "other", "edge-a", 100, pipeline="q")
    found = look(alone, other, nodes=(busy, idle, DEPOT))
    assert said(found) == [("move", "mean", "edge-c")]
    # With what it brings, that one would be as busy as this one is.
    assert said(look(alone, nodes=(busy, node("edge-c", "plant", 0.5)))) == [("no-target", "mean", None)]


def test_what_is_looked_at() -> None:
    assert said(look(group("mean", "cloud-1", 100, 100))) == [("calm", "mean", None)]
    assert said(look(group("mean", "cloud-1", 100, 900, 900))) == [("not-yet", "mean", None)]
    assert said(look(group("mean", "cloud-1", 900, 900, 900, None))) == [("unknown", "mean", None)]
    assert said(look(group("mean", "cloud-1"))) == [("unknown", "mean", None)]
    only = replace(LATE, rule=LATE.rule.model_copy(update={"element": "mean"}))
    assert said(look(SLOW, group("power", "cloud-1", 900, 900, 900), policy=only)) == [
        ("move", "mean", "edge-a")
    ]


def test_hysteresis_and_a_move_begins_the_time_anew() -> None:
    assert said(look(group("mean", "edge-a", 900, 900, 900, 460)))[0][0] == "no-target"  # not over yet
    assert said(look(group("mean", "edge-a", 900, 900, 900, 440)))[0][0] == "calm"
    moved = Move("mean", "edge-a", "cloud-1", NOW_S - 50, NOW_S - 45, True)
    assert said(look(SLOW, moves=[moved])) == [("not-yet", "mean", None)]
    earlier = replace(moved, at_s=NOW_S - 99, ended_s=NOW_S - 90)
    assert said(look(SLOW, moves=[earlier])) == [("resting", "mean", None)]


def test_the_budget() -> None:
    spent = [Move(f"{i}", "x", "y", NOW_S - 3000, NOW_S - 2900, True, "late") for i in range(6)]
    assert said(look(SLOW, moves=spent)) == [("budget", "mean", "edge-a")]


@settings(max_examples=examples(40), deadline=None)
@given(
    cpu=st.lists(st.floats(0.0, 0.5), min_size=4, max_size=4),
    ways=st.lists(st.floats(0.0, 100.0), min_size=16, max_size=16),
    homes=st.lists(st.integers(0, 3), min_size=2, max_size=4),
    rows=st.lists(st.floats(1, 100), min_size=4, max_size=4),
)
def test_where_the_budget_is_never_met_all_comes_to_rest(
    cpu: list[float], ways: list[float], homes: list[int], rows: list[float]
) -> None:
    """Four hours; what each group uses goes with it. In the last one nothing moves any more, and nothing goes
    back to where it just came from."""
    names = [f"n{i}" for i in range(4)]
    links = {(a, b): ways[4 * i + j] for i, a in enumerate(names) for j, b in enumerate(names)}
    used = {f"g{i}": rows[i] / 1000 for i in range(len(homes))}
    at = {f"g{i}": names[home] for i, home in enumerate(homes)}
    policy = replace(LATE, moves_per_hour=100)
    history: list[Move] = []
    for step in range(480):
        now_s = 30.0 * step
        load = {n: cpu[i] + sum(used[g] for g in at if at[g] == n) for i, n in enumerate(names)}
        nodes = [
            NodeNow(n, [Sample(max(0.0, now_s - 30 * b), load[n]) for b in (2, 1, 0)], site=n) for n in names
        ]
        groups = [
            GroupNow(
                g,
                g,
                at[g],
                rows[int(g[1:])],
                pipeline="p",
                elements=(g,),
                # g0 reads nothing, each other one reads g0.
                inputs=() if g == "g0" else ("g0",),
                latencies=[] if g == "g0" else [Latency(now_s - 2 * b, 900.0) for b in range(60, -1, -1)],
            )
            for g in at
        ]
        for verdict in evaluate([policy], nodes, groups, history, now_s, {}, links):
            if verdict.code == "move":
                id, target = str(verdict.group), str(verdict.target)
                history.append(Move(id, at[id], target, now_s, now_s, True, "late"))
                at[id] = target
    assert all(move.at_s < 3 * 3600 for move in history)
    for earlier, later in pairwise(history):
        assert (later.group, later.origin, later.target) != (earlier.group, earlier.target, earlier.origin)
    for id in at:
        own = [move.at_s for move in history if move.group == id]
        assert all(later - earlier >= REST_S for earlier, later in pairwise(own))
