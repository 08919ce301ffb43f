"""Two inputs of one group may read one topic in two ways."""

from __future__ import annotations

from pathlib import Path
from time import time
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaProducer

from pipeline_runtime.batch.gate_messages import Describe, GroupDescription, Slice
from pipeline_runtime.batch.reader import GroupReader
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.model.spec import ColumnReading, GroupSpec, InputStream, RecordReading

pytestmark = pytest.mark.integration


class Describes:
    """The part of a gate that a reader asks for its group. It takes note of nothing."""

    def __init__(self, group: GroupDescription) -> None:
        self._group = group

    def ask(self, request: Any) -> Any:
        return self._group if isinstance(request, Describe) else None

    def tell(self, request: Any) -> None:
        return None


def reads(topic: str, element: str, column: str) -> InputStream:
    return InputStream(
        source=f"{element}.out",
        topic=topic,
        data_schema=StreamSchema(fields=(Field(name=column, type=FieldType.INTEGER),)),
        consumer=element,
        external=True,
        reading=RecordReading(columns=(ColumnReading(path=(column,)),)),
    )


def test_each_input_of_a_topic_reads_its_own_columns(kafka: str, tmp_path: Path) -> None:
    topic = f"user-{uuid4().hex[:8]}"
    ensure_topics(KafkaSettings(kafka), [Topic(topic)])
    producer = KafkaProducer(bootstrap_servers=kafka)
    producer.send(topic, b'{"a": 1, "b": 2}')
    producer.close()
    inputs = reads(topic, "first", "a"), reads(topic, "second", "b")
    spec = GroupSpec(deployment="d", pipeline="p", group="g", elements=(), inputs=inputs, outputs=())
    group = GroupDescription(spec.model_dump(mode="json"), {"bootstrap": kafka}, {}, str(tmp_path))
    gate: Any = Describes(group)
    reader = GroupReader(gate)
    try:
        for place, column, value in ((0, "a", 1), (1, "b", 2)):
            part = Slice(place, int(time() * 1000), start=0, end=1)
            [rows] = reader.read(part)
            assert rows[column].to_pylist() == [value]
    finally:
        reader.close()
