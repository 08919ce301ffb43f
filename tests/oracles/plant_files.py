"""Files of plants with what is rare in them, made by a seed: units in cells, restarts, sums, weeks, signs.

What a file says is never read back from its text, so a test compares the import with what was meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from tests.oracles.log_files import Column, LogFile

UNITS = ("°C", "bar", "%", "kWh", "m³/h", "mA")
NAMES = ("Temp", "Druck", "Level", "Power", "Flow", "Strom", "pH", "Drehzahl")
TRUTHS = (("ein", "aus"), ("ja", "nein"), ("TRUE", "FALSE"), ("on", "off"), ("wahr", "falsch"))
ENDS = ("\n", "\r\n", "\r", "\r\r\n")
FOOTERS = ("", "", "", "Summe", "Total", "Average", "Mittelwert")


@dataclass(frozen=True)
class Style:
    """How a maker writes its files."""

    delimiter: str
    decimal: str
    thousands: str
    minus: str  # before, behind, parentheses or sign
    end: str


def plant_file(seed: int) -> LogFile:
    """Returns a file of 30 to 120 rows that can be read in one way."""
    random = Random(seed)
    delimiter = random.choice((";", "\t", ",", "|"))
    decimal = "." if delimiter == "," else random.choice((".", ","))
    marks = ["", "", "'", "\u2019"] + (["\u00a0", "\u202f", "\u2009"] if decimal == "," else [])
    minus = random.choice(("before", "before", "behind", "parentheses", "sign"))
    style = Style(delimiter, decimal, random.choice(marks), minus, random.choice(ENDS))
    rows = random.randint(30, 120)
    header, times, cells = _times(random, rows, style)
    columns = [_column(random, number, rows, style) for number in range(random.randint(1, 5))]
    names = [*header, *(column.name for column in columns)]
    units = ["" for _ in header] + [column.unit for column in columns]
    below = random.random() < 0.3 and any(units)
    head = [style.delimiter.join(names)] + ([style.delimiter.join(units)] if below else [])
    preamble = random.choice(([], [], ["Logger 4711", "Serial no: 20431187"]))
    lines = [*preamble, *head]
    restart = random.randrange(5, rows) if random.random() < 0.3 else None
    remark = random.randrange(5, rows) if random.random() < 0.3 else None
    for row in range(rows):
        if row == restart:
            lines += [*preamble, *head]
        if row == remark:
            lines.append("# restarted, by hand")
        lines.append(style.delimiter.join([*cells[row], *(column.texts[row] for column in columns)]))
    footer = random.choice(FOOTERS)
    if footer:
        lines.append(
            style.delimiter.join([footer, *["" for _ in header[1:]], *(c.texts[0] for c in columns)])
        )
    text = "".join(line + style.end for line in lines)
    data = ("\ufeff" + text).encode() if random.random() < 0.3 else text.encode()
    return LogFile(seed, data, tuple(times), tuple(columns), text)


def _times(random: Random, rows: int, style: Style) -> tuple[list[str], list[datetime], list[list[str]]]:
    """Returns (the names of the columns of the time, the times in UTC, their cells)."""
    begin = datetime(random.randint(2015, 2024), random.randint(2, 9), random.randint(13, 20), 1, tzinfo=UTC)
    minutes = [begin + timedelta(minutes=5 * row) for row in range(rows)]
    days = [begin.replace(hour=0) + timedelta(days=row) for row in range(rows)]
    kind = random.randrange(17)
    if kind == 0:
        return ["time"], minutes, [[f"{at:%Y-%m-%dT%H:%M:%S}+00:00[UTC]"] for at in minutes]
    if kind == 1:
        local = [at + timedelta(hours=2) for at in minutes]
        return ["Zeit"], minutes, [[f"{at:%Y-%m-%dT%H:%M:%S}+02:00[Europe/Berlin]"] for at in local]
    if kind == 2:
        local = [at + timedelta(hours=1) for at in minutes]
        return ["Datum", "Zone"], minutes, [[f"{at:%d.%m.%Y %H:%M}", "CET"] for at in local]
    if kind == 3:
        return (
            ["year", "doy", "hhmm"],
            minutes,
            [[f"{at:%Y}", f"{at:%j}", str(int(f"{at:%H%M}"))] for at in minutes],
        )
    if kind == 4:
        return ["Datum", "Uhrzeit"], minutes, [[f"{at:%d.%m.%Y}", f"{at:%H.%M.%S}"] for at in minutes]
    if kind == 5:
        monday = [day - timedelta(days=begin.weekday()) for day in days]
        return ["week"], monday, [[f"{at:%G-W%V-%u}"] for at in monday]
    if kind == 6:
        return ["date"], days, [[f"{at:%Y-%j}"] for at in days]
    if kind == 7:
        some = [at + timedelta(milliseconds=125) for at in minutes]
        return ["Zeitstempel"], some, [[f"{at:%d.%m.%Y %H:%M:%S}{style.decimal}125"] for at in minutes]
    if kind == 8:
        return (
            ["date", "time", "AM/PM"],
            minutes,
            [[f"{at:%Y-%m-%d}", f"{at:%I:%M:%S}", f"{at:%p}"] for at in minutes],
        )
    if kind == 9:
        return (
            ["timestamp"],
            minutes,
            [[f"{at.timestamp():.3f}".replace(".", style.decimal)] for at in minutes],
        )
    if kind == 10:
        return ["Date"], days, [[f"{at:%d-%b-%y}"] for at in days]
    hours = [begin.replace(hour=0) + timedelta(hours=row) for row in range(rows)]
    if kind == 11:  # the date stands in the first row of a day alone
        dated = [f"{at:%d.%m.%Y}" if at.hour == 0 else "" for at in hours]
        return (
            ["Datum", "Uhrzeit"],
            hours,
            [[day, f"{at:%H:%M}"] for day, at in zip(dated, hours, strict=True)],
        )
    if kind == 12:
        return ["Zeit"], hours, [[f"{at:%d.%m.%Y %H:%M}" if at.hour == 0 else f"{at:%H:%M}"] for at in hours]
    if kind == 13:  # a date without a time of day is its midnight
        return ["Zeit"], hours, [[f"{at:%d.%m.%Y %H:%M}" if at.hour else f"{at:%d.%m.%Y}"] for at in hours]
    if kind == 14:  # two programs have written it
        half = [
            f"{at:%Y-%m-%d %H:%M}" if row < rows // 2 else f"{at:%d.%m.%Y %H:%M}"
            for row, at in enumerate(hours)
        ]
        return ["Zeit"], hours, [[text] for text in half]
    if kind == 15:
        months = [datetime(2010 + row // 12, 1 + row % 12, 1, tzinfo=UTC) for row in range(rows)]
        written = random.choice(("{:%m/%Y}", "{:%Y-%m}", "{:%b %Y}"))
        return ["Monat"], months, [[written.format(at)] for at in months]
    return ["Timestamp"], minutes, [[f"{at:%Y-%m-%d %H:%M:%S}"] for at in minutes]


def _column(random: Random, number: int, rows: int, style: Style) -> Column:
    name = f"{random.choice(NAMES)} {number + 1}"
    kind = random.choice(("number", "number", "number", "unit", "truth", "words"))
    if kind == "truth":
        yes, no = random.choice(TRUTHS)
        flags = [row % 7 > 2 for row in range(rows)]
        return Column(name, "", list(flags), [yes if flag else no for flag in flags])
    if kind == "words":
        words = [random.choice(("pump on", "idle", "Störung", "ok")) for _ in range(rows)]
        return Column(name, "", list(words), list(words))
    unit = random.choice(UNITS) if kind == "unit" else ""
    digits, below = random.choice((1, 2)), not unit and random.random() < 0.5
    values = [round(random.uniform(-5_000 if below else 1_001, 9_000), digits) for _ in range(rows)]
    space = random.choice(("", " ", "\u00a0"))
    texts = [_number(value, digits, style) + (space + unit if unit else "") for value in values]
    return Column(name, unit, list(values), texts)


def _number(value: float, digits: int, style: Style) -> str:
    text = f"{abs(value):,.{digits}f}"
    text = text.replace(",", "\0").replace(".", style.decimal).replace("\0", style.thousands)
    if value >= 0:
        return text
    behind = {"behind": f"{text}-", "parentheses": f"({text})", "sign": f"\u2212{text}"}
    return behind.get(style.minus, f"-{text}")
