"""HTTP source and sink. Other programs send rows to the source, and the sink sends rows to a server."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue, model_validator

from pipeline_runtime.model.faults import words_for_pattern
from pipeline_runtime.model.schema import COLUMNS_MAX, StreamSchema
from pipeline_runtime.model.spec import RecordReading
from pipeline_runtime.operators.columns import NewColumn, SchemaCheck, schema_of_columns
from pipeline_runtime.operators.connected import ConnectorSink, ConnectorSource
from pipeline_runtime.operators.connections import (
    ConnectionFields,
    Host,
    Secret,
    TlsFields,
    connection_field,
)
from pipeline_runtime.operators.kafka_in import EventTime, KafkaColumn
from pipeline_runtime.operators.sdk import Params

_FIELD_AHEAD_S = 86_400.0
_CLOCK_AHEAD_S = 900.0
_TARGET = re.compile(r"/(?!/)[!-~]*")

HEADER = words_for_pattern(
    r"^[A-Za-z0-9-]{1,100}$", "a header's name consists of letters, digits and hyphens, such as X-Plant"
)


def _path(text: str) -> str:
    if not _TARGET.fullmatch(text) or "#" in text:
        raise ValueError("a path begins with one /, and has no spaces and no #: /api/rows?plant=1")
    return text


def reading_of(columns: Iterable[KafkaColumn], time: EventTime | None) -> RecordReading:
    """Returns how records are read that are JSON objects. Each object is a row."""
    return RecordReading(
        columns=tuple(column.reading() for column in columns),
        time=None if time is None else time.reading(),
        ahead_s=_CLOCK_AHEAD_S if time is None else _FIELD_AHEAD_S,
    )


HttpPath = Annotated[str, Field(min_length=1, max_length=2000), AfterValidator(_path)]


class HttpConnection(TlsFields):
    """How to reach an HTTP server."""

    kind = "http"
    title = "HTTP server"
    probe = "pipeline_runtime.connectors.http_browse:probe"

    host: Host
    port: int = Field(default=443, ge=1, le=65_535, description="443 is usual with TLS, and 80 without")
    tls: bool = Field(default=True, title="TLS", description="encrypt what is sent (https)")
    token: Secret | None = Field(default=None, title="Token", description="sent as Authorization: Bearer")
    header: str | None = Field(
        default=None, pattern=HEADER, title="Header", description="a header of each request; empty: none"
    )
    header_value: Secret | None = Field(default=None, title="Value of the header")

    @property
    def where(self) -> str:
        return f"the HTTP server {self.host}, port {self.port}"

    @property
    def base_url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        """Returns the headers that the connection adds to each request."""
        found = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        if self.header is not None and self.header_value is not None:
            found[self.header] = self.header_value
        return found

    @model_validator(mode="after")
    def _as_headers(self) -> HttpConnection:
        for value in (self.token, self.header_value):
            # The message must not contain the value.
            if value is not None and not (value.isascii() and value.isprintable()):
                raise ValueError("a token and a header's value have no line breaks and only ASCII characters")
            if value is not None and value != value.strip():
                raise ValueError("a token and a header's value neither begin nor end with a space")
        if (self.header is None) != (self.header_value is None):
            raise ValueError("a header has a name and a value: give both, or none")
        return self


class WebhookConnection(ConnectionFields):
    """The secrets that other programs need in order to send rows to Fogline."""

    kind = "webhook"
    title = "Webhook (HTTP in)"
    probe = "pipeline_runtime.connectors.http_in:probe"

    token: Secret = Field(
        min_length=16,
        title="Token",
        description="a secret of at least 16 characters, which the sender sends as Authorization: Bearer",
    )
    certificate: str | None = Field(
        default=None,
        max_length=20_000,
        title="Own certificate",
        description="the certificate (PEM) by which a sender knows the node; empty: no TLS",
    )
    private_key: Secret | None = Field(
        default=None, title="Own private key", description="the key (PEM) of the own certificate"
    )

    @property
    def where(self) -> str:
        return "the webhook"

    @model_validator(mode="after")
    def _as_sent(self) -> WebhookConnection:
        # A header cannot contain such a token, and the message must not contain it.
        if self.token != self.token.strip():
            raise ValueError("a token neither begins nor ends with a space or a line break")
        return self

    @model_validator(mode="after")
    def _pair(self) -> WebhookConnection:
        if (self.certificate is None) != (self.private_key is None):
            raise ValueError("a certificate needs its private key: give both, or none")
        return self


_BODIES: list[JsonValue] = [
    {"title": "One JSON object for each row", "value": "row"},
    {"title": "A JSON array of many rows", "value": "rows"},
]


class HttpOutParams(Params):
    connection: str = connection_field(HttpConnection)
    path: HttpPath = Field(default="/", description="where to send it: /api/rows")
    method: Literal["POST", "PUT", "PATCH"] = Field(default="POST", description="the method of the requests")
    body: Literal["row", "rows"] = Field(
        default="row", json_schema_extra={"x-choices": _BODIES}, description="what one request holds"
    )
    rows_max: int = Field(
        default=100, ge=1, le=1000, title="Rows in a request", description="at most so many rows in an array"
    )
    id_field: NewColumn | None = Field(
        default=None,
        title="Field for a number",
        description="a field of the JSON object that numbers the rows, so that a receiver notices repeats;"
        " empty: none",
    )
    timeout_s: float = Field(
        default=10.0,
        ge=1,
        le=60,
        title="Time for an answer, in seconds",
        description="a server that has not answered by then is asked again",
    )


class HttpOut(ConnectorSink):
    """Sends each row, or an array of rows, to an HTTP server as JSON, **at least once**.

    An answer from 200 to 299 means that the server has the rows. If the server does not answer, or answers
    with 408, 429 or 5xx, the element sends the same rows again, after longer and longer pauses. It does not
    send before the time in the server's `Retry-After`. After 401, 403, 404 and 405 the rows wait, too, until
    a person has corrected the token or the path. Any other 4xx sends the row to the dead letters, with the
    status and the first 200 characters of the answer. If the server refuses an array in this way, the element
    sends the two halves, down to single rows. The element follows no redirection, and shows a message about
    it.

    Each request has the header `Idempotency-Key`. If a request has one row, the key is made of deployment,
    element, partition and offset, so a repeat has the same key. An array may be divided in another way when
    its rows are sent again, and then has another key. Let `id_field` number the rows of arrays.

    The rows wait in the element's own stream, which holds 1 GiB. When the stream is full, Kafka deletes the
    oldest rows, and the element reports them as a gap.

    The element uses no proxy of the node's environment.
    """

    type = "http-out"
    title = "HTTP out"
    summary = "Sends rows to an HTTP server as JSON, at least once"
    icon = "send"
    Params = HttpOutParams
    connector = "pipeline_runtime.connectors.http_out:HttpDeliverer"
    connection = HttpConnection
    example = {"connection": "plant-api", "path": "/api/alarms"}

    params: HttpOutParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            id_field = self.params.id_field
            if id_field is not None and schema.field(id_field) is not None:
                check.fail("params.id_field", f'the input has a column "{id_field}" already')
        return schema


class HttpInParams(Params):
    connection: str = connection_field(WebhookConnection)
    port: int = Field(ge=1024, le=65_535, description="where the node listens; free on each of its nodes")
    address: Host = Field(
        default="0.0.0.0",
        description="the node's own address at which it listens; 0.0.0.0 is all of them",
    )
    path: HttpPath = Field(default="/", description="where rows are sent to: /rows")
    columns: tuple[KafkaColumn, ...] = Field(
        min_length=1, max_length=COLUMNS_MAX, description="the fields of the JSON objects that you need"
    )
    key: str | None = Field(
        default=None, max_length=120, description="the column that is the record's key; empty: none"
    )
    time: EventTime | None = Field(
        default=None,
        title="Event time",
        description="the field that is the event time; empty: when the row arrived",
    )


class HttpIn(ConnectorSource):
    """Takes rows that other programs send to a port of the node (a webhook), **at least once**.

    A sender sends `POST` with the header `Authorization: Bearer <token>`. The body is a JSON object, an array
    of objects, or lines of objects with the content type `application/x-ndjson`. The answer 202 means that
    all rows are safe in Kafka, or on the node's disk while Kafka is away. After any other answer the rows may
    be lost, and the text of the answer says why. After 408, 429 or 503, send the same rows again. Some of
    them may then come twice.

    A request may have 5 MiB and 5,000 rows at most, and a row 900,000 bytes. A request must arrive within 10
    seconds. At most 100 requests can be open at a time. The node closes a connection without a request after
    10 to 20 seconds. It closes a connection whose sender has disappeared within 15 seconds. If one row of a
    request cannot be read, the node takes none of the rows, and the answer names the row.

    The element listens on the node on which it runs. After a move, a sender has to find the new node, for
    example by a name or a proxy in front of the nodes. Without a certificate in the connection, the token is
    not encrypted on its way.
    """

    type = "http-in"
    title = "HTTP in"
    summary = "Takes rows that others send to the node by HTTP, at least once"
    icon = "webhook"
    Params = HttpInParams
    connector = "pipeline_runtime.connectors.http_in:HttpIngester"
    connection = WebhookConnection
    no_preview = "a sender would learn that its rows are safe, and the preview would throw them away."
    example = {
        "connection": "plant-webhook",
        "port": 8800,
        "path": "/rows",
        "columns": [{"name": "temperature", "type": "number", "unit": "°C"}],
    }

    params: HttpInParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        return schema_of_columns(self.params.columns, self.params.key)

    def reading(self) -> RecordReading:
        return reading_of(self.params.columns, self.params.time)
