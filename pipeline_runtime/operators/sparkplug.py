"""Sink: rows as metrics of an edge node of Sparkplug B."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipeline_runtime.model.schema import COLUMNS_MAX, FieldType, StreamSchema
from pipeline_runtime.operators.columns import ColumnName, SchemaCheck
from pipeline_runtime.operators.connected import ConnectorSink, Sole
from pipeline_runtime.operators.connections import connection_field
from pipeline_runtime.operators.mqtt import MqttConnection, SparkplugId
from pipeline_runtime.operators.sdk import Params

BD_SEQ = "bdSeq"
NODE_CONTROL = "Node Control/"
"""How the names of metrics begin by which an edge node is controlled."""


class MetricColumn(BaseModel):
    """A column that is sent, and the name of its metric."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: ColumnName = Field(description="the column")
    metric: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="the metric's name, with / between folders: Motor/Speed; empty: that of the column",
    )


@dataclass(frozen=True)
class EdgeMetric:
    """A metric of the edge node. Its place among all of them is its alias, from 1."""

    column: str
    name: str
    type: FieldType
    unit: str | None = None


class SparkplugOutParams(Params):
    connection: str = connection_field(MqttConnection)
    group: SparkplugId = Field(title="Group id", description="the group that the edge node belongs to")
    node: SparkplugId = Field(
        title="Edge node id", description="the name of this edge node; no other one of its group has it"
    )
    metrics: tuple[MetricColumn, ...] = Field(
        default=(),
        max_length=COLUMNS_MAX,
        description="the columns to send; empty: all but that for the device, by their names",
    )
    device: ColumnName | None = Field(
        default=None,
        title="Column for the device",
        description="the column that names the device of the edge node whose metrics the others are; empty:"
        " they are those of the edge node itself",
    )
    silent_s: float | None = Field(
        default=None,
        ge=1,
        le=30 * 86_400,
        title="Silence of a device, in seconds",
        description="after so long without a row of a device, hosts are told that it is away (DDEATH); empty:"
        " they are never told so",
    )
    host_id: SparkplugId | None = Field(
        default=None,
        title="Primary host id",
        description="rows wait while this host application is not online; empty: they wait for the broker"
        " alone",
    )

    @model_validator(mode="after")
    def _of_devices(self) -> SparkplugOutParams:
        if self.silent_s is not None and self.device is None:
            raise ValueError("only a device can be silent: choose its column, or leave its silence empty")
        return self

    def metrics_of(self, schema: StreamSchema) -> tuple[EdgeMetric, ...]:
        """Returns the metrics of rows with this schema. Columns that it lacks are left out."""
        names = [each.name for each in schema.fields if each.name != self.device]
        named = self.metrics or tuple(MetricColumn(column=each) for each in names)
        return tuple(
            EdgeMetric(field.name, each.metric or field.name, field.type, field.unit)
            for each in named
            if (field := schema.field(each.column)) is not None
        )


class SparkplugOut(ConnectorSink):
    """Sends rows as an edge node of Sparkplug B (version 3.0 of its specification), **at least once** up to
    the broker.

    Each column is a metric: a whole number is an `Int64`, a number a `Double`, text a `String`, true or false
    a `Boolean`, and a time a `DateTime`. A birth (`NBIRTH`) says the names, types, aliases, units (`engUnit`)
    and last values of all metrics. Then each row is a message (`NDATA`) with the aliases and the row's event
    time; an empty value is sent as null. A row that is older than a row before it is sent as historical. The
    last will (`NDEATH`) tells hosts that the element is away. The element sends the birth again when a host
    asks for it (`Node Control/Rebirth`), and no more often than once a second.

    Sparkplug sends data with QoS 0, which no broker confirms. So the element subscribes to its own messages:
    a row counts as delivered when the broker has passed it on to the element, too. A row that does not come
    back is sent once more, as historical if later rows have been sent. So hosts may get it twice. If the
    broker passes on nothing, the element says so, and its rows wait. What the broker passes on to a host that
    is away is lost there. With a *primary host* rows wait in the element's own stream, which holds 1 GiB,
    until that host says that it is online. After a loss of the connection, a move or a restoration, some of
    the last rows come again.

    With a *column for the device* each row is of the device that it names. The first row of a device brings
    its birth (`DBIRTH`), and each row is a message `DDATA`. The edge node has at most 1,000 devices, counted
    since the element has begun on its node. After a *silence* hosts are told that the device is away
    (`DDEATH`), and its next row brings another birth. Each new connection counts the silence from the start.

    A time before 1970, a text that cannot be sent, a row that names no device, and a row that does not come
    back twice go to the dead letters. Such a row may be larger than the broker takes. Hosts may have it all
    the same, if it was lost on its way back only.

    Only the element's newest owner is an edge node of the broker: it ends the connections of earlier ones
    before its birth, and they begin no other. If another client sends as this edge node, the element says so,
    and all its rows wait until that client has another edge node id. The element looks for that once
    a minute.
    """

    type = "sparkplug-out"
    title = "Sparkplug out"
    summary = "Sends rows as an edge node of Sparkplug B, at least once"
    icon = "radio-tower"
    Params = SparkplugOutParams
    connector = "pipeline_runtime.connectors.sparkplug_out:SparkplugDeliverer"
    connection = MqttConnection
    noted = True
    example = {"connection": "plant-broker", "group": "plant", "node": "fogline-1"}

    params: SparkplugOutParams

    def sole(self) -> Sequence[Sole]:
        params = self.params
        name = ("edge node", params.connection, params.group, params.node)
        return (Sole(name, "params.node", f'the edge node "{params.group}/{params.node}"'),)

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            if self.params.device is not None:
                check.column(schema, self.params.device, "params.device")
            for number, each in enumerate(self.params.metrics):
                check.column(schema, each.column, f"params.metrics[{number}].column")
            known: dict[str, str] = {}
            for number, metric in enumerate(self.params.metrics_of(schema)):
                place = f"params.metrics[{number}].metric" if self.params.metrics else "params.metrics"
                name = metric.name.casefold()
                if name == BD_SEQ.casefold() or name.startswith(NODE_CONTROL.casefold()):
                    check.fail(place, f'"{metric.name}" is a name that Sparkplug keeps for itself')
                elif name in known:
                    check.fail(place, f'"{metric.name}" and "{known[name]}" are one name for many hosts')
                known[name] = metric.name
        return schema
