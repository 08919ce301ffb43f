"""Source: a Kafka topic of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from pipeline_runtime.model.faults import words_for_pattern
from pipeline_runtime.model.ids import OWN_TOPICS
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.columns import ColumnType, SchemaCheck
from pipeline_runtime.operators.sdk import ArrowTransform, OperatorContext, Params, TransformOperator


def _of_the_user(topic: str) -> str:
    """Checks that the topic is none of Fogline's or Kafka's own, which a pipeline must neither write nor read
    as data."""
    if topic.startswith((OWN_TOPICS, "__")):
        raise ValueError(f'topics that begin with "{OWN_TOPICS}" or "__" are not the user\'s; choose another')
    return topic


_TOPIC = words_for_pattern(
    r"^[A-Za-z0-9._-]{1,249}$", "a topic name consists of letters, digits, dots, underscores and hyphens"
)
TopicName = Annotated[str, Field(pattern=_TOPIC), AfterValidator(_of_the_user)]


class KafkaInParams(Params):
    topic: TopicName = Field(description="an existing topic with one JSON object per record")
    partitions: int = Field(default=1, ge=1, le=1000, description="how many partitions the topic has")
    columns: tuple[ColumnType, ...] = Field(
        min_length=1, description="the fields of the JSON objects that you need"
    )
    key: str | None = Field(default=None, description="the column that is the record's key")
    start: Literal["earliest", "latest"] = Field(
        default="earliest", description="where the element begins to read when it first starts"
    )


class KafkaIn(TransformOperator):
    """Reads an existing Kafka topic whose records are JSON objects (UTF-8).

    `columns` lists the fields that the pipeline uses, with their types. Other fields are ignored, and a
    missing field is null. The event time is the record's timestamp. A record that is not a JSON object goes
    to the dead letters with the reason, and so does one with a field that is not of its type. The topic may
    be compressed (gzip, snappy, lz4, zstd). Uncommitted and aborted records of transactional producers are
    never read. Fogline only reads the topic: it does not create, change or delete it.
    """

    type = "kafka-in"
    title = "Kafka topic in"
    summary = "Reads an existing Kafka topic of JSON records"
    category = "sources"
    icon = "log-in"
    Params = KafkaInParams
    inputs = ()
    external = "in"
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
