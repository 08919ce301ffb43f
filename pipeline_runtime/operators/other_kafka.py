"""Source and sink: topics of a Kafka cluster that is not Fogline's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, JsonValue, model_validator

from pipeline_runtime.model.connectors import Found
from pipeline_runtime.model.faults import words_for_pattern
from pipeline_runtime.model.schema import Field as SchemaField, StreamSchema
from pipeline_runtime.model.spec import RecordReading
from pipeline_runtime.operators.connected import ConnectorSink, ConnectorSource
from pipeline_runtime.operators.connections import Secret, TlsFields, connection_field
from pipeline_runtime.operators.kafka_in import RecordsParams, TopicName
from pipeline_runtime.operators.kafka_out import WrittenParams
from pipeline_runtime.operators.sdk import Params
from pipeline_runtime.operators.ticked import kafka_topic

_SERVER = r"(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:]{2,45}\]):\d{1,5}"
_SERVERS = words_for_pattern(
    rf"^{_SERVER}(?:, ?{_SERVER}){{0,19}}$",
    "servers have ports, and commas between them: a.example:9093,b.example:9093",
)


_LOST: list[JsonValue] = [
    {"title": "Stop and say so", "value": "stop", "help": "Nothing is written until you choose."},
    {
        "title": "Continue after the rows that were sent",
        "value": "behind",
        "help": "Fogline's own record has the position. After a crash the last batch may come twice.",
    },
    {
        "title": "Send all again",
        "value": "again",
        "help": "Sends all rows that Fogline still has. For a topic that was created again.",
    },
]


class KafkaConnection(TlsFields):
    """How to reach a Kafka cluster that is not Fogline's own."""

    kind = "kafka"
    title = "Kafka cluster"
    probe = "pipeline_runtime.connectors.kafka_session:probe"
    search = "pipeline_runtime.connectors.kafka_session:search"

    servers: str = Field(
        pattern=_SERVERS,
        max_length=2000,
        title="Bootstrap servers",
        description="some of its brokers: a.example:9093,b.example:9093",
    )
    login: Literal["none", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        default="none", description="how Fogline logs in (SASL); none: not at all, or by the own certificate"
    )
    user: str | None = Field(default=None, max_length=200, title="User name")
    password: Secret | None = Field(default=None, title="Password")

    @model_validator(mode="after")
    def _whole(self) -> KafkaConnection:
        if self.login != "none" and not (self.user and self.password):
            raise ValueError("a login needs a user name and a password")
        return self

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(each.rpartition(":")[0].strip(" []") for each in self.servers.split(","))

    @property
    def where(self) -> str:
        return f"the Kafka cluster {self.servers}"


class OtherTopicParams(Params):
    connection: str = connection_field(KafkaConnection)
    topic: TopicName = Field(description="an existing topic of that cluster")


class OtherKafkaInParams(RecordsParams, OtherTopicParams):
    """How the records of another cluster's topic become rows."""


class OtherKafkaIn(ConnectorSource):
    """Reads a topic of a Kafka cluster that is not Fogline's own, **exactly once**.

    Records become rows as in [kafka-in](#kafka-in): JSON, Avro, CSV or text, with keys and headers. Fogline's
    own Kafka stores how far each partition was read, in the transaction of the rows. So no record is missing
    and none comes twice, even if the node, the connection or a cluster ends at any moment. The element writes
    nothing to the other cluster, and uses no consumer group there.

    The element does not read records of transactions that were aborted or have not ended. If the topic gets
    more partitions, the element reads them from their first record. If the other cluster deletes records
    before the element has read them, the element reports a gap. A record of more than 900,000 bytes becomes a
    dead letter.

    The user needs the rights to read and to describe the topic.
    """

    type = "other-kafka-in"
    title = "Other Kafka in"
    summary = "Reads a topic of another Kafka cluster, exactly once"
    icon = "log-in"
    Params = OtherKafkaInParams
    connector = "pipeline_runtime.connectors.other_kafka_in:OtherKafkaIngester"
    connection = KafkaConnection
    delivery = "exactly once"
    delivery_why = "The element writes its position in the transaction of the rows."
    example = {
        "connection": "plant-kafka",
        "topic": "sensors",
        "columns": [{"name": "value", "type": "number"}],
    }
    ticks = "one"

    params: OtherKafkaInParams

    @classmethod
    def taken(
        cls, params: Mapping[str, Any], ticked: Sequence[Found], columns: Sequence[SchemaField]
    ) -> dict[str, Any]:
        return kafka_topic(params, ticked[0])

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        return self.params.schema_read()

    def reading(self) -> RecordReading:
        return self.params.reading()


class OtherKafkaOutParams(WrittenParams, OtherTopicParams):
    """How rows become records of another cluster's topic."""

    lost: Literal["stop", "behind", "again"] = Field(
        default="stop",
        title="If the cluster has lost the position",
        json_schema_extra={"x-choices": _LOST},
        description="what to do if the cluster no longer has the element's position, although Fogline's own"
        " record says that rows were sent",
    )


class OtherKafkaOut(ConnectorSink):
    """Writes each row to a topic of a Kafka cluster that is not Fogline's own, **exactly once** for readers
    with `isolation.level=read_committed`.

    Rows become records as in [kafka-out](#kafka-out). The other cluster stores the element's position, in the
    transaction of the rows. The position is the offset of the consumer group `fogline-<deployment>-<element>`
    on partition 0 of the topic. So no row is missing and none comes twice, even if the node, the connection
    or a cluster ends at any moment. If an earlier owner comes back, the cluster refuses its rows, by the
    group's epoch and by the transactional id, which has the same name as the group.

    Kafka forgets offsets that nobody renews (`offsets.retention.minutes`, 7 days by default). So the element
    stores the offset again every hour. The offset is also lost if the topic is deleted. So Fogline notes the
    position in its own Kafka, too. If the other cluster has no position although rows were sent, the element
    stops and says so. It also stops if the topic or the cluster is another one than before. `lost` chooses
    whether the element then continues after the rows that were sent, or sends all rows again that Fogline
    still has. A choice counts once: after the element has sent rows under it, a later loss stops the element
    again. To choose the same again, deploy the element with `stop` first. No other program may use the group.

    If the topic refuses a record, for example because it is too large, the record goes to the dead letters.
    After an error, a dead letter may come twice.

    The user needs the rights to read, to write and to describe the topic, to write and to describe the
    transactional id, to read and to describe the group, and to describe the topic's configuration.
    """

    type = "other-kafka-out"
    title = "Other Kafka out"
    summary = "Writes rows to a topic of another Kafka cluster, exactly once"
    icon = "log-out"
    Params = OtherKafkaOutParams
    connector = "pipeline_runtime.connectors.other_kafka_out:OtherKafkaDeliverer"
    connection = KafkaConnection
    delivery = "exactly once"
    delivery_why = "The element writes its position in the transaction of the rows."
    noted = True
    example = {"connection": "plant-kafka", "topic": "results"}
    ticks = "one"

    params: OtherKafkaOutParams

    @classmethod
    def taken(
        cls, params: Mapping[str, Any], ticked: Sequence[Found], columns: Sequence[SchemaField]
    ) -> dict[str, Any]:
        return {**params, "topic": ticked[0].path}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        return self.params.schema_written(inputs["in"])
