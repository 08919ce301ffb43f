"""A pipeline from a topic of Avro to a topic of Avro, by a schema registry that is not always there."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest
from kafka import KafkaProducer

from pipeline_runtime.formats.schema_registry import Registries
from pipeline_runtime.kafka.clients import KafkaSettings, TopicPartition, open_consumer
from pipeline_runtime.model.connectors import PURPOSE_SENT, SealedConnection
from pipeline_runtime.model.desired import ReplicaError, Role
from pipeline_runtime.replica import registry_wait
from pipeline_runtime.replica.replica import Replica
from pipeline_runtime.sealing import seal
from tests.directing import tell
from tests.integration.runtime.engine import Deployed, Node, create_topic, owning, produce, wait_for_status
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
OTHER = {**SCHEMA, "name": "Another"}
NUMBER = 100  # the first one that the registry gives
PROTOBUF, NEVER = 7, 9
KEY, SECRET = "cluster-key", "hunter2-is-secret"


def numbered(n: int) -> bytes:
    target = BytesIO()
    fastavro.schemaless_writer(target, SCHEMA, {"n": n, "watts": n / 2})
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


def registries(url: str) -> Registries:
    """Returns those of a node that has just begun, whose only connection leads there."""
    fields = {"url": url, "user": "ann", "password": SECRET}
    sealed = SealedConnection(
        name="plant",
        kind="schema-registry",
        version=1,
        sealed=seal(json.dumps(fields), KEY, PURPOSE_SENT),
    )
    return NodeRegistries(KEY).among(lambda: [sealed])


@pytest.fixture
def registry(node: Node, monkeypatch: pytest.MonkeyPatch) -> Callable[[], RegistryServer]:
    """Returns the registry that the node's connection leads to. It does not run yet."""
    [port] = free_ports(1)
    monkeypatch.setattr(node.host, "registries", registries(f"http://127.0.0.1:{port}"))
    monkeypatch.setattr(registry_wait, "ASK_S_MAX", 0.5)
    return lambda: RegistryServer(port, login=("ann", SECRET))


def waits(replica: Replica, what: str) -> ReplicaError:
    """Waits until the owner waits for its registry, and says that."""
    status = wait_for_status(
        replica,
        lambda status: (
            status.role is Role.OWNER and status.error is not None and what in status.error.message
        ),
        f"to wait: {what}",
    )
    assert SECRET not in status.model_dump_json()
    assert status.error is not None
    assert status.error.code == "schema-registry"
    return status.error


def rows_of(kafka: str, topic: str) -> list[int]:
    """Returns the column n of what came out."""
    names = ("n", "watts", "machine", "trace")
    fields = [
        {"name": name, "type": ["null", type_]}
        for name, type_ in zip(names, ("long", "double", "string", "string"), strict=True)
    ]
    schema = {"type": "record", "name": "Row", "fields": fields}
    return [
        fastavro.schemaless_reader(BytesIO(each.value[5:]), schema, None)["n"]
        for each in records_of(kafka, topic)
    ]


def test_rows_wait_for_a_registry_that_is_away_and_for_a_schema_that_it_does_not_have_yet(
    kafka: str, node: Node, registry: Callable[[], RegistryServer], caplog: pytest.LogCaptureFixture
) -> None:
    source, target = create_topic(kafka), create_topic(kafka)
    pipeline = deployed(kafka, source, target)
    spec = pipeline.specs["all"]
    producer = KafkaProducer(bootstrap_servers=kafka)
    for n in range(3):
        value = b"\0" + PROTOBUF.to_bytes(4) + b"x" if n == 1 else numbered(n)
        producer.send(source, value, f"m{n}".encode(), headers=[("trace", b"t%d" % n)])
    producer.close()

    replica = node.own(spec)
    away = waits(replica, "Nobody listens at the schema registry http://")
    assert away.message.startswith(f"The records of the topic {source}, partition 0, from offset 0 on wait: ")
    assert away.ways == ()
    with registry() as server:
        unknown = waits(replica, f"the schema registry {server.url} has no schema {NUMBER}.")
        assert [way.title for way in unknown.ways] == ["Skip 1 record", "Skip 3 records"]
        assert (records_of(kafka, target), pipeline.dead_letters("plant")) == ([], [])
        server.schemas[PROTOBUF] = {"schema": "message Reading {}", "schemaType": "PROTOBUF"}
        server.schemas[NUMBER] = {"schema": json.dumps(SCHEMA)}
        wait_until(lambda: len(records_of(kafka, target)) >= 2, "the rows outside")
        first, last = records_of(kafka, target)
        schema = json.loads(server.schemas[server.subjects[f"{target}-value"]]["schema"])
    wait_for_status(replica, lambda status: status.error is None, "to wait for nothing")
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
    assert set(pipeline.commits("all")[-1].schemas["plant"]) == {str(PROTOBUF), str(NUMBER)}
    pipeline.assert_journal_lawful("all")
    assert SECRET not in spec.model_dump_json()
    assert SECRET not in caplog.text


@pytest.mark.full
def test_a_person_leaves_out_a_record_whose_schema_never_comes(
    kafka: str, node: Node, registry: Callable[[], RegistryServer]
) -> None:
    source, target = create_topic(kafka), create_topic(kafka)
    pipeline = deployed(kafka, source, target)
    never = b"\0" + NEVER.to_bytes(4) + b"x"
    produce(kafka, source, [numbered(0), never, numbered(2), never, b"\0\xff\xff\xff\xffx", numbered(5)])
    with registry() as server:
        server.schemas[NUMBER] = {"schema": json.dumps(SCHEMA)}
        replica = node.own(pipeline.specs["all"])
        for offset, before in ((1, [0]), (3, [0, 2])):
            way = waits(replica, f"from offset {offset} on wait").ways[0]
            wait_until(lambda before=before: rows_of(kafka, target) == before, "what lies before it")
            tell(replica, accepts=(*replica.directive.accepts, way.id))
        wait_until(lambda: rows_of(kafka, target) == [0, 2, 5], "what lies behind both")
        status = wait_for_status(replica, lambda status: status.error is None, "to wait for nothing")
    assert status.left_out_total == 2
    [letter] = pipeline.dead_letters("plant")
    assert "4294967295 as its schema's number, which no registry gives" in letter["reason"]
    pipeline.assert_journal_lawful("all")


@pytest.mark.full
def test_a_registry_that_was_set_up_again_is_not_believed_until_a_person_says_so(
    kafka: str, node: Node, registry: Callable[[], RegistryServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = create_topic(kafka), create_topic(kafka)
    pipeline = deployed(kafka, source, target)
    spec = pipeline.specs["all"]
    produce(kafka, source, [numbered(0)])
    with registry() as server:
        server.schemas[NUMBER] = {"schema": json.dumps(SCHEMA)}
        replica = node.own(spec)
        wait_until(lambda: rows_of(kafka, target) == [0], "the first row")
        replica.stop(60.0)
        server.schemas[NUMBER] = {"schema": json.dumps(OTHER)}
        monkeypatch.setattr(node.host, "registries", registries(server.url))  # the node was started again
        produce(kafka, source, [numbered(1)])
        again = node.own(spec, over=1)
        error = waits(again, f'The schema registry "plant" says another schema {NUMBER}')
        assert rows_of(kafka, target) == [0]
        [way] = error.ways
        tell(again, accepts=(way.id,))
        wait_until(lambda: rows_of(kafka, target) == [0, 1], "the row as the new schema has it")
    first, *_, last = pipeline.commits("all")
    assert first.schemas["plant"][str(NUMBER)] != last.schemas["plant"][str(NUMBER)]
    pipeline.assert_journal_lawful("all")


@pytest.mark.full
def test_an_element_moves_off_a_node_that_cannot_reach_the_registry(
    kafka: str,
    node: Node,
    other_node: Node,
    registry: Callable[[], RegistryServer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, target = create_topic(kafka), create_topic(kafka)
    pipeline = deployed(kafka, source, target)
    spec = pipeline.specs["all"]
    produce(kafka, source, [numbered(0)])
    with RegistryServer(login=("ann", SECRET)) as there:
        monkeypatch.setattr(other_node.host, "registries", registries(there.url))
        there.schemas[NUMBER] = {"schema": json.dumps(SCHEMA)}
        old = node.own(spec)
        waits(old, "Nobody listens at the schema registry")
        new = other_node.start(spec)
        tell(new, succeed="there")
        tell(old, release="there")
        owning(new)
        wait_until(lambda: rows_of(kafka, target) == [0], "the row")
        assert old.status().error is None
    pipeline.assert_journal_lawful("all")


@pytest.mark.full
def test_who_follows_batches_that_spark_plans_reads_by_the_registry_and_registers_nothing(
    kafka: str, node: Node, other_node: Node, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source, target = create_topic(kafka), create_topic(kafka)
    avro = {"format": "avro", "registry": "plant"}
    reads = {"topic": source, "columns": [{"name": "v", "type": "integer"}], **avro}
    flags = {"plan_flag": str(tmp_path / "plan"), "row_flag": str(tmp_path / "row")}
    elements: list[dict[str, Any]] = [
        {"id": "plant", "type": "kafka-in", "params": reads},
        {"id": "planned", "type": "fragile", "inputs": {"in": "plant"}, "params": flags},
        {"id": "out", "type": "kafka-out", "inputs": {"in": "planned"}, "params": {"topic": target, **avro}},
    ]
    pipeline = Deployed(kafka, elements, {"all": [each["id"] for each in elements]})
    spec = pipeline.specs["all"]
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "v", "type": "long"}]})
    produce(kafka, source, [b"\0" + NUMBER.to_bytes(4) + b"\x0e"])  # a 7
    with RegistryServer(login=("ann", SECRET)) as here, RegistryServer(login=("ann", SECRET)) as there:
        for host, server in ((node.host, here), (other_node.host, there)):
            server.schemas[NUMBER] = {"schema": schema}
            monkeypatch.setattr(host, "registries", registries(server.url))
        node.own(spec)
        wait_until(lambda: len(records_of(kafka, target)) == 1, "the row")
        seq = pipeline.commits("all")[0].seq
        follower = other_node.start(spec)
        wait_for_status(follower, lambda status: status.seq >= seq, "to have followed")
        assert (set(here.subjects), set(there.subjects)) == ({f"{target}-value"}, set())
        assert there.asked > 0
