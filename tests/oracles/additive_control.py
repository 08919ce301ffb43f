"""Computes what the template additive-control must put out: DEBS 2012 Query 1 over the synthetic day.

It uses the ground truth of that day. The ground truth has what happened, and nothing about operators.
"""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from pipeline_runtime.operators.recording import DATA

Row = dict[str, Any]
PAIRS = {"bm05-bm08": "A", "bm06-bm09": "B", "bm07-bm10": "C"}


@cache
def cycles() -> tuple[Row, ...]:
    """Returns each cycle: its pair, when its sensor rose, how long its valve took (None if it did not
    follow), and whether an edge was reported twice."""
    with gzip.open(DATA / "debs2012-additives-truth.json.gz", "rt") as file:
        found = json.load(file)
    return tuple(
        {**each, "pair": PAIRS[each["pair"]], "first_at": datetime.fromisoformat(each["first_at"])}
        for each in found
    )


def expected() -> dict[str, list[Row]]:
    return {"matched": _answers(), "missing": _faults(), "alarm": [_first_alarm()]}


def _answers() -> list[Row]:
    # The last event of each pair waits for a row that is two seconds later.
    last = {pair: max(each["first_at"] for each in cycles() if each["pair"] == pair) for pair in "ABC"}
    return [
        {
            "_time": answered_at(each),
            "pair": each["pair"],
            "first_at": each["first_at"],
            "interval_s": each["interval_s"],
        }
        for each in cycles()
        if each["interval_s"] is not None and each["first_at"] != last[each["pair"]]
    ]


def answered_at(cycle: Row) -> datetime:
    at: datetime = cycle["first_at"] + timedelta(seconds=cycle["interval_s"])
    return at.astimezone(UTC)


def _faults() -> list[Row]:
    missing = [
        {"pair": each["pair"], "outcome": "unanswered"} for each in cycles() if each["interval_s"] is None
    ]
    twice = [{"pair": each["pair"], "outcome": "duplicate"} for each in cycles() if each["twice"]]
    return [*missing, *twice]


def _first_alarm() -> Row:
    """Ten minutes in a row, which is as many cycles, more than a per cent above the first one of the day."""
    times = [each for each in cycles() if each["pair"] == "A"]
    growth = [100 * (each["interval_s"] / times[0]["interval_s"] - 1) for each in times]
    since = next(n for n in range(len(times) - 10) if min(growth[n : n + 11]) > 1)
    return {"_time": answered_at(times[since + 10]), "pair": "A", "alarm": "raised"}
