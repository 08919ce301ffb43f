"""Counts, during the import, how many cells of a file were read, had no value, or could not be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import JsonValue

from pipeline_runtime.model.schema import FieldType
from webapp.imports.cell_text import can_be_either, read_cell
from webapp.imports.convert_sql import marks
from webapp.imports.reading import Choice, ColumnReading, ColumnReport, Jump, Question, Reading

BAD = "_bad_"
"""The columns with unreadable texts have this name, followed by the column's number."""
_SAMPLE = 500  # so many unreadable texts of a column are looked at
_CHANGES_RATIO = 0.01  # if a column has this share of unreadable texts, a person is asked about its type
_TEXT_SHOWN = 60
_EXACT_MAX = 1 << 53  # the largest whole number that a double holds exactly
_LINES_SEEN = 1_000
"""Leading zeros cause a question only after so many lines: the look at the file has seen those before."""
_YEAR_S, _DAY_S = 366 * 86_400.0, 86_400.0


@dataclass
class _Column:
    read: int = 0
    bad: int = 0
    first: tuple[int, str] | None = None
    sample: list[str] = field(default_factory=list)
    largest: int = 0  # the largest whole number, without its sign
    zeros: int = 0  # the number of whole numbers that were read although they begin with a zero
    first_zero: tuple[int, str] | None = None


class Counts:
    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.rows = 0
        self.dead = 0
        self.first_dead: tuple[int, str] | None = None
        self._columns = [_Column() for _ in reading.columns]
        self._names = {column.name.lower() for column in reading.columns}
        # The line and the text of a row that has names of other columns.
        self._other_names: tuple[int, str] | None = None

    def add(self, table: pa.Table) -> None:
        """Counts the rows of a batch. Dead letters count as rows, but their cells do not count."""
        lines = table["_line"]
        if table["_reject"].null_count < table.num_rows:
            dead = table.filter(pc.is_valid(table["_reject"]))
            self.dead += dead.num_rows
            if self.first_dead is None:
                self.first_dead = (dead["_line"][0].as_py(), str(dead["_raw"][0].as_py())[:200])
            self._look_for_names(dead)
            table = table.filter(pc.is_null(table["_reject"]))
            self.rows += dead.num_rows
            lines = table["_line"]
        self.rows += table.num_rows
        names = frozenset(table.column_names)
        for number, column in enumerate(self._columns):
            values = table.column(number)
            column.read += table.num_rows - values.null_count
            if pa.types.is_integer(values.type) and values.null_count < len(values):
                low, high = pc.min_max(values).as_py().values()
                column.largest = max(column.largest, -low, high)
            if f"{BAD}{number}" in names:
                texts = table[f"{BAD}{number}"]
                if pa.types.is_integer(values.type):
                    texts = self._without_zeros(column, texts, values, lines)
                self._bad(column, texts, lines)

    def _look_for_names(self, dead: pa.Table) -> None:
        """Keeps the first dead letter that has at least half of the column names, in any order."""
        if self._other_names is not None or self.reading.kind != "text" or self.reading.header_line is None:
            return
        delimiter = None if self.reading.delimiter in ("whitespace", "places") else self.reading.delimiter
        for line, text in zip(dead["_line"].to_pylist(), dead["_raw"].to_pylist(), strict=True):
            cells = {cell.strip(' "').lower() for cell in (text or "").split(delimiter)}
            if len(cells & self._names) >= max(2, (len(self._names) + 1) // 2):
                self._other_names = (line, text[:_TEXT_SHOWN])
                return

    def _without_zeros(
        self, column: _Column, texts: pa.ChunkedArray, values: pa.ChunkedArray, lines: pa.ChunkedArray
    ) -> pa.ChunkedArray:
        """Counts the texts that are read as numbers in spite of leading zeros, and returns the other
        texts."""
        zeros = pc.and_(pc.is_valid(texts), pc.is_valid(values))
        count = pc.sum(zeros).as_py() or 0
        if not count:
            return texts
        column.zeros += count
        if column.first_zero is None:
            row = pc.index(zeros, True).as_py()
            column.first_zero = (lines[row].as_py(), texts[row].as_py()[:_TEXT_SHOWN])
        return pc.if_else(zeros, pa.scalar(None, pa.string()), texts)

    def _bad(self, column: _Column, texts: pa.ChunkedArray, lines: pa.ChunkedArray) -> None:
        if texts.null_count == len(texts):
            return
        given = pc.is_valid(texts)
        column.bad += len(texts) - texts.null_count
        if column.first is None:
            row = pc.index(given, True).as_py()
            column.first = (lines[row].as_py(), texts[row].as_py()[:_TEXT_SHOWN])
        if len(column.sample) < _SAMPLE:
            column.sample += texts.filter(given)[: _SAMPLE - len(column.sample)].to_pylist()

    def with_decimals(self) -> tuple[str, ...]:
        """Returns the columns of whole numbers whose unreadable texts are all numbers with decimals. As
        numbers, these columns lose nothing."""
        return tuple(
            column.name
            for column, counted in zip(self.reading.columns, self._columns, strict=True)
            if column.type is FieldType.INTEGER
            and counted.sample
            and counted.largest <= _EXACT_MAX
            and not _may_be_thousands(counted)
            and all(self._decimals(column, counted))
        )

    def _decimals(self, column: ColumnReading, counted: _Column) -> Iterator[bool]:
        for text in counted.sample:
            value = read_cell(text, FieldType.NUMBER, *marks(self.reading, column))
            yield value is not None and abs(value) <= _EXACT_MAX

    def columns(self) -> tuple[ColumnReport, ...]:
        good = self.rows - self.dead
        return tuple(
            ColumnReport(
                name=told.name,
                read=counted.read,
                missing=good - counted.read - counted.bad,
                unreadable=counted.bad,
                first_unreadable=counted.first,
            )
            for told, counted in zip(self.reading.columns, self._columns, strict=True)
        )

    def questions(self, jump: Jump | None) -> tuple[Question, ...]:
        """Returns the questions that only the whole file shows."""
        found = [
            question
            for number, (column, counted) in enumerate(zip(self.reading.columns, self._columns, strict=True))
            if (question := self._type_question(number, column, counted)) is not None
        ]
        if self._other_names is not None:
            found.insert(0, _names_question(*self._other_names))
        kept = self.reading.time is not None and self.reading.time.jump == "keep"
        if kept and jump is not None and not -_DAY_S <= jump.seconds <= _YEAR_S:
            found.append(_jump_question(jump))
        return tuple(found)

    def _type_question(self, number: int, column: ColumnReading, counted: _Column) -> Question | None:
        if column.type is FieldType.STRING or counted.first is None:
            return _zero_question(number, column, counted)
        line, text = counted.first
        keep = Choice(
            title="Leave these cells without a value", example=f"{text} becomes no value", changes={}
        )
        place = f"columns.{number}.type"
        cells = "1 cell" if counted.bad == 1 else f"{counted.bad:,} cells"
        verb = "is" if counted.bad == 1 else "are"
        said = f'{cells} of "{column.name}" {verb} not {column.type.words}, first {text!r} in line {line:,}.'
        if column.type is FieldType.INTEGER and any(self._decimals(column, counted)):
            number_choice = Choice(
                title="Read the column as numbers with decimals",
                example=f"{text} stays {text}",
                changes={place: "number"},
            )
            choices: tuple[Choice, ...] = (number_choice, keep)
            if _may_be_thousands(counted):
                point, comma = (",", ".") if "," in text else (".", ",")
                changes: dict[str, JsonValue] = {
                    f"columns.{number}.thousands": point,
                    f"columns.{number}.decimal": comma,
                }
                whole = text.replace(point, "")
                between = Choice(
                    title="The mark stands between thousands", example=f"{text} is {whole}", changes=changes
                )
                choices = (number_choice, between, keep)
        elif counted.bad > _CHANGES_RATIO * (counted.read + counted.bad):
            as_text = Choice(
                title="Read the whole column as text",
                example=f'{text} stays "{text}"',
                changes={place: "string"},
            )
            choices = (keep, as_text)
        else:
            return None
        return Question(id=f"type.{column.name}", text=said, line=line, column=column.name, choices=choices)


def _may_be_thousands(counted: _Column) -> bool:
    """Returns whether all earlier numbers are below 1000, and all unreadable texts have the form of 1.234."""
    return counted.largest < 1000 and all(map(can_be_either, counted.sample))


def _zero_question(number: int, column: ColumnReading, counted: _Column) -> Question | None:
    if counted.first_zero is None or counted.first_zero[0] <= _LINES_SEEN:
        return None
    line, text = counted.first_zero
    cells = "1 cell" if counted.zeros == 1 else f"{counted.zeros:,} cells"
    begins = "begins" if counted.zeros == 1 else "begin"
    return Question(
        id=f"type.{column.name}",
        text=f'{cells} of "{column.name}" {begins} with a zero, which a number loses, first {text!r} in line '
        f"{line:,}.",
        line=line,
        column=column.name,
        choices=(
            Choice(
                title="Read the whole column as text",
                example=f'{text} stays "{text}"',
                changes={f"columns.{number}.type": "string"},
            ),
            Choice(title="Read them as numbers", example=f"{text} becomes {int(text)}", changes={}),
        ),
    )


def _names_question(line: int, text: str) -> Question:
    return Question(
        id="names.later",
        text=f"Line {line:,} has other column names: {text}. What follows may be other columns.",
        line=line,
        choices=(
            Choice(title=f"Read the rows above line {line:,} alone", changes={"last_line": line - 1}),
            Choice(title="Read all rows by the names at the beginning", changes={}),
        ),
    )


def _words(iso: str) -> str:
    """Returns a time in UTC as people write it, to the second."""
    return f"{iso[:19].replace('T', ' ')} UTC"


def _jump_question(jump: Jump) -> Question:
    ahead = "ahead" if jump.seconds > 0 else "back"
    return Question(
        id="time.jump",
        text=f"Time jumps {ahead} at line {jump.line:,}: from {_words(jump.before)} to {_words(jump.after)}.",
        line=jump.line,
        choices=(
            Choice(
                title="Leave out rows that jump away", changes={"time.jump": "skip", "time.jump_s": _DAY_S}
            ),
            Choice(title="Cut jumps to one hour", changes={"time.jump": "cut", "time.jump_s": 3600.0}),
            Choice(title="Keep the times as they are", changes={}),
        ),
    )
