"""Files that were reported as read wrong, or not at all, each with the rows that are right.

The small ones lie in `tests/unit/imports/files`, since the detector is tried on them as well. The rows of the
files of real loggers are read by Python's own csv, float and datetime.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

FILES = Path(__file__).parents[2] / "unit" / "imports" / "files"
Cell = str | float | datetime | None
Rows = list[list[Cell]]
DAY = datetime(2024, 5, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Case:
    """`header` and `rows`: what the written file holds. `answers`: for each question that is asked, what the
    right choice changes. `says`: texts that stand among the notes of how it is read."""

    name: str
    header: list[str]
    rows: Rows
    content: bytes | None = None  # that of the file of this name, if it is not given
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    replay: Mapping[str, Any] = field(default_factory=lambda: {"rate": 1e6})
    through: Mapping[str, Any] | None = None  # an element between the file and the sink
    with_time: bool = False  # the event time is written as the first column
    units: Mapping[str, str] = field(default_factory=dict)
    says: tuple[str, ...] = ()
    skipped: int = 0

    @property
    def id(self) -> str:
        return self.name.partition(".")[0].lower()

    @property
    def bytes(self) -> bytes:
        return (FILES / self.name).read_bytes() if self.content is None else self.content


def windows(size_s: int, function: str, column: str, name: str, **more: Any) -> dict[str, Any]:
    aggregates = [{"function": function, "as": name} | ({"column": column} if column else {})]
    return {"type": "window-aggregate", "params": {"size_s": size_s, "aggregates": aggregates, **more}}


def after(*seconds: float) -> list[datetime]:
    return [DAY + timedelta(seconds=each) for each in seconds]


def beside(*columns: list[Any]) -> Rows:
    """The rows of these columns."""
    return [list(row) for row in zip(*columns, strict=True)]


# --- small files


def _types_behind_64_kib() -> Case:
    """C1: the column of whole numbers has decimals at its end, far behind what a first look reads."""
    note = "x" * 1000
    lines = [f"{at:%Y-%m-%dT%H:%M:%S},{note},0" for at in after(*range(66))]
    ends = [f"{at:%Y-%m-%dT%H:%M:%S},x,20.{number + 1}" for number, at in enumerate(after(67, 68, 69))]
    return Case(
        "C1.csv",
        ["time", "note", "power"],
        beside(after(*range(66), 67, 68, 69), [note] * 66 + ["x"] * 3, [0.0] * 66 + [20.1, 20.2, 20.3]),
        "\n".join(["time,note,power", *lines, *ends, ""]).encode(),
    )


def _a_long_header() -> Case:
    """C12: its first line alone is longer than 64 KiB."""
    names = [f"n{number}-" + "n" * 660 for number in range(100)]
    lines = [f"2024-05-01 00:00:0{second}" + ",1.5" * 100 for second in range(2)]
    header = ["time", *(name[:120] for name in names)]
    rows = beside(after(0, 1), *([1.5, 1.5] for _ in names))
    return Case("C12.csv", header, rows, "\n".join([",".join(["time", *names]), *lines, ""]).encode())


def _time_last_of_101() -> Case:
    names = [f"T{number}" for number in range(100)]
    lines = ["1.5," * 100 + f"2024-05-01 00:00:0{second}" for second in range(3)]
    rows = beside(*([1.5] * 3 for _ in names), after(0, 1, 2))
    content = "\n".join([",".join([*names, "time"]), *lines, ""]).encode()
    return Case("C3-time-last-of-101.csv", [*names, "time"], rows, content)


def _date_and_time_over_a_day() -> Case:
    """C6: the event time is made of two columns, also where the first of them changes."""
    at = [DAY + timedelta(minutes=3 * number) for number in range(481)]
    lines = [f"{each:%Y-%m-%d,%H:%M:%S},{number}" for number, each in enumerate(at)]
    return Case(
        "C6-over-400.csv",
        ["n"],
        [[20.0] for _ in range(24)] + [[1.0]],
        "\n".join(["Date,Time,v", *lines, ""]).encode(),
        through=windows(3600, "count", "", "n"),
    )


def _local_days() -> Case:
    """W2: the day on which the clocks are put back has 25 hours."""
    begin = datetime(2024, 10, 25, 22, tzinfo=UTC)
    lines = [f"{begin + timedelta(hours=hour):%Y-%m-%dT%H:%M:%SZ},{hour}" for hour in range(73)]
    return Case(
        "W2.csv",
        ["n"],
        [[float(hours)] for hours in (24, 25, 24)],
        "\n".join(["time,v", *lines, ""]).encode(),
        through=windows(86_400, "count", "", "n", zone="Europe/Berlin"),
    )


DIALECTS = (
    Case("C2.csv", ["time", "level", "temperature"], beside(after(0, 10), [1.5, 1.552], [8.5, 8.55])),
    Case("C14.csv", ["Time", "Flow", "Pressure"], beside(after(0, 1), [1.0, 2.0], [0.5, 1.5])),
    Case("C16.csv", ["time", "value"], beside(after(0, 1, 2), [1.5, 1.6, 1.7])),
    Case("C21.csv", ["Zeit", "Größe °C"], beside(after(0, 1), [1.0, 2.0])),
    Case(
        "C3.csv",
        ["time", "flow", "pressure"],
        beside(after(*range(6)), [n + 0.5 for n in range(6)], [n + 0.25 for n in range(6)]),
        units={"flow": "m3/h", "pressure": "bar"},
    ),
    _time_last_of_101(),
    _a_long_header(),
)
VALUES = (
    _types_behind_64_kib(),
    Case(
        "C17.csv",
        ["time", "station", "batch"],
        beside(after(0, 1), ["0001", "0002"], ["89490200001234567890", "89490200001234567891"]),
    ),
    Case(
        "C22.csv",
        ["VarName", "TimeString", "VarValue"],
        beside(["T"] * 3, after(0, 10, 20), [20.5, 1.0, 2.0]),
    ),
    Case("C4.csv", ["time", "a", "b"], beside(after(0, 1, 2), [None, 2.5, 3.5], [1.5, None, 1.7])),
    Case("C4-9999.csv", ["mean"], [[11.0]], through=windows(60, "avg", "a", "mean")),
    Case(
        "C5.csv",
        ["Zeit", "Leistung", "Zaehler"],
        beside(after(0, 1, 2), [0.6, 0.7, 0.7], [998.0, 1008.0, 12988.0]),
    ),
    Case(
        "C5-million.csv",
        ["Zeit", "Leistung", "Zaehler"],
        beside(after(0, 1), [0.6, 0.7], [999990.0, 1000000.0]),
    ),
    Case(
        "V2.csv",
        ["time", "meter_kwh", "mains_hz", "latitude", "asset_id"],
        beside(
            after(0, 1),
            [1234567.5, 1234567.6],
            [49.998, 50.002],
            [52.520008, 52.520009],
            ["123456789012345678", "123456789012345677"],
        ),
        b"time,meter_kwh,mains_hz,latitude,asset_id\n"
        b"2024-05-01 00:00:00,1234567.5,49.998,52.520008,123456789012345678\n"
        b"2024-05-01 00:00:01,1234567.6,50.002,52.520009,123456789012345677\n",
    ),
)
TIMES = (
    Case(
        "C10.csv",
        ["time", "power"],
        beside(
            [DAY + timedelta(hours=hour) for hour in range(14, 26)],
            [hour + 0.5 for hour in range(14, 25)] + [1.5],
        ),
    ),
    Case(
        "C11.csv",
        ["sum"],
        [[1.0]] * 12,
        answers={"time.zone": {"time.zone": "Europe/Berlin"}},
        through=windows(900, "sum", "energy", "sum"),
    ),
    Case(
        "C6.csv",
        ["time", "v"],
        beside(after(82_800, 84_600, 86_400, 88_200), [1.0, 2.0, 3.0, 4.0]),
        with_time=True,
    ),
    _date_and_time_over_a_day(),
    _local_days(),
    # At their own pace: nobody waits for 54 years, or for 140.
    Case(
        "C7.csv",
        ["time", "value"],
        beside([datetime(1970, 1, 1, tzinfo=UTC), *after(0, 1, 2, 3)], [0.0, 1.0, 2.0, 3.0, 4.0]),
        answers={"time.jump": {}},  # the times stay as they are
        replay={"longest_pause_s": 2},
        says=("At line 3 the time jumps ahead by 54 years",),
    ),
    Case(
        "C7-glitch.csv",
        ["time", "value"],
        beside(after(*range(10), *range(11, 20)), [float(n) for n in (*range(10), *range(11, 20))]),
        replay={"speed": 100},
        says=("2165",),
        skipped=1,
    ),
)


# --- files of real loggers


def _logger(
    name: str,
    header: list[str],
    at: Callable[[dict[str, str]], Mapping[str, datetime]],
    *,
    before: int = 1,
    rows: int | None = None,
    texts: tuple[str, ...] = (),
    with_time: bool = False,
    answers: Mapping[str, Mapping[str, Any]] | None = None,
) -> Case:
    """`before`: how many lines stand before the rows. `at`: the times of a row, by column."""
    lines = (FILES / name).read_text("utf-8").splitlines()[before:]
    lines = lines if rows is None else lines[:rows]
    columns = header[1:] if with_time else header

    def cells() -> Iterator[list[Cell]]:
        for cells in csv.reader(lines, skipinitialspace=True):
            found = dict(zip(columns, cells, strict=False))
            times = at(found)
            yield [
                times[column] if column in times else _cell(found[column], column in texts)
                for column in header
            ]

    return Case(name, header, list(cells()), answers=answers or {}, with_time=with_time)


def _cell(text: str, is_text: bool) -> Cell:
    text = text.strip()
    if is_text:
        return text or None
    try:
        return float(text)
    except ValueError:
        return None


def _utc(text: str, format: str) -> datetime:
    return datetime.strptime(text, format).replace(tzinfo=UTC)


def loggers() -> tuple[Case, ...]:
    hobo = next(csv.reader([(FILES / "hobo-formatted-NA.csv").read_text("utf-8").partition("\n")[0]]))
    nova = next(csv.reader([(FILES / "nova-flex2-bioreactor.csv").read_text("utf-8").partition("\n")[0]]))
    analyser = "%m/%d/%Y  %I:%M:%S %p"
    return (
        _logger(
            "hobo-formatted-NA.csv",
            hobo,
            lambda row: {"Date.Time": _utc(row["Date.Time"], "%Y-%m-%d %H:%M:%S")},
            texts=("SiteID", "Air.LoggerID", "Air.RowID", "Water.LoggerID", "Water.RowID"),
        ),
        _logger(
            "midc-solar-minute.txt",
            ["time", "DATE", "MST", "Global PSP", "Global PSP (Accumulated)"]
            + [f"Temperature @ {height}m" for height in (2, 50, 80)],
            # Mountain Standard Time is 7 hours behind UTC all year.
            lambda row: {"time": _utc(f"{row['DATE']} {row['MST']}", "%m/%d/%Y %H:%M") + timedelta(hours=7)},
            texts=("DATE", "MST"),
            with_time=True,
        ),
        _logger(
            "minidot-oxygen-logger.txt",
            ["Time", "BV", "T", "DO", "Q ()"],
            lambda row: {"Time": datetime.fromtimestamp(int(row["Time"]), UTC)},
            before=3,
        ),
        _logger(
            "nova-flex2-bioreactor.csv",
            # Each line ends in a delimiter. A unit is no part of the name.
            [name.removesuffix(" (°C)").removesuffix(" (psi)") for name in nova[:-1]],
            lambda row: {name: _utc(row[name], analyser) for name in ("Date & Time", "Sample Time")},
            texts=(
                *("Sample ID", "Sample Type", "Cell Inspection Type", "Cell Density Dilution"),
                *("Chemistry Dilution Ratio", "Operator"),
            ),
            answers={"type.Viable Density": {}},  # 10.00% among densities has no value
        ),
        _logger(
            "pvgis-hourly.csv",
            ["time", "Gb(i)", "Gd(i)", "Gr(i)", "H_sun", "T2m", "WS10m", "Int"],
            lambda row: {"time": _utc(row["time"], "%Y%m%d:%H%M")},
            before=9,
            rows=14,  # what the columns mean stands behind them
        ),
    )
