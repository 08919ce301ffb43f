"""A policy replayed against samples of the past."""

from __future__ import annotations

import pytest

from pipeline_runtime.placement.policy.facts import GroupNow, NodeNow, Sample
from pipeline_runtime.placement.policy.replay import replay
from pipeline_runtime.placement.policy.rules import BatteryBelow, CpuAbove, Policy

BUSY = Policy("busy", CpuAbove(kind="cpu", threshold=0.8, for_s=60))
NODES = [NodeNow("edge-a", ()), NodeNow("cloud", ())]


def cpu(*values: float) -> list[Sample]:
    return [Sample(30.0 * i, value) for i, value in enumerate(values)]


def test_each_move_counts_for_what_comes_after() -> None:
    groups = [GroupNow("a", "a", "edge-a", 60), GroupNow("b", "b", "edge-a", 40)]
    history = {"edge-a": cpu(*([0.9] * 40)), "cloud": cpu(*([0.1] * 40))}
    found = replay(BUSY, history, NODES, groups)
    assert [(move.at_s, move.group, move.target) for move in found.moves] == [(60.0, "a", "cloud")]
    assert (found.from_s, found.until_s, found.held) == (0.0, 1170.0, {})


def test_what_held_it_back_is_told_with_its_time() -> None:
    groups = [GroupNow("a", "a", "edge-a", 1)]
    history = {"edge-a": cpu(*([0.9] * 10)), "cloud": cpu(*([0.5] * 10)), "gone": cpu(1.0)}
    found = replay(BUSY, history, NODES, groups)
    assert found.moves == ()
    assert found.held == {"no-target": 240.0}


def test_a_battery_that_ran_down() -> None:
    groups = [GroupNow("big", "big", "edge-a", 1, 9), GroupNow("small", "small", "edge-a", 1, 1)]
    history = {
        "edge-a": [Sample(30.0 * i, 0.1, 0.5 - i / 20, True) for i in range(10)],
        "cloud": cpu(*([0.9] * 10)),
    }
    found = replay(Policy("p", BatteryBelow(kind="battery", threshold=0.2, for_s=0)), history, NODES, groups)
    assert [(move.at_s, move.group) for move in found.moves] == [(210.0, "small"), (240.0, "big")]


def test_without_samples_there_is_nothing_to_say() -> None:
    found = replay(BUSY, {"edge-a": []}, NODES, [])
    assert (found.from_s, found.until_s, found.moves, found.held) == (None, None, (), {})


@pytest.mark.timeout(60)
def test_a_day_of_many_nodes_takes_no_long() -> None:
    names = [f"n{i}" for i in range(20)]
    history = {name: cpu(*([0.2, 0.75, 0.85] * 960)) for name in names}
    groups = [GroupNow(f"g{i}", f"g{i}", names[i % 20], 1) for i in range(60)]
    assert replay(BUSY, history, [NodeNow(name, ()) for name in names], groups).moves == ()
