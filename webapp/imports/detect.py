"""Finds out how a file is to be read, from a bounded part of it. What can be read in two ways is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from webapp.imports.answer import changed
from webapp.imports.detect_records import detected_json_lines, detected_parquet, is_json_lines
from webapp.imports.detect_table import Facts, detected_table
from webapp.imports.dialect import Line, detected as detected_dialect, divided, lines_of
from webapp.imports.encoding import decoded, detected as detected_encoding, is_text
from webapp.imports.faults import ImportFault
from webapp.imports.preview import preview
from webapp.imports.reading import Detection, Reading
from webapp.imports.sample import Head, kind_of, read_text_head
from webapp.imports.sample_records import read_parquet_head, read_sheet_head

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

_ENCODINGS = {"utf-8": "UTF-8", "cp1252": "Windows-1252 (Western Europe)", "utf-16": "UTF-16"}


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
    detection = _detected(head, fixed)
    rest = {place: value for place, value in fixed.items() if place not in _DETECTED_AROUND}
    try:
        return detection.model_copy(update={"reading": changed(detection.reading, rest)})
    except ValueError as error:
        raise ImportFault(f"It cannot be read like this: {error}.", None, "Change how it is read.") from error


def _detected(head: Head, fixed: Mapping[str, JsonValue]) -> Detection:
    if head.kind == "parquet":
        return detected_parquet(head)
    if head.kind == "xlsx":
        return _of_cells(head, fixed)
    encoding = _text_of(fixed, "encoding") or detected_encoding(head.begin_bytes, head.piece_bytes)
    try:
        text = decoded(head.begin_bytes, encoding)
    except LookupError as error:
        raise ImportFault(f"There is no encoding {encoding}.", None, "Choose another one.") from error
    if not is_text(text):
        raise ImportFault("The file has no text that could be a table.", None, "Upload a file with a table.")
    if is_json_lines(text):
        return detected_json_lines(head, text)
    return _of_text(head, text, encoding, fixed)


def _of_text(head: Head, text: str, encoding: str, fixed: Mapping[str, JsonValue]) -> Detection:
    lines = lines_of(text, cut=not head.whole)
    if not lines:
        lines = [text]
    dialect = detected_dialect(lines, _text_of(fixed, "delimiter"), _text_of(fixed, "quote"))
    comment = _text_of(fixed, "comment") if "comment" in fixed else dialect.comment
    base = Reading(
        compression=head.compression,
        member=head.member,
        encoding=encoding,
        delimiter=dialect.delimiter,
        quote=dialect.quote,
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
    notes = [
        f"{_ENCODINGS.get(encoding, encoding)} is the encoding.",
        f"{_DIVIDERS.get(dialect.delimiter, dialect.delimiter)} divides the cells.",
    ]
    if dialect.sep_line:
        notes.append("Line 1 names the delimiter, as Excel wants it.")
    if comment:
        notes.append(f"Lines that begin with {comment} are comments.")
    if b"\0" in head.begin_bytes and encoding == "utf-8":
        notes.append("Zero bytes between the characters are left out.")
    detection = detected_table(Facts(base, rows, comments, pieces), fixed)
    if len(head.members) > 1:
        notes.insert(0, f"The archive has {len(head.members)} tables. This is {head.member}, the largest.")
    return detection.model_copy(update={"notes": (*notes, *detection.notes), "members": head.members})


def _of_cells(head: Head, fixed: Mapping[str, JsonValue]) -> Detection:
    rows = [
        Line(number, cells if any(cell.strip() for cell in cells) else (), "\t".join(cells))
        for number, row in enumerate(head.rows, 1)
        for cells in [tuple(str(cell) for cell in row)]
    ]
    base = Reading(kind="xlsx", sheet=head.sheet, delimiter="\t")
    detection = detected_table(Facts(base, rows, [], []), fixed)
    notes = (f"The sheet {head.sheet} is read.",) if len(head.sheets) > 1 else ()
    return detection.model_copy(update={"notes": (*notes, *detection.notes), "sheets": head.sheets})


def _inner_lines(piece: str) -> list[str]:
    """Returns the whole lines of a piece that is cut anywhere."""
    return lines_of(piece, cut=True)[1:]


def _text_of(fixed: Mapping[str, JsonValue], place: str) -> str | None:
    value = fixed.get(place)
    return value if isinstance(value, str) else None
