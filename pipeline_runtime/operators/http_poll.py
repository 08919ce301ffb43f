"""Source: the answers of an HTTP server that is polled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pipeline_runtime.model.connectors import Found
from pipeline_runtime.model.schema import COLUMNS_MAX, Field as SchemaField, StreamSchema
from pipeline_runtime.model.spec import RecordReading
from pipeline_runtime.operators.columns import schema_of_columns
from pipeline_runtime.operators.connected import ConnectorSource
from pipeline_runtime.operators.connections import connection_field
from pipeline_runtime.operators.http import HEADER, HttpConnection, HttpPath, reading_of
from pipeline_runtime.operators.kafka_in import EventTime, KafkaColumn, PathText
from pipeline_runtime.operators.sdk import Params
from pipeline_runtime.operators.ticked_rows import rows

_SECRET = frozenset({"authorization", "cookie", "session", "signature"})
_SECRET_ENDS = ("auth", "key", "password", "secret", "token")
"""If a part of a header's name ends so, the header is a secret."""
_OWN = frozenset(
    {"accept-encoding", "connection", "content-length", "host", "if-modified-since", "if-none-match"}
)


def _name(name: str) -> str:
    if any(part in _SECRET or part.endswith(_SECRET_ENDS) for part in name.lower().split("-")):
        raise ValueError(f"{name} is a secret: give it in the connection, not here")
    if name.lower() in _OWN:
        raise ValueError(f"Fogline itself sends the header {name}")
    return name


def _value(value: str) -> str:
    if not (value.isascii() and value.isprintable() and value == value.strip()):
        raise ValueError("a header's value has only printable ASCII characters, and no space at its ends")
    return value


class HttpHeader(BaseModel):
    """A header of each request. It is no secret: everybody may see it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=HEADER), AfterValidator(_name)] = Field(
        description="such as Accept-Language"
    )
    value: Annotated[str, Field(max_length=1000), AfterValidator(_value)] = Field(
        description="no secret: a secret header belongs in the connection"
    )


class HttpPollParams(Params):
    connection: str = connection_field(HttpConnection)
    path: HttpPath = Field(default="/", description="what is asked for: /api/rows?plant=1")
    every_s: float = Field(
        default=10.0,
        ge=0.1,
        le=86_400,
        title="Poll every, in seconds",
        description="the time between two requests",
    )
    rows: PathText | None = Field(
        default=None,
        title="Array of rows",
        description="where an array lies whose entries are the rows: data.items; empty: the answer is an"
        " array of rows, or one row",
    )
    columns: tuple[KafkaColumn, ...] = Field(
        min_length=1, max_length=COLUMNS_MAX, description="the fields of the rows that you need"
    )
    key: str | None = Field(
        default=None, max_length=120, description="the column that is the record's key; empty: none"
    )
    time: EventTime | None = Field(
        default=None,
        title="Event time",
        description="the field that is the event time; empty: when the answer came",
    )
    id_field: PathText | None = Field(
        default=None,
        title="Field that names the row",
        description="a row is left out if the last answer already had its value in this field; empty: all"
        " rows of each answer come in",
    )
    headers: tuple[HttpHeader, ...] = Field(
        default=(), max_length=20, description="more headers of each request"
    )
    timeout_s: float = Field(
        default=5.0,
        ge=1,
        le=30,
        title="Time for an answer, in seconds",
        description="a server that has not answered by then is asked again",
    )


class HttpPoll(ConnectorSource):
    """Asks an HTTP server again and again (`GET`), and takes the rows of its answers, **at least once**.

    An answer is either a JSON object, which is one row, or an array of objects, which are the rows. If the
    array is a field of the answer, `rows` says where the array is. An entry that is no object goes to the
    dead letters. An answer may have 5 MiB and 5,000 rows at most.

    All rows of each answer come in, even if the answer before had them, too. With `id_field`, such rows are
    left out: a row comes in if its value in this field was not in the last answer. The element's process
    keeps the last answer in memory. So after a move, a restart or a change of the element, all rows of an
    answer come in again. [deduplicate](#deduplicate) removes such repeats.

    If the server sends `ETag`, Fogline sends it back with the next request. Fogline does the same with a
    `Last-Modified` of 2 seconds ago or more. The server may then answer 304, which means that nothing is new.
    An answer 204 means that the server has no rows. A row that appears and disappears between two polls does
    not come in. The element reports polls that failed as a gap.

    If the server does not answer, or answers with 408, 425, 429 or 5xx, the element asks again, after longer
    and longer pauses. It does not ask before the time in the server's `Retry-After`, but waits 5 minutes at
    most. For any other error, and for an answer that is no JSON, the element shows a message. The element
    follows a redirection to the same host, port and scheme, three times at most. It follows no other
    redirection, because it would send the connection's token to another place.

    Put a token or a secret header into the connection. The element uses no proxy of the node's environment.
    """

    type = "http-poll"
    title = "HTTP poll"
    summary = "Asks an HTTP server again and again, and takes the rows of its answers, at least once"
    icon = "globe"
    Params = HttpPollParams
    connector = "pipeline_runtime.connectors.http_poll:HttpPollIngester"
    connection = HttpConnection
    example = {
        "connection": "weather",
        "path": "/api/stations",
        "every_s": 60,
        "rows": "stations",
        "columns": [{"name": "id"}, {"name": "temperature", "type": "number", "unit": "°C"}],
    }

    ticks = "many"
    browsed_from = "path"

    params: HttpPollParams

    @classmethod
    def taken(
        cls, params: Mapping[str, Any], ticked: Sequence[Found], columns: Sequence[SchemaField]
    ) -> dict[str, Any]:
        return rows(params, ticked)

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        return schema_of_columns(self.params.columns, self.params.key)

    def reading(self) -> RecordReading:
        return reading_of(self.params.columns, self.params.time)
