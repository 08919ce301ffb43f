"""Source: a user's Kafka topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from pipeline_runtime.model.faults import words_for_pattern
from pipeline_runtime.model.ids import OWN_TOPICS
from pipeline_runtime.model.paths import HEADER, KEY, ROOT, Path, parse_path
from pipeline_runtime.model.schema import COLUMNS_MAX, Field as SchemaField, StreamSchema
from pipeline_runtime.model.spec import ColumnReading, RecordReading, TimeReading
from pipeline_runtime.operators.columns import ColumnType, SchemaCheck
from pipeline_runtime.operators.record_formats import FormatParams, schema_fields, schema_of
from pipeline_runtime.operators.sdk import ArrowTransform, OperatorContext, Params, TransformOperator


def _of_the_user(topic: str) -> str:
    """Checks that the topic belongs to the user. A pipeline must neither write nor read Fogline's and Kafka's
    own topics."""
    if topic.startswith((OWN_TOPICS, "__")):
        raise ValueError(f'topics that begin with "{OWN_TOPICS}" or "__" are not the user\'s; choose another')
    return topic


_TOPIC = words_for_pattern(
    r"^[A-Za-z0-9._-]{1,249}$",
    "a topic name consists of at most 249 letters, digits, dots, underscores and hyphens",
)
TopicName = Annotated[str, Field(pattern=_TOPIC), AfterValidator(_of_the_user)]


_GAPS: list[JsonValue] = [
    {"title": "Continue after them", "value": "skip", "help": "An event says how many are left out."},
    {"title": "Stop and ask", "value": "stop", "help": "One click continues after them."},
]
_AHEAD: list[JsonValue] = [
    {"title": "Become dead letters", "value": "dead-letter"},
    {"title": "Get the time of their arrival", "value": "arrival"},
]


_CLOCK_AHEAD_S = 900.0  # the clock of a program is UTC, and few clocks are wrong by minutes
_FIELD_AHEAD_S = 86_400.0  # a field may hold the local time of any zone


def _path(text: str) -> str:
    parse_path(text)
    return text


_PATH_HINT: dict[str, JsonValue] = {"format": "path"}  # the form shows one line
PathText = Annotated[
    str, Field(min_length=1, max_length=400, json_schema_extra=_PATH_HINT), AfterValidator(_path)
]


class KafkaColumn(ColumnType):
    """A field of the records that becomes a column."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    from_: PathText | None = Field(
        default=None,
        alias="from",
        title="Field",
        description="the place of the field in the record: a.b, a[0].b, or another name; empty: the"
        " column's name",
    )
    quoted: bool = Field(
        default=False,
        title="May be written as text",
        description="numbers, and true or false, that are written as text are read as such",
    )

    def reading(self) -> ColumnReading:
        path = (self.name,) if self.from_ is None else parse_path(self.from_)
        return ColumnReading(path=path, quoted=self.quoted)


class TopicColumn(KafkaColumn):
    """A field of the records, their key or a header, which becomes a column."""

    place: Literal["value", "key", "header"] = Field(
        default="value",
        title="Of what",
        description="value: a field; key: the record's key, as text; header: the header of the field's name",
    )

    @model_validator(mode="after")
    def _alone(self) -> TopicColumn:
        if self.place == "key" and self.from_ is not None:
            raise ValueError("the key has no fields: leave the field empty")
        return self

    def reading_in(self, format: str, cell: int | None) -> ColumnReading:
        """Returns how the column is read. `cell`: the place of its cell in a CSV line, if the lines have no
        names."""
        if self.place == "key":
            return ColumnReading(path=(KEY,), quoted=True)
        if self.place == "header":
            return ColumnReading(path=(HEADER, self.from_ or self.name), quoted=True)
        if format == "text":
            return ColumnReading(path=(ROOT,), quoted=True)
        reading = self.reading()
        if format != "csv":
            return reading
        path: Path = reading.path if cell is None or self.from_ is not None else (cell,)
        return ColumnReading(path=path, quoted=True)


class EventTime(BaseModel):
    """The field that holds the event time."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    from_: PathText = Field(alias="from", title="Field", description="where it lies in the record")
    format: Literal["iso", "s", "ms", "us", "ns"] = Field(
        default="iso",
        description="how the time is written. iso: a text such as 2026-03-01T06:00:00Z, in UTC if it names no"
        " zone; the others: a number of seconds, milliseconds, microseconds or nanoseconds since 1970",
    )

    def reading(self) -> TimeReading:
        return TimeReading(path=parse_path(self.from_), format=self.format)


class OwnTopicParams(Params):
    topic: TopicName = Field(description="an existing topic")
    partitions: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="how many partitions the topic has; empty: all of them, also those that it gets later",
    )


class RecordsParams(FormatParams):
    """How the records of a topic become rows."""

    columns: tuple[TopicColumn, ...] = Field(
        default=(),
        max_length=COLUMNS_MAX,
        json_schema_extra={"x-first": True},
        description="the fields of the records that you need; empty: those of the Avro schema of the form",
    )
    key: str | None = Field(
        default=None, max_length=120, description="the column that is the record's key; empty: none"
    )
    start: Literal["earliest", "latest"] = Field(
        default="earliest", description="where the element begins to read when it first starts"
    )
    time: EventTime | None = Field(
        default=None,
        title="Event time",
        description="the field that is the event time; empty: the record's timestamp",
    )
    rows: Annotated[str, Field(max_length=400, json_schema_extra=_PATH_HINT)] | None = Field(
        default=None,
        title="Array of rows",
        description="where an array lies whose entries are the rows; $ for a record that is an array itself;"
        " empty: a record is one row",
    )
    ahead_s: float | None = Field(
        default=None,
        gt=0,
        le=10 * 365 * 86_400,
        title="Longest time ahead, in seconds",
        description="an event time that is further ahead of its arrival is not believed. Empty: 15 minutes"
        " for the record's timestamp, a day for a field. A few minutes are safer for a field in UTC, because"
        " a wrong time below the limit makes all later rows late",
    )
    ahead: Literal["dead-letter", "arrival"] = Field(
        default="dead-letter",
        title="Rows from further ahead",
        json_schema_extra={"x-choices": _AHEAD},
        description="what happens to such a row",
    )

    @field_validator("rows")
    @classmethod
    def _rows(cls, text: str | None) -> str | None:
        if text:
            parse_path(text)
        return text or None

    @property
    def fields(self) -> tuple[SchemaField, ...]:
        """Returns the columns. If the form names none, they are the fields of the form's Avro schema."""
        return tuple(field for field, _ in self._columns())

    def _columns(self) -> list[tuple[SchemaField, ColumnReading]]:
        if not self.columns and self.format == "avro" and self.avro_schema:
            found = schema_fields(self.avro_schema)[:COLUMNS_MAX]
            return [(field, ColumnReading(path=path)) for path, field in found]
        cells = iter(range(COLUMNS_MAX))
        return [
            (
                each.field(),
                each.reading_in(
                    self.format,
                    next(cells)
                    if each.place == "value" and each.from_ is None and not self.names_line
                    else None,
                ),
            )
            for each in self.columns
        ]

    def reading(self) -> RecordReading:
        """Returns how the records are read."""
        rows: Path | None = None if self.rows is None else parse_path(self.rows)
        if self.format == "csv":
            rows = ()  # each line is a row
        return RecordReading(
            columns=tuple(reading for _, reading in self._columns()),
            time=None if self.time is None else self.time.reading(),
            rows=rows,
            ahead_s=self.ahead_s or (_CLOCK_AHEAD_S if self.time is None else _FIELD_AHEAD_S),
            ahead=self.ahead,
            format=self.record_format(),
        )

    def _check_cells(self, check: SchemaCheck) -> None:
        """Reports a path that leads to no cell of a CSV line."""
        said = [("params.columns", each.from_) for each in self.columns if each.place == "value"]
        said.append(("params.time", None if self.time is None else self.time.from_))
        how = "its name in the line of names" if self.names_line else "its place, such as [0] for the first"
        for where, path in said:
            if path is not None and isinstance(parse_path(path)[0], int) == self.names_line:
                check.fail(where, f'"{path}" is no cell of a line of CSV: write {how}')

    def schema_read(self) -> StreamSchema:
        """Returns the stream's schema. Raises SchemaMismatch."""
        schema = StreamSchema(fields=self.fields, key=self.key)
        with SchemaCheck() as check:
            avro = schema_of(self, check)
            if self.format == "avro" and not self.avro_schema and self.registry is None:
                check.fail("params.avro_schema", "Avro needs a schema, or a schema registry that has it")
            elif not schema.fields and (avro is not None or not self.avro_schema):
                check.fail("params.columns", "name at least one column")
            values = [each for each in self.columns if each.place == "value"]
            if self.format == "csv":
                self._check_cells(check)
            if self.format == "text" and len(values) > 1:
                check.fail("params.columns", "a record of text is one value: name one column of the value")
            if self.format in ("csv", "text") and self.rows is not None:
                check.fail("params.rows", "only JSON and Avro have arrays: leave it empty")
            if self.format == "text" and self.time is not None:
                check.fail("params.time", "a record of text has no fields: leave it empty")
            check.unique(schema.names, "params.columns")
            if self.key is not None:
                check.column(schema, self.key, "params.key")
        return schema


class KafkaInParams(RecordsParams, OwnTopicParams):
    gap: Literal["skip", "stop"] = Field(
        default="skip",
        title="Records deleted before they were read",
        json_schema_extra={"x-choices": _GAPS},
        description="what to do if the topic has deleted records before the element read them",
    )


class KafkaIn(TransformOperator):
    """Reads an existing Kafka topic whose records are JSON objects (UTF-8), Avro, CSV or text.

    `columns` lists the fields that the pipeline uses, with their types. Other fields are ignored. A missing
    field is null, and so is NaN. A column may lie deeper in the record (`from`: `a.b`, `a[0].b`), or have
    another name than its field. A column may also hold the record's key or a header (`place`). The event time
    is the record's timestamp, or a field of the record. A record may hold an array of rows (`rows`). A path
    that begins with `$.` then reads a field beside the array. A record that is not of its format goes to the
    dead letters with the reason. A record with a field that is not of its type goes there, too. A whole
    number may be written as `1.0` or `1e3`. If rows of one record are refused, the first 100 become dead
    letters of their own, and one more dead letter counts the others.

    An event time far ahead of the record's arrival is not believed (`ahead_s`), because it would make all
    later rows late. By default, a field may lie up to a day ahead, because it may hold the local time of any
    zone. So a field that is wrong by less, for example by 50 minutes, is believed. A window then treats the
    correct rows of the next 50 minutes as late, and they go to the dead letters. If the field is in UTC, set
    `ahead_s` to a few minutes.

    Avro needs its schema, either in the form or in a schema registry that speaks Confluent's protocol.
    `registry` names the connection to the registry, which an admin makes. With a registry, each record begins
    with a zero and the number of the schema with which it was written. The schema in the form then says how
    records are read. If you name no columns, all fields of the form's schema become columns, also those of
    records in the record (`outer_inner`). Arrays, maps, bytes and choices of several types are left out.
    `timestamp-millis`, `timestamp-micros` and `date` become times. `decimal` becomes a number; a column of
    the type text keeps it exact. `uuid` and enums become texts. A schema with a type that contains itself is
    not read. While the registry does not answer, or does not have the schema of a record, the element waits
    and says so. A record whose schema is JSON Schema or Protobuf becomes a dead letter.

    Each line of a CSV record is a row. Its cells are the columns in their order, or the cells that `from`
    names (`[3]` is the fourth). With `names_line`, the columns are found by the names in the record's first
    line. Numbers, times, true and false are read as in texts of JSON. An empty cell is null. A record of text
    is one column.

    The topic may be compressed (gzip, snappy, lz4, zstd). The element never reads uncommitted or aborted
    records of transactional producers. Fogline only reads the topic: it does not create, change or delete it.

    Fogline compares the topic all the time with what the element has read. If the topic gets more partitions,
    the element reads them from their first record. If records were deleted before the element read them, it
    continues after them with an event and a count, or asks first (`gap`). If a topic was deleted and created
    again, the element reads it only after somebody has chosen this at the element.
    """

    type = "kafka-in"
    title = "Kafka topic in"
    summary = "Reads an existing Kafka topic: JSON, Avro, CSV or text"
    category = "sources"
    icon = "log-in"
    Params = KafkaInParams
    inputs = ()
    external = "in"
    state_params = frozenset({"topic"})
    example = {"topic": "sensors", "columns": [{"name": "value", "type": "number"}]}

    params: KafkaInParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        return self.params.schema_read()

    def arrow(self, ctx: OperatorContext) -> ArrowTransform:
        """Returns a function that passes on its only input, under any name: the records, which the runtime
        has already read and parsed."""
        return lambda inputs: next(iter(inputs.values()))
