"""Files as loggers, historians and spreadsheets write them, with what is in them, made by a seed.

What a file says is never read back from its text, so a test compares the import with what was meant.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

Value = str | float | int | bool | None

QUANTITIES = (
    ("Temperature", "°C", 2),
    ("Druck", "bar", 2),
    ("Flow", "m3/h", 1),
    ("Power", "kW", 1),
    ("Leistung", "W", 0),
    ("Humidity", "%", 1),
    ("Level", "mm", 0),
    ("Strom L1", "A", 2),
    ("pH", "", 2),
    ("Drehzahl", "1/min", 0),
    ("Conductivity", "µS/cm", 1),
    ("Energy", "kWh", 2),
)
TIMES = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%SZ",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%y %H:%M",
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%Y %H:%M",
    "%Y/%m/%d %H:%M:%S",
    "%Y%m%d %H%M%S",
    "%Y%m%d:%H%M",
    "%d-%b-%Y %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S+02:00",
    "epoch_s",
    "epoch_ms",
    "excel_days",
)
APART = (
    ("%d.%m.%Y", "%H:%M:%S"),
    ("%Y-%m-%d", "%H:%M"),
    ("%m/%d/%Y", "%H:%M:%S"),
    ("%d/%m/%Y", "%H:%M"),
)
MISSING = ("", "NaN", "-", "---", "NA", "n/a", "null", "#N/A")
PREAMBLES = (
    ("Serial number{d}20431187", "Firmware{d}1.11"),
    ("Data logger report", "Site: Nordhalle 3", "Operator: M. Weiß"),
    ("Latitude: 45.000", "Longitude: 8.000", "Elevation (m): 250", ""),
    ("7392-354869", "OS REV: 1.11 Sensor Cal: 1511389810"),
    ("[Header]", "Project=Kühlwasser", "", "[Data]"),
)
FOOTERS = (
    ("", "End of file"),
    ("", "T: air temperature", "", "© Example, 2001-2021"),
    ("*** stopped by user ***",),
)


@dataclass
class Column:
    name: str
    unit: str
    values: list[Value]
    texts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class LogFile:
    """`columns` are the data without the time; `times` are in UTC. `text` is what `data` decodes to."""

    seed: int
    data: bytes
    times: tuple[datetime, ...]
    columns: tuple[Column, ...]
    text: str


def log_file(seed: int, rows: int = 40) -> LogFile:
    """Returns a file of so many rows, of any kind that the seed makes."""
    random = Random(seed)
    decimal = random.choice((".", ".", ","))
    delimiter = random.choice((";", "\t", ";") if decimal == "," else (",", ",", ";", "\t", "|", " "))
    missing = random.choice(MISSING)
    times = _times(random, rows)
    columns = _columns(random, rows, decimal, missing, delimiter)
    newest_first = random.random() < 0.08
    apart = random.random() < 0.3
    formats = random.choice(APART) if apart else (random.choice(TIMES),)
    if delimiter == " ":
        apart, formats = True, random.choice(APART[:2])
        missing, columns = "NaN", _columns(random, rows, decimal, "NaN", delimiter)
    offset = timedelta(hours=2) if formats[0].endswith("+02:00") else timedelta(0)
    # Some days of the month are over 12, so that a date says its order.
    stamps = [[_stamp(moment + offset, each) for each in formats] for moment in times]
    at = 0 if random.random() < 0.85 else random.randrange(len(columns) + 1)
    table = [
        [
            *(column.texts[row] for column in columns[:at]),
            *stamps[row],
            *(column.texts[row] for column in columns[at:]),
        ]
        for row in range(rows)
    ]
    if newest_first:
        table.reverse()
    lines = _dressed(random, table, columns, at, apart, delimiter)
    end = random.choice(("\n", "\r\n", "\r\n"))
    text = end.join(lines) + (end if random.random() < 0.8 else "")
    return LogFile(seed, _encoded(random, text), tuple(times), tuple(columns), text)


def _times(random: Random, rows: int) -> list[datetime]:
    begin = datetime(random.randrange(2015, 2026), random.randrange(1, 12), 14, tzinfo=UTC)
    begin += timedelta(hours=random.randrange(24))
    step = timedelta(minutes=random.choice((1, 5, 10, 15, 30, 60)))
    return [begin + step * row for row in range(rows)]


def _stamp(moment: datetime, pattern: str) -> str:
    if pattern == "epoch_s":
        return f"{moment.timestamp():.0f}"
    if pattern == "epoch_ms":
        return f"{moment.timestamp() * 1000:.0f}"
    if pattern == "excel_days":
        return f"{moment.timestamp() / 86_400 + 25_569:.9f}"
    return moment.strftime(pattern)


def _columns(random: Random, rows: int, decimal: str, missing: str, delimiter: str) -> list[Column]:
    columns = []
    for name, unit, digits in random.sample(QUANTITIES, random.randrange(1, 7)):
        base, spread = random.choice((0.5, 20, 230, 1400)), random.choice((0.2, 5, 60))
        gaps, grouped = random.random() < 0.3, decimal == "," and random.random() < 0.2
        values: list[Value] = []
        texts = []
        for _ in range(rows):
            value = round(base + random.uniform(-spread, spread), digits)
            # Zeros at the end are kept: a column always shows so many digits.
            text = f"{value:,.{digits}f}" if grouped else f"{value:.{digits}f}"
            text = text.translate({ord("."): ",", ord(","): "."}) if decimal == "," else text
            if gaps and random.random() < 0.1:
                values.append(None)
                texts.append(missing)
            else:
                values.append(float(f"{value:.{digits}f}"))
                texts.append(text)
        columns.append(Column(name, unit, values, texts))
    if random.random() < 0.3:
        ids = [f"{random.randrange(1, 40):04d}" for _ in range(rows)]
        ids[0] = "0007"
        columns.append(Column("Station", "", list(ids), ids))
    if random.random() < 0.25:
        words = [random.choice(("run", "idle", "Störung", "service")) for _ in range(rows)]
        columns.append(Column("Status", "", list(words), words))
    if random.random() < 0.15:
        flags = [random.random() < 0.5 for _ in range(rows - 2)] + [True, False]
        columns.append(Column("Alarm", "", list(flags), ["true" if flag else "false" for flag in flags]))
    return columns


def _dressed(
    random: Random, table: list[list[str]], columns: list[Column], at: int, apart: bool, delimiter: str
) -> list[str]:
    """Adds what stands around the rows: a preamble, names, units, comments, a footer."""
    clock = (
        ["Date", "Time"]
        if apart
        else [random.choice(("Time", "timestamp", "Zeit", "Datum/Uhrzeit", "Date Time"))]
    )
    style = random.choice(("brackets", "brackets", "row", "none", "none"))
    if delimiter == " ":
        style, clock = "none", ["Date", "Time"]
    names = [
        column.name.replace(" ", "_")
        if delimiter == " "
        else f"{column.name} [{column.unit}]"
        if style == "brackets" and column.unit
        else column.name
        for column in columns
    ]
    header = [*names[:at], *clock, *names[at:]]
    units = [column.unit for column in columns]
    rows = [header]
    if style == "row" and any(units):
        rows.append([*units[:at], *("" for _ in clock), *units[at:]])
    rows += table
    quote_all = random.random() < 0.15 and delimiter != "\t"
    trailing = delimiter if random.random() < 0.1 else ""
    gap = "  " if delimiter == " " and random.random() < 0.5 else delimiter
    if delimiter == " ":
        quote_all, trailing = False, ""
    lines = [
        gap.join(f'"{cell}"' if quote_all or delimiter in cell or '"' in cell else cell for cell in row)
        + trailing
        for row in rows
    ]
    if random.random() < 0.05 and delimiter == ";":
        lines.insert(0, "sep=;")
    elif delimiter == " ":
        lines[0] = random.choice(("# ", "")) + lines[0]
    elif random.random() < 0.3:
        preamble = random.choice(PREAMBLES)
        mark = "# " if random.random() < 0.2 else ""
        lines = [*(mark + line.format(d=delimiter) for line in preamble), *lines]
    if random.random() < 0.12:
        lines += random.choice(FOOTERS)
    return lines


def _encoded(random: Random, text: str) -> bytes:
    encoding = random.choice(("utf-8", "utf-8", "utf-8-sig", "cp1252", "cp1252", "utf-16", "utf-16-le"))
    return text.encode(encoding)
