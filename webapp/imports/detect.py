"""Finds out how a file is to be read, from a bounded part of it. What can be read in two ways is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from pydantic import JsonValue

from webapp.imports import table_place
from webapp.imports.answer import changed
from webapp.imports.cuts import cut_line, cuts_of
from webapp.imports.detect_records import (
    detected_json_document,
    detected_json_lines,
    detected_parquet,
    is_json_lines,
)
from webapp.imports.detect_table import Facts, detected_table
from webapp.imports.dialect import (
    Line,
    detected as detected_dialect,
    divided,
    has_escapes,
    lines_of,
    lost_quote,
    unescaped,
)
from webapp.imports.encoding import candidates, decoded, is_text
from webapp.imports.faults import ImportFault
from webapp.imports.json_document import records_of
from webapp.imports.preview import preview
from webapp.imports.reading import Choice, Detection, Question, Reading
from webapp.imports.sample import Head, kind_of, read_text_head
from webapp.imports.sample_records import read_parquet_head, read_sheet_head
from webapp.imports.table_parts import asked_which, difference, later_names

__all__ = ["Head", "Look", "look", "preview", "redetect"]

_DIVIDERS = {
    ",": "A comma",
    ";": "A semicolon",
    "\t": "A tab",
    "|": "A vertical bar",
    "whitespace": "Any number of spaces",
}
_DETECTED_AROUND = ("encoding", "delimiter", "quote", "header_line", "units_line", "time", "time.columns")
"""Places around which the rest is detected again. Others are set at the end."""

_ENCODINGS = {
    "utf-8": "UTF-8",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16 (big-endian)",
    "cp1250": "Windows-1250 (Central Europe)",
    "cp1251": "Windows-1251 (Cyrillic)",
    "cp1252": "Windows-1252 (Western Europe)",
    "cp850": "DOS (Western Europe)",
    "mac_roman": "Macintosh (Western Europe)",
    "gb18030": "GB 18030 (Chinese)",
    "cp932": "Shift JIS (Japanese)",
    "cp949": "Korean",
}
ROWS_MIN = 3
_ONE_NUMBER = re.compile(r"[+-]?\d+(?:,\d+)?", re.ASCII)
_FOREIGN_WORD = re.compile(r"\w{0,20}[^\x00-\x7f]\w{0,20}")
_OTHER_KINDS = {
    b"<?xml": "XML",
    b"<!doctype": "a web page",
    b"<html": "a web page",
    b"%pdf": "a PDF document",
    b"{\\rtf": "a text document",
    b"\xd0\xcf\x11\xe0": "a workbook of an old Excel (.xls)",
    b"bzh": "packed by bzip2. Unpack it first",
    b"\xfd7zxz": "packed by xz. Unpack it first",
    b"\x28\xb5\x2f\xfd": "packed by Zstandard. Unpack it first",
    b"7z\xbc\xaf": "an archive of 7-Zip. Unpack it first",
    b"rar!": "a RAR archive. Unpack it first",
}
_TAR = b"ustar"


@dataclass(frozen=True)
class Look:
    detection: Detection
    head: Head


def look(path: Path, name: str) -> Look:
    """Returns how the file can be read, and what a preview needs of it. `name` is as it was uploaded.

    Raises ImportFault if it is no table.
    """
    kind = kind_of(path)
    if kind == "parquet":
        head = read_parquet_head(path)
    elif kind == "xlsx":
        head = read_sheet_head(path)
    else:
        head = read_text_head(path)
    return Look(redetect(head, {}), head)


def redetect(head: Head, fixed: Mapping[str, JsonValue]) -> Detection:
    """Returns how the file can be read when these places of the reading have these values.

    `time.columns` are the columns of the time, whose format is found again, and `time` may be null. Raises
    ImportFault.
    """
    chosen = head.chosen(_text_of(fixed, "member"), _text_of(fixed, "sheet"))
    detection = _with_choices(_detected(chosen, fixed), head, chosen)
    rest = {place: value for place, value in fixed.items() if place not in _DETECTED_AROUND}
    try:
        return detection.model_copy(update={"reading": changed(detection.reading, rest)})
    except ValueError as error:
        raise ImportFault(f"It cannot be read like this: {error}.", None, "Change how it is read.") from error


def _with_choices(detection: Detection, head: Head, chosen: Head) -> Detection:
    """Adds what of an archive or a workbook can be read, and what of it is."""
    tables = len(head.members or head.sheets) + head.left_out
    if tables < 2:
        return detection
    if head.members:
        largest = ", the largest" if chosen is head else ""
        notes = [f"The archive has {tables} tables. This is {chosen.member}{largest}."]
    else:
        notes = [f"The workbook has {tables} sheets. This is {chosen.sheet}."]
    if head.left_out:
        notes.append(f"{head.left_out} of them cannot be chosen here. Upload them by themselves.")
    return detection.model_copy(
        update={
            "notes": (*notes, *detection.notes),
            "members": head.members,
            "sheets": head.sheets,
        }
    )


def _detected(head: Head, fixed: Mapping[str, JsonValue]) -> Detection:
    if head.kind == "parquet":
        return detected_parquet(head)
    if head.kind == "xlsx":
        return _of_cells(head, fixed)
    fixed_encoding = _text_of(fixed, "encoding")
    encodings = (fixed_encoding,) if fixed_encoding else candidates(head.begin_bytes, head.piece_bytes)
    try:
        text = decoded(head.begin_bytes, encodings[0])
    except LookupError as error:
        raise ImportFault(f"There is no encoding {encodings[0]}.", None, "Choose another one.") from error
    if (records := records_of(text)) is not None:
        return detected_json_document(head, text, encodings[0], records)
    if (kind := _no_table(head.begin_bytes)) is not None:
        raise ImportFault(f"The file is {kind}.", None, "Upload a file with a table.")
    if not is_text(text):
        raise ImportFault("The file has no text that could be a table.", None, "Upload a file with a table.")
    if is_json_lines(text):
        return detected_json_lines(head, text, encodings[0])
    texts = {encoding: decoded(head.begin_bytes, encoding) for encoding in encodings}
    read = {encoding: _of_text(head, each, encoding, fixed) for encoding, each in texts.items()}
    return _with_encoding_question(read[encodings[0]], read, texts)


def _no_table(data: bytes) -> str | None:
    """Returns what the file is if its first bytes say that it is something else."""
    begin = data[:1_000].lstrip().lower()
    for mark, kind in _OTHER_KINDS.items():
        if begin.startswith(mark):
            return kind
    if data[257:262] == _TAR:
        return "a tar archive. Unpack it first"
    if re.match(rb"\[\s*[\[{]|\{\s*\n", begin):
        return "one JSON document, and has no array of records"
    return None


def _with_encoding_question(
    found: Detection, read: Mapping[str, Detection], texts: Mapping[str, str]
) -> Detection:
    """Adds the question in which encoding the text makes sense. An answer changes the columns' names too."""
    columns = found.reading.columns
    choices = []
    for encoding, each in read.items():
        changes: dict[str, JsonValue] = {"encoding": encoding}
        if len(each.reading.columns) != len(columns):
            continue
        for at, column in enumerate(each.reading.columns):
            if column.name != columns[at].name or column.unit != columns[at].unit:
                changes |= {f"columns.{at}.name": column.name, f"columns.{at}.unit": column.unit}
        words = list(dict.fromkeys(_FOREIGN_WORD.findall(texts[encoding])))[:4]
        title = _ENCODINGS.get(encoding, encoding)
        choices.append(Choice(title=title, example=" ".join(words), changes=changes))
    if len(choices) < 2:
        return found
    question = Question(
        id="encoding",
        text="In which encoding do the texts make sense? Nothing in the file says it.",
        choices=tuple(choices),
    )
    return found.model_copy(update={"questions": (question, *found.questions)})


def _of_text(head: Head, text: str, encoding: str, fixed: Mapping[str, JsonValue]) -> Detection:
    lines = lines_of(text, cut=not head.whole)
    if not lines:
        lines = [text]
    escape = "\\" if has_escapes(lines) else ""
    if escape:
        lines = [unescaped(line) for line in lines]
    dialect = detected_dialect(lines, _text_of(fixed, "delimiter"), _text_of(fixed, "quote"))
    comment = _text_of(fixed, "comment") if "comment" in fixed else dialect.comment
    base = Reading(
        compression=head.compression,
        member=head.member,
        encoding=encoding,
        delimiter=dialect.delimiter,
        quote=dialect.quote,
        escape=escape,
        comment=comment or "",
    )
    rows, comments = [], []
    for line in divided(lines, dialect.delimiter, dialect.quote):
        if dialect.sep_line and line.number == 1:
            continue
        if comment and line.text.lstrip().startswith(comment):
            bare = line.text.lstrip()[len(comment) :].strip()
            comments += [
                Line(line.number, each.cells, line.text)
                for each in divided([bare], dialect.delimiter, dialect.quote)
            ]
        else:
            rows.append(line)
    pieces = [
        row
        for piece in head.piece_bytes
        for row in divided(_inner_lines(decoded(piece, encoding)), dialect.delimiter, dialect.quote)
    ]
    cuts: tuple[int, ...] = ()
    if dialect.delimiter == "whitespace" and (cuts := cuts_of([row.text for row in rows if row.cells])):
        base = base.model_copy(update={"cuts": cuts})
        rows, pieces = _cut(rows, cuts), _cut(pieces, cuts)
    notes = [
        f"{_ENCODINGS.get(encoding, encoding)} is the encoding.",
        f"{_DIVIDERS.get(dialect.delimiter, dialect.delimiter)} divides the cells.",
    ]
    if dialect.sep_line:
        notes.append("Line 1 names the delimiter, as Excel wants it.")
    if escape:
        notes.append("A quote within quotes stands behind a backslash.")
    if comment:
        notes.append(f"Lines that begin with {comment} are comments.")
    if lost_line := lost_quote(rows, dialect.delimiter, dialect.quote):
        notes.append(
            f"Line {lost_line} has a quote without its other half. It is read as a part of the text."
        )
    if b"\0" in head.begin_bytes and encoding == "utf-8":
        notes.append("Zero bytes between the characters are left out.")
    if lost := text.count("\ufffd"):
        notes.append(f"{lost:,} characters of the beginning are damaged. They are shown as \ufffd.")
    if cuts:
        notes.append("The places of the cells in their lines tell which one is missing.")
    detection = _of_tables(Facts(base, rows, comments, pieces), fixed)
    if dialect.delimiter == "," and "delimiter" not in fixed and (is_number := _is_one_number(rows)):
        single = _of_text(head, text, encoding, {**fixed, "delimiter": ";"})
        if is_number == "sure":
            return single
        detection = _asked_for_commas(detection, single, rows[-1].text.strip())
    return detection.model_copy(update={"notes": (*notes, *detection.notes)})


def _cut(rows: Sequence[Line], cuts: Sequence[int]) -> list[Line]:
    """Returns the rows, from the first whole one on, with their cells by their places."""
    first = next((row.number for row in rows if len(row.cells) == len(cuts) + 1), 0)
    return [
        Line(row.number, tuple(cut_line(row.text, cuts)), row.text)
        if row.cells and row.number > first
        else row
        for row in rows
    ]


def _of_tables(facts: Facts, fixed: Mapping[str, JsonValue]) -> Detection:
    """Returns how the table is read; if others stand below it, with the question which is."""
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


def _is_one_number(rows: Sequence[Line]) -> str:
    """Returns `sure` if each line is one number with a decimal comma, below one name; `doubt` without a name;
    else ""."""
    filled = [row.text.strip() for row in rows if row.cells]
    numbers = [text for text in filled[1:] if _ONE_NUMBER.fullmatch(text)]
    if len(numbers) < ROWS_MIN or len(numbers) < len(filled) - 1 or not any("," in each for each in numbers):
        return ""
    if _ONE_NUMBER.fullmatch(filled[0]):
        return "doubt"
    return "sure" if "," not in filled[0] else ""


def _asked_for_commas(two: Detection, one: Detection, text: str) -> Detection:
    """Asks whether a comma divides cells or stands before decimals: nothing says it."""
    question = Question(
        id="comma",
        text=f"Each line is like {text}. Is it one number or two?",
        line=two.reading.first_line,
        choices=(
            Choice(
                title="One number with a decimal comma",
                example=text.replace(",", "."),
                changes=difference(two.reading, one.reading),
            ),
            Choice(title="Two numbers", example=" and ".join(text.split(",")), changes={}),
        ),
    )
    return two.model_copy(update={"questions": (question, *two.questions)})


def _of_cells(head: Head, fixed: Mapping[str, JsonValue]) -> Detection:
    rows = [
        Line(number, cells if any(cell.strip() for cell in cells) else (), "\t".join(cells))
        for number, row in enumerate(head.rows, 1)
        for cells in [tuple(str(cell) for cell in row)]
    ]
    base = Reading(kind="xlsx", sheet=head.sheet, delimiter="\t")
    return detected_table(Facts(base, rows, [], []), fixed)


def _inner_lines(piece: str) -> list[str]:
    """Returns the whole lines of a piece that is cut anywhere."""
    return lines_of(piece, cut=True)[1:]


def _text_of(fixed: Mapping[str, JsonValue], place: str) -> str | None:
    value = fixed.get(place)
    return value if isinstance(value, str) else None
