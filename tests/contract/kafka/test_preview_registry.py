"""A preview of a topic whose schemas a registry keeps: the node asks for them, not the preview's process."""

from __future__ import annotations

import json
import queue
from io import BytesIO
from typing import Any
from uuid import uuid4

import fastavro
import pytest
from kafka import KafkaProducer

from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.connectors import PURPOSE_SENT, SealedConnection
from pipeline_runtime.model.preview import PreviewAnswer
from pipeline_runtime.sealing import seal
from tests.schema_registry import RegistryServer
from tests.unit.preview.previewing import draft, question
from tests.waiting import PATIENCE_S
from workers.node.previews import Previews
from workers.node.registries import NodeRegistries

pytestmark = pytest.mark.integration

KEY, SECRET = "cluster-key", "hunter2-is-secret"
SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}
NUMBER = 100  # the first one that the registry gives


def test_a_preview_gets_schemas_of_a_registry_with_a_login_and_says_which_is_missing(kafka: str) -> None:
    settings, name = KafkaSettings(kafka), f"user-{uuid4().hex[:8]}"
    ensure_topics(settings, [Topic(name)])
    producer = KafkaProducer(bootstrap_servers=kafka)
    for n in range(3):
        body = BytesIO()
        fastavro.schemaless_writer(body, SCHEMA, {"n": n})
        producer.send(name, b"\0" + NUMBER.to_bytes(4) + body.getvalue())
    producer.close()
    columns = [{"name": "n", "type": "integer"}]
    params = {"topic": name, "columns": columns, "format": "avro", "registry": "plant"}
    document = draft({"id": "in", "type": "kafka-in", "params": params})

    answers: queue.Queue[PreviewAnswer] = queue.Queue()
    nodes = NodeRegistries(KEY)
    previews = Previews(
        settings,
        dict,
        lambda _: {},  # no connector is previewed
        lambda connections: nodes.among(lambda: connections),
        lambda _, answer: answers.put(answer),
    )
    previews.start()

    def ask(*connections: SealedConnection) -> PreviewAnswer:
        """As the dashboard does: again while the process still starts, or is late."""
        asked: dict[str, Any] = question(document, "in", connections=connections).model_dump(mode="json")
        while True:
            previews.ask(asked)
            answer = answers.get(timeout=PATIENCE_S)
            if answer.refused not in ("starting", "too-long"):
                return answer

    try:
        with RegistryServer(login=("ann", SECRET)) as registry:
            text = seal(json.dumps(registry.fields), KEY, PURPOSE_SENT)
            plant = SealedConnection(name="plant", kind="schema-registry", version=1, sealed=text)
            missing = ask(plant)
            assert (missing.refused, missing.at) == ("unreachable", "in")
            said = (
                f"The records of the topic {name} wait: the schema registry {registry.url} has no schema 100."
            )
            assert missing.why == said
            registry.register(f"{name}-value", json.dumps(SCHEMA))
            found = ask(plant)
            assert found.refused is None, found
            assert found.output is not None
            assert [row.values for row in found.output.rows] == [(0,), (1,), (2,)]
        without = ask()
        assert 'There is no connection "plant"' in without.why
        assert SECRET not in (missing.model_dump_json() + without.model_dump_json())
    finally:
        previews.close()
