"""A pipeline from a topic of Avro to a topic of Avro, by a schema registry that is away in between."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import fastavro
import pytest
from kafka import KafkaProducer

from pipeline_runtime.kafka.clients import KafkaSettings, TopicPartition, open_consumer
from tests.integration.runtime.engine import Deployed, Node, create_topic, owning
from tests.ports import free_ports
from tests.schema_registry import RegistryServer
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

SCHEMA = {
    "type": "record",
    "name": "Reading",
    "fields": [{"name": "n", "type": "long"}, {"name": "watts", "type": ["null", "double"]}],
}
NUMBER = 100  # the first one that the registry gives


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


def test_rows_wait_for_a_registry_that_is_away_and_bad_records_are_dead_letters(
    kafka: str, node: Node
) -> None:
    source, target = create_topic(kafka), create_topic(kafka)
    [port] = free_ports(1)
    avro = {"format": "avro", "registry": f"http://127.0.0.1:{port}"}
    columns = [
        {"name": "n", "type": "integer"},
        {"name": "watts", "type": "number"},
        {"name": "machine", "place": "key"},
        {"name": "trace", "place": "header"},
    ]
    deployed = Deployed(
        kafka,
        [
            {"id": "plant", "type": "kafka-in", "params": {"topic": source, "columns": columns, **avro}},
            {
                "id": "out",
                "type": "kafka-out",
                "params": {"topic": target, "key": "machine", "headers": ["trace"], **avro},
                "inputs": {"in": "plant"},
            },
        ],
        {"all": ["plant", "out"]},
    )
    replica = node.own(deployed.specs["all"])
    owning(replica)
    producer = KafkaProducer(bootstrap_servers=kafka)
    for n in range(3):
        value = b"\0\0\0\0\7x" if n == 1 else numbered({"n": n, "watts": n / 2})
        producer.send(source, value, f"m{n}".encode(), headers=[("trace", b"t%d" % n)])
    producer.close()
    wait_until(lambda: (error := replica.status().error) and error.code == "schema-registry", "the failure")
    assert records_of(kafka, target) == []

    with RegistryServer(port) as registry:
        assert registry.register(f"{source}-value", json.dumps(SCHEMA)) == NUMBER
        node.own(deployed.specs["all"], over=1)
        wait_until(lambda: len(records_of(kafka, target)) >= 2, "the rows outside")
        first, last = records_of(kafka, target)
        schema = json.loads(registry.schemas[registry.subjects[f"{target}-value"]]["schema"])
    assert (first.key, first.headers) == (b"m0", [("trace", b"t0")])
    assert (last.key, last.headers) == (b"m2", [("trace", b"t2")])
    assert fastavro.schemaless_reader(BytesIO(last.value[5:]), schema, None) == {
        "n": 2,
        "watts": 1.0,
        "machine": "m2",
        "trace": "t2",
    }
    [letter] = deployed.dead_letters("plant")
    assert "has no schema 7" in letter["reason"]
