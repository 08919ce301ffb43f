"""Source and sink: values of an OPC UA server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from pipeline_runtime.model.connectors import Found
from pipeline_runtime.model.faults import words_for_pattern
from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.model.spec import ColumnReading, RecordReading, TimeReading
from pipeline_runtime.operators.columns import ColumnName, ColumnType, NewColumn, SchemaCheck
from pipeline_runtime.operators.connected import ConnectorSink, ConnectorSource
from pipeline_runtime.operators.connections import ConnectionFields, Host, Secret, connection_field
from pipeline_runtime.operators.sdk import Params
from pipeline_runtime.operators.ticked import entries, new_columns, new_targets

NODES_MAX = 1000
QUEUE_MAX = 10_000
_CLOCK_AHEAD_S = 86_400.0

NODE_ID = words_for_pattern(
    r"^(ns=\d{1,5};)?(i=\d{1,10}|s=.+|g=[0-9A-Fa-f-]{36}|b=[A-Za-z0-9+/=]+)$",
    "a node id is written as ns=2;s=Line1.Temperature or ns=2;i=1001",
)
NodeIdText = Annotated[str, Field(pattern=NODE_ID, max_length=4096)]
_ENDPOINT = words_for_pattern(
    r"^(/[^\s?#]*)?$", "it begins with a slash, such as /freeopcua/server, or is empty"
)


class OpcUaConnection(ConnectionFields):
    """How to reach an OPC UA server."""

    kind = "opcua"
    title = "OPC UA server"
    probe = "pipeline_runtime.connectors.opcua_browse:probe"
    search = "pipeline_runtime.connectors.opcua_browse:search"

    host: Host
    port: int = Field(default=4840, ge=1, le=65_535, description="4840 is usual")
    endpoint: str = Field(
        default="",
        max_length=400,
        pattern=_ENDPOINT,
        title="Path",
        description="what follows the port in the address of the endpoint: /server; usually nothing",
    )
    security: Literal["none", "sign", "sign and encrypt"] = Field(
        default="none", description="with none, everybody on the way can read the values"
    )
    policy: Literal["Basic256Sha256", "Aes128Sha256RsaOaep", "Aes256Sha256RsaPss"] = Field(
        default="Basic256Sha256",
        title="Security policy",
        description="the methods of signing and encrypting; the server has to offer them",
    )
    certificate: str | None = Field(
        default=None,
        max_length=20_000,
        title="Own certificate",
        description="the certificate (PEM) by which the server knows Fogline; the server has to trust it",
    )
    private_key: Secret | None = Field(
        default=None, title="Own private key", description="the key (PEM) of the own certificate"
    )
    server_certificate: str | None = Field(
        default=None,
        max_length=20_000,
        title="Server's certificate",
        description="the certificate (PEM) that the server must show, to sign and to encrypt; Test "
        "connection offers the one that it shows",
    )
    user: str | None = Field(default=None, max_length=400, title="User name")
    password: Secret | None = Field(default=None, title="Password")

    @model_validator(mode="after")
    def _complete(self) -> OpcUaConnection:
        if self.security != "none" and not (self.certificate and self.private_key):
            raise ValueError("to sign and to encrypt needs an own certificate and its private key")
        return self

    @property
    def where(self) -> str:
        return f"the OPC UA server {self.host}, port {self.port}"

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"opc.tcp://{host}:{self.port}{self.endpoint}"


class OpcUaColumn(ColumnType):
    """A value of the server that becomes a column."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: FieldType = Field(default=FieldType.NUMBER, description="the type of its values")
    node: NodeIdText = Field(title="Node id", description="such as ns=2;s=Line1.Temperature or ns=2;i=1001")


_UNCHANGED: list[JsonValue] = [
    {"title": "Are empty", "value": "empty", "help": "Averages and counts are of changes alone."},
    {"title": "Repeat their last value", "value": "last", "help": "Each row shows the whole machine."},
]


class OpcUaInParams(Params):
    connection: str = connection_field(OpcUaConnection)
    columns: tuple[OpcUaColumn, ...] = Field(
        min_length=1, max_length=NODES_MAX, description="the values to subscribe to, each a column"
    )
    publish_ms: int = Field(
        default=1000,
        ge=10,
        le=3_600_000,
        title="Publish every, in milliseconds",
        description="how often the server sends what has changed",
    )
    sample_ms: int | None = Field(
        default=None,
        ge=1,
        le=3_600_000,
        title="Sample every, in milliseconds",
        description="how often the server checks a value for a change; empty: as often as it publishes",
    )
    unchanged: Literal["empty", "last"] = Field(
        default="empty",
        title="Columns without a change",
        json_schema_extra={"x-choices": _UNCHANGED},
        description="what a row holds in the columns whose value did not change at the row's time",
    )
    quality: NewColumn | None = Field(
        default=None,
        title="Column for the quality",
        description="a column that names the worst status of the row's values, such as Good or"
        " BadSensorFailure; empty: none",
    )

    @model_validator(mode="after")
    def _sampled(self) -> OpcUaInParams:
        if self.sample_ms is not None and self.publish_ms / self.sample_ms > QUEUE_MAX:
            raise ValueError(
                f"the server keeps at most {QUEUE_MAX:,} samples of a value until it publishes them: sample"
                " less often, or publish more often"
            )
        return self

    @property
    def queue(self) -> int:
        """Returns how many samples of a value the server should keep until it publishes them."""
        samples = self.publish_ms // (self.sample_ms or self.publish_ms)
        return min(QUEUE_MAX, max(10, 2 * samples))


class OpcUaIn(ConnectorSource):
    """Subscribes to values of an OPC UA server, **at least once**.

    The server checks the values every `sample_ms`, and sends the changed ones every `publish_ms`. Changes
    with the same source timestamp make one row, and this timestamp is its event time. The other columns of
    the row are empty, or repeat their last value. When the element connects, it gets the present value of
    each node.

    A value whose status is not good (bad or uncertain) is null. `quality` names a column with the status.
    Arrays and structures become texts (JSON). NaN becomes null.

    An OPC UA server keeps no changes for a client that is away. When the element has lost the connection or
    the subscription, it subscribes again, and reports the time that it was away as a gap. It does the same
    after a move and after a restart of its node, because a change may be missing. It also reports a gap when
    the server says that it dropped values, because they changed more often than the server can keep. While
    the element moves, a change may come twice.

    If the server does not know a node id, the column of that node id stays empty. The element names the node
    id, and tries it again every 60 s. The other columns get their values.

    For *sign* and *sign and encrypt*, the connection needs an own certificate that the server trusts. The
    element uses the application URI of that certificate. The connection also needs the server's certificate.
    Without it the element does not connect. With security *none*, nothing verifies the server. Without *sign
    and encrypt*, the server decides whether a password is encrypted on its way.
    """

    type = "opcua-in"
    title = "OPC UA in"
    summary = "Subscribes to values of an OPC UA server, at least once"
    icon = "cpu"
    Params = OpcUaInParams
    connector = "pipeline_runtime.connectors.opcua:OpcUaIngester"
    connection = OpcUaConnection
    example = {
        "connection": "press-server",
        "columns": [
            {"name": "temperature", "type": "number", "unit": "°C", "node": "ns=2;s=Press1.Temperature"},
            {"name": "strokes", "type": "integer", "node": "ns=2;s=Press1.Strokes"},
        ],
        "quality": "quality",
    }

    ticks = "many"

    params: OpcUaInParams

    @classmethod
    def taken(
        cls, params: Mapping[str, Any], ticked: Sequence[Found], columns: Sequence[SchemaField]
    ) -> dict[str, Any]:
        before = entries(params, "columns", "node")
        known = {each["node"] for each in before}
        new = [each for each in ticked if each.path not in known]
        made = new_columns(
            before, [((*each.within, each.title), each.holds, each.unit, {"node": each.path}) for each in new]
        )
        return {**params, "columns": made}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        fields = [column.field() for column in self.params.columns]
        if self.params.quality is not None:
            fields.append(SchemaField(name=self.params.quality, type=FieldType.STRING))
        schema = StreamSchema(fields=tuple(fields))
        with SchemaCheck() as check:
            check.unique(schema.names, "params.columns")
        return schema

    def reading(self) -> RecordReading:
        columns = [ColumnReading(path=("values", each.name)) for each in self.params.columns]
        if self.params.quality is not None:
            columns.append(ColumnReading(path=("quality",)))
        return RecordReading(
            columns=tuple(columns),
            time=TimeReading(path=("time",), format="us"),
            ahead_s=_CLOCK_AHEAD_S,
        )


WRITABLE = (FieldType.STRING, FieldType.INTEGER, FieldType.NUMBER, FieldType.BOOLEAN)


class OpcUaTarget(BaseModel):
    """A column, and the node to which its value is written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: ColumnName = Field(description="the column whose value is written")
    node: NodeIdText = Field(title="Node id", description="such as ns=2;s=Line1.Setpoint or ns=2;i=1001")


class OpcUaOutParams(Params):
    connection: str = connection_field(OpcUaConnection)
    nodes: tuple[OpcUaTarget, ...] = Field(
        min_length=1, max_length=NODES_MAX, description="the columns to write, and where to"
    )
    late_s: float | None = Field(
        default=60.0,
        gt=0,
        title="Too late after, in seconds",
        description="a row whose event time is longer ago is not written any more; empty: each is written",
    )


class OpcUaOut(ConnectorSink):
    """Writes columns of each row to nodes of an OPC UA server, **at least once**.

    The element writes a row by one request. The row counts as delivered when the server has confirmed all its
    values. After a loss of the connection, a move or a restoration, the element writes some of the last rows
    again, in their order. It writes no empty values (null). It writes each value in the type of the value's
    node.

    A row that is older than `late_s` goes to the dead letters. So a machine does not get a setpoint of an
    hour ago after a pause. A row also goes to the dead letters if a value does not fit into the type of its
    node, or if the server refuses it, for example because a value is out of range. In these cases the server
    may have taken some values of the row.

    If the server does not know one of the nodes, the element writes nothing, and the rows wait.
    """

    type = "opcua-out"
    title = "OPC UA out"
    summary = "Writes values to nodes of an OPC UA server, at least once"
    icon = "cpu"
    Params = OpcUaOutParams
    connector = "pipeline_runtime.connectors.opcua_out:OpcUaDeliverer"
    connection = OpcUaConnection
    example = {
        "connection": "press-server",
        "nodes": [{"column": "setpoint", "node": "ns=2;s=Press1.Setpoint"}],
    }

    ticks = "many"

    params: OpcUaOutParams

    @classmethod
    def taken(
        cls, params: Mapping[str, Any], ticked: Sequence[Found], columns: Sequence[SchemaField]
    ) -> dict[str, Any]:
        before = entries(params, "nodes", "node")
        known = {each["node"] for each in before}
        new = [(each.title, {"node": each.path}) for each in ticked if each.path not in known]
        return {**params, "nodes": new_targets(before, new, columns)}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            for place, each in enumerate(self.params.nodes):
                check.column(schema, each.column, f"params.nodes.{place}.column", WRITABLE)
        return schema
