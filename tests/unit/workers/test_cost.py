"""Tests the share of its node's CPU that a group costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.model.desired import ReplicaStatus, Role
from tests.waiting import wait_until
from workers.node import load
from workers.node.cost import CostMeter, Interval, Work, mean_cost, shared_out
from workers.node.load import LoadMeter

work = st.builds(Work, st.integers(1, 50), st.floats(1, 5000), st.integers(0, 1000))


@given(st.floats(0, 20), st.dictionaries(st.text(max_size=3), work, min_size=1), st.floats(0, 1))
def test_all_that_is_beyond_idleness_is_shared_out_by_busy_time(
    cpu_s: float, works: dict[str, Work], idle_cores: float
) -> None:
    cores = shared_out(Interval(5.0, cpu_s, works), idle_cores)
    assert sum(cores.values()) == pytest.approx(max(0.0, cpu_s / 5 - idle_cores))
    longest = max(works, key=lambda group: works[group].busy_ms)
    assert cores[longest] == max(cores.values())


def test_a_group_without_a_batch_costs_nothing() -> None:
    none = Interval(5.0, 3.0, {"a": Work(), "b": Work(2, 100.0, 9)})
    assert shared_out(none) == {"a": 0.0, "b": pytest.approx(0.6)}
    assert shared_out(Interval(5.0, 3.0, {"a": Work()})) == {"a": 0.0}


def test_the_mean_is_over_the_intervals_in_which_the_group_was_there() -> None:
    before = Interval(5.0, 9.0, {"other": Work(9, 900.0, 9)})
    busy, quiet = Interval(5.0, 2.0, {"a": Work(10, 500.0, 1000)}), Interval(15.0, 0.5, {"a": Work()})
    assert mean_cost("a", [before], 0.0) is None
    cost = mean_cost("a", [before, busy, quiet], 0.0)
    assert cost is not None
    assert (cost.cpu_cores, cost.batches_per_s, cost.rows_per_s) == (0.1, 0.5, 50.0)


def status(batches: int, busy_ms: float, rows: int) -> ReplicaStatus:
    return ReplicaStatus(
        group="a", role=Role.OWNER, batches_total=batches, busy_ms_total=busy_ms, rows_processed_total=rows
    )


def test_nothing_is_said_before_an_interval_is_over() -> None:
    meter = CostMeter()
    for at_s in (100.0, 100.0):  # the node's processes were not looked at again
        (told,) = meter.with_costs((at_s, 50.0), (status(3, 30.0, 3),))
        assert told.cpu_cores is None
    (told,) = meter.with_costs((105.0, 51.0), (status(13, 630.0, 503),))
    assert (told.cpu_cores, told.batches_per_s, told.rows_per_s) == (0.2, 2.0, 100.0)


def test_what_the_node_takes_while_nothing_comes_is_taken_off() -> None:
    meter = CostMeter()
    meter.with_costs((0.0, 0.0), ())
    meter.with_costs((5.0, 4.0), (status(0, 0.0, 0),))  # its start
    meter.with_costs((10.0, 4.25), (status(0, 0.0, 0),))
    (told,) = meter.with_costs((15.0, 5.5), (status(10, 600.0, 500),))
    assert told.cpu_cores == pytest.approx(0.2 / 3)  # of three intervals, two were without a batch


def test_a_start_is_no_idleness() -> None:
    meter = CostMeter()
    meter.with_costs((0.0, 0.0), ())
    meter.with_costs((5.0, 4.0), (status(0, 0.0, 0),))
    (told,) = meter.with_costs((10.0, 5.0), (status(10, 600.0, 500),))
    assert told.cpu_cores == pytest.approx(0.2 / 2)


def test_the_figures_are_of_the_newest_half_minute_and_outlive_a_start_of_the_replica() -> None:
    meter, told = CostMeter(), status(0, 0.0, 0)
    for number in range(20):
        counted = status(number * 10, number * 500.0, 0)
        (told,) = meter.with_costs((number * 5.0, float(number)), (counted,))
    assert told.cpu_cores == pytest.approx(0.2)
    for number in range(20, 27):
        (told,) = meter.with_costs((number * 5.0, 19 + (number - 19) * 2.0), (status(number, number, 0),))
    assert told.cpu_cores == pytest.approx(0.4)
    (told,) = meter.with_costs((135.0, 35.0), (status(2, 50.0, 0),))
    assert told.batches_per_s == pytest.approx((5 + 2) / 30)


def test_the_cpu_time_has_that_of_children_and_keeps_it_when_they_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "TREE_INTERVAL_S", 0.0)
    meter = LoadMeter(tmp_path)
    meter.measure()
    before_s = meter.cpu_time[1]

    def taken_s() -> float:
        meter.measure()
        return meter.cpu_time[1] - before_s

    burn = "from time import process_time as t\nwhile t() < 1: pass\nprint(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        alive_s = wait_until(lambda: (taken := taken_s()) >= 0.9 and taken, "the child's second")
        child.communicate("\n")
    assert alive_s - 0.05 <= taken_s() < alive_s + 1.0
