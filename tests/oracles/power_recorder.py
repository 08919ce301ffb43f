"""Computes row by row what the template power-recorder must put out: DEBS 2012 Query 2 over the recording."""

from __future__ import annotations

import csv
import gzip
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import groupby
from typing import Any

from pipeline_runtime.operators.recording import DATA

Row = dict[str, Any]
PHASES = ("mf01", "mf02", "mf03")
LIMIT = 30
BEFORE, AFTER = timedelta(seconds=20), timedelta(seconds=70)


@cache
def readings() -> tuple[Row, ...]:
    with gzip.open(DATA / "debs2012-sample.tsv.gz", "rt") as file:
        return tuple(
            {
                "_time": _instant(cells[0]),
                "index": int(cells[1]),
                **dict(zip(PHASES, map(int, cells[2:5]), strict=True)),
            }
            for cells in csv.reader(file, delimiter="\t")
        )


def _instant(text: str) -> datetime:
    """In milliseconds, as streams carry it; the recording has digits of 100 ns."""
    at = datetime.fromisoformat(text[:23]).replace(tzinfo=UTC)
    return at


def expected() -> dict[str, list[Row]]:
    seconds = [_variation(end, rows) for end, rows in _windows(timedelta(seconds=1))]
    disturbed = [row for row in seconds if any(row[f"{phase}_variation"] > LIMIT for phase in PHASES)]
    alerts = [
        {
            "_time": row["_time"],
            "alert_column": f"{phase}_variation",
            "alert_value": row[f"{phase}_variation"],
        }
        for row in disturbed
        for phase in PHASES
        if row[f"{phase}_variation"] > LIMIT
    ]
    minutes = [
        {"_time": end, "readings": len(rows), **_averages(rows)}
        for end, rows in _windows(timedelta(minutes=1))
    ]
    return {
        "variation": seconds,
        "flagged": [{**row, "disturbed": row in disturbed} for row in seconds],
        "alerts": alerts,
        "around": _recorded([row["_time"] for row in disturbed]),
        "power": minutes,
    }


def _windows(size: timedelta) -> list[tuple[datetime, list[Row]]]:
    """(End, its readings) of each that has any."""

    def end(row: Row) -> datetime:
        at: datetime = row["_time"]
        return at - (at - datetime(1970, 1, 1, tzinfo=UTC)) % size + size

    return [(at, list(rows)) for at, rows in groupby(sorted(readings(), key=end), end)]


def _averages(rows: list[Row]) -> Row:
    return {f"{phase}_average": sum(row[phase] for row in rows) / len(rows) for phase in PHASES}


def _variation(end: datetime, rows: list[Row]) -> Row:
    averages = _averages(rows)
    spans = {phase: max(row[phase] for row in rows) - min(row[phase] for row in rows) for phase in PHASES}
    variations = {f"{phase}_variation": 100 * spans[phase] / averages[f"{phase}_average"] for phase in PHASES}
    return {"_time": end, **averages, **variations}


def _recorded(events: list[datetime]) -> list[Row]:
    """The readings of each recording, which has all events whose times overlap."""
    found: list[Row] = []
    spans: list[list[datetime]] = []
    for event in events:
        if spans and event - BEFORE <= spans[-1][2]:
            spans[-1][2] = event + AFTER
        else:
            spans.append([event, event - BEFORE, event + AFTER])
    for row in readings():
        for number, (event, start, end) in enumerate(spans, 1):
            if start <= row["_time"] <= end:
                offset_s = (row["_time"] - event).total_seconds()
                found.append({**row, "recording": number, "offset_s": offset_s})
    return found
