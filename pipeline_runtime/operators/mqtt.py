"""Source and sink: messages of an MQTT broker."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, model_validator

from pipeline_runtime.model.connectors import Found
from pipeline_runtime.model.paths import Path, parse_path
from pipeline_runtime.model.schema import COLUMNS_MAX, Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.model.spec import ColumnReading, RecordReading, TimeReading
from pipeline_runtime.operators.columns import (
    ColumnName,
    ColumnType,
    NewColumn,
    SchemaCheck,
    schema_of_columns,
)
from pipeline_runtime.operators.connected import ConnectorSink, ConnectorSource, Sole
from pipeline_runtime.operators.connections import Host, Secret, TlsFields, connection_field
from pipeline_runtime.operators.kafka_in import EventTime, PathText
from pipeline_runtime.operators.sdk import Params
from pipeline_runtime.operators.ticked import topics
from pipeline_runtime.operators.ticked_metrics import SPARKPLUG, metric_at, metric_of, metrics

_FIELD_AHEAD_S = 86_400.0
_CLOCK_AHEAD_S = 900.0
TOPIC_BYTES_MAX = 65_535


class MqttConnection(TlsFields):
    """How to reach an MQTT broker."""

    kind = "mqtt"
    title = "MQTT broker"
    probe = "pipeline_runtime.connectors.mqtt_topics:probe"
    search = "pipeline_runtime.connectors.mqtt_topics:search"

    host: Host
    port: int = Field(default=1883, ge=1, le=65_535, description="1883 is usual, and 8883 with TLS")
    version: Literal["5", "3.1.1"] = Field(
        default="5", title="Version of MQTT", description="a broker that does not know version 5 needs 3.1.1"
    )
    user: str | None = Field(default=None, max_length=400, title="User name")
    password: Secret | None = Field(default=None, title="Password")
    rebirths: bool = Field(
        default=False,
        title="Ask for births",
        description="for Sparkplug B: Fogline may ask an edge node to say its metrics again (Node"
        " Control/Rebirth), if it does not know them; the user needs the right to write there",
    )

    @property
    def where(self) -> str:
        return f"the MQTT broker {self.host}, port {self.port}"


def _topic(text: str, *, wildcards: bool) -> str:
    if len(text.encode()) > TOPIC_BYTES_MAX or "\0" in text:
        raise ValueError(f"a topic has at most {TOPIC_BYTES_MAX} bytes, and no zero character")
    levels = text.split("/")
    for place, level in enumerate(levels):
        if not wildcards and ("+" in level or "#" in level):
            raise ValueError("a topic to write to has no + and no #")
        if "#" in level and (level != "#" or place < len(levels) - 1):
            raise ValueError("# stands alone, and as the last level: plant/line-1/#")
        if "+" in level and level != "+":
            raise ValueError("+ stands alone in its level: plant/+/temperature")
    return text


TopicFilter = Annotated[
    str,
    Field(min_length=1, max_length=2000),
    AfterValidator(lambda text: _topic(text, wildcards=True)),
]
TopicText = Annotated[
    str,
    Field(min_length=1, max_length=2000),
    AfterValidator(lambda text: _topic(text, wildcards=False)),
]


SPARKPLUG_ID_MAX = 200


def sparkplug_id(text: str) -> str:
    """Returns the text if it can be an id of Sparkplug B. Raises ValueError."""
    if not 1 <= len(text) <= SPARKPLUG_ID_MAX:
        raise ValueError(f"an id of Sparkplug B has 1 to {SPARKPLUG_ID_MAX} letters")
    if set(text) & set("+#/\0"):
        raise ValueError("an id of Sparkplug B has no +, #, / and no zero character")
    if any("\ud800" <= each <= "\udfff" for each in text):
        raise ValueError("it holds a character that no text can have")
    return text


SparkplugId = Annotated[str, Field(min_length=1, max_length=SPARKPLUG_ID_MAX), AfterValidator(sparkplug_id)]
"""The id of a group, an edge node or a host application. It is one level of a topic."""


class MqttColumn(ColumnType):
    """A field of the payload, or a level of the topic, that becomes a column."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    from_: PathText | None = Field(
        default=None,
        alias="from",
        title="Field",
        description="the place of the field in the payload: a.b or a[0].b; for Sparkplug B the name of the"
        " metric; empty: the column's name, or the plain value",
    )
    level: int | None = Field(
        default=None,
        ge=0,
        le=50,
        title="Topic level",
        description="the level of the topic that the column holds: 1 is the first level, 0 the whole topic",
    )

    @model_validator(mode="after")
    def _one_place(self) -> MqttColumn:
        if self.level is not None and self.from_ is not None:
            raise ValueError("a column holds a field of the payload or a level of the topic, not both")
        return self

    def path(self, payload: str) -> Path:
        """Returns the place of the column in an ingester's record."""
        if self.level is not None:
            return ("topic",) if self.level == 0 else ("levels", self.level - 1)
        if payload == "plain":
            return ("value",)
        if payload == "sparkplug":
            return ("value", self.metric)
        return ("value", *(parse_path(self.from_) if self.from_ is not None else (self.name,)))

    @property
    def metric(self) -> str:
        """Returns the metric's name."""
        return metric_of(self.name, self.from_)


_PAYLOADS: list[JsonValue] = [
    {"title": "A JSON object", "value": "json"},
    {"title": "One plain value", "value": "plain", "help": "such as 21.5 or ON, for each topic"},
    {"title": "Sparkplug B", "value": "sparkplug", "help": "metrics of edge nodes and their devices"},
]
_IN_QOS: list[JsonValue] = [
    {"title": "0: the broker sends once, and keeps nothing", "value": 0},
    {"title": "1: the broker keeps them until they are safe", "value": 1},
]


class MqttInParams(Params):
    connection: str = connection_field(MqttConnection)
    topics: tuple[TopicFilter, ...] = Field(
        min_length=1, max_length=50, description="topics, with + for one level and # for all that follow"
    )
    qos: Literal[0, 1] = Field(
        default=1,
        title="QoS",
        json_schema_extra={"x-choices": _IN_QOS},
        description="the quality of service that is asked of the broker",
    )
    payload: Literal["json", "plain", "sparkplug"] = Field(
        default="json", json_schema_extra={"x-choices": _PAYLOADS}, description="what a message holds"
    )
    columns: tuple[MqttColumn, ...] = Field(
        min_length=1, max_length=COLUMNS_MAX, description="the fields and topic levels that you need"
    )
    key: str | None = Field(
        default=None, max_length=120, description="the column that is the record's key; empty: none"
    )
    time: EventTime | None = Field(
        default=None,
        title="Event time",
        description="the field of the payload that is the event time; empty: when the message arrived",
    )
    keep_s: int = Field(
        default=86_400,
        ge=0,
        le=30 * 86_400,
        title="How long the broker keeps messages, in seconds",
        description="how long a broker of version 5 keeps messages while nobody reads them, with QoS 1",
    )
    historical: NewColumn | None = Field(
        default=None,
        title="Column for what is historical",
        description="for Sparkplug B: a column that says whether the edge node stored the values and sent"
        " them later; empty: none",
    )

    host_id: SparkplugId | None = Field(
        default=None,
        title="Host id",
        description="for Sparkplug B: with this id the element is a host application, and edge nodes see"
        " whether it is online. No other host application may have the id. The user needs the right to write"
        f" to {SPARKPLUG}/STATE/ and the id. Empty: none",
    )

    @property
    def metrics(self) -> frozenset[str]:
        """Returns the names of the Sparkplug B metrics that the columns hold."""
        return frozenset(each.metric for each in self.columns if each.level is None)

    @model_validator(mode="after")
    def _sparkplug(self) -> MqttInParams:
        if self.payload != "sparkplug":
            if self.historical is not None:
                raise ValueError("only Sparkplug B says what is historical: leave that column empty")
            if self.host_id is not None:
                raise ValueError("only Sparkplug B has host applications: leave Host id empty")
            return self
        if self.time is not None:
            raise ValueError("Sparkplug B has a time for each value: leave Event time empty")
        for topic in self.topics:
            first = topic.split("/", 2)[-1] if topic.startswith("$share/") else topic
            if not first.startswith(f"{SPARKPLUG}/"):
                raise ValueError(f"the topics of Sparkplug B begin with {SPARKPLUG}/: {SPARKPLUG}/plant/#")
        return self

    @model_validator(mode="after")
    def _plain(self) -> MqttInParams:
        if self.payload == "plain" and (self.time is not None or any(each.from_ for each in self.columns)):
            raise ValueError("a plain value has no fields: leave the columns' Field and Event time empty")
        return self


class MqttIn(ConnectorSource):
    """Reads messages of an MQTT broker (3.1.1 or 5), **at least once**.

    The element is a client of the broker with a name of its own. With QoS 1, the broker keeps messages while
    the element moves, is restored, or is stopped. Fogline acknowledges a message when it is safe in Kafka, or
    on the node's disk while Kafka is away. A message may then come twice. The broker's settings say how many
    messages it keeps (mosquitto: `max_queued_messages`, 1,000 if nothing is set). With QoS 0, messages that
    are sent while the element is away are lost. The element reports a gap each time that it connects again,
    on this node or on another. A message that was published with QoS 2 comes with QoS 1.

    `columns` lists the fields of the payload that the pipeline uses. A column may also hold a level of the
    topic. A missing field is null. A payload that is no JSON object goes to the dead letters with its topic,
    and so does a message of more than 900,000 bytes. The event time is the time of arrival, or a field of the
    payload.

    With **Sparkplug B**, a column holds the metric of its name. The metrics of a message that have the same
    timestamp make one row, and this timestamp is its event time. A column is empty if the message does not
    have its metric. A message with none of the columns' metrics makes no row. Births make rows as data
    messages do. A death makes a row whose metrics are all empty. Level 3 of the topic shows which kind of
    message it was. Arrays, data sets and bytes become texts. The metrics of a template are called
    template/metric. Commands and states of hosts are left out.

    A message may name a metric by an alias, and only a birth explains the alias. So subscribe to the whole
    edge node: `spBv1.0/plant/+/press-1/#`. If no birth has come since the element connected, the message
    waits for 10 s. If the connection allows it, the element asks the edge node for a birth. Without a birth,
    the message goes to the dead letters. Edge nodes number their messages. If messages are missing, the
    element counts them as a gap, trusts the aliases no longer, and asks for births. It asks an edge node
    every 2 s at first, and then more and more rarely, down to every 5 minutes, until no message was missing
    for 60 s. Most edge nodes publish with QoS 0. Brokers keep such messages for an absent reader only if they
    are set to do so (mosquitto: `queue_qos0_messages`).

    With a *host id*, the element is a host application of Sparkplug 3.0. It writes to `spBv1.0/STATE/<host
    id>` whether it is online, as a retained message and as its last will. Edge nodes that wait for this host
    keep their values while it is offline. Sparkplug then requires that the broker keeps no messages for the
    element while it moves or is away. Give each element an id of its own.
    """

    type = "mqtt-in"
    title = "MQTT in"
    summary = "Reads messages of an MQTT broker, at least once"
    icon = "radio-receiver"
    Params = MqttInParams
    connector = "pipeline_runtime.connectors.mqtt:MqttIngester"
    connection = MqttConnection
    example = {
        "connection": "plant-broker",
        "topics": ["plant/+/climate"],
        "columns": [
            {"name": "line", "type": "string", "level": 2},
            {"name": "temperature", "type": "number", "unit": "°C"},
        ],
    }

    ticks = "many"

    params: MqttInParams

    def sole(self) -> Sequence[Sole]:
        params = self.params
        if params.host_id is None:
            return ()
        name = ("host", params.connection, params.host_id)
        return (Sole(name, "params.host_id", f'the host id "{params.host_id}"'),)

    @classmethod
    def taken(
        cls, params: Mapping[str, Any], ticked: Sequence[Found], columns: Sequence[SchemaField]
    ) -> dict[str, Any]:
        if any(metric_at(each.path) for each in ticked):
            return metrics(params, ticked)
        return topics(params, ticked)

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        name = self.params.historical
        more = () if name is None else (SchemaField(name=name, type=FieldType.BOOLEAN),)
        return schema_of_columns(self.params.columns, self.params.key, more)

    def reading(self) -> RecordReading:
        params = self.params
        plain = params.payload == "plain"
        columns = [
            # Levels and plain values are texts, even if they look like numbers.
            ColumnReading(path=each.path(params.payload), quoted=plain or each.level is not None)
            for each in params.columns
        ]
        if params.historical is not None:
            columns.append(ColumnReading(path=("historical",)))
        if params.payload == "sparkplug":
            time: TimeReading | None = TimeReading(path=("time",), format="us")
        elif params.time is not None:
            time = TimeReading(path=("value", *parse_path(params.time.from_)), format=params.time.format)
        else:
            time = None
        ahead_s = _CLOCK_AHEAD_S if time is None else _FIELD_AHEAD_S
        return RecordReading(columns=tuple(columns), time=time, ahead_s=ahead_s)


_COLUMN = re.compile(r"\{([^{}]*)\}")


def columns_in(topic: str) -> list[str]:
    """Returns the columns that are part of a topic such as plant/{line}/power."""
    return _COLUMN.findall(topic)


def topic_of(topic: str, row: Mapping[str, Any]) -> str:
    """Returns the topic of a row. Raises ValueError if one of its values cannot be a part of a topic."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        value = row.get(name)
        if value is None:
            raise ValueError(f"its {name} is empty, and the topic is made of it")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if not text or set(text) & set("+#\0"):
            raise ValueError(f"its {name} cannot be a part of a topic: {text[:100]!r}")
        return text

    return _topic(_COLUMN.sub(value, topic), wildcards=False)


class MqttOutParams(Params):
    connection: str = connection_field(MqttConnection)
    topic: TopicText = Field(
        description="the topic; {column} stands for a value of the row: plant/{line}/power"
    )
    qos: Literal[0, 1, 2] = Field(default=1, title="QoS", description="the quality of service")
    retain: bool = Field(default=False, description="the broker keeps the newest message of each topic")
    value: ColumnName | None = Field(
        default=None,
        title="Column to send",
        description="the column whose plain value is the payload; empty: a JSON object of all columns",
    )
    id_field: NewColumn | None = Field(
        default=None,
        title="Field for a number",
        description="a field of the JSON object that numbers the rows, so that a receiver notices repeats;"
        " empty: none",
    )
    will_topic: TopicText | None = Field(
        default=None,
        title="Topic of the last will",
        description="where the broker publishes the last will when the element's connection is lost;"
        " empty: none",
    )
    will_payload: str = Field(
        default="offline", max_length=10_000, title="Last will", description="what the last will says"
    )

    @model_validator(mode="after")
    def _numbered(self) -> MqttOutParams:
        if self.id_field is not None and self.value is not None:
            raise ValueError("a plain value has no field for a number: leave one of the two empty")
        return self


class MqttOut(ConnectorSink):
    """Publishes each row to an MQTT broker (3.1.1 or 5), **at least once** with QoS 1 or 2.

    The rows wait in the element's own stream, which holds 1 GiB, until the broker has confirmed them. When
    the stream is full, Kafka deletes the oldest rows, and the element reports them as a gap. After a loss of
    the connection, a move or a restoration, some of the last rows come again. `id_field` numbers the rows. A
    repeat has the same number, so a receiver can leave it out. With MQTT 5, the number is also the user
    property `fogline-id` of each message. With QoS 0 the broker confirms no messages, so rows that were on
    their way when the connection was lost are lost.

    The payload is a JSON object of all columns, or the plain value of one column. A row goes to the dead
    letters if its topic cannot be made, or if the broker refuses it.
    """

    type = "mqtt-out"
    title = "MQTT out"
    summary = "Publishes rows to an MQTT broker, at least once"
    icon = "radio-tower"
    Params = MqttOutParams
    connector = "pipeline_runtime.connectors.mqtt_out:MqttDeliverer"
    connection = MqttConnection
    example = {"connection": "plant-broker", "topic": "alarms/{line}"}

    ticks = "one"

    params: MqttOutParams

    @classmethod
    def taken(
        cls, params: Mapping[str, Any], ticked: Sequence[Found], columns: Sequence[SchemaField]
    ) -> dict[str, Any]:
        return {**params, "topic": ticked[0].path}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            for name in columns_in(self.params.topic):
                check.column(schema, name, "params.topic")
            if self.params.value is not None:
                check.column(schema, self.params.value, "params.value")
            if self.params.id_field is not None and schema.field(self.params.id_field) is not None:
                check.fail("params.id_field", f'the input has a column "{self.params.id_field}" already')
        return schema
