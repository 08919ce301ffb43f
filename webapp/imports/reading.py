"""How a file is read: `detect` proposes a Reading, a person changes it, and `convert` carries it out.

A `Reading` is complete: the same file and the same reading always make the same table. Lines are counted from
1, as in an editor. A column is named by its place in the row, from 0. In JSON lines and Parquet it is named
by its name.
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
    """One column of the table. Where a field is None, the value of the whole file's reading holds."""

    source: Source
    name: str = Field(min_length=1, max_length=120)
    type: FieldType
    unit: str | None = Field(default=None, max_length=40)
    decimal: Literal[".", ","] | None = None
    thousands: Literal["", ".", ",", " ", "'"] | None = None
    missing: tuple[str, ...] | None = Field(default=None, max_length=MISSING_MAX)
    # The text beside the column's numbers: a unit, or `±` for signs and exponents in another form, as in (5)
    # and 5-. `=""` means that Excel wrote quotes around a text, as in ="001".
    beside: str = Field(default="", max_length=40)
    format: str | None = Field(
        default=None, max_length=120
    )  # the format of a column of times; None means the format of the event time, or else ISO 8601


class TimeReading(Frozen):
    """The event time of a row, made of one column or of several that are joined by a space.

    `format` is `iso`; `epoch_s`, `epoch_ms`, `epoch_us` or `epoch_ns`; `labview_s`, `ntp_s`, `filetime`
    or `dotnet_ticks`; `excel_days`, `excel_days_1904`, `matlab_days`, `julian_days` or
    `modified_julian_days`;
    or a pattern of strptime. A pattern of several columns names the parts in their order. `%S` may have a
    fraction, `24:00` is the next midnight, and `seconds_of_day` is the seconds since the midnight of the date
    before it.
    """

    columns: tuple[Source, ...] = Field(min_length=1, max_length=8)
    format: str = Field(max_length=200)
    zone: str = Field(
        default="UTC", max_length=60
    )  # the zone of times without an offset; a name of the IANA database
    marks: Literal["begin", "end"] = "begin"  # which end of its interval a time marks
    newest_first: bool = False
    # What to do with a gap or a step back that is longer than `jump_s`.
    jump: Literal["keep", "skip", "cut"] = "keep"
    jump_s: float | None = Field(default=None, gt=0)


class Reading(Frozen):
    kind: Literal["text", "json-lines", "parquet", "xlsx"] = "text"
    compression: Compression = ""
    member: str | None = Field(default=None, max_length=500)  # the file of a zip archive
    sheet: str | None = Field(default=None, max_length=200)
    # The path of the array of records in a JSON document, such as `data`. If it is empty, each line is a
    # record.
    records: str | None = Field(default=None, max_length=500)
    encoding: str = Field(default="utf-8", max_length=40)
    # One character, or `whitespace` for any number of spaces and tabs, or `places` for cells between `cuts`.
    delimiter: str = Field(default=",", pattern=r"^(whitespace|places|[^\r\n\x00])$")
    quote: Literal['"', "'", ""] = '"'
    # The places in a line, in characters from 0, where the cells after the first one begin. If runs of spaces
    # divide the cells, the places show which cell of a short row is missing.
    cuts: tuple[Annotated[int, Field(gt=0, le=LINE_MAX)], ...] = Field(default=(), max_length=COLUMNS_MAX)
    # A backslash if the file writes a quote within quotes as \" and a delimiter within a cell as \,
    escape: Literal["", "\\"] = ""
    # The meaning of each comma of a row, if commas have two meanings: `;` divides cells, `.` stands before
    # decimals.
    commas: str = Field(default="", max_length=40, pattern=r"^[;.]*$")
    comment: str = Field(default="", max_length=4)  # lines that begin with this text are skipped
    header_line: int | None = None
    units_line: int | None = None
    first_line: int = 1  # the line of the first row
    last_line: int | None = Field(default=None, ge=1)  # no line after this one is read
    decimal: Literal[".", ","] = "."
    thousands: Literal["", ".", ",", " ", "'"] = ""
    missing: tuple[str, ...] = Field(
        default=("",), max_length=MISSING_MAX
    )  # they are compared without surrounding spaces
    columns: tuple[ColumnReading, ...] = Field(default=(), max_length=COLUMNS_MAX)
    time: TimeReading | None = None

    @property
    def divider(self) -> str:
        """Returns the character between the cells of a prepared line. Preparing turns runs of spaces, and
        places, into tabs."""
        return "\t" if self.delimiter in ("whitespace", "places") else self.delimiter


class Choice(Frozen):
    """One answer to a question. `changes` maps places in the reading, such as `columns.2.thousands`, to their
    new values."""

    title: str
    example: str = ""  # the result of this choice for a cell of the file
    changes: dict[str, JsonValue]


class Question(Frozen):
    """A question about a part of the file that can be read in two ways. Only a person can answer it."""

    id: str  # the same each time for the same file, such as `thousands` or `type.power`
    text: str
    line: int | None = None
    column: str | None = None
    choices: tuple[Choice, ...] = Field(min_length=2)


def asked_if_several(
    id: str, text: str, choices: Sequence[Choice], line: int | None = None
) -> list[Question]:
    """Returns the question in a list. Returns [] if there are fewer than two choices, because then nobody has
    to decide."""
    return [Question(id=id, text=text, line=line, choices=tuple(choices))] if len(choices) > 1 else []


class Detection(Frozen):
    """How a file can be read. `notes` are the guesses in words, one sentence each. While there are questions,
    nothing is imported."""

    reading: Reading
    notes: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()
    members: tuple[str, ...] = ()  # the tables of a zip archive
    sheets: tuple[str, ...] = ()  # the sheets of a workbook
    # The paths of the arrays of records in a JSON document, which `Reading.records` may have.
    arrays: tuple[str, ...] = ()

    def asking(self, id: str, text: str, choices: Sequence[Choice], line: int | None = None) -> Detection:
        """Returns the detection with this question before the others. Returns it unchanged if there are fewer
        than two choices."""
        asked = asked_if_several(id, text, choices, line)
        return self.model_copy(update={"questions": (*asked, *self.questions)})


class ColumnReport(Frozen):
    name: str
    read: int  # the number of cells with a value
    missing: int  # the number of cells with a text that means "no value"
    unreadable: int  # the number of cells that could not be read, and are null
    # The line or row of the first unreadable cell, and its text.
    first_unreadable: tuple[int, str] | None = None


class Jump(Frozen):
    line: int
    before: str  # the time before the jump, ISO 8601
    after: str
    seconds: float  # the length of the jump; negative for a step back in time


class Report(Frozen):
    """The result of an import. It is stored with the file."""

    rows: int
    dead: int  # the number of rows whose time could not be read, which become dead letters
    first_dead: tuple[int, str] | None = None
    columns: tuple[ColumnReport, ...]
    begins: str | None = None  # the time of the first row, ISO 8601, UTC
    ends: str | None = None
    usual_interval_s: float | None = None
    largest_jump: Jump | None = None
    skipped: int = 0  # the number of rows that were left out, because their time jumped
    footer: int = 0  # the number of lines after the last row that are no rows
    with_decimals: tuple[str, ...] = ()  # the columns of whole numbers that turned out to have decimals
    # Questions that only the whole file shows, such as one about a type that changes.
    questions: tuple[Question, ...] = ()


class PreviewLine(Frozen):
    """A line of the file. For a file without lines, such as `.xlsx`, it is a row of its table."""

    number: int  # the line number, from 1
    # How the reading treats the line.
    kind: Literal["preamble", "comment", "header", "units", "row", "footer"]
    text: str
    cells: tuple[str, ...] = ()  # the line's cells, divided as the reading says


class PreviewColumn(Frozen):
    """A column as the reading makes it. `unreadable` and `missing` count cells of the rows that are shown."""

    source: Source
    name: str
    type: FieldType
    unit: str | None = None
    unreadable: int = 0
    missing: int = 0
    is_time: bool = False


class PreviewCell(Frozen):
    """A cell that could not be read, and why."""

    column: int  # the place of the column in `Preview.columns`, from 0
    text: str
    why: str


class PreviewRow(Frozen):
    """A row as the reading makes it. It has a value for each column, which is null if there is none or if it
    could not be read."""

    line: int
    values: tuple[JsonValue, ...]
    time: str | None = None  # ISO 8601, UTC
    unreadable: tuple[PreviewCell, ...] = ()
    reject: str | None = None  # why the row becomes a dead letter


class Preview(Frozen):
    """The beginning of a file: its lines, and the rows that the reading makes of them."""

    lines: tuple[PreviewLine, ...]
    columns: tuple[PreviewColumn, ...]
    rows: tuple[PreviewRow, ...]
