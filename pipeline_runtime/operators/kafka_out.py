"""Sink: a user's Kafka topic."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import RecordWriting
from pipeline_runtime.operators.columns import ColumnName, SchemaCheck
from pipeline_runtime.operators.kafka_in import TopicName
from pipeline_runtime.operators.lineage import Came, TracedRow, named, same_row
from pipeline_runtime.operators.record_formats import FormatParams, check_written
from pipeline_runtime.operators.sdk import ArrowTransform, OperatorContext, Params, TransformOperator


class OwnTopicParams(Params):
    topic: TopicName = Field(description="an existing topic")
    partitions: int = Field(default=1, ge=1, le=1000, description="how many partitions the topic has")


class WrittenParams(FormatParams):
    """How rows become records of a topic."""

    text_column: ColumnName | None = Field(
        default=None, title="Column of the text", description="the column that is a record of text"
    )
    key: ColumnName | None = Field(
        default=None, description="the column that is the record's key; empty: the stream's key"
    )
    headers: tuple[ColumnName, ...] = Field(
        default=(), max_length=50, description="columns that are headers of the record, too, as text"
    )

    def writing_to(self, topic: str) -> RecordWriting | None:
        """Returns how rows are written to the topic, or None for plain JSON."""
        found = RecordWriting(
            format=self.record_format(),
            column=self.text_column or "",
            headers=self.headers,
            subject=f"{topic}-value" if self.registry is not None else "",
        )
        return None if found.is_plain else found

    def schema_written(self, schema: StreamSchema) -> StreamSchema:
        """Returns the schema of the records. Raises SchemaMismatch."""
        with SchemaCheck() as check:
            if self.key is not None:
                check.column(schema, self.key, "params.key")
            for index, name in enumerate(self.headers):
                check.column(schema, name, f"params.headers[{index}]")
            if self.format == "text" and self.text_column is None:
                check.fail("params.text_column", "name the column that is the text")
            elif self.text_column is not None:
                check.column(schema, self.text_column, "params.text_column")
            check_written(self, schema, check)
        return StreamSchema(fields=schema.fields, key=self.key or schema.key)


class KafkaOutParams(WrittenParams, OwnTopicParams):
    def writing(self) -> RecordWriting | None:
        """Returns how the records are written, or None for plain JSON."""
        return self.writing_to(self.topic)


class KafkaOut(TransformOperator):
    """Writes its input to an existing Kafka topic: one row per record, with the event time as timestamp.

    A record is a JSON object, or Avro, CSV or text. Avro needs a schema: either the schema of the form, whose
    fields are columns of the same names, or a schema that Fogline makes of the columns. Columns that the
    form's schema lacks are left out. With `registry`, Fogline registers the schema under `<topic>-value`, and
    each record begins with the schema's number. A row that does not fit the schema becomes a dead letter.

    The transaction that commits the batch also holds the records. So a reader with
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
        return self.params.schema_written(inputs["in"])

    def arrow(self, ctx: OperatorContext) -> ArrowTransform:
        return lambda inputs: inputs["in"]
