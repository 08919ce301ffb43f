"""A pipeline from a topic of Avro to a topic of Avro, by a schema registry that is away in between."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

import fastavro
import pytest
from kafka import KafkaProducer

from pipeline_runtime.kafka.clients import KafkaSettings, TopicPartition, open_consumer
from pipeline_runtime.model.connectors import PURPOSE_SENT, SealedConnection
from pipeline_runtime.sealing import seal
from tests.integration.runtime.engine import Deployed, Node, create_topic, owning
from tests.ports import free_ports
from tests.schema_registry import RegistryServer
from tests.waiting import wait_until
from workers.node.registries import NodeRegistries

pytestmark = pytest.mark.integration

SCHEMA = {
    "type": "record",
    "name": "Reading",
    "fields": [{"name": "n", "type": "long"}, {"name": "watts", "type": ["null", "double"]}],
}
NUMBER = 100  # the first one that the registry gives
PROTOBUF = 7
KEY, SECRET = "cluster-key", "hunter2-is-secret"


def numbered(row: dict[str, Any]) -> bytes:
    target = BytesIO()
    fastavro.schemaless_writer(target, SCHEMA, row)
    return b"\0" + NUMBER.to_bytes(4, "big") + target.getvalue()


def records_of(kafka: str, topic: str) -> list[Any]:
    consumer = open_consumer(KafkaSettings(kafka))
    try:
        tp = TopicPartition(topic, 0)
        consumer.assign([tp])
        consumer.seek_to_beginning()
        end, found = consumer.end_offsets([tp])[tp], []
        while consumer.position(tp) < end:
            found += consumer.poll(200).get(tp, [])
        return found
    finally:
        consumer.close()


def deployed(kafka: str, source: str, target: str) -> Deployed:
    avro = {"format": "avro", "registry": "plant"}
    columns = [
        {"name": "n", "type": "integer"},
        {"name": "watts", "type": "number"},
        {"name": "machine", "place": "key"},
        {"name": "trace", "place": "header"},
    ]
    reads = {"topic": source, "columns": columns, **avro}
    writes = {"topic": target, "key": "machine", "headers": ["trace"], **avro}
    elements: list[dict[str, Any]] = [
        {"id": "plant", "type": "kafka-in", "params": reads},
        {"id": "out", "type": "kafka-out", "params": writes, "inputs": {"in": "plant"}},
    ]
    return Deployed(kafka, elements, {"all": ["plant", "out"]})


@pytest.fixture
def registry(node: Node, monkeypatch: pytest.MonkeyPatch) -> Callable[[], RegistryServer]:
    """Returns the registry that the node's connection leads to. It does not run yet."""
    [port] = free_ports(1)

    def server() -> RegistryServer:
        return RegistryServer(port, login=("ann", SECRET))

    fields = {"url": f"http://127.0.0.1:{port}", "user": "ann", "password": SECRET}
    sealed = SealedConnection(
        name="plant",
        kind="schema-registry",
        version=1,
        sealed=seal(json.dumps(fields), KEY, PURPOSE_SENT),
    )
    monkeypatch.setattr(node.host, "registries", NodeRegistries(KEY).among(lambda: [sealed]))
    return server


def test_rows_wait_for_a_registry_that_is_away_and_for_a_schema_that_it_does_not_have_yet(
    kafka: str, node: Node, registry: Callable[[], RegistryServer], caplog: pytest.LogCaptureFixture
) -> None:
    source, target = create_topic(kafka), create_topic(kafka)
    pipeline = deployed(kafka, source, target)
    spec = pipeline.specs["all"]
    producer = KafkaProducer(bootstrap_servers=kafka)
    for n in range(3):
        value = b"\0" + PROTOBUF.to_bytes(4) + b"x" if n == 1 else numbered({"n": n, "watts": n / 2})
        producer.send(source, value, f"m{n}".encode(), headers=[("trace", b"t%d" % n)])
    producer.close()

    def failed(over: int) -> str:
        """Returns what the element says when a replica has tried."""
        replica = node.own(spec, over=over)
        owning(replica)
        wait_until(lambda: replica.status().error is not None, "the failure")
        error = replica.status().error
        assert error is not None
        assert error.code == "schema-registry", error
        assert SECRET not in replica.status().model_dump_json()
        return error.message

    away = failed(over=0)
    assert f"The records of the topic {source} wait: Nobody listens at the schema registry http://" in away
    with registry() as server:
        unknown = failed(over=1)
        assert unknown.startswith(f"The records of the topic {source} wait: the schema registry {server.url}")
        assert unknown.endswith(f"has no schema {NUMBER}.")
        assert (records_of(kafka, target), pipeline.dead_letters("plant")) == ([], [])
        server.schemas[PROTOBUF] = {"schema": "message Reading {}", "schemaType": "PROTOBUF"}
        server.schemas[NUMBER] = {"schema": json.dumps(SCHEMA)}
        node.own(spec, over=2)
        wait_until(lambda: len(records_of(kafka, target)) >= 2, "the rows outside")
        first, last = records_of(kafka, target)
        schema = json.loads(server.schemas[server.subjects[f"{target}-value"]]["schema"])
    assert (first.key, first.headers) == (b"m0", [("trace", b"t0")])
    assert (last.key, last.headers) == (b"m2", [("trace", b"t2")])
    assert fastavro.schemaless_reader(BytesIO(last.value[5:]), schema, None) == {
        "n": 2,
        "watts": 1.0,
        "machine": "m2",
        "trace": "t2",
    }
    [letter] = pipeline.dead_letters("plant")
    assert letter["reason"] == "the schema 7 of the registry is Protobuf, and only Avro is read"
    assert SECRET not in spec.model_dump_json()
    assert SECRET not in caplog.text
