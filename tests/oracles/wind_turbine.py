"""Computes row by row what the template wind-turbine must put out: each turbine beside its power curve."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import numpy as np

from pipeline_runtime.operators.recording import DATA
from tests.oracles.hysteresis import alarms

Row = dict[str, Any]
WIND_MIN, WIND_MAX = 5.0, 25.0
POWER_MIN, POWER_MAX = -100.0, 2200.0
SIZE, SLIDE = timedelta(hours=6), timedelta(hours=1)
READINGS_MIN = 12
LASTS = timedelta(hours=2)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def expected() -> dict[str, list[Row]]:
    rows = _expected()
    windows = _performance(rows)
    return {
        "expected": rows,
        "performance": windows,
        "alarm": sorted(_alarms(windows), key=lambda row: (row["_time"], row["turbine"])),
    }


@cache
def curve() -> tuple[list[float], list[float]]:
    with (DATA / "wind-turbine-curve.csv").open(newline="") as file:
        points = [(float(row["wind_speed"]), float(row["power"])) for row in csv.DictReader(file)]
    return [wind for wind, _ in points], [power for _, power in points]


def _expected() -> list[Row]:
    """Readings with enough wind, and the power that the curve has for it."""
    found = []
    with gzip.open(DATA / "wind-turbine.csv.gz", "rt", newline="") as file:
        for cells in csv.DictReader(file):
            if not cells["power"]:
                continue
            wind, power = float(cells["wind_speed"]), float(cells["power"])
            if WIND_MIN <= wind <= WIND_MAX and POWER_MIN <= power <= POWER_MAX:
                at = datetime.fromisoformat(cells["time"])
                by_curve = float(np.interp(wind, *curve()))
                found.append({"_time": at, "turbine": cells["turbine"], "power": power, "expected": by_curve})
    return found


def _performance(rows: list[Row]) -> list[Row]:
    """Returns a row for each turbine and window with readings, ordered by the window's end, then by
    turbine."""
    windows: dict[tuple[datetime, str], list[Row]] = defaultdict(list)
    for row in rows:
        end = row["_time"] - (row["_time"] - EPOCH) % SLIDE + SLIDE
        while end - SIZE <= row["_time"]:
            windows[end, row["turbine"]].append(row)
            end += SLIDE
    return [_window(end, turbine, rows) for (end, turbine), rows in sorted(windows.items())]


def _window(end: datetime, turbine: str, rows: list[Row]) -> Row:
    power = sum(row["power"] for row in rows) / len(rows)
    by_curve = sum(row["expected"] for row in rows) / len(rows)
    return {
        "_time": end,
        "turbine": turbine,
        "readings": len(rows),
        "power_average": power,
        "expected_average": by_curve,
        "performance": 100 * power / by_curve if len(rows) >= READINGS_MIN else None,
    }


def _alarms(windows: list[Row]) -> list[Row]:
    found: list[Row] = []
    for turbine in sorted({row["turbine"] for row in windows}):
        values = [
            (row["_time"], row["performance"])
            for row in windows
            if row["turbine"] == turbine and row["performance"] is not None
        ]
        rows = alarms("performance", values, lambda value: value < 50, lambda value: value >= 80, LASTS, min)
        found += [{"turbine": turbine, **row} for row in rows]
    return found
