"""Finds the event time of the rows, makes notes about it, and asks about doubts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
from pydantic import JsonValue

from pipeline_runtime.model.schema import FieldType
from webapp.imports import clock, time_columns
from webapp.imports.reading import Choice, Question, TimeReading, asked_if_several
from webapp.imports.time_columns import NO_DATE
from webapp.imports.time_follows import TimeFound
from webapp.imports.time_formats import dates_in
from webapp.imports.time_text import (
    ABOVE,
    COUNTED,
    DAY_US,
    OR,
    RANGE,
    RANGE_END,
    date_of,
    time_reader,
    without_given,
    year_of,
)
from webapp.imports.turns import turns_of

_ORDERS = {
    "%d": "day",
    "%m": "month",
    "%Y": "year",
    "%y": "year",
}
YEARS_MAX, YEARS_LOOKED_AT = 6, 12
LINES_ABOVE_MAX = 100
# Share of rows without a date from which on only the first row of a day may have the date.
BELOW_DATES_SHARE = 0.3
LOST_SHARE = 0.05
_BREAKS = re.compile(r"(?<=[a-z])(?=[A-Z])|[\W_]+")  # PeriodEnd, period_end
_OF_AN_END = re.compile(
    r"\b(end(ing)?|(interval|period)?endtime|time to|date to|fin"
    r"|bis|endzeit|(intervall|perioden|stunden)?ende)\b"
)
_IN_UTC = re.compile("utc|gmt", re.IGNORECASE)  # also timeUTC and dateutc, in which utc is no separate word


@dataclass(frozen=True)
class Timed:
    """The time of a table. `columns` make the time. `others` are further columns of times, with their
    formats."""

    reading: TimeReading | None
    columns: tuple[int, ...] = ()
    others: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()

    def type_of(self, column: int, type_: FieldType) -> tuple[FieldType, str | None]:
        """Returns TIMESTAMP and the format for a column that holds times. For another column, returns its own
        type."""
        if self.reading is not None and self.columns == (column,):
            return FieldType.TIMESTAMP, None  # the column has the format of the event time
        if column in self.others and type_ is FieldType.STRING:
            return FieldType.TIMESTAMP, self.others[column]
        if column in self.columns:
            return FieldType.STRING, None
        return type_, None


def detected_time(
    names: Sequence[str],
    columns: Sequence[Sequence[str]],
    pieces: Sequence[Sequence[str]],
    headers: Sequence[str],
    lines: Sequence[int],
    decimal: str,
    fixed: Mapping[str, JsonValue],
    above: Sequence[str] = (),
    days: str = "excel_days",
) -> Timed:
    """Returns the time of the rows. `columns` are the cells of the beginning, and `lines` are the line
    numbers of these rows. `pieces` are cells from further on: they show formats, but no steps. `above` are
    the lines above the table, which may name a date or a zone. `days` is the format of numbers that are days
    of Excel."""
    if "time" in fixed and fixed["time"] is None:
        return Timed(None, notes=("No column is the time.",))
    found = _found(names, columns, pieces, decimal, fixed)
    if found is None:
        return Timed(None, notes=("No column looks like a time.",))
    found = _below_dates(_counting(found, days), columns)
    if decimal == "," and found.format in COUNTED:
        columns = [[cell.replace(",", ".") for cell in cells] for cells in columns]
    found = _by_clock_changes(found, columns)
    times = _times(found, columns)
    header = " ".join(headers[at] for at in found.columns)
    micros = [each for each, _ in times]
    newest_first = clock.is_newest_first(micros)
    ordered = list(reversed(times)) if newest_first else times
    local = [each for each, is_utc in ordered if not is_utc]
    zones = clock.zones_behind(_texts(found, columns)) if found.format == "iso" else ()
    if len(zones) > 1 and local:
        return Timed(None, notes=(f"The times are in several zones, such as {zones[0]} and {zones[1]}.",))
    zone = found.zone or (zones[0] if zones else clock.zone_named(header))
    if zone is None and local and not _IN_UTC.search(header):
        zone = clock.zone_above([*above[:LINES_ABOVE_MAX], header])
    glitch = clock.glitch(micros)
    is_range = RANGE in found.format
    marks_end = not is_range and bool(_OF_AN_END.search(_BREAKS.sub(" ", header).lower()))
    reading = TimeReading(
        columns=found.columns,
        format=found.format,
        zone=zone or "UTC",
        marks="end" if marks_end else "begin",
        newest_first=newest_first,
        jump="keep" if glitch is None else "skip",
        jump_s=None if glitch is None else clock.far_us(micros) / 1e6,
    )
    questions = [
        *_order_question(found, columns),
        *_year_question(found, columns, reading),
        *_date_question(found, columns, above),
    ]
    questions = questions or _range_question(found, columns)
    if questions and year_of(found.format) is not None:
        reading = reading.model_copy(update={"format": questions[-1].choices[0].changes["time.format"]})
    if zone is None and len(local) == len(ordered):
        questions += _zone_question(clock.clock_changes(local))
    notes = _notes(names, _example(found, columns), reading, zone, bool(local), micros, lines, glitch)
    notes[1:1] = _format_notes(found, columns, lines)
    return Timed(reading, found.columns, found.others, tuple(notes), tuple(questions))


def _found(
    names: Sequence[str],
    columns: Sequence[Sequence[str]],
    pieces: Sequence[Sequence[str]],
    decimal: str,
    fixed: Mapping[str, JsonValue],
) -> TimeFound | None:
    chosen = fixed.get("time.columns")
    if not isinstance(chosen, list):
        return time_columns.find(names, columns, decimal, pieces) or time_columns.times_of_day(names, columns)
    at = [each for each in chosen if isinstance(each, int) and 0 <= each < len(columns)]
    # Only the chosen columns are looked at, under names that mark them as times.
    some = time_columns.find(
        ["time"] * len(at), [columns[each] for each in at], decimal, [pieces[each] for each in at]
    )
    if some is None and len(at) == 1:
        some = time_columns.times_of_day(["time"], [columns[at[0]]])
    if some is None or not at:
        return None
    return TimeFound(tuple(at[each] for each in some.columns), some.formats)


def since(format: str, cells: Sequence[str]) -> Timed:
    """Returns the time of a first column that counts seconds from a moment named above the table. The column
    stays a column of numbers as well."""
    first = next((cell.strip() for cell in cells if cell.strip()), "")
    moment = time_reader(format)(first.replace(",", ".")) if format and first else None
    if moment is None:
        return Timed(None, notes=("No column looks like a time.",))
    return Timed(
        TimeReading(columns=(0,), format=format),
        notes=(
            f"The first column counts seconds from the beginning that the header names: {first} is "
            f"{clock.in_words(moment[0], exact=True)}.",
            "The times name no zone. They are read as UTC.",
        ),
    )


def _counting(found: TimeFound, days: str) -> TimeFound:
    """Returns the time, with this format for days of Excel."""
    formats = tuple(days if each == "excel_days" else each for each in found.formats)
    others = {at: days if each == "excel_days" else each for at, each in found.others.items()}
    return replace(found, formats=formats, others=others)


def _below_dates(found: TimeFound, columns: Sequence[Sequence[str]]) -> TimeFound:
    """Returns the time with dates that only the first row of each day has, if the rows show this."""
    texts = _texts(found, columns)
    read = time_reader(found.format)
    dated = [moment[0] // DAY_US for text in texts if (moment := read(text)) is not None]
    lost = [text for text in texts if read(text) is None]
    twice = sum(before == after for before, after in pairwise(dated))
    if (
        len(lost) < BELOW_DATES_SHARE * len(texts)
        or read(texts[0]) is None
        or twice > LOST_SHARE * len(dated)
        or found.format.startswith((ABOVE, "epoch", *COUNTED))
        or year_of(found.format) is not None
        or date_of(found.format) is not None
    ):
        return found
    formats = tuple(ABOVE + ("%Y-%m-%d" if each == "iso" else each) for each in found.formats)
    below = time_reader(formats[0])
    kept = sum(below(text) is not None for text in lost)
    return replace(found, formats=formats) if kept >= (1 - LOST_SHARE) * len(lost) else found


def _by_clock_changes(found: TimeFound, columns: Sequence[Sequence[str]]) -> TimeFound:
    """Returns the time in the one order of day and month in which its clock changes fit a zone's clock
    changes."""
    if len(found.formats) < 2:
        return found
    changes = []
    for each in found.formats:
        times = _times(replace(found, formats=(each,)), columns)
        if not any(is_utc for _, is_utc in times) and clock.clock_changes([micros for micros, _ in times]):
            changes.append(each)
    return replace(found, formats=tuple(changes)) if len(changes) == 1 else found


def _texts(found: TimeFound, columns: Sequence[Sequence[str]]) -> list[str]:
    return [" ".join(cells).strip() for cells in zip(*(columns[at] for at in found.columns), strict=False)]


def _times(found: TimeFound, columns: Sequence[Sequence[str]]) -> list[tuple[int, bool]]:
    """Returns (microseconds, whether they are in UTC) of each row with a time. A time without a year may
    begin a new year."""
    read = time_reader(found.format)
    times = [moment for text in _texts(found, columns) if (moment := read(text)) is not None]
    micros = [each for each, _ in times]
    turns = turns_of(found.format, clock.is_newest_first(micros))
    if turns is None:
        return times
    known = np.ones(len(times), bool)
    turned = turns.of(np.array(micros, np.int64), known).tolist()
    return [(each, is_utc) for each, (_, is_utc), own in zip(turned, times, known, strict=True) if own]


def _example(found: TimeFound, columns: Sequence[Sequence[str]]) -> str:
    """Returns an example for a question: the text of a time, and its meaning in words."""
    read = time_reader(found.format)
    for text in _texts(found, columns):
        moment = read(text)
        if moment is not None and (year_of(found.format) or date_of(found.format)):
            return text
        if moment is not None:
            return f"{text} is {clock.in_words(moment[0], exact=True)}{' UTC' if moment[1] else ''}"
    return ""


def _year_question(
    found: TimeFound, columns: Sequence[Sequence[str]], reading: TimeReading
) -> list[Question]:
    """Asks for the year of the first row if no time names a year. It offers past years, the newest one
    first."""
    texts = _texts(found, columns)
    read = time_reader(found.format)
    first = next((text for text in texts if read(text) is not None), None)
    if year_of(found.format) is None or first is None:
        return []
    now = datetime.now(UTC)
    until = int((now + timedelta(days=1)).timestamp()) * 1_000_000
    pattern = without_given(found.format)
    choices = []
    for year in range(now.year, now.year - YEARS_LOOKED_AT, -1):
        written = f"{{{year}}} {pattern}"
        moment = time_reader(written)(first)
        if moment is not None and moment[0] <= until:
            choices.append(
                Choice(title=str(year), example=clock.in_words(moment[0]), changes={"time.format": written})
            )
    text = f"The times name no year. In which year was {first}?"
    if reading.newest_first:
        text += " It is the newest row."
    return asked_if_several("time.year", text, choices[:YEARS_MAX])


def _date_question(
    found: TimeFound, columns: Sequence[Sequence[str]], above: Sequence[str]
) -> list[Question]:
    """Asks for the day of the first row if the times have no date. It offers the dates above the table."""
    read = time_reader(found.format)
    first = next((text for text in _texts(found, columns) if read(text) is not None), None)
    if date_of(found.format) is None or first is None:
        return []
    pattern = without_given(found.format)
    named = list(dict.fromkeys(date for line in above[:LINES_ABOVE_MAX] for date in dates_in(line)))
    choices = [
        Choice(title=f"On {date}", example=text, changes={"time.format": f"{{{date}}} {pattern}"})
        for date, text in named[:YEARS_MAX]
    ]
    choices += [
        Choice(title="On any day: the pace alone matters", example=f"{NO_DATE} {first}", changes={}),
        Choice(
            title="It is no time: rows are played evenly",
            changes={"time": None, f"columns.{found.columns[0]}.type": FieldType.STRING.value},
        ),
    ]
    text = f"The times have no date. On which day was {first}?"
    return [Question(id="time.date", text=text, choices=tuple(choices))]


def _range_question(found: TimeFound, columns: Sequence[Sequence[str]]) -> list[Question]:
    """Asks which end of a range such as 08:00-08:15 is the time of the row."""
    read, at_end = time_reader(found.format), found.format.replace(RANGE, RANGE_END)
    text = next((text for text in _texts(found, columns) if read(text) is not None), None)
    if RANGE not in found.format or text is None:
        return []
    choices = []
    for words, written in (("At the beginning", found.format), ("At the end", at_end)):
        moment = time_reader(written)(text)
        example = clock.in_words(moment[0]) if moment is not None else ""
        choices.append(Choice(title=words, example=example, changes={"time.format": written}))
    return [
        Question(
            id="time.range",
            text=f"A time is a range, such as {text}. At which end of it is its row played?",
            choices=tuple(choices),
        )
    ]


def _format_notes(found: TimeFound, columns: Sequence[Sequence[str]], lines: Sequence[int]) -> list[str]:
    """Returns notes on times in several formats and on times without a date, each with an example."""
    texts = list(zip(_texts(found, columns), lines, strict=False))
    notes = []
    if found.format.startswith(ABOVE):
        read = time_reader(found.format.removeprefix(ABOVE))
        place = next((place for place, (text, _) in enumerate(texts) if read(text) is None), None)
        if place is not None:
            text, line = texts[place]
            what = f"{text} at line {line}" if text else f"Line {line}"
            notes.append(f"Rows without a date have that of the row above: {what} is one.")
    elif OR in found.format:
        ways = []
        for each in found.format.removeprefix(RANGE).split(OR):
            read = time_reader(each)
            example = next(((text, line) for text, line in texts if read(text) is not None), None)
            if example is not None:
                ways.append(f"{example[0]} at line {example[1]}")
        notes.append(f"The times are written in several ways: {'; '.join(ways)}.")
    if RANGE in found.format and (len(found.formats) > 1 or date_of(found.format) is not None):
        notes.append("The beginning of each range is its time.")
    return notes


def _order_question(found: TimeFound, columns: Sequence[Sequence[str]]) -> list[Question]:
    if len(found.formats) < 2:
        return []
    text = _telling(found.formats, [text for text in _texts(found, columns) if text][:400])
    choices = []
    for each in found.formats[:4]:
        moment = time_reader(each)(text)
        example = clock.in_words(moment[0]) if moment is not None else ""
        order = ", ".join(_ORDERS[part] for part in _order(_that_reads(each, text)))
        counts = "a count of seconds" if each in COUNTED else order
        choices.append(
            Choice(
                title=f"{counts}: {text} is {example}".capitalize(),
                example=example,
                changes={"time.format": each},
            )
        )
    return [
        Question(
            id="time.order",
            text=f"What is {text}?"
            if {*found.formats} & {*COUNTED}
            else f"In which order do day, month and year stand in {text}?",
            choices=tuple(choices),
        )
    ]


def _telling(formats: Sequence[str], texts: Sequence[str]) -> str:
    """Returns a text whose meaning depends on the format: 03/04/2024 rather than 01/01/2024."""

    def meanings(text: str) -> int:
        return len({time_reader(each)(text) for each in formats})

    return max(texts, key=meanings, default="")


def _that_reads(time_format: str, text: str) -> str:
    """Returns the first of several formats that can read a text."""
    ways = time_format.split(OR)
    return next((each for each in ways if time_reader(each)(text) is not None), ways[0])


def _order(pattern: str) -> list[str]:
    return sorted((part for part in _ORDERS if part in pattern), key=pattern.index)


def _zone_question(zones: Sequence[str]) -> list[Question]:
    if not zones:
        return []
    choices = [
        Choice(title=f"{zone.split('/')[1].replace('_', ' ')} ({zone})", changes={"time.zone": zone})
        for zone in zones
    ]
    choices.append(Choice(title="UTC: the times are as they stand there", changes={"time.zone": "UTC"}))
    return [
        Question(
            id="time.zone",
            text="The clock was changed while this was recorded. In which zone are the times?",
            choices=tuple(choices),
        )
    ]


def _notes(
    names: Sequence[str],
    example: str,
    reading: TimeReading,
    zone: str | None,
    local: bool,
    times: Sequence[int],
    lines: Sequence[int],
    glitch: clock.Step | None,
) -> list[str]:
    columns = [names[at] for at in reading.columns if isinstance(at, int)]
    notes = [f"The time is in {' and '.join(columns)}: {example}."]
    if zone is not None:
        notes.append(f"The file names the zone: {zone}.")
    elif local and not reading.format.startswith("epoch"):
        notes.append("The times name no zone. They are read as UTC.")
    if reading.newest_first:
        notes.append("The newest row comes first. The import turns the order round.")
    if reading.marks == "end":
        notes.append("A time is the end of its interval.")
    step = glitch or clock.jump(times)
    if step is not None and step.row < len(lines):
        before, after = clock.in_words(step.before_us), clock.in_words(step.after_us)
        length = clock.span(step.after_us - step.before_us)
        direction = "back" if step.after_us < step.before_us else "ahead"
        text = f"At line {lines[step.row]} the time jumps {direction} by {length}, from {before} to {after}."
        notes.append(text + (" Such rows are left out." if glitch is not None else ""))
    back = None if reading.newest_first else clock.fall_back(times)
    if step is None and back is not None and back.row < len(lines):
        length = clock.span(back.before_us - back.after_us)
        notes.append(f"At line {lines[back.row]} the time goes back by {length}.")
    return notes
