"""Source: a Kafka topic of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, field_validator

from pipeline_runtime.model.faults import words_for_pattern
from pipeline_runtime.model.ids import OWN_TOPICS
from pipeline_runtime.model.paths import parse_path
from pipeline_runtime.model.schema import COLUMNS_MAX, StreamSchema
from pipeline_runtime.model.spec import ColumnReading, RecordReading, TimeReading
from pipeline_runtime.operators.columns import ColumnType, SchemaCheck
from pipeline_runtime.operators.sdk import ArrowTransform, OperatorContext, Params, TransformOperator


def _of_the_user(topic: str) -> str:
    """Checks that the topic is none of Fogline's or Kafka's own, which a pipeline must neither write nor read
    as data."""
    if topic.startswith((OWN_TOPICS, "__")):
        raise ValueError(f'topics that begin with "{OWN_TOPICS}" or "__" are not the user\'s; choose another')
    return topic


_TOPIC = words_for_pattern(
    r"^[A-Za-z0-9._-]{1,249}$",
    "a topic name consists of at most 249 letters, digits, dots, underscores and hyphens",
)
TopicName = Annotated[str, Field(pattern=_TOPIC), AfterValidator(_of_the_user)]


_GAPS: list[JsonValue] = [
    {"title": "Go on behind them", "value": "skip", "help": "An event says how many that leaves out."},
    {"title": "Stop and ask", "value": "stop", "help": "A click goes on behind them."},
]
_AHEAD: list[JsonValue] = [
    {"title": "Are dead letters", "value": "dead-letter"},
    {"title": "Take the time of their arrival", "value": "arrival"},
]


_CLOCK_AHEAD_S = 900.0  # a program's clock is UTC, and few are wrong by minutes
_FIELD_AHEAD_S = 86_400.0  # a field may hold the local time of any zone


def _path(text: str) -> str:
    parse_path(text)
    return text


_PATH_HINT: dict[str, JsonValue] = {"format": "path"}  # for the form: one line
PathText = Annotated[
    str, Field(min_length=1, max_length=400, json_schema_extra=_PATH_HINT), AfterValidator(_path)
]


class KafkaColumn(ColumnType):
    """A field of the records, as a column."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    from_: PathText | None = Field(
        default=None,
        alias="from",
        title="Field",
        description="where it lies in the record: a.b, a[0].b, or another name; empty: the field of"
        " the column's name",
    )
    quoted: bool = Field(
        default=False,
        title="May be written as text",
        description="numbers, and true or false, that are written as text are read as such",
    )

    def reading(self) -> ColumnReading:
        path = (self.name,) if self.from_ is None else parse_path(self.from_)
        return ColumnReading(path=path, quoted=self.quoted)


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


class KafkaInParams(Params):
    topic: TopicName = Field(description="an existing topic with one JSON object per record")
    partitions: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="how many partitions the topic has; empty: all of them, also those that it gets later",
    )
    columns: tuple[KafkaColumn, ...] = Field(
        min_length=1,
        max_length=COLUMNS_MAX,
        description="the fields of the JSON objects that you need",
    )
    key: str | None = Field(
        default=None, max_length=120, description="the column that is the record's key; empty: none"
    )
    start: Literal["earliest", "latest"] = Field(
        default="earliest", description="where the element begins to read when it first starts"
    )
    gap: Literal["skip", "stop"] = Field(
        default="skip",
        title="Records deleted before they were read",
        json_schema_extra={"x-choices": _GAPS},
        description="what to do when the topic has deleted records before they were read: go on behind them,"
        " with an event, or stop and ask",
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
        description="an event time that lies further ahead of its arrival is not believed. Empty: 15"
        " minutes for the record's timestamp, a day for a field. A few minutes are safer for a field in UTC:"
        " one that is wrong by less than the limit makes the rows behind it late",
    )
    ahead: Literal["dead-letter", "arrival"] = Field(
        default="dead-letter",
        title="Rows from further ahead",
        json_schema_extra={"x-choices": _AHEAD},
        description="what becomes of such a row: a dead letter, or it takes the time of its arrival",
    )

    @field_validator("rows")
    @classmethod
    def _rows(cls, text: str | None) -> str | None:
        if text:
            parse_path(text)
        return text or None

    def reading(self) -> RecordReading:
        """Returns how the records are read."""
        rows = None if self.rows is None else parse_path(self.rows)
        return RecordReading(
            columns=tuple(column.reading() for column in self.columns),
            time=None if self.time is None else self.time.reading(),
            rows=rows,
            ahead_s=self.ahead_s or (_CLOCK_AHEAD_S if self.time is None else _FIELD_AHEAD_S),
            ahead=self.ahead,
        )


class KafkaIn(TransformOperator):
    """Reads an existing Kafka topic whose records are JSON objects (UTF-8).

    `columns` lists the fields that the pipeline uses, with their types. Other fields are ignored, and a
    missing field is null, as is NaN. A column may lie deeper (`from`: `a.b`, `a[0].b`) or have another name
    than its field. The event time is the record's timestamp, or a field of it. A record may hold an array of
    rows (`rows`); a path that begins with `$.` then reads what stands beside the array. A record that is not
    a JSON object goes to the dead letters with the reason, and so does one with a field that is not of its
    type. A whole number may be written as `1.0` or `1e3`. Of the rows of one record that are refused, the
    first 100 are dead letters of their own, and one more counts the others.

    An event time far ahead of the record's arrival is not believed (`ahead_s`), since all rows behind it
    would be late. If nothing else is set, a field may lie up to a day ahead, because it may hold the local
    time of any zone. A field that is wrong by less, say by 50 minutes, is believed. Then a window treats the
    right rows of the next 50 minutes as late, and they go to the dead letters. Set `ahead_s` to a few minutes
    if the field is in UTC.

    The topic may be compressed (gzip, snappy, lz4, zstd). Uncommitted and aborted records of transactional
    producers are never read. Fogline only reads the topic: it does not create, change or delete it.

    The topic is compared all the time with what was read of it. Partitions that it gets later are read from
    their first record. Records that were deleted before they were read are left out, with an event and a
    count, or the element asks first (`gap`). A topic that was deleted and created again is not read until
    somebody chooses that at the element.
    """

    type = "kafka-in"
    title = "Kafka topic in"
    summary = "Reads an existing Kafka topic of JSON records"
    category = "sources"
    icon = "log-in"
    Params = KafkaInParams
    inputs = ()
    external = "in"
    state_params = frozenset({"topic"})
    example = {"topic": "sensors", "columns": [{"name": "value", "type": "number"}]}

    params: KafkaInParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = StreamSchema(
            fields=tuple(column.field() for column in self.params.columns), key=self.params.key
        )
        with SchemaCheck() as check:
            check.unique(schema.names, "params.columns")
            if self.params.key is not None:
                check.column(schema, self.params.key, "params.key")
        return schema

    def arrow(self, ctx: OperatorContext) -> ArrowTransform:
        """Returns the records as the runtime has read and parsed them. They are its only input, under any
        name."""
        return lambda inputs: next(iter(inputs.values()))
