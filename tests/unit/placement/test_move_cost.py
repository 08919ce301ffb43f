"""Tests the computed cost of a move, and the changes that it makes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeline_runtime.placement.move_cost import (
    Change,
    MoveCost,
    Neighbours,
    Spot,
    downstream_ms,
    move_cost,
    upstream_ms,
)

HALL, CLOUD = Spot("edge-a", "hall", cores=2, cpu_ratio=0.6), Spot("big", "cloud", cores=8, cpu_ratio=0.1)
LATENCIES = {("hall", "cloud"): 30, ("cloud", "hall"): 40, ("yard", "hall"): 4, ("yard", "cloud"): 25}
RATES = {("hall", "cloud"): 2e6, ("cloud", "hall"): 5e6, ("yard", "hall"): None}


def cost(origin: Spot = HALL, target: Spot = CLOUD, **given: Any) -> MoveCost:
    facts: dict[str, Any] = {
        "state_bytes": 8_000_000,
        "has_copy": False,
        "share": 0.4,
        "neighbours": Neighbours(),
        "latencies": LATENCIES,
        "rates": RATES,
    }
    return move_cost(origin, target, **facts | given)


def test_what_is_copied_goes_over_the_line_from_the_origin() -> None:
    assert (cost().copy_bytes, cost().copy_bytes_per_s, cost().copy_s) == (8_000_000, 2e6, 4.0)
    back = cost(CLOUD, HALL)
    assert (back.copy_bytes_per_s, back.copy_s) == (5e6, 1.6)


def test_what_lies_there_is_not_copied_and_of_what_is_not_known_nothing_is_said() -> None:
    there = cost(has_copy=True)
    assert (there.copy_bytes, there.copy_s) == (0, 0.0)
    first = cost(state_bytes=None)
    assert (first.copy_bytes, first.copy_s) == (None, None)
    unmeasured = cost(rates={})
    assert (unmeasured.copy_bytes, unmeasured.copy_bytes_per_s, unmeasured.copy_s) == (8_000_000, None, None)
    beside = cost(target=Spot("edge-b", "hall", 2, 0.1))
    assert (beside.same_site, beside.copy_bytes_per_s, beside.copy_s) == (True, None, None)


def test_a_share_of_two_cores_is_a_quarter_of_that_of_eight() -> None:
    assert cost().cpu == Change(0.1, 0.1 + 0.4 / 4)
    assert cost(CLOUD, HALL, share=0.1).cpu == Change(0.6, 1.0)
    here, there = replace(HALL, host="10.0.0.7"), replace(CLOUD, host="10.0.0.7")
    assert cost(here, there).cpu == Change(0.1, 0.1), "one machine, whose load both tell"
    assert cost(here, replace(there, host="10.0.0.8")).cpu == cost().cpu
    assert cost().origin_cpu == Change(0.6, 0.6 - 0.4), "what leaves takes its share along"
    assert cost(share=0.9).origin_cpu == Change(0.6, 0.0)
    assert cost(here, there).origin_cpu == Change(0.6, 0.6)
    assert cost(share=None).origin_cpu == Change(0.6, None)
    silent = replace(CLOUD, cpu_ratio=None)
    assert cost(target=silent).cpu == Change(None, None)
    assert cost(share=None).cpu == cost(target=replace(CLOUD, cores=0)).cpu == Change(0.1, None)


def test_the_farthest_neighbour_counts_each_way_by_itself() -> None:
    found = cost(neighbours=Neighbours(upstream=("hall", "yard"), downstream=("cloud",)))
    assert (found.upstream, found.downstream) == (Change(4, 30), Change(30, 0))
    alone = cost(neighbours=Neighbours(upstream=("hall",)))
    assert (alone.upstream, alone.downstream) == (Change(0, 30), None)


def test_one_way_that_is_not_known_leaves_the_farthest_unknown() -> None:
    both = Neighbours(upstream=("hall", "moon"), downstream=("yard",))
    assert upstream_ms("cloud", both, LATENCIES) is None
    assert downstream_ms("cloud", both, LATENCIES) is None
    assert downstream_ms("yard", both, LATENCIES) == 0
    assert upstream_ms("cloud", Neighbours(), LATENCIES) is None
