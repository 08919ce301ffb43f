"""Finds out how to read a text file: the delimiter of its cells, and which of its tables to read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pydantic import JsonValue

from webapp.imports import table_place
from webapp.imports.cuts import at_places, cut_line, cuts_below_names, cuts_of
from webapp.imports.decimal_commas import ways_of, with_points
from webapp.imports.detect_table import detected_table
from webapp.imports.dialect import (
    QUOTED_LINES_MAX,
    Dialect,
    Line,
    detected as detected_dialect,
    divided,
    escapes_delimiter,
    has_escapes,
    lines_of,
    lost_quote,
    unescaped,
)
from webapp.imports.encoding import decoded
from webapp.imports.encoding_words import encoding_words
from webapp.imports.faults import ImportFault
from webapp.imports.fixed import text_of, whole_of, wholes_of
from webapp.imports.reading import Choice, Detection, Reading
from webapp.imports.sample import Head
from webapp.imports.shapes import is_typed, shape
from webapp.imports.table_parts import asked_which, difference, later_names
from webapp.imports.table_questions import Facts
from webapp.imports.units import is_unit

_DIVIDERS = {
    ",": "A comma divides the cells.",
    ";": "A semicolon divides the cells.",
    "\t": "A tab divides the cells.",
    "|": "A vertical bar divides the cells.",
    "whitespace": "Any number of spaces divides the cells.",
    "places": "The cells are divided by their places in the line.",
}
ROWS_MIN = 3
COLUMNS_SHOWN = 8
_ONE_NUMBER = re.compile(r"[+-]?\d+(?:,\d+)?", re.ASCII)


@dataclass(frozen=True)
class _Text:
    """A text and its dialect. `lines` have no escapes any more."""

    lines: Sequence[str]
    dialect: Dialect
    escape: str
    comment: str
    cuts: tuple[int, ...]
    commas: str

    def rows(self, lines: Sequence[str]) -> list[Line]:
        """Returns the rows of these lines. Comments are among them."""
        found = [self._commas(line) for line in divided(lines, *self.dialect.marks)]
        if self.dialect.delimiter == "places":
            return [
                Line(row.number, tuple(at_places(row.text, self.cuts)), row.text) if row.cells else row
                for row in found
            ]
        return _cut(found, self.cuts) if self.cuts else found

    def _commas(self, line: Line) -> Line:
        text = with_points(line.text.encode(), self.commas).decode() if self.commas else line.text
        if text == line.text:
            return line
        return Line(line.number, next(divided([text], *self.dialect.marks)).cells, line.text)


def detected_text(head: Head, text: str, encoding: str, fixed: Mapping[str, JsonValue]) -> Detection:
    """Returns how the text is read if these places are fixed."""
    found = _divided(lines_of(text, cut=not head.whole) or [text], fixed)
    dialect = found.dialect
    base = Reading(
        compression=head.compression,
        member=head.member,
        encoding=encoding,
        delimiter=dialect.delimiter,
        quote=dialect.quote,
        escape=found.escape,
        cuts=found.cuts,
        commas=found.commas,
        comment=found.comment,
    )
    rows, comments = _without_comments(found)
    if not head.whole:
        rows = _without_cut_end(rows, dialect)
    elif not fixed:
        refuse_names_alone(rows)
    pieces = [
        row
        for piece in head.piece_bytes
        for row in found.rows(
            [
                unescaped(line, base.divider) if found.escape else line
                for line in lines_of(decoded(piece, encoding), cut=True)[1:]
            ]
        )
    ]
    notes = [f"{encoding_words(encoding)} is the encoding.", *_notes(found, rows)]
    if b"\0" in head.begin_bytes and encoding == "utf-8":
        notes.append("Zero bytes between the characters are left out.")
    # Where the beginning of the file is cut, a character of several bytes may be cut, too.
    if lost := (text if head.whole else text.rstrip("\ufffd")).count("\ufffd"):
        one = lost == 1
        are = "1 character is damaged. It is" if one else f"{lost:,} characters are damaged. They are"
        notes.append(f"At the beginning of the file {are} shown as \ufffd.")
    detection = _of_tables(Facts(base, rows, comments, pieces), fixed)

    def read(changes: Mapping[str, JsonValue]) -> Detection:
        return detected_text(head, text, encoding, {**fixed, **changes})

    if dialect.delimiter == "," and "delimiter" not in fixed and (is_number := _is_one_number(rows)):
        single = read({"delimiter": ";"})
        if is_number == "sure":
            return single
        detection = _asked_for_commas(detection, single, rows[-1].text.strip())
    elif dialect.delimiter == "," and "commas" not in fixed:
        detection = _asked_for_decimals(detection, rows, read)
    return detection.model_copy(update={"notes": (*notes, *detection.notes)})


def refuse_names_alone(rows: Sequence[Line]) -> None:
    """Raises ImportFault if the file has no rows, only column names and perhaps units or lines above them."""
    filled = [row for row in rows if row.cells]
    while len(filled) > 1 and all(is_unit(cell) and not is_typed(cell) for cell in filled[-1].cells if cell):
        filled.pop()
    if not filled or any(len(row.cells) >= len(filled[-1].cells) for row in filled[:-1]):
        return
    names = [cell.strip() for cell in filled[-1].cells]
    if len(set(names)) == len(names) and all(shape(name) in ("words", "near") for name in names if name):
        raise ImportFault(
            "The file has column names, and no rows.",
            f"line {filled[-1].number:,}",
            "Upload it again when it has rows.",
        )


def _divided(lines: Sequence[str], fixed: Mapping[str, JsonValue]) -> _Text:
    delimiter = text_of(fixed, "delimiter")
    quote = "" if delimiter == "places" else text_of(fixed, "quote")
    escape = text_of(fixed, "escape")
    if escape is None:
        escape = "\\" if has_escapes(lines) else ""
    dialect = detected_dialect([unescaped(line, "") for line in lines] if escape else lines, delimiter, quote)
    if "escape" not in fixed and not escape and escapes_delimiter(lines, dialect):
        escape = "\\"
    if escape:
        lines = [unescaped(line, Reading(delimiter=dialect.delimiter).divider) for line in lines]
    comment = text_of(fixed, "comment")
    comment = dialect.comment if comment is None else comment
    body = [line for line in lines if line.strip() and not (comment and line.lstrip().startswith(comment))]
    cuts: tuple[int, ...] = ()
    if dialect.delimiter in ("whitespace", "places"):
        given = wholes_of(fixed, "cuts")
        cuts = cuts_of(body) or cuts_below_names(body) if given is None else given
    return _Text(lines, dialect, escape, comment, cuts, text_of(fixed, "commas") or "")


def _without_cut_end(rows: list[Line], dialect: Dialect) -> list[Line]:
    """Returns the rows without the last one, if the part of the file that was looked at ends within it."""
    ending = rows[-QUOTED_LINES_MAX:]
    lost = lost_quote(ending, *dialect.marks)
    return rows if lost is None else [row for row in rows if row.number < lost]


def _without_comments(found: _Text) -> tuple[list[Line], list[Line]]:
    """Returns (the rows, the comments divided into cells)."""
    rows, comments = [], []
    for line in found.rows(found.lines):
        if found.dialect.sep_line and line.number == 1:
            continue
        if found.comment and line.text.lstrip().startswith(found.comment):
            comments += [
                Line(line.number, row.cells, line.text)
                for text in _comment_texts(line.text.lstrip(), found)
                for row in divided([text], *found.dialect.marks)
            ]
        else:
            rows.append(line)
    return rows, comments


def _comment_texts(text: str, found: _Text) -> tuple[str, ...]:
    """Returns a comment without its mark. If a delimiter follows the mark, the mark may be a name: then the
    comment with the mark is returned, too, as for `#,Date`."""
    bare, behind = text[len(found.comment) :].strip(), text[len(found.comment) :]
    if not behind.startswith(found.dialect.delimiter):
        return (bare,)
    return (text,) if bare.startswith(found.dialect.delimiter) else (text, bare)


def _notes(found: _Text, rows: Sequence[Line]) -> list[str]:
    dialect = found.dialect
    notes = [_DIVIDERS.get(dialect.delimiter, f"{dialect.delimiter} divides the cells.")]
    if dialect.sep_line:
        notes.append("Line 1 names the delimiter, as Excel wants it.")
    if found.escape:
        notes.append("A backslash comes before each quote and each delimiter that belongs to a cell.")
    if found.comment:
        notes.append(f"Lines that begin with {found.comment} are comments.")
    if lost_line := lost_quote(rows, *dialect.marks):
        notes.append(
            f"Line {lost_line} has a quote without its other half. It is read as a part of the text."
        )
    if found.cuts and dialect.delimiter == "whitespace":
        notes.append("The places of the cells in their lines tell which one is missing.")
    if found.commas:
        notes.append("Some commas stand before decimals, and the others divide the cells.")
    return notes


def _cut(rows: Sequence[Line], cuts: Sequence[int]) -> list[Line]:
    """Returns the rows from the first whole one on. Their cells are divided by place."""
    first = next((row.number for row in rows if len(row.cells) == len(cuts) + 1), 0)
    return [
        Line(row.number, tuple(cut_line(row.text, cuts)), row.text)
        if row.cells and row.number > first
        else row
        for row in rows
    ]


def _of_tables(facts: Facts, fixed: Mapping[str, JsonValue]) -> Detection:
    """Returns how the table is read. If other tables stand below it, it adds the question which one to
    read."""
    last = whole_of(fixed, "last_line")
    if last is not None:
        goes_on = facts.rows and facts.rows[-1].number < last
        rows = [row for row in facts.rows if row.number <= last]
        facts = replace(facts, rows=rows, pieces=facts.pieces if goes_on else ())
    if any(place in fixed for place in ("header_line", "first_line", "last_line")):
        return detected_table(facts, fixed)
    place = table_place.found(facts.rows, facts.comments)
    names = later_names(facts.rows, place)
    if not names:
        return detected_table(facts, fixed)
    bounds = [0, *(row.number for row in names), None]
    parts = []
    for begin, end in pairwise(bounds):
        rows = [row for row in facts.rows if row.number >= (begin or 0) and (end is None or row.number < end)]
        part = detected_table(replace(facts, rows=rows, pieces=() if end else facts.pieces), fixed)
        last = None if end is None else end - 1
        parts.append(part.model_copy(update={"reading": part.reading.model_copy(update={"last_line": last})}))
    return asked_which(parts, names)


# --- commas


def _is_one_number(rows: Sequence[Line]) -> str:
    """Returns `sure` if each line is one number with a decimal comma, below one name. Returns `doubt` if
    there is no name, and "" for other lines."""
    filled = [row.text.strip() for row in rows if row.cells]
    numbers = [text for text in filled[1:] if _ONE_NUMBER.fullmatch(text)]
    if len(numbers) < ROWS_MIN or len(numbers) < len(filled) - 1 or not any("," in each for each in numbers):
        return ""
    if _ONE_NUMBER.fullmatch(filled[0]):
        return "doubt"
    return "sure" if "," not in filled[0] else ""


def _asked_for_commas(two: Detection, one: Detection, text: str) -> Detection:
    """Asks whether a comma divides cells or stands before decimals, because nothing in the file shows it."""
    choices = (
        Choice(
            title="One number with a decimal comma",
            example=text.replace(",", "."),
            changes=difference(two.reading, one.reading),
        ),
        Choice(title="Two numbers", example=" and ".join(text.split(",")), changes={}),
    )
    asked = f"Each line is like {text}. Is it one number or two?"
    return two.asking("comma", asked, choices, two.reading.first_line)


def _asked_for_decimals(
    found: Detection, rows: Sequence[Line], read: Callable[[Mapping[str, JsonValue]], Detection]
) -> Detection:
    """Asks which commas stand before decimals, if the rows then have as many cells as there are names."""
    header = next((row for row in rows if row.number == found.reading.header_line), None)
    if header is None:
        return found
    below = [row for row in rows if row.number >= found.reading.first_line]
    names = max((at for at, cell in enumerate(header.cells, 1) if cell.strip()), default=0)
    ways = ways_of(below, names)
    if not ways:
        return found
    choices = []
    for way in ways:
        reading = read({"commas": way}).reading
        cells = next(divided([with_points(below[0].text.encode(), way).decode()], ",", '"')).cells
        shown = ", ".join(
            f"{column.name} is {cells[column.source].strip()}"
            for column in reading.columns[:COLUMNS_SHOWN]
            if isinstance(column.source, int) and column.source < len(cells)
        )
        choices.append(
            Choice(
                title="Some commas stand before decimals",
                example=shown,
                changes=difference(found.reading, reading),
            )
        )
    asked = next((each for each in found.questions if each.id == "names"), None)
    others = asked.choices if asked is not None else (Choice(title="The last ones", changes={}),)
    text = (
        f"The rows have {len(ways[0]) + 1} cells, and there are {names} names. Do some commas stand before "
        "decimals, or which columns have no name? If nothing fits, export the file with another delimiter."
    )
    choices += [each.model_copy(update={"title": f"{each.title} without a name"}) for each in others]
    rest = tuple(each for each in found.questions if each.id != "names")
    return found.model_copy(update={"questions": rest}).asking("names", text, choices, header.number)
