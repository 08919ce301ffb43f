"""How a file is read: what `detect` proposes, a person changes, and `convert` carries out.

A `Reading` is complete: the same file and the same reading make the same table. Lines are counted from 1,
as an editor shows them. A column is named by its place in the row, from 0, or by its name in JSON lines and
Parquet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from pipeline_runtime.model.schema import FieldType
from webapp.imports.unpack import Compression

COLUMNS_MAX = 2_000
MISSING_MAX = 20
LINE_MAX = 100_000
Source = int | str


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ColumnReading(Frozen):
    """One column of the table. What is None holds as the whole file's reading says."""

    source: Source
    name: str = Field(min_length=1, max_length=120)
    type: FieldType
    unit: str | None = Field(default=None, max_length=40)
    decimal: Literal[".", ","] | None = None
    thousands: Literal["", ".", ",", " ", "'"] | None = None
    missing: tuple[str, ...] | None = Field(default=None, max_length=MISSING_MAX)
    # What stands beside its numbers: a unit, or `±` for signs and exponents in another way, as in (5) and 5-.
    # `=""` is what Excel writes around a text, as in ="001".
    beside: str = Field(default="", max_length=40)
    format: str | None = Field(
        default=None, max_length=120
    )  # of a column of times; without it, as the time or ISO 8601


class TimeReading(Frozen):
    """The event time of a row, made of one column or of several that are joined by a space.

    `format` is `iso`; `epoch_s`, `epoch_ms`, `epoch_us` or `epoch_ns`; `labview_s`, `filetime` or
    `dotnet_ticks`; `excel_days`, `excel_days_1904`, `matlab_days`, `julian_days` or `modified_julian_days`;
    or a pattern of strptime. A pattern of several columns names the parts in their order. `%S` may have a
    fraction, `24:00` is the next midnight, and `seconds_of_day` is the seconds since the midnight of the date
    before it.
    """

    columns: tuple[Source, ...] = Field(min_length=1, max_length=8)
    format: str = Field(max_length=200)
    zone: str = Field(
        default="UTC", max_length=60
    )  # for times without an offset; a name of the IANA database
    marks: Literal["begin", "end"] = "begin"  # what of its interval a time stands for
    newest_first: bool = False
    jump: Literal["keep", "skip", "cut"] = "keep"  # a gap or a fall back that is longer than `jump_s`
    jump_s: float | None = Field(default=None, gt=0)


class Reading(Frozen):
    kind: Literal["text", "json-lines", "parquet", "xlsx"] = "text"
    compression: Compression = ""
    member: str | None = Field(default=None, max_length=500)  # of a zip archive
    sheet: str | None = Field(default=None, max_length=200)
    # Where a JSON document has its array of records, such as `data`; without it, each line is a record.
    records: str | None = Field(default=None, max_length=500)
    encoding: str = Field(default="utf-8", max_length=40)
    # One character; `whitespace`, any number of spaces and tabs; or `places`: cells stand between `cuts`.
    delimiter: str = Field(default=",", pattern=r"^(whitespace|places|[^\r\n\x00])$")
    quote: Literal['"', "'", ""] = '"'
    # Places in a line, in characters from 0, where the cells behind the first begin. Where runs of spaces
    # divide the cells, they tell which cell of a short row is missing.
    cuts: tuple[Annotated[int, Field(gt=0, le=LINE_MAX)], ...] = Field(default=(), max_length=COLUMNS_MAX)
    # A backslash if a quote within quotes is written as \" rather than doubled, and a delimiter as \,
    escape: Literal["", "\\"] = ""
    # What each comma of a row stands for, if commas do both: `;` divides cells, `.` stands before decimals.
    commas: str = Field(default="", max_length=40, pattern=r"^[;.]*$")
    comment: str = Field(default="", max_length=4)  # what a line begins with that is passed over
    header_line: int | None = None
    units_line: int | None = None
    first_line: int = 1  # of the first row
    last_line: int | None = Field(default=None, ge=1)  # behind which nothing is read
    decimal: Literal[".", ","] = "."
    thousands: Literal["", ".", ",", " ", "'"] = ""
    missing: tuple[str, ...] = Field(
        default=("",), max_length=MISSING_MAX
    )  # compared without surrounding spaces
    columns: tuple[ColumnReading, ...] = Field(default=(), max_length=COLUMNS_MAX)
    time: TimeReading | None = None

    @property
    def divider(self) -> str:
        """The character between the cells once a line is prepared: runs of spaces and places become tabs."""
        return "\t" if self.delimiter in ("whitespace", "places") else self.delimiter


class Choice(Frozen):
    """One answer. `changes` maps places in the reading, such as `columns.2.thousands`, to their values."""

    title: str
    example: str = ""  # what a cell of the file becomes
    changes: dict[str, JsonValue]


class Question(Frozen):
    """What can be read in two ways. Nobody but a person can say which is right."""

    id: str  # stable for the same file, such as `thousands` or `type.power`
    text: str
    line: int | None = None
    column: str | None = None
    choices: tuple[Choice, ...] = Field(min_length=2)


def asked_if_several(
    id: str, text: str, choices: Sequence[Choice], line: int | None = None
) -> list[Question]:
    """Returns the question, or none if there are fewer than two choices: then nothing is to be decided."""
    return [Question(id=id, text=text, line=line, choices=tuple(choices))] if len(choices) > 1 else []


class Detection(Frozen):
    """`notes` are the guesses in words, one sentence each. With questions, nothing is imported."""

    reading: Reading
    notes: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()
    members: tuple[str, ...] = ()  # the tables of a zip archive
    sheets: tuple[str, ...] = ()  # of a workbook
    arrays: tuple[str, ...] = ()  # of records, in a JSON document: what `Reading.records` can be

    def asking(self, id: str, text: str, choices: Sequence[Choice], line: int | None = None) -> Detection:
        """Returns it with this question before the others, unless there are fewer than two choices."""
        asked = asked_if_several(id, text, choices, line)
        return self.model_copy(update={"questions": (*asked, *self.questions)})


class ColumnReport(Frozen):
    name: str
    read: int  # cells that have a value
    missing: int  # cells that hold a text for "no value"
    unreadable: int  # cells that are null because they could not be read
    first_unreadable: tuple[int, str] | None = None  # its line or row, and its text


class Jump(Frozen):
    line: int
    before: str  # ISO 8601
    after: str
    seconds: float  # negative: back


class Report(Frozen):
    """What became of the file. It stays with it."""

    rows: int
    dead: int  # rows whose time could not be read: they become dead letters
    first_dead: tuple[int, str] | None = None
    columns: tuple[ColumnReport, ...]
    begins: str | None = None  # ISO 8601, UTC
    ends: str | None = None
    usual_interval_s: float | None = None
    largest_jump: Jump | None = None
    skipped: int = 0  # rows that were left out, since their time jumped
    footer: int = 0  # lines behind the last row that are no rows
    with_decimals: tuple[str, ...] = ()  # columns of whole numbers that turned out to have decimals
    questions: tuple[Question, ...] = ()  # what only the whole file shows, such as a type that changes


class PreviewLine(Frozen):
    """A line as it lies in the file; for a file that has no lines, such as `.xlsx`, a row of its table."""

    number: int  # from 1
    kind: Literal["preamble", "comment", "header", "units", "row", "footer"]  # what it is taken for
    text: str
    cells: tuple[str, ...] = ()  # its text divided as the reading says


class PreviewColumn(Frozen):
    """A column as it is read. `unreadable` and `missing` count cells of the rows shown."""

    source: Source
    name: str
    type: FieldType
    unit: str | None = None
    unreadable: int = 0
    missing: int = 0
    is_time: bool = False


class PreviewCell(Frozen):
    """A cell that could not be read, and why."""

    column: int  # its place in `Preview.columns`, from 0
    text: str
    why: str


class PreviewRow(Frozen):
    """A row as it is read: a value for each column, null where there is none or it could not be read."""

    line: int
    values: tuple[JsonValue, ...]
    time: str | None = None  # ISO 8601, UTC
    unreadable: tuple[PreviewCell, ...] = ()
    reject: str | None = None  # why it becomes a dead letter


class Preview(Frozen):
    """The beginning of a file, as it lies and as it is read."""

    lines: tuple[PreviewLine, ...]
    columns: tuple[PreviewColumn, ...]
    rows: tuple[PreviewRow, ...]
