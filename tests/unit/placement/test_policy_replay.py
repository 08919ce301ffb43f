"""A policy replayed against samples of the past."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline_runtime.placement.policy.facts import Copied, GroupNow, Latency, NodeNow, Sample, UserAt
from pipeline_runtime.placement.policy.replay import (
    DAY_S,
    Past,
    Replay,
    ReplayedAct,
    Stay,
    as_if_before,
    replay,
)
from pipeline_runtime.placement.policy.rules import (
    Apart,
    BatteryBelow,
    CpuAbove,
    FollowUser,
    LatencyAbove,
    Maintenance,
    Policy,
    Sites,
)

BUSY = Policy("busy", CpuAbove(kind="cpu", threshold=0.8, for_s=60))
NODES = [NodeNow("edge-a", (), site="hall"), NodeNow("cloud", (), site="cloud")]
LINKS = {("hall", "cloud"): 40.0, ("cloud", "hall"): 40.0}


def cpu(*values: float, from_s: float = 0.0) -> list[Sample]:
    return [Sample(from_s + 30.0 * i, value) for i, value in enumerate(values)]


def calm(count: int) -> dict[str, list[Sample]]:
    return {"edge-a": cpu(*([0.1] * count)), "cloud": cpu(*([0.1] * count))}


def told(found: Replay) -> list[tuple[float, str, str | None, str | None]]:
    return [(act.at_s, act.code, act.group or act.site, act.target) for act in found.acts]


def test_each_move_counts_for_what_comes_after() -> None:
    groups = [GroupNow("a", "a", "edge-a", 60), GroupNow("b", "b", "edge-a", 40)]
    history = {"edge-a": cpu(*([0.9] * 40)), "cloud": cpu(*([0.1] * 40))}
    found = replay(BUSY, Past(history), NODES, groups)
    assert told(found) == [(60.0, "move", "a", "cloud")]
    assert (found.from_s, found.until_s, found.held) == (0.0, 1170.0, {})


def test_what_held_it_back_is_told_with_its_time() -> None:
    groups = [GroupNow("a", "a", "edge-a", 1)]
    history = {"edge-a": cpu(*([0.9] * 10)), "cloud": cpu(*([0.5] * 10)), "gone": cpu(1.0)}
    found = replay(BUSY, Past(history), NODES, groups)
    assert found.acts == ()
    assert found.held == {"no-target": 240.0}


def test_a_battery_that_ran_down() -> None:
    groups = [GroupNow("big", "big", "edge-a", 1, 9), GroupNow("small", "small", "edge-a", 1, 1)]
    history = {
        "edge-a": [Sample(30.0 * i, 0.1, 0.5 - i / 20, True) for i in range(10)],
        "cloud": cpu(*([0.9] * 10)),
    }
    policy = Policy("p", BatteryBelow(kind="battery", threshold=0.2, for_s=0))
    found = replay(policy, Past(history), NODES, groups)
    assert told(found) == [(210.0, "move", "small", "cloud"), (240.0, "move", "big", "cloud")]


def test_without_samples_there_is_nothing_to_say() -> None:
    found = replay(BUSY, Past({"edge-a": []}), NODES, [])
    assert (found.from_s, found.until_s, found.acts, found.held) == (None, None, (), {})


def test_a_node_takes_nothing_while_it_was_down() -> None:
    groups = [GroupNow("a", "a", "edge-a", 60), GroupNow("b", "b", "edge-a", 40)]
    history = {"edge-a": cpu(*([0.9] * 40)), "cloud": cpu(*([0.1] * 10), from_s=600.0)}
    assert told(replay(BUSY, Past(history), NODES, groups)) == [(600.0, "move", "a", "cloud")]


# -- the other kinds ----------------------------------------------------------------------------------

WINDOW = Maintenance.model_validate(
    {
        "kind": "maintenance",
        "of": "node",
        "name": "edge-a",
        "begins": "2026-11-30T03:00:00Z",
        "minutes": 60,
        "weekly": False,
        "lead_minutes": 30,
    }
)


@pytest.mark.parametrize("days", [0.0, 0.01, 0.5, 0.99, 1.0, 3.2, -0.01, -2.5, -7.0])
def test_a_window_is_tried_in_the_last_day_at_the_same_time(days: float) -> None:
    ends_s = WINDOW.begins.timestamp() + 3600
    until_s = ends_s - days * DAY_S
    moved_s = as_if_before(WINDOW, until_s).begins.timestamp() - WINDOW.begins.timestamp()
    assert moved_s % DAY_S == 0
    assert until_s - DAY_S < ends_s + moved_s <= until_s
    # One that is longer than a day had begun.
    long = WINDOW.model_copy(update={"minutes": 3000})
    moved_s = as_if_before(long, until_s).begins.timestamp() - long.begins.timestamp()
    leaves_s = long.begins.timestamp() - 1800
    assert until_s - DAY_S < leaves_s + moved_s <= until_s


def test_a_node_is_emptied_for_its_maintenance() -> None:
    began_s = WINDOW.begins.timestamp() - 3 * DAY_S - 3600
    history = {name: cpu(*([0.1] * 250), from_s=began_s) for name in ("edge-a", "cloud")}
    groups = [GroupNow("a", "a", "edge-a", 60), GroupNow("b", "b", "cloud", 40)]
    found = replay(Policy("night", WINDOW), Past(history), NODES, groups)
    assert told(found) == [(began_s + 1800, "move", "a", "cloud")]
    assert "2026-11-27 03:00" in found.acts[0].why


def test_a_latency_is_told_until_the_first_move() -> None:
    late = Policy("late", LatencyAbove(kind="latency", pipeline="p", element="", ms=500, for_s=60))
    source = GroupNow("source", "source", "edge-a", 1)
    slow = GroupNow("slow", "slow", "cloud", 1, pipeline="p", elements=("slow",), inputs=("source",))
    points = [Latency(30.0 * i, 400.0 if i < 5 else 900.0) for i in range(100)]
    found = replay(late, Past(calm(100), latencies={"slow": points}), NODES, [source, slow], LINKS)
    assert told(found) == [(210.0, "move", "slow", "edge-a")]
    assert found.held == {}, "what it would have been there nobody knows"


def test_a_user_is_followed_to_where_they_were() -> None:
    follow = Policy("near", FollowUser(kind="follow", pipeline="p", element="phone", along=False, for_s=60))
    phone = GroupNow("phone", "phone", "cloud", 1, pipeline="p", elements=("phone",))

    def stay(site: str, since_s: float, until_s: float = float("inf")) -> Stay:
        return Stay(UserAt("phone", site, since_s), until_s)

    # For a while nobody knew where they were.
    stays = [stay("hall", 100, 400), stay("hall", 420, 430), stay("cloud", 900)]
    found = replay(follow, Past(calm(60), stays={"phone": stays}), NODES, [phone], LINKS)
    assert told(found) == [(180.0, "move", "phone", "edge-a"), (960.0, "move", "phone", "cloud")]


def test_a_pipeline_is_kept_apart_as_it_is_now() -> None:
    groups = [GroupNow(id, id, "edge-a", 1, pipeline="p", elements=(id,)) for id in "ab"]
    apart = Policy("apart", Apart(kind="apart", pipeline="p", most=1))
    assert told(replay(apart, Past(calm(20)), NODES, groups)) == [(0.0, "move", "a", "cloud")]


FLOW = Copied("flow", {"hall": ("part",), "cloud": ("part-cloud",)})
PARTS = [GroupNow("part", "part", "edge-a", 1), GroupNow("part-cloud", "part at cloud", "cloud", 1)]


@pytest.mark.parametrize(
    ("gone", "then"),
    [
        ("wait", []),
        # Back after eleven minutes, it gets its copies when the change has rested for ten.
        ("take-out", [(630.0, "take-out", "cloud", None), (1230.0, "copy", "cloud", None)]),
        ("elsewhere", [(630.0, "restore", "part-cloud", "edge-a")]),
    ],
)
def test_a_site_that_went_and_came_back(gone: str, then: list[object]) -> None:
    rule = Sites.model_validate({"kind": "sites", "pipeline": "", "for_s": 60, "gone": gone, "gone_s": 300})
    away = [*cpu(*([0.1] * 12)), *cpu(*([0.1] * 50), from_s=900.0)]
    history = {"edge-a": cpu(*([0.1] * 80)), "cloud": away}
    found = replay(Policy("plants", rule), Past(history), NODES, PARTS, copied=[FLOW])
    assert told(found) == then
    assert found.held == ({"resting": 270.0} if gone == "take-out" else {}), "to wait is what is wanted"


def sites_policy(gone: str) -> Policy:
    rule = {"kind": "sites", "pipeline": "", "for_s": 60, "gone": gone, "gone_s": 60}
    return Policy("plants", Sites.model_validate(rule))


@pytest.mark.parametrize("gone", ["take-out", "elsewhere"])
def test_a_site_is_not_gone_before_its_first_sample_nor_while_nobody_was_heard(gone: str) -> None:
    """Samples of two nodes are not taken at the same moment; and control was away for an hour."""
    times = [*range(0, 600, 30), *range(4200, 4800, 30)]
    history = {
        "edge-a": [Sample(float(at_s), 0.1) for at_s in times],
        "cloud": [Sample(at_s + 17.0, 0.1) for at_s in times],
    }
    for rank in (NODES, NODES[::-1]):
        found = replay(sites_policy(gone), Past(history), rank, PARTS, copied=[FLOW])
        assert (found.acts, found.held) == ((), {})


def test_a_site_that_was_gone_all_day_is_acted_on() -> None:
    history = {"edge-a": cpu(*([0.1] * 10))}
    gone = [NODES[0], replace(NODES[1], up=False, seen_s=-90_000.0)]
    found = replay(sites_policy("take-out"), Past(history), gone, PARTS, copied=[FLOW])
    assert [(act.code, act.site) for act in found.acts] == [("take-out", "cloud")]


def test_the_last_copies_are_not_taken_out() -> None:
    nodes = [*NODES, NodeNow("edge-b", (), site="yard")]
    ended = {name: cpu(*([0.1] * 10)) for name in ("edge-a", "cloud")}
    found = replay(
        sites_policy("take-out"), Past({**ended, "edge-b": cpu(*([0.1] * 60))}), nodes, PARTS, copied=[FLOW]
    )
    assert [(act.code, act.site) for act in found.acts] == [("take-out", "cloud")]
    assert "waits" in found.held


def test_copies_at_a_site_that_was_not_there_at_first_come_with_it() -> None:
    rule = Sites.model_validate(
        {"kind": "sites", "pipeline": "", "for_s": 60, "gone": "take-out", "gone_s": 300}
    )
    history = {"edge-a": cpu(*([0.1] * 40)), "cloud": cpu(*([0.1] * 10), from_s=600.0)}
    found = replay(Policy("plants", rule), Past(history), NODES, PARTS, copied=[FLOW])
    assert found.acts == (
        ReplayedAct(
            660.0, "copy", "cloud is there, and flow has no copy there yet.", site="cloud", pipeline="flow"
        ),
    )
    # One that has never had a copy gets one as the others are.
    third = [*NODES, replace(NODES[0], name="edge-b", site="yard")]
    lacking = replace(FLOW, lacks=frozenset({"yard"}))
    history |= {"edge-b": cpu(*([0.1] * 40))}
    found = replay(Policy("plants", rule), Past(history), third, PARTS, copied=[lacking])
    assert [act.site for act in found.acts] == ["yard", "cloud"]


@pytest.mark.timeout(60)
def test_a_day_of_many_nodes_takes_no_long() -> None:
    names = [f"n{i}" for i in range(20)]
    history = {name: cpu(*([0.2, 0.75, 0.85] * 960)) for name in names}
    groups = [GroupNow(f"g{i}", f"g{i}", names[i % 20], 1) for i in range(60)]
    assert replay(BUSY, Past(history), [NodeNow(name, ()) for name in names], groups).acts == ()
