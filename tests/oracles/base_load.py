"""Computes what the template base-load must put out: the least power within each 24 hours."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

from pipeline_runtime.operators.recording import DATA
from tests.oracles.hysteresis import alarms

Row = dict[str, Any]
METERS = ("kitchen", "laundry", "heating")
SIZE, SLIDE = timedelta(hours=24), timedelta(hours=1)
MINUTES_MIN = 23 * 60
LASTS = timedelta(hours=2)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def expected() -> dict[str, list[Row]]:
    base = _base(_readings())
    values = [(row["_time"], row["base_load"]) for row in base if row["base_load"] is not None]
    found = alarms("base_load", values, lambda value: value > 350, lambda value: value <= 300, LASTS, max)
    return {"base": base, "alarm": found}


def _readings() -> list[Row]:
    with gzip.open(DATA / "household-power.csv.gz", "rt", newline="") as file:
        return [_reading(cells) for cells in csv.DictReader(file) if cells["power"]]


def _reading(cells: dict[str, str]) -> Row:
    total = 1000 * float(cells["power"])
    meters = {name: int(cells[name]) for name in METERS}
    unmetered = total - 60 * sum(meters.values())
    return {"_time": datetime.fromisoformat(cells["time"]), "total": total, "unmetered": unmetered, **meters}


def _base(readings: list[Row]) -> list[Row]:
    """Returns a row for each 24 hours that end at a full hour and have any reading."""
    windows: dict[datetime, list[Row]] = defaultdict(list)
    for row in readings:
        end = row["_time"] - (row["_time"] - EPOCH) % SLIDE + SLIDE
        while end - SIZE <= row["_time"]:
            windows[end].append(row)
            end += SLIDE
    found = []
    for end, rows in sorted(windows.items()):
        least = {f"{name}_least": min(row[name] for row in rows) for name in ("total", *METERS, "unmetered")}
        base = least["total_least"] if len(rows) >= MINUTES_MIN else None
        found.append({"_time": end, "minutes": len(rows), **least, "base_load": base})
    return found
