"""Tests the oracle of each work of the benchmark that compares Fogline with other systems, and its groups."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from tests.benchmarks.bench_peers import PEERS, faulty
from tests.benchmarks.events import EPOCH_MS, NOTHING_WRONG, Output, Verdict, up_front, windowed
from tests.benchmarks.peers import works
from tests.benchmarks.peers.page import tables
from tests.benchmarks.peers.program import Peer
from tests.benchmarks.peers.works import (
    REPORT_EVERY,
    SLIDE_MS,
    WORKS,
    chained,
    counted,
    counted_seldom,
    differed,
    slid,
)

EVENTS = list(up_front(30_000))


def test_a_difference_is_that_to_the_sensors_event_before() -> None:
    rows = [data["made"] for key, data in differed(EVENTS) if key == "s-007"]
    values = [event.value for event in EVENTS if event.sensor == "s-007"]
    assert rows == [None, *(after - before for before, after in pairwise(values))]


def test_the_chain_has_each_tenth_row_with_both_columns() -> None:
    rows = chained(EVENTS)
    assert [data["n"] for _, data in rows] == list(range(0, 30_000, 10))
    assert all(data["double"] == 2 * data["value"] for _, data in rows)
    assert rows[10][1]["made"] == EVENTS[100].value - EVENTS[0].value


def test_sliding_windows_hold_those_that_do_not_slide_and_others_between() -> None:
    found = {(key, data["window_start"]): data for key, data in slid(EVENTS)}
    for key, data in windowed(EVENTS):
        assert found[key, data["window_start"]] == data
    assert {start % 1000 for _, start in found} == {0, SLIDE_MS, 2 * SLIDE_MS, 3 * SLIDE_MS}
    assert found["s-000", EPOCH_MS - 3 * SLIDE_MS]["count"] == 25


@pytest.mark.parametrize(
    ("fault", "verdict"),
    [
        (lambda rows: rows, NOTHING_WRONG),
        (lambda rows: rows[1:], Verdict(1, 0, 0, 0)),
        (lambda rows: [*rows, rows[-1]], Verdict(0, 1, 0, 0)),
        (lambda rows: [(rows[0][0], {**rows[0][1], "count": -1}), *rows[1:]], Verdict(0, 0, 0, 1)),
    ],
)
def test_the_last_windows_may_be_open_and_no_other_fault_is_let_through(
    fault: object, verdict: Verdict
) -> None:
    assert callable(fault)
    closed: list[Output] = [
        (key, {**data, "window_end": 0})
        for key, data in slid(EVENTS)
        if data["window_start"] < EPOCH_MS + 1500
    ]
    work = WORKS["sliding"]
    assert works._judged(work, fault(closed), slid(EVENTS), len(EVENTS)) == verdict


def test_each_element_of_a_chain_has_a_group_of_its_own_or_all_have_one() -> None:
    assert [each["elements"] for each in WORKS["chain"].groups] == [
        ["input", "work-0"],
        ["work-1"],
        ["work-2", "output"],
    ]
    assert [each["elements"] for each in WORKS["chain-in-one"].groups] == [
        ["input", "work-0", "work-1", "work-2", "output"],
    ]
    assert [each["elements"] for each in WORKS["map"].groups] == [["input", "work-0", "output"]]


def test_the_page_has_first_where_fogline_is_furthest_behind_the_better_one() -> None:
    def row(work: str, system: str, rates: list[int]) -> dict[str, object]:
        least = {"p50": 1.0}
        return {
            "work": work,
            "system": system,
            "exactly_once": system != "realtime",
            "rounds_events_per_s": rates,
            "events_per_s": {"p50": float(sorted(rates)[1])},
            "cpu_us_per_event": least,
            "memory_mib": least,
        }

    ours, slow, fast = [90_000, 100_000, 120_000], [40_000, 50_000, 60_000], [180_000, 200_000, 200_000]
    rows = [row("filter", "fogline", ours), row("filter", "streams", slow), row("filter", "flink", slow)]
    rows += [row("chain", "fogline", ours), row("chain", "streams", slow), row("chain", "flink", fast)]
    rows += [row("chain", "realtime", fast)]
    rows += [{"work": "filter", "system": "realtime", "exactly_once": False, "cannot": "it has no sieve"}]
    rows += [row("map", "fogline", ours)]  # the others were not measured
    latency = {
        "work": "map",
        "at_events_per_s": 1000,
        "system": "flink",
        "exactly_once": True,
        "latency_ms": {"p50": 7.2, "p99": 9},
    }
    throughput, delays, notes = tables({"rows": [*rows, latency]}).split("\n\n")
    ones = "1.0, 1.0, 1.0"
    assert throughput.splitlines()[2:] == [
        "| a chain of three | 100,000 | 50,000 | 200,000 | 200,000 | 0.50 (0.50) | 0.50 (0.50) |"
        f" {ones}, 1.0 | 1, 1, 1, 1 |",
        f"| filter (1 in 10) | 100,000 | 50,000 | 50,000 | cannot | 2.00 (2.00) |  | {ones} | 1, 1, 1 |",
    ]
    assert delays.splitlines()[2:] == ["| map (1:1), 1,000/s |  |  | 7 / 9 ms |  |"]
    assert notes == "- Real-time Mode, filter (1 in 10): it has no sieve.\n"


def test_rows_that_come_twice_are_a_fault_of_a_system_that_says_exactly_once() -> None:
    def row(system: str, **found: int) -> dict[str, Any]:
        return {"system": system, "failed": [], **vars(NOTHING_WRONG), **found}

    assert not faulty(row("realtime", duplicated=1, reordered=1))
    assert faulty(row("realtime", lost=1))
    assert faulty(row("quix", duplicated=1))
    assert not faulty(row("fogline"))
    assert not faulty({**row("spark"), "cannot": "it has no sieve"})


def test_what_stands_in_is_counted_per_sensor_and_names_its_event() -> None:
    all_rows, seldom = counted(EVENTS), counted_seldom(EVENTS)
    assert [works.number_in(json.dumps(data).encode()) for _, data in all_rows] == list(range(30_000))
    assert seldom == [row for row in all_rows if row[1]["count"] % REPORT_EVERY == 0]
    values = [event.value for event in EVENTS if event.sensor == "s-007"][:REPORT_EVERY]
    [first] = [data for key, data in seldom if (key, data["count"]) == ("s-007", REPORT_EVERY)]
    assert first["mean"] == sum(values) / REPORT_EVERY
    assert (first["minimum"], first["maximum"]) == (min(values), max(values))
    assert works.work_of("realtime", "keyed").identity == "count"
    assert works.work_of("flink", "keyed") is WORKS["keyed"]


@pytest.mark.parametrize("peer", PEERS.values(), ids=lambda peer: peer.name)
def test_what_a_system_cannot_do_is_a_work_and_has_a_reason(peer: Peer) -> None:
    assert peer.cannot.keys() <= WORKS.keys()
    assert all(peer.cannot.values())
