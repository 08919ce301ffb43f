"""The template of DEBS 2012's Query 1, element by element over the whole day, against the ground truth."""

from collections import Counter

import numpy as np
import pytest

from tests.oracles import additive_control
from tests.unit.operators.templates import streams_of


@pytest.fixture(scope="module")
def streams():
    return streams_of("additive-control")


@pytest.fixture(scope="module")
def expected():
    return additive_control.expected()


def test_each_answer_has_the_time_that_it_took(streams, expected):
    assert len(expected["matched"]) > 4000
    names = ("pair", "first_at", "interval_s", "_time")
    found, wanted = (
        sorted(tuple(row[name] for name in names) for row in rows)
        for rows in (streams["matched"], expected["matched"])
    )
    assert found == wanted


def test_what_is_missing_and_what_is_there_twice_is_told(streams, expected):
    found, wanted = (
        Counter((row["pair"], row["outcome"]) for row in rows)
        for rows in (streams["missing"], expected["missing"])
    )
    assert found == wanted
    assert {pair for pair, _ in found} == {"B"}
    unanswered = [row["first_at"] for row in streams["missing"] if row["outcome"] == "unanswered"]
    truth = additive_control.cycles()
    assert unanswered == [each["first_at"] for each in truth if each["interval_s"] is None]


def test_the_pair_that_slows_down_raises_its_alarm_when_the_truth_says_so(streams, expected):
    alarms = [{name: row[name] for name in ("_time", "pair", "alarm")} for row in streams["alarm"]]
    assert alarms[:1] == expected["alarm"]
    assert {alarm["pair"] for alarm in alarms} == {"A"}


@pytest.mark.parametrize("pair", "ABC")
def test_the_trend_is_least_squares_over_the_truth(streams, pair):
    last = [row for row in streams["trend"] if row["pair"] == pair][-1]
    points = [
        (additive_control.answered_at(each).timestamp(), each["interval_s"])
        for each in additive_control.cycles()
        if each["pair"] == pair and each["interval_s"] is not None
    ][: last["count"]]
    days = (np.array([at for at, _ in points]) - points[0][0]) / 86_400
    slope, start = np.polyfit(days, [value for _, value in points], 1)
    assert (last["slope"], last["line_start"]) == pytest.approx((slope, start), rel=1e-6, abs=1e-9)
    assert (last["slope"] > 0.02) == (pair == "A")
