"""Finds out how to read a file, from a bounded part of it. If there are two ways to read a part, it asks a
question."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from webapp.imports.answer import changed
from webapp.imports.detect_records import (
    array_words,
    detected_json_document,
    detected_json_lines,
    detected_parquet,
    is_json_lines,
    is_too_deep,
)
from webapp.imports.detect_table import detected_table
from webapp.imports.detect_text import detected_text
from webapp.imports.dialect import Line
from webapp.imports.encoding import candidates, decoded, is_text
from webapp.imports.encoding_words import encoding_words
from webapp.imports.faults import ImportFault
from webapp.imports.fixed import text_of
from webapp.imports.json_document import arrays_of
from webapp.imports.other_forms import refuse_document, refuse_lines
from webapp.imports.preview import preview
from webapp.imports.reading import Choice, Detection, Reading
from webapp.imports.sample import CHOICES_MAX, Head, kind_of, read_text_head
from webapp.imports.sample_records import read_parquet_head, read_sheet_head
from webapp.imports.several_tables import TABLES, asked_which_table
from webapp.imports.sheet_marks import filled_down
from webapp.imports.table_questions import Facts

__all__ = ["Head", "Look", "look", "preview", "redetect"]

_DETECTED_AROUND = (
    *("member", "sheet", "records", "encoding", "delimiter", "quote", "cuts", "escape", "commas"),
    *("header_line", "units_line", "time", "time.columns"),
)
"""If one of these places is fixed, all others are detected again. Other fixed places are set at the end."""

_FOREIGN_WORD = re.compile(r"\w{0,20}[^\x00-\x7f]\w{0,20}")
_OTHER_KINDS = {
    b"<?xml": "XML",
    b"<!doctype": "a web page",
    b"<html": "a web page",
    b"%pdf": "a PDF document",
    b"{\\rtf": "a text document",
    b"\xd0\xcf\x11\xe0": "a workbook of an old Excel (.xls)",
    b"\x1f\x8b": "packed twice. Unpack it once",
    b"pk\x03\x04": "an archive within another. Unpack it once",
    b"7z\xbc\xaf": "an archive of 7-Zip. Unpack it first",
    b"rar!": "a RAR archive. Unpack it first",
}
_TAR = b"ustar"
LINE_PROTOCOL_BYTES, LINES_LOOKED_AT = 20_000, 20
_FIELD = r'[^\s,="]+=(?:"(?:[^"\\]|\\.)*+"|[^\s,"]+)'
_LINE_PROTOCOL = re.compile(rf"[^\s,=]+(?:,[^\s,=]+=[^\s,]+)*+ {_FIELD}(?:,{_FIELD})*+ \d{{10,19}}\s*")
"""A line of InfluxDB's line protocol, with tags, fields and a time: `room,site=a temp=20.5,on=t
1714521600000000000`."""


@dataclass(frozen=True)
class Look:
    detection: Detection
    head: Head


def look(path: Path, name: str) -> Look:
    """Returns how the file can be read, and the data that a preview needs. `name` is the name of the upload.

    Raises ImportFault if the file holds no table.
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
    """Returns how the file can be read if these places of the reading have these values.

    If `time.columns` is fixed, the format of the time is detected again. `time` may be null. Raises
    ImportFault.
    """
    chosen = head.chosen(text_of(fixed, "member"), text_of(fixed, "sheet"))
    detection = _with_choices(_detected(chosen, fixed), head, chosen)
    if not any(place in fixed for place in TABLES):
        detection = asked_which_table(detection, chosen, _other_tables(detection, head, chosen))
    rest = {place: value for place, value in fixed.items() if place not in _DETECTED_AROUND}
    try:
        return detection.model_copy(update={"reading": changed(detection.reading, rest)})
    except ValueError as error:
        raise ImportFault(f"It cannot be read like this: {error}.", None, "Change how it is read.") from error


def _with_choices(detection: Detection, head: Head, chosen: Head) -> Detection:
    """Adds the files of an archive, or the sheets of a workbook, that can be read, and the one that is
    read."""
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


def _other_tables(detection: Detection, head: Head, chosen: Head) -> Iterator[tuple[Head, Detection]]:
    """Yields the other parts of the file that may be a table: files of an archive, sheets, arrays of a
    document."""
    for other in (each for each in (head, *head.others) if each is not chosen):
        with suppress(ImportFault):
            yield other, _detected(other, {})
    for records in detection.arrays:
        if records != detection.reading.records:
            with suppress(ImportFault):
                yield chosen, _detected(chosen, {"records": records})


def _detected(head: Head, fixed: Mapping[str, JsonValue]) -> Detection:
    if head.kind == "parquet":
        return detected_parquet(head)
    if head.kind == "xlsx":
        return _of_cells(head, fixed)
    fixed_encoding = text_of(fixed, "encoding")
    encodings = (fixed_encoding,) if fixed_encoding else candidates(head.begin_bytes, head.piece_bytes)
    try:
        text = decoded(head.begin_bytes, encodings[0])
    except LookupError as error:
        raise ImportFault(f"There is no encoding {encodings[0]}.", None, "Choose another one.") from error
    if text.lstrip()[:1] in ("{", "["):
        refuse_document(text)
    if arrays := head.arrays or tuple(arrays_of(text)):
        return _in_encodings(
            head,
            encodings,
            lambda text, each: _of_document(head, text, each, arrays, text_of(fixed, "records")),
        )
    if (kind := _no_table(head.begin_bytes)) is not None:
        raise ImportFault(f"The file is {kind}.", None, "Upload a file with a table.")
    if not is_text(text):
        raise ImportFault("The file has no text that could be a table.", None, "Upload a file with a table.")
    if not fixed:
        refuse_lines(text)
    if is_json_lines(text):
        return _in_encodings(head, encodings, lambda text, each: detected_json_lines(head, text, each))
    return _in_encodings(head, encodings, lambda text, each: detected_text(head, text, each, fixed))


def _in_encodings(head: Head, encodings: Sequence[str], read: Callable[[str, str], Detection]) -> Detection:
    """Returns how the text is read in the first encoding. If there are several encodings, it adds a
    question."""
    texts = {each: decoded(head.begin_bytes, each) for each in encodings}
    found = {encodings[0]: read(texts[encodings[0]], encodings[0])}
    for encoding in encodings[1:]:
        with suppress(ImportFault):
            found[encoding] = read(texts[encoding], encoding)
    return _with_encoding_question(found[encodings[0]], found, texts)


def _of_document(
    head: Head, text: str, encoding: str, arrays: tuple[str, ...], chosen: str | None
) -> Detection:
    """Returns how one array of a JSON document is read: the chosen one, or else the longest one."""
    if chosen is not None and chosen not in arrays:
        raise ImportFault(f"The document has no array at {chosen!r}.", None, "Choose another one.")
    some = arrays[:CHOICES_MAX]
    found = detected_json_document(head, text, encoding, arrays[0] if chosen is None else chosen)
    notes = [*found.notes]
    if arrays[1:]:
        others = ", ".join(map(array_words, arrays[1:4]))
        notes.insert(1, f"It has {len(arrays)} arrays of records. This is the longest; others are {others}.")
    if not head.whole and not head.arrays:
        notes.insert(1, "The document is long. Fogline has seen only the arrays at its beginning.")
    return found.model_copy(update={"notes": tuple(notes), "arrays": some if arrays[1:] else ()})


def _is_line_protocol(text: str) -> bool:
    some = [line for line in text.splitlines()[:LINES_LOOKED_AT] if line.strip() and line[0] != "#"]
    some = some[:-1] or some  # the last line may be cut
    return bool(some) and all(map(_LINE_PROTOCOL.fullmatch, some))


def _no_table(data: bytes) -> str | None:
    """Returns the kind of the file if its first bytes show that it is no table. Otherwise returns None."""
    begin = data[:1_000].lstrip().lower()
    for mark, kind in _OTHER_KINDS.items():
        if begin.startswith(mark):
            return kind
    if _is_line_protocol(data[:LINE_PROTOCOL_BYTES].decode(errors="replace")):
        return "in the line protocol of InfluxDB. Export it as CSV, with a header"
    if data[257:262] == _TAR:
        return "a tar archive. Unpack it first"
    if re.match(rb"[\[{]\s*[\[{]", begin) and is_too_deep(data.decode(errors="replace")):
        return "one JSON document that is nested too deep to be read. Write it with fewer levels"
    if re.match(rb"\[\s*[\[{]|\{\s*\n", begin):
        return "one JSON document, and has no array of records"
    return None


def _with_encoding_question(
    found: Detection, read: Mapping[str, Detection], texts: Mapping[str, str]
) -> Detection:
    """Adds the question in which encoding the text makes sense. An answer may change the names of columns,
    too."""
    columns = found.reading.columns
    choices = []
    for encoding, each in read.items():
        changes: dict[str, JsonValue] = {"encoding": encoding}
        if len(each.reading.columns) != len(columns):
            continue
        for at, column in enumerate(each.reading.columns):
            if column.name != columns[at].name or column.unit != columns[at].unit:
                changes |= {f"columns.{at}.name": column.name, f"columns.{at}.unit": column.unit}
            if column.source != columns[at].source:
                changes[f"columns.{at}.source"] = column.source
        one, other = found.reading.time, each.reading.time
        if one is not None and other is not None and one.columns != other.columns:
            changes["time.columns"] = list(other.columns)
        words = list(dict.fromkeys(_FOREIGN_WORD.findall(texts[encoding])))[:4]
        choices.append(Choice(title=encoding_words(encoding), example=" ".join(words), changes=changes))
    text = "In which encoding do the texts make sense? The file does not say so."
    return found.asking("encoding", text, choices)


def _of_cells(head: Head, fixed: Mapping[str, JsonValue]) -> Detection:
    base = Reading(kind="xlsx", sheet=head.sheet, delimiter="\t")
    days = "excel_days_1904" if head.days_from == 1904 else "excel_days"
    texts = [tuple(map(str, row)) for row in head.rows]
    found = detected_table(Facts(base, _lines(texts), [], [], days), fixed)
    if head.merged:
        rows = [*filled_down(iter(texts), head.merged, found.reading.first_line)]
        # A fixed part of a line may have values now, but the lines stay the same.
        lines = {
            place: getattr(found.reading, place) for place in ("header_line", "units_line", "first_line")
        }
        found = detected_table(Facts(base, _lines(rows), [], [], days), {**lines, **fixed})
    return found.model_copy(update={"notes": (*head.notes, *found.notes)})


def _lines(rows: Iterable[Sequence[str]]) -> list[Line]:
    return [
        Line(number, tuple(cells) if any(map(str.strip, cells)) else (), "\t".join(cells))
        for number, cells in enumerate(rows, 1)
    ]
