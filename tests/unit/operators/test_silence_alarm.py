"""Laws of the alarm that nothing comes any more."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline_runtime.operators.expressions.casts import text_of
from pipeline_runtime.operators.lineage import TracedRow
from pipeline_runtime.trial import at, processed
from tests.unit.operators.conftest import schema_of

SCHEMA = schema_of(m="string", n="integer", t="timestamp")
T0_MS = 1_700_000_000_000


@pytest.fixture
def run(operator):
    """What is told of batches that begin so many seconds after the first, each with rows of these values."""

    def of(params: dict[str, Any], batches: list[tuple[float, str]]) -> list[tuple[Any, ...]]:
        given = [
            {"in": [{"m": value, "n": ord(value), "t": at(ord(value)), "_time": at(0)} for value in values]}
            for _, values in batches
        ]
        times_ms = [T0_MS + int(second * 1000) for second, _ in batches]
        found = processed(
            operator("silence-alarm", params), given, {"in": SCHEMA}, ends=False, times_ms=times_ms
        )
        return [
            (
                *(() if "key" not in params else (row[params["key"]],)),
                row["alarm"],
                _s(row["since"]),
                row["silent_s"],
                _s(row["_time"]),
            )
            for row in found.rows
        ]

    return of


def _s(time: Any) -> float:
    return float(round(time.timestamp() - T0_MS / 1000, 3))


def ticks(until_s: float, rows: dict[float, str], every_s: float = 1.0) -> list[tuple[float, str]]:
    times = sorted({*rows, *(number * every_s for number in range(int(until_s / every_s) + 1))})
    return [(time, rows.get(time, "")) for time in times]


def test_it_is_raised_once_when_nothing_has_come_for_so_long_and_cleared_by_the_next_row(run):
    found = run({"for_s": 10}, ticks(40, {0: "a", 3: "a", 30.5: "b"}))
    assert found == [("raised", 3, 10, 13), ("cleared", 3, 27.5, 30.5)]


def test_it_waits_for_the_first_row_as_well(run):
    assert run({"for_s": 10}, ticks(12, {})) == [("raised", 0, 10, 10)]


@pytest.mark.parametrize("key", ["m", "n", "t"])
def test_each_value_is_waited_for_from_its_first_row_on(run, key):
    rows = {0: "ab", 5: "a", 12: "c", 13: "b"}
    found = run({"for_s": 10, "key": key}, ticks(30, rows))
    value = {"m": str, "n": ord, "t": lambda letter: at(ord(letter))}[key]
    assert found == [
        (value("b"), "raised", 0, 10, 10),
        (value("b"), "cleared", 0, 13, 13),
        (value("a"), "raised", 5, 10, 15),
        (value("c"), "raised", 12, 10, 22),
        (value("b"), "raised", 13, 10, 23),
    ]


def test_time_in_which_it_did_not_run_does_not_count(run):
    """It was away from 4 to 600, and has ticks of 1 s: two of them count."""
    batches = [*ticks(4, {0: "a"}), *((time + 600, rows) for time, rows in ticks(20, {}))]
    [(alarm, since, silent_s, now)] = run({"for_s": 10}, batches)
    assert (alarm, since, silent_s) == ("raised", 0, 10)
    assert now == 600 + 10 - 4 - 2


def test_a_clock_that_goes_back_raises_nothing(run):
    assert run({"for_s": 10}, [(0, "a"), (1, ""), (-500, ""), (-499, ""), (-498, "")]) == []


@pytest.mark.parametrize("seed", range(6))
def test_alarms_are_those_of_an_oracle(run, seed):
    """Ticks and rows in any order, without gaps: each key by itself, second by second."""
    chance = random.Random(seed)
    rows: dict[float, str] = {}
    for second in range(120):
        if chance.random() < 0.15:
            rows[second] = "".join(sorted(set(chance.choices("abc", k=chance.choice([1, 2])))))
    expected, last, raised = [], {}, set()
    for second in range(121):
        for key in rows.get(second, ""):
            if key in raised:
                expected.append((key, "cleared", last[key], second - last[key], second))
                raised.remove(key)
            last[key] = second
        for key in sorted(last, key=lambda key: (last[key], key)):
            if key not in raised and second - last[key] >= 7:
                expected.append((key, "raised", last[key], second - last[key], second))
                raised.add(key)
    assert run({"for_s": 7, "key": "m"}, ticks(120, rows)) == expected


@pytest.mark.parametrize("seed", range(2))
def test_the_rows_that_an_alarm_is_traced_to_make_it_again(operator, seed):
    """Rows come when they say that they are of."""
    alarm, chance = operator("silence-alarm", {"for_s": 7, "key": "m"}), random.Random(seed)
    arrivals = [(second, chance.choice("ab")) for second in range(120) if chance.random() < 0.15]
    seconds = range(130)

    def told(rows: list[tuple[int, str]]) -> list[dict[str, Any]]:
        batches = [
            {
                "in": [
                    {"m": value, "_time": datetime.fromtimestamp(T0_MS / 1000 + when, UTC)}
                    for when, value in rows
                    if when == second
                ]
            }
            for second in seconds
        ]
        times_ms = [T0_MS + 1000 * second for second in seconds]
        schemas = {"in": schema_of(m="string")}
        return processed(alarm, batches, schemas, ends=False, times_ms=times_ms).rows

    kept = [
        TracedRow(T0_MS + 1000 * when, {"m": value}, offset=place)
        for place, (when, value) in enumerate(arrivals)
    ]
    found = told(arrivals)
    assert {row["alarm"] for row in found} == {"raised", "cleared"}
    for row in found:
        values = {**row, "since": text_of(row["since"])}
        made = TracedRow(int(row["_time"].timestamp() * 1000), values)
        came = alarm.came_from(made, {"in": schema_of(m="string")})["in"].chosen(kept)
        assert 0 < len(came.rows) <= 2
        assert row in told([arrivals[each.offset] for each in came.rows])


def test_it_asks_for_batches_often_enough(operator):
    assert [operator("silence-alarm", {"for_s": for_s}).ticks_s() for for_s in (2, 30, 3600)] == [1, 3, 5]


def test_it_is_said_in_words_what_it_keeps(operator):
    alarm = operator("silence-alarm", {"for_s": 10, "key": "m"})
    assert alarm.readable_key('seen ["ü"]') == "last row of ü"
    assert alarm.readable_key(f'waits {"0" * 19}["ü"]') == "waits for ü"
    state = alarm.readable_state([5, T0_MS, True], {"in": SCHEMA})
    assert state == {"came": "2023-11-14 22:13:20 UTC", "alarm": "raised"}


def test_a_key_that_is_missing_or_clashes_is_told(operator, mismatch):
    assert mismatch(operator("silence-alarm", {"for_s": 10, "key": "x"}), **{"in": SCHEMA}) == ["params.key"]
    clash = schema_of(alarm="string")
    assert mismatch(operator("silence-alarm", {"for_s": 10, "key": "alarm"}), **{"in": clash}) == [
        "params.key"
    ]
