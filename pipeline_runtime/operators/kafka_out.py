"""Sink: a Kafka topic of the user's own."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.columns import ColumnName, SchemaCheck
from pipeline_runtime.operators.kafka_in import TopicName
from pipeline_runtime.operators.lineage import Came, TracedRow, named, same_row
from pipeline_runtime.operators.sdk import ArrowTransform, OperatorContext, Params, TransformOperator


class KafkaOutParams(Params):
    topic: TopicName = Field(description="an existing topic")
    partitions: int = Field(default=1, ge=1, le=1000, description="how many partitions the topic has")
    key: ColumnName | None = Field(
        default=None, description="the column that is the record's key; empty: the stream's key"
    )


class KafkaOut(TransformOperator):
    """Writes its input to an existing Kafka topic: one JSON object per record, with the event time as
    timestamp.

    Records are written in the same transaction that commits the batch. So a reader with
    `isolation.level=read_committed` sees each record exactly once, even if the element is moved or restored
    meanwhile. Records are compressed with zstd.
    """

    type = "kafka-out"
    title = "Kafka topic out"
    summary = "Writes to an existing Kafka topic, exactly once"
    category = "sinks"
    icon = "log-out"
    Params = KafkaOutParams
    outputs = ()
    external = "out"
    state_params = frozenset({"topic", "partitions"})
    other_columns = "any"
    example = {"topic": "results"}

    params: KafkaOutParams

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        return {"in": same_row(made, named(inputs["in"].names))}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            if self.params.key is not None:
                check.column(schema, self.params.key, "params.key")
        return StreamSchema(fields=schema.fields, key=self.params.key or schema.key)

    def arrow(self, ctx: OperatorContext) -> ArrowTransform:
        return lambda inputs: inputs["in"]
