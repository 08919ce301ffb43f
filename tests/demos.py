"""Imports the recordings that Fogline ships: `PYTHONPATH=. python -m tests.demos` writes their Parquet files.

The originals stand beside them, as they were published or made; pipeline_runtime/operators/data/README.md.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from pipeline_runtime.operators.recording import DATA, DEMOS
from webapp.imports.convert import convert
from webapp.imports.reading import ColumnReading, Reading, Report, TimeReading


@dataclass(frozen=True)
class Demo:
    file: str  # the original
    reading: Reading

    def imported(self, out: Path) -> Report:
        return convert(DATA / self.file, self.reading, out, lambda *told: None, lambda: False)


def _demo(
    file: str, columns: list[tuple[str, str, str | None]], delimiter: str = ",", header: bool = True
) -> Demo:
    return Demo(
        file,
        Reading(
            compression="gzip",
            delimiter=delimiter,
            header_line=1 if header else None,
            first_line=2 if header else 1,
            columns=tuple(
                ColumnReading(source=n, name=name, type=type_, unit=unit)
                for n, (name, type_, unit) in enumerate(columns)
            ),
            time=TimeReading(columns=(0,), format="iso"),
        ),
    )


def _of_type(type_: str, *names: str, **units: str) -> list[tuple[str, str, str | None]]:
    return [*((name, type_, None) for name in names), *((name, type_, unit) for name, unit in units.items())]


_BOOLEANS = [f"bm{n:02}" for n in range(5, 11)]
_ANALOG = ["index", "mf01", "mf02", "mf03", "pc13", "pc14", "pc15", "pc25", "pc26", "pc27", "res"]
_REST = [f"pp{n:02}" for n in (*range(1, 22), *range(31, 37))]
_REST += [f"pc{n:02}" for n in (*range(1, 7), *range(19, 24))]
_TURBINE = {"wind_speed": "m/s", "power": "kW", "pitch": "°", "nacelle_angle": "°"}
_TURBINE |= {"wind_direction": "°", "temperature": "°C"}

SHIPPED = {
    "demo:debs2012": _demo(
        "debs2012-sample.tsv.gz",
        [
            *_of_type("timestamp", "ts"),
            *_of_type("integer", *_ANALOG),
            *_of_type("boolean", *_BOOLEANS),
            *_of_type("integer", *_REST),
        ],
        delimiter="\t",
        header=False,
    ),
    "demo:debs2012-additives": _demo(
        "debs2012-additives.csv.gz",
        [
            *_of_type("timestamp", "ts"),
            *_of_type("integer", "mf01", "mf02", "mf03"),
            *_of_type("boolean", *_BOOLEANS),
        ],
    ),
    "demo:wind-turbine": _demo(
        "wind-turbine.csv.gz",
        [*_of_type("timestamp", "time"), *_of_type("string", "turbine"), *_of_type("number", **_TURBINE)],
    ),
    "demo:household-power": _demo(
        "household-power.csv.gz",
        [
            *_of_type("timestamp", "time"),
            *_of_type("number", power="kW", reactive_power="kvar", voltage="V", current="A"),
            *_of_type("integer", kitchen="Wh", laundry="Wh", heating="Wh"),
        ],
    ),
    "demo:ecg": _demo("ecg.csv.gz", [*_of_type("timestamp", "ts"), *_of_type("integer", "adc")]),
}


if __name__ == "__main__":
    for reference in sys.argv[1:] or SHIPPED:
        print(reference, SHIPPED[reference].imported(DATA / DEMOS[reference]).rows)
