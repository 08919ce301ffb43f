"""The oracle of the halls finds what it is there for: each kind of fault, put into outputs that are right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.benchmarks.events import Output, Verdict
from tests.benchmarks.halls import WINDOW, judge_totals, judge_windows, row, totals_of, windows_of
from tests.benchmarks.near_sources import matrix, where_the_rule_merges

HALL = "hall-1"
ROWS = [row(HALL, n) for n in range(2_000)]
WINDOWS = windows_of(ROWS)


def test_windows_hold_the_rows_of_a_sensor_that_are_not_below_zero() -> None:
    key, first = WINDOWS[0]
    rows = [each for each in ROWS if each["sensor"] == key and each["value"] >= 0][:WINDOW]
    assert first["total"] == sum(each["value"] for each in rows)
    assert (first["rows"], first["n"]) == (WINDOW, rows[-1]["n"])


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (lambda outputs: outputs, Verdict(0, 0, 0, 0)),
        (lambda outputs: outputs[1:], Verdict(1, 0, 0, 0)),
        (lambda outputs: [*outputs, outputs[-1]], Verdict(0, 1, 0, 0)),
        (
            lambda outputs: [(outputs[0][0], {**outputs[0][1], "total": -1}), *outputs[1:]],
            Verdict(0, 0, 0, 1),
        ),
    ],
    ids=["none", "lost", "twice", "another total"],
)
def test_a_fault_of_windows_is_found(fault: Callable[[list[Output]], list[Output]], found: Verdict) -> None:
    assert judge_windows(WINDOWS, fault(list(WINDOWS))) == found


def test_windows_in_another_order_are_found() -> None:
    of_one = [output for output in WINDOWS if output[0] == WINDOWS[0][0]]
    assert judge_windows(of_one, of_one[::-1]).reordered == len(of_one) - 1


def test_a_row_too_few_is_found_in_windows_and_totals() -> None:
    fewer = windows_of(each for each in ROWS if each["n"] != 777)
    assert not judge_windows(fewer, WINDOWS).clean
    right = list(totals_of(WINDOWS).items())
    assert judge_totals(totals_of(WINDOWS), right) == []
    assert judge_totals(totals_of(fewer), right)


def test_totals_that_come_again_are_found() -> None:
    right = list(totals_of(WINDOWS).items())
    assert judge_totals(dict(right), [*right, right[0]])


def test_the_rule_has_the_merge_at_a_hall_though_the_broker_is_in_the_cloud() -> None:
    assert where_the_rule_merges() == "hall-1"
    assert matrix()[0].splitlines()[0] == "cloud,hall-1,hall-2"
