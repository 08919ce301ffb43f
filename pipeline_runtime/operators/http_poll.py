"""Source: what an HTTP server answers when it is asked again and again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pipeline_runtime.model.schema import COLUMNS_MAX, StreamSchema
from pipeline_runtime.model.spec import RecordReading
from pipeline_runtime.operators.columns import schema_of_columns
from pipeline_runtime.operators.connected import ConnectorSource
from pipeline_runtime.operators.connections import connection_field
from pipeline_runtime.operators.http import HEADER, HttpConnection, HttpPath, reading_of
from pipeline_runtime.operators.kafka_in import EventTime, KafkaColumn, PathText
from pipeline_runtime.operators.sdk import Params

_SECRET = frozenset({"authorization", "cookie", "session", "signature"})
_SECRET_ENDS = ("auth", "key", "password", "secret", "token")
"""The ends of a part of a header's name that names a secret."""
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
    """A header of each request that everybody may see."""

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
        description="rows whose value here was in the last answer too are left out; empty: each answer's rows"
        " come in again",
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

    An answer is a JSON object, which is one row, or an array of objects, which are the rows. `rows` says
    where the array lies, if it is a field of the answer. An entry that is no object goes to the dead
    letters. An answer has at most 5 MiB and 5,000 rows.

    Each answer's rows come in, also those that were in the answer before. With `id_field` such rows are left
    out: a row comes in if its value there was not in the last answer. The last answer is known as long as
    the element's process lives. So after a move, a restart or a change of the element all rows of an answer
    come in again. [deduplicate](#deduplicate) removes such repeats.

    If the server sends `ETag`, or `Last-Modified` of 2 seconds ago or more, Fogline sends it back, and the
    server may answer 304: nothing is new. 204 means that it has no rows. A row that is in no answer, since it
    came and went between two polls, does not come in.
    Polls that failed are told as a gap.

    After no answer, and after 408, 425, 429 and 5xx, the element asks again, later each time, and no sooner
    than the server's `Retry-After` says, but after 5 minutes at the latest. Other answers and an answer
    that is no JSON are told at the element in
    words. A redirection is followed at the same host, port and scheme, three times at most. To any other
    place it is not followed, since the token of the connection would go there.

    A token and a secret header belong in the connection. No proxy of the node's environment is used.
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

    params: HttpPollParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        return schema_of_columns(self.params.columns, self.params.key)

    def reading(self) -> RecordReading:
        return reading_of(self.params.columns, self.params.time)
