"""The template of DEBS 2012's Query 1, element by element, against the ground truth of its data: which says
what happened, and knows nothing of operators."""

import gzip
import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from pipeline_runtime.operators.recording import DATA
from tests.unit.operators.templates import streams_of

PAIRS = {"bm05-bm08": "A", "bm06-bm09": "B", "bm07-bm10": "C"}


def read(name):
    with gzip.open(DATA / name, "rt") as file:
        return file.read()


def instant(text):
    return datetime.fromisoformat(text).astimezone(UTC)


@pytest.fixture(scope="module")
def streams():
    """Element -> its rows, of the whole day."""
    return streams_of("additive-control")


@pytest.fixture(scope="module")
def truth():
    cycles = json.loads(read("debs2012-additives-truth.json.gz"))
    return [{**each, "pair": PAIRS[each["pair"]], "first_at": instant(each["first_at"])} for each in cycles]


def test_each_answer_has_the_time_that_it_took(streams, truth):
    # The last event of each pair waits for a row that is two seconds later.
    last = {pair: max(each["first_at"] for each in truth if each["pair"] == pair) for pair in "ABC"}
    expected = [
        (each["pair"], each["first_at"], each["interval_s"])
        for each in truth
        if each["interval_s"] is not None and each["first_at"] != last[each["pair"]]
    ]
    found = [(row["pair"], row["first_at"], row["interval_s"]) for row in streams["matched"]]
    assert sorted(found) == sorted(expected)
    assert len(expected) > 4000


def test_what_is_missing_and_what_is_there_twice_is_told(streams, truth):
    expected = Counter({"unanswered": sum(each["interval_s"] is None for each in truth)})
    expected["duplicate"] = sum(each["twice"] for each in truth)
    assert Counter(row["outcome"] for row in streams["missing"]) == expected
    assert {row["pair"] for row in streams["missing"]} == {"B"}
    unanswered = [row["first_at"] for row in streams["missing"] if row["outcome"] == "unanswered"]
    assert unanswered == [each["first_at"] for each in truth if each["interval_s"] is None]


def test_the_pair_that_slows_down_raises_its_alarm_when_the_truth_says_so(streams, truth):
    """Ten minutes in a row more than a per cent above the first one of the day, and no other alarm."""
    times = [each for each in truth if each["pair"] == "A"]
    growth = [100 * (each["interval_s"] / times[0]["interval_s"] - 1) for each in times]
    since = next(n for n in range(len(times) - 10) if min(growth[n : n + 11]) > 1)
    raised = times[since + 10]
    alarms = [(row["pair"], row["alarm"], row["_time"]) for row in streams["alarm"]]
    at = raised["first_at"] + timedelta(seconds=raised["interval_s"])
    assert alarms[0] == ("A", "raised", at)
    assert {pair for pair, *_ in alarms} == {"A"}


@pytest.mark.parametrize("pair", "ABC")
def test_the_trend_is_least_squares_over_the_truth(streams, truth, pair):
    last = [row for row in streams["trend"] if row["pair"] == pair][-1]
    points = [
        (each["first_at"].timestamp() + each["interval_s"], each["interval_s"])
        for each in truth
        if each["pair"] == pair and each["interval_s"] is not None
    ][: last["count"]]
    days = (np.array([at for at, _ in points]) - points[0][0]) / 86_400
    slope, start = np.polyfit(days, [value for _, value in points], 1)
    assert (last["slope"], last["line_start"]) == pytest.approx((slope, start), rel=1e-6, abs=1e-9)
    assert (last["slope"] > 0.02) == (pair == "A")
