"""Finds out how to read files that name their types: JSON lines and Parquet."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from pipeline_runtime.model.schema import FieldType
from webapp.imports import time_columns
from webapp.imports.column_names import named
from webapp.imports.detect_time import detected_time
from webapp.imports.dialect import lines_of
from webapp.imports.encoding import decoded
from webapp.imports.faults import ImportFault
from webapp.imports.in_quotes import InQuotes, in_quotes_of
from webapp.imports.json_document import depth_of, first_of_keys, json_lines, twice_in
from webapp.imports.reading import (
    COLUMNS_MAX,
    MISSING_MAX,
    Choice,
    ColumnReading,
    Detection,
    Question,
    Reading,
)
from webapp.imports.sample import Head
from webapp.imports.shapes import is_no_value, shape
from webapp.imports.time_names import is_hint

LINES_READ = 1_000
LINES_JUDGED, LINES_CHARACTERS = 20, 200_000
NUMBERS_SHARE, NOTES_MAX = 0.9, 20
DOUBT_SHARE, TEXT_SHOWN, QUESTIONS_MAX = 0.5, 40, 20
_ITEMS_MAX = 8  # so many items of an array become columns
_LOST_SHOWN = 8
_DEPTH_MAX = 6
_TOO_DEEP, _TOO_DEEP_CHARACTERS = 900, 20_000
_BEFORE_ARRAYS = re.compile(r'(?:[^"\[]+|"(?:[^"\\]|\\.)*+")*+', re.DOTALL)
_PLAIN_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_ONE_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_SERIES = re.compile(r'^.{0,200}"resultType"\s*:\s*"(?:matrix|vector)"', re.DOTALL)
_DATE, _MIDNIGHT = "%Y-%m-%d", " 00:00:00"


def is_json_lines(text: str) -> bool:
    """Returns whether most of the first lines are JSON objects. Raises ImportFault if most are JSON objects
    with errors."""
    begin = text.lstrip()[:LINES_CHARACTERS].split("\n")[:LINES_JUDGED]
    some = [line.strip() for line in begin if line.strip()]
    if sum(map(_is_object, some)) * 2 > len(some[:-1] or some):
        return True
    some = some[:-1] or some  # the last line may be cut
    if sum(_is_object(line.removesuffix(",")) for line in some) * 2 > len(some):
        raise ImportFault(
            "The lines are JSON objects, each followed by a comma. This is neither JSON lines nor JSON.",
            "line 1",
            "Put [ before the first line and ] after the last line, and remove the last comma.",
        )
    if sum(map(_is_too_deep, some)) * 2 > len(some):
        raise ImportFault(
            "The JSON of most lines is nested too deep to be read.",
            "line 1",
            f"Write it with at most {_DEPTH_MAX} levels.",
        )
    return False


def _is_object(line: str) -> bool:
    if not line.startswith("{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _is_too_deep(line: str) -> bool:
    """Returns whether objects are nested too deeply in a line. The line may be cut, because long lines
    are."""
    return line.startswith("{") and is_too_deep(line)


def is_too_deep(text: str) -> bool:
    return depth_of(text[:_TOO_DEEP_CHARACTERS]) > _TOO_DEEP


def detected_json_document(head: Head, text: str, encoding: str, records: str) -> Detection:
    """Returns the columns of a document's first records. Raises ImportFault if it has none."""
    lines = document_lines(head, text, records)
    before = _BEFORE_ARRAYS.match(text)
    above = before[0].splitlines() if before is not None else []
    found = detected_json_lines(head, "\n".join(lines) + "\n", encoding, above)
    note = (
        f"The file is one JSON document. Each item of {array_words(records)} is a row, and counts as a line."
    )
    if _SERIES.search(text):
        note = (
            f"The file is an answer of Prometheus. Each value of {array_words(records)} is a row, with the "
            "labels of its series, and counts as a line."
        )
    if records.endswith("*"):
        note = "The file is one JSON document with an array for each column. A row counts as a line."
    return found.model_copy(
        update={
            "reading": found.reading.model_copy(update={"records": records}),
            "notes": (note, *found.notes[1:]),
        }
    )


def array_words(records: str) -> str:
    return records.removesuffix("*").removesuffix(".") or "the document itself"


def document_lines(head: Head, text: str, records: str) -> list[str]:
    """Returns the records at the beginning of a document, each as a JSON object in one line."""
    lines = b"".join(json_lines([text.encode(errors="replace")], records)).decode().split("\n")[:-1]
    return lines if head.whole else lines[:-1]


def detected_json_lines(head: Head, text: str, encoding: str, above: Sequence[str] = ()) -> Detection:
    """Returns the columns that the first lines have. Nested ones are named by their path: `a.b`, `a[0].b`.
    `above` is the text before the first array of a document, which may name a zone."""
    values: dict[str, list[Any]] = {}
    lost: dict[str, None] = {}
    rows, notes = 0, ["The file has JSON lines."]
    lines = lines_of(text, cut=not head.whole)
    begin, later = lines[:LINES_READ], lines[LINES_READ:]
    for piece in head.piece_bytes:
        later += lines_of(decoded(piece, encoding), cut=True)[1:]
    rows_of_begin = 0
    for number, line in enumerate([*begin, *later], 1):
        rows_of_begin = rows if number == len(begin) + 1 else rows_of_begin
        try:
            record = first_of_keys(line) if line.strip() else None
            if number <= len(begin) and len(notes) == 1 and record and (key := twice_in(line)) is not None:
                notes.append(f"Line {number} has {key!r} twice in one object. The first value counts.")
        except (ValueError, RecursionError):
            continue  # the import counts this line
        if isinstance(record, dict):
            if number <= LINES_JUDGED:
                _refuse_times_as_keys(record, number)
            for path, value in leaves(record, "", 0):
                if len(values) < COLUMNS_MAX or path in values:
                    values.setdefault(path, [None] * rows).append(value)
            if len(lost) < _LOST_SHOWN:
                lost |= dict.fromkeys(left_out(record))
            rows += 1
            for each in values.values():
                each.extend([None] * (rows - len(each)))
    if lost:
        notes.append(f"Left out, since no cell holds them: {'; '.join([*lost][:_LOST_SHOWN])}.")
    paths = list(values)
    types = [_type_of(values[path]) for path in paths]
    names = [name for name, _ in named(paths, (), len(paths))]
    mixed = {at: _question_of_texts(at, names[at], values[path]) for at, path in enumerate(paths)}
    types = [FieldType.NUMBER if mixed[at] else type_ for at, type_ in enumerate(types)]
    in_quotes = {
        at: said
        for at, path in enumerate(paths)
        if types[at] is FieldType.STRING and (said := in_quotes_of(names[at], values[path])) is not None
    }
    types = [in_quotes[at].type if at in in_quotes else type_ for at, type_ in enumerate(types)]
    reading = Reading(kind="json-lines", compression=head.compression, member=head.member, encoding=encoding)
    known = rows_of_begin if later else rows
    texts = [["" if value is None else _text(value) for value in values[path][:known]] for path in paths]
    late = [path for path in paths if all(value is None for value in values[path][:known])]
    if late:
        notes.append(f"Further down, lines have other keys as well: {', '.join(late[:_LOST_SHOWN])}.")
    notes += [_quoted_note(names[at], texts[at]) for at in [*in_quotes][:NOTES_MAX]]
    found = _with_time(reading, paths, names, types, texts, notes, above)
    found = _with_marks(found, in_quotes)
    asked = [question for question in mixed.values() if question is not None]
    return found.model_copy(update={"questions": (*found.questions, *asked[:QUESTIONS_MAX])})


def _quoted_note(name: str, texts: Sequence[str]) -> str:
    example = next((f", such as {text!r}" for text in texts if text), "")
    return f"The numbers of {name} are in quotes{example}. They are read as numbers."


def _with_marks(found: Detection, in_quotes: Mapping[int, InQuotes]) -> Detection:
    columns = [*found.reading.columns]
    for at, each in in_quotes.items():
        marks = {"decimal": each.decimal, "thousands": each.thousands}
        columns[at] = columns[at].model_copy(update=marks)
    return found.model_copy(update={"reading": found.reading.model_copy(update={"columns": tuple(columns)})})


def _question_of_texts(at: int, name: str, values: list[Any]) -> Question | None:
    """Asks how to read a column that has mostly numbers, and some texts that are none."""
    given = [value for value in values if value is not None and not isinstance(value, bool)]
    texts = [value for value in given if isinstance(value, str) and not is_no_value(value)]
    if all(map(_PLAIN_NUMBER.fullmatch, texts)):
        return None
    numbers = sum(not isinstance(value, str) for value in given)
    if not texts or numbers < DOUBT_SHARE * len(given):
        return None
    place = f"columns.{at}.type"
    title = f"As numbers. {len(texts)} values are none then"
    return Question(
        id=f"type.{name}",
        text=f"{name} holds numbers and other texts, such as {texts[0][:TEXT_SHOWN]!r}. How is it read?",
        column=name,
        choices=(
            Choice(title=title, changes={place: FieldType.NUMBER.value}),
            Choice(title="As text", example=texts[0][:TEXT_SHOWN], changes={place: FieldType.STRING.value}),
        ),
    )


def _refuse_times_as_keys(record: Mapping[str, JsonValue], line: int, depth: int = 0) -> None:
    """Raises ImportFault if an object has one key for each row."""
    first = next(iter(record), "")
    if len(record) > 1 and all(shape(key) == "time" for key in record):
        raise ImportFault(
            f"The keys of an object are times, such as {first!r}. Each would become a column.",
            f"line {line:,}",
            'Write an array with an object for each row: [{"time": ..., "value": ...}, ...].',
        )
    for inner in record.values():
        if isinstance(inner, dict) and depth < _DEPTH_MAX:
            _refuse_times_as_keys(inner, line, depth + 1)


def leaves(
    value: Mapping[str, JsonValue], before: str = "", depth: int = 0
) -> Iterator[tuple[str, JsonValue]]:
    for key, inner in value.items():
        path = f"{before}.{key}" if before else key
        if isinstance(inner, dict) and depth < _DEPTH_MAX:
            yield from leaves(inner, path, depth + 1)
        elif isinstance(inner, list):
            for number, item in enumerate(inner[:_ITEMS_MAX]):
                if isinstance(item, dict) and depth < _DEPTH_MAX:
                    yield from leaves(item, f"{path}[{number}]", depth + 1)
                elif not isinstance(item, list | dict):
                    yield f"{path}[{number}]", item
        elif not isinstance(inner, dict):
            yield path, inner


def left_out(value: Mapping[str, JsonValue], before: str = "", depth: int = 0) -> Iterator[str]:
    """Yields, in words, the parts of a record that become no column."""
    for key, inner in value.items():
        path = f"{before}.{key}" if before else key
        items = inner if isinstance(inner, list) else [inner]
        if len(items) > _ITEMS_MAX:
            yield f"{path} behind its item {_ITEMS_MAX}"
        for item in items[:_ITEMS_MAX]:
            if isinstance(item, dict) and depth < _DEPTH_MAX:
                yield from left_out(item, path, depth + 1)
            elif isinstance(item, list | dict):
                yield f"lists in {path}" if isinstance(item, list) else f"what is nested deeper in {path}"


def _type_of(values: list[Any]) -> FieldType:
    kinds = {type(value) for value in values if value is not None}
    if str in kinds and len(kinds) > 1:
        # "NaN" among numbers means no value.
        kinds = {_kind_of(each) for each in values if each is not None and not _is_none(each)}
        values = [None if isinstance(each, str) else each for each in values]
    if kinds == {bool}:
        return FieldType.BOOLEAN
    if kinds == {int}:
        # A larger number would lose digits.
        whole = all(abs(value) < 1 << 63 for value in values if value is not None)
        return FieldType.INTEGER if whole else FieldType.STRING
    return FieldType.NUMBER if kinds and kinds <= {int, float} else FieldType.STRING


def _kind_of(value: Any) -> type:
    """Returns the type of a value. A number in quotes counts as a number."""
    return float if isinstance(value, str) and _PLAIN_NUMBER.fullmatch(value) else type(value)


def _is_none(value: Any) -> bool:
    return isinstance(value, str) and is_no_value(value)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def detected_parquet(head: Head) -> Detection:
    """Returns the columns that the file declares. Its first column of times is the event time."""
    sources = [name for name, _ in head.columns]
    names = [name for name, _ in named(sources, (), len(sources))]
    types = [FieldType(kind) for _, kind in head.columns]
    texts = [["" if row[at] is None else str(row[at]) for row in head.rows] for at in range(len(sources))]
    return _with_time(
        Reading(kind="parquet"),
        sources,
        names,
        types,
        texts,
        ["The file is Parquet, with types of its own.", *head.notes],
    )


def _first_number(cells: list[str]) -> str:
    """Returns the first number of a column of texts if most of them are numbers. Otherwise returns ""."""
    some = [cell for cell in cells[:200] if not is_no_value(cell)]
    numbers = [cell for cell in some if shape(cell) == "number"]
    return numbers[0] if len(numbers) >= NUMBERS_SHARE * len(some) > 0 else ""


def _why_quoted(text: str) -> str:
    long = text.lstrip("+-").isdecimal() and abs(int(text)) >= 1 << 63
    return "its numbers have more digits than are kept" if long else "its numbers are texts"


def _with_time_of_day(
    best: int, names: list[str], types: list[FieldType], texts: list[list[str]]
) -> list[JsonValue]:
    """Returns the column of times. If that column holds only dates, the column with the time of day is
    added."""
    clocks = [at for at, type_ in enumerate(types) if type_ is FieldType.STRING and _are_clocks(texts[at])]
    if not clocks or not all(map(_ONE_DATE.fullmatch, filter(None, texts[best]))):
        return [best]
    some = sorted([best, *clocks])
    found = time_columns.find([names[at] for at in some], [texts[at] for at in some], ".", [[] for _ in some])
    chosen = [] if found is None else [some[at] for at in found.columns]
    return [*chosen] if best in chosen else [best]


def _are_clocks(cells: list[str]) -> bool:
    shapes = {shape(cell) for cell in cells}
    return "clock" in shapes and shapes <= {"clock", "none"}


def _with_time(
    reading: Reading,
    sources: list[str],
    names: list[str],
    types: list[FieldType],
    texts: list[list[str]],
    notes: list[str],
    above: Sequence[str] = (),
) -> Detection:
    own = [at for at, type_ in enumerate(types) if type_ is FieldType.TIMESTAMP]
    best = max(own, key=lambda at: (bool(is_hint(names[at])), -at), default=None)
    dates = [] if best is None else [text.removesuffix(_MIDNIGHT) for text in texts[best]]
    at_midnight = best is not None and all(map(_ONE_DATE.fullmatch, filter(None, dates)))
    written = texts
    if best is not None and at_midnight:
        texts = [*texts[:best], dates, *texts[best + 1 :]]
    timed = detected_time(
        names,
        texts,
        [[] for _ in texts],
        names,
        list(range(1, max(map(len, texts), default=0) + 1)),
        ".",
        {} if best is None else {"time.columns": _with_time_of_day(best, names, types, texts)},
        above,
    )
    time = timed.reading
    if time is not None:
        time = time.model_copy(update={"columns": tuple(sources[at] for at in timed.columns)})
        if written != texts and len(timed.columns) > 1:
            time = time.model_copy(update={"format": time.format.replace(_DATE, _DATE + _MIDNIGHT)})
    columns = []
    for at, (source, name, type_) in enumerate(zip(sources, names, types, strict=True)):
        # A column of seconds stays a column of numbers, and is the event time as well.
        read_as, format_ = timed.type_of(at, type_) if type_ is FieldType.STRING else (type_, None)
        counts = reading.kind == "json-lines" and read_as in (FieldType.INTEGER, FieldType.NUMBER)
        none = sorted({text for text in texts[at] if text and is_no_value(text)}) if counts else []
        missing = ("", *none[: MISSING_MAX - 1]) if none else None
        columns.append(ColumnReading(source=source, name=name, type=read_as, format=format_, missing=missing))
    quoted = [
        f"{column.name} stays text: {_why_quoted(text)}, such as {text!r}. Choose number to read them."
        for column, cells in zip(columns, texts, strict=True)
        if column.type is FieldType.STRING and reading.kind in ("json-lines", "parquet")
        for text in [_first_number(cells)]
        if text
    ]
    return Detection(
        reading=reading.model_copy(update={"columns": tuple(columns), "time": time}),
        notes=(*notes, *timed.notes, *quoted[:NOTES_MAX]),
        questions=timed.questions,
    )
