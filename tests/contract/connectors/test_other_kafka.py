"""Topics of another Kafka cluster, beside a real broker that asks for SCRAM and TLS."""

from __future__ import annotations

import io
import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from time import monotonic
from typing import Any

import fastavro
import pytest
from kafka import KafkaAdminClient, KafkaProducer

from pipeline_runtime.connectors import kafka_session
from pipeline_runtime.connectors.kafka_session import probe, search
from pipeline_runtime.connectors.other_kafka_in import OtherKafkaIngester
from pipeline_runtime.connectors.other_kafka_out import OtherKafkaDeliverer
from pipeline_runtime.connectors.sdk import Batch, ConnectorError, Noted, Place
from pipeline_runtime.connectors.trial import (
    MemoryNotes,
    RunningTrial,
    Taken,
    trial_deliverer,
    trial_ingester,
)
from pipeline_runtime.kafka.admin import Topic, delete_topics, ensure_topics, trim_topics
from pipeline_runtime.kafka.reading import committed_records
from pipeline_runtime.kafka.transactions import OutgoingRecord, Transactions
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.other_kafka import KafkaConnection, OtherKafkaInParams, OtherKafkaOutParams
from pipeline_runtime.operators.schema_registry import SchemaRegistryConnection
from pipeline_runtime.operators.ticked import AVRO
from tests.chosen import chosen
from tests.kafka_clusters import Authority, SecureKafka
from tests.ports import free_ports
from tests.schema_registry import RegistryServer
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

SLOW_S = 40.0
"""What takes less than 10 s elsewhere, on a machine without time to spare."""
ROWS = StreamSchema(
    fields=(Field(name="line", type=FieldType.STRING), Field(name="n", type=FieldType.INTEGER)), key="line"
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    with SecureKafka(tmp_path_factory.mktemp("other")) as running:
        wait_until(lambda: _works(running.connection()), "the cluster to know its user")
        yield running


def _works(connection: KafkaConnection) -> bool:
    try:
        probe(connection, "")
    except ConnectorError:
        return False
    return True


def topic(cluster: SecureKafka, name: str, partitions: int = 1) -> str:
    ensure_topics(cluster.open, [Topic(name, partitions=partitions)])
    return name


def deliverer(connection: KafkaConnection, topic: str, **params: Any) -> OtherKafkaDeliverer:
    given = OtherKafkaOutParams.model_validate({"connection": "c", "topic": topic, **params})
    made = OtherKafkaDeliverer(Place("dep", topic, given, connection, "dep.g", ROWS))
    made.notes = MemoryNotes()
    return made


def row(n: int, line: str = "a") -> dict[str, Any]:
    return {"line": line, "n": n}


def batch(rows: Sequence[Mapping[str, Any]], first: int) -> Batch:
    numbers = list(range(first, first + len(rows)))
    return Batch(rows, [1_790_000_000_000] * len(rows), numbers, first, first + len(rows))


def written(cluster: SecureKafka, topic: str) -> list[dict[str, Any]]:
    """What is committed. The broker may still hide it when a commit returns, and then it is waited for."""
    return [json.loads(value) for _, value in committed_records(cluster.open, topic, hidden=True)]


@pytest.mark.parametrize("login", chosen(["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"], ["SCRAM-SHA-512"]))
def test_rows_are_written_once_and_those_that_the_topic_does_not_take_are_dead_letters(
    cluster: SecureKafka, login: str
) -> None:
    name = topic(cluster, f"out-{login}")
    given = [row(0), row(1, "x" * 5_000_000), row(2), row(3)]
    taken = trial_deliverer(deliverer(cluster.connection(login=login), name), given, timeout_s=60)
    assert taken.why == ""
    assert written(cluster, name) == [row(0), row(2), row(3)]
    [letter] = taken.refused
    assert letter.row["n"] == 1
    assert "are sent" in letter.reason

    again = trial_deliverer(deliverer(cluster.connection(login=login), name), given, timeout_s=60)
    assert again.why == ""
    assert written(cluster, name) == [row(0), row(2), row(3)]


FORMATS: dict[str, tuple[dict[str, Any], bytes]] = {
    "json": ({}, b'{"line":"a","n":7}'),
    "csv": ({"format": "csv"}, b"a,7"),
    "text": ({"format": "text", "text_column": "line"}, b"a"),
    "avro": ({"format": "avro", "registry": "r"}, b""),
}


@pytest.mark.parametrize("kind", chosen(FORMATS, always=["avro"]))
def test_rows_are_written_in_each_format_with_keys_and_headers_by_scram_and_tls(
    cluster: SecureKafka, kind: str
) -> None:
    params, value = FORMATS[kind]
    name = topic(cluster, f"format-{kind}")
    given = OtherKafkaOutParams.model_validate({"connection": "c", "topic": name, "headers": ["n"], **params})
    with RegistryServer() as registry:
        others = (
            {"registry": SchemaRegistryConnection.model_validate(registry.fields)} if kind == "avro" else {}
        )
        place = Place("dep", name, given, cluster.connection(), "dep.g", ROWS, others)
        taken = trial_deliverer(OtherKafkaDeliverer(place), [row(7)], timeout_s=60)
        schemas = {number: json.loads(each["schema"]) for number, each in registry.schemas.items()}
    assert (taken.why, taken.refused) == ("", [])
    reader = ingester(cluster.connection(), name, columns=[{"name": "n", "place": "header"}])
    [record] = trial_ingester(reader, 1, timeout_s=SLOW_S).records
    assert record.headers == (("n", b"7"),)
    assert record.key == b"a"
    if kind != "avro":
        assert record.value == value
        return
    [(number, schema)] = schemas.items()
    assert record.value[:5] == b"\0" + number.to_bytes(4, "big")
    assert fastavro.schemaless_reader(io.BytesIO(record.value[5:]), fastavro.parse_schema(schema)) == row(7)


def test_an_earlier_owner_and_one_that_died_in_a_transaction_leave_nothing(cluster: SecureKafka) -> None:
    name = topic(cluster, "owners")
    first = deliverer(cluster.connection(), name)
    first.open(1)
    first.deliver(batch([row(0), row(1)], 0))
    first.settle()
    first.deliver(batch([row(2)], 2))

    second = deliverer(cluster.connection(), name)
    second.open(2)
    assert second.position() == 2
    with pytest.raises(ConnectorError, match="Another process"):
        first.settle()
    first.close()
    with pytest.raises(ConnectorError, match=r"later owner of this element \(epoch 2\)"):
        first.open(1)
    first.close()
    second.deliver(batch([row(2), row(3)], 2))
    second.settle()
    second.idle()
    second.close()
    assert written(cluster, name) == [row(n) for n in range(4)]


def _made_again(cluster: SecureKafka, name: str) -> None:
    delete_topics(cluster.open, [name])
    topic(cluster, name)


def _group_removed(cluster: SecureKafka, name: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    try:
        admin.delete_groups([deliverer(cluster.connection(), name).place.name])
    finally:
        admin.close()


@pytest.mark.parametrize(
    ("loses", "left"), [(_made_again, []), (_group_removed, [row(0), row(1)])], ids=["topic", "group"]
)
def test_a_position_that_the_cluster_has_lost_is_told_and_the_user_chooses(
    cluster: SecureKafka, loses: Callable[[SecureKafka, str], None], left: list[dict[str, Any]]
) -> None:
    name = topic(cluster, f"lost-{loses.__name__}")
    given = [row(n) for n in range(4)]
    trial_deliverer(deliverer(cluster.connection(), name), given[:2], timeout_s=60)
    loses(cluster, name)

    stopped = deliverer(cluster.connection(), name)
    stopped.notes = MemoryNotes(Noted(2, stopped.mark))
    with pytest.raises(ConnectorError, match=r"has noted that the first 2 rows were sent.*Choose"):
        stopped.open(1)
    stopped.close()
    assert written(cluster, name) == left

    chosen_behind = deliverer(cluster.connection(), name, lost="behind")
    behind = trial_deliverer(chosen_behind, given, noted=Noted(2, stopped.mark), timeout_s=60)
    assert behind.why == ""
    assert written(cluster, name) == [*left, row(2), row(3)]

    loses(cluster, name)
    kept = written(cluster, name)
    used = deliverer(cluster.connection(), name, lost="behind")
    used.notes = MemoryNotes(Noted(4, chosen_behind.mark))
    with pytest.raises(ConnectorError, match="each choice counts once"):
        used.open(1)
    used.close()
    noted = Noted(4, chosen_behind.mark)
    trial_deliverer(deliverer(cluster.connection(), name, lost="again"), given, noted=noted, timeout_s=60)
    assert written(cluster, name) == [*kept, *given]

    # Put back, it asks for nothing: the cluster has a position.
    trial_deliverer(deliverer(cluster.connection(), name), given, noted=None, timeout_s=60)
    assert written(cluster, name) == [*kept, *given]


def _words(connection: KafkaConnection, topic: str = "words") -> str:
    begun_s = monotonic()
    found = deliverer(connection, topic)
    try:
        with pytest.raises(ConnectorError) as caught:
            found.open(1)
    finally:
        found.close()
    assert monotonic() - begun_s < SLOW_S
    assert "wrong" not in str(caught.value)
    return str(caught.value)


def test_what_is_wrong_is_said_in_words_soon(cluster: SecureKafka) -> None:
    topic(cluster, "words")
    [nobody] = free_ports(1)
    expired = f"127.0.0.1:{cluster.expired_port}"
    open_port = f"127.0.0.1:{cluster.port}"
    assert "refuses the user name or the password" in _words(cluster.connection(password="wrong"))
    assert "has expired" in _words(cluster.connection(servers=expired))
    assert "signed by an unknown authority" in _words(cluster.connection(ca=Authority().pem))
    assert "Nobody listens" in _words(cluster.connection(servers=f"127.0.0.1:{nobody}"))
    assert "is not known here" in _words(cluster.connection(servers="no-such-host.invalid:9093"))
    assert re.search("speaks no TLS|closed the connection", _words(cluster.connection(servers=open_port)))
    assert 'has no topic "elsewhere"' in _words(cluster.connection(), "elsewhere")
    assert "the Kafka cluster" in _words(cluster.connection(tls=False))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert "does not answer." in _words(cluster.connection(servers=f"127.0.0.1:{port}", tls=False))


def mutual(cluster: SecureKafka, signer: Authority | None, **signed: timedelta) -> KafkaConnection:
    """Returns a connection with an own certificate of the signer, or without one."""
    certificate, key = (None, None) if signer is None else signer.signed(**signed)
    where = {"servers": f"127.0.0.1:{cluster.mutual_port}", "login": "none", "user": None, "password": None}
    return cluster.connection(**where, certificate=certificate, private_key=key)


def test_a_cluster_lets_fogline_in_by_its_own_certificate(cluster: SecureKafka) -> None:
    name = topic(cluster, "mutual")
    own = mutual(cluster, cluster.authority)
    taken = trial_deliverer(deliverer(own, name), [row(0), row(1)], timeout_s=60)
    assert taken.why == ""
    assert written(cluster, name) == [row(0), row(1)]
    running = RunningTrial(ingester(own, name), rows=2)
    wait_until(running.intake.enough.is_set, "both records")
    assert numbers_of(running.stop()) == [0, 1]

    refused = "own certificate"
    assert refused in _words(mutual(cluster, None), name)
    assert refused in _words(mutual(cluster, Authority()), name)
    assert "has expired" in _words(mutual(cluster, cluster.authority, ends=-timedelta(days=1)), name)
    assert written(cluster, name) == [row(0), row(1)]


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives a slow machine time for what browsing looks into."""
    monkeypatch.setattr(kafka_session, "_LOOK_S", SLOW_S)


@pytest.mark.usefixtures("_patient")
def test_a_probe_shows_topics_and_records(cluster: SecureKafka) -> None:
    name = topic(cluster, "probed")
    trial_deliverer(deliverer(cluster.connection(), name), [row(7)], timeout_s=60)
    [ticked] = [each for each in probe(cluster.connection(), "").found if each.path == name]
    assert [(part.name, part.type) for part in ticked.parts] == [
        ("line", FieldType.STRING),
        ("n", FieldType.NUMBER),
    ]
    assert probe(cluster.connection(), name).rows == ({"key": "a", "value": '{"line":"a","n":7}'},)


@pytest.mark.usefixtures("_patient")
def test_browsing_tells_what_topics_hold_and_finds_them_by_parts_of_names(
    cluster: SecureKafka,
) -> None:
    topic(cluster, "browse-empty")
    values = {"Avro": b"\0\0\0\0\x07\xff", "text": b"T=21", "bytes": b"\xff\xfe", "deletion": None}
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    for what, value in values.items():
        producer.send(topic(cluster, f"Browse-{what}"), value, b"k")
    producer.close()
    found = {each.path: each for each in search(cluster.connection(), "browse-").found}
    assert sorted(found) == [*(f"Browse-{what}" for what in sorted(values)), "browse-empty"]
    assert all(each.usable for each in found.values())
    assert {name: each.type for name, each in found.items()} == {
        "Browse-Avro": AVRO,
        "Browse-bytes": "",
        "Browse-deletion": "",
        "Browse-text": "text",
        "browse-empty": "no record",
    }


@pytest.mark.usefixtures("_patient")
def test_a_topic_that_the_user_may_not_read_hides_no_other_one(cluster: SecureKafka) -> None:
    connection, names = cluster.connection(), ["seen-a", "seen-b", "seen-c"]
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    for name in names:
        producer.send(topic(cluster, name, partitions=2), b"T=21", partition=0)
        producer.send(name, b"T=22", partition=1)
    producer.close()
    cluster.hide("seen-a")
    cluster.hide("seen-b")

    def refused(name: str) -> bool:
        try:
            probe(connection, name)
        except ConnectorError as error:
            return "does not allow this" in str(error)
        return False

    wait_until(lambda: refused("seen-a") and refused("seen-b"), "the rules to count")
    found = search(connection, "seen-").found
    hidden = "this user may not read it"
    assert [(each.path, each.type) for each in found] == [
        *((name, hidden) for name in names[:2]),
        ("seen-c", "text"),
    ]


# -- in --------------------------------------------------------------------------------------------------


def ingester(connection: KafkaConnection, topic: str, **params: Any) -> OtherKafkaIngester:
    columns = [{"name": "n", "type": "integer"}]
    given = OtherKafkaInParams.model_validate(
        {"connection": "c", "topic": topic, "columns": columns, **params}
    )
    return OtherKafkaIngester(Place("dep", topic, given, connection, "dep.g"))


def produce(cluster: SecureKafka, topic: str, *numbers: int) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    for n in numbers:
        producer.send(topic, b'{"n":%d}' % n, b"k", headers=[("trace", b"t")], timestamp_ms=n + 1)
    producer.close()


def numbers_of(taken: Taken) -> list[int]:
    return [json.loads(record.value)["n"] for record in taken.records]


def test_records_come_with_their_position_and_go_on_behind_it(cluster: SecureKafka) -> None:
    name = topic(cluster, "in")
    produce(cluster, name, 0, 1)
    aborted = Transactions(cluster.open, "aborted")
    aborted.initialise()
    with pytest.raises(ZeroDivisionError):
        aborted.commit([OutgoingRecord(name, b'{"n":-1}')], written=lambda: 1 // 0)
    Transactions(cluster.open, "aborted").initialise()
    produce(cluster, name, 2)

    running = RunningTrial(ingester(cluster.connection(), name), rows=3)
    wait_until(running.intake.enough.is_set, "three records")
    produce(cluster, name, 3)
    wait_until(lambda: len(running.taken.records) == 4, "one more")
    position = running.intake.position
    taken = running.stop()
    assert numbers_of(taken) == [0, 1, 2, 3]
    assert [record.time_ms for record in taken.records] == [1, 2, 3, 4]
    assert taken.records[0].key == b"k"
    assert taken.records[0].headers == ()
    assert taken.why == ""

    produce(cluster, name, 4)
    again = RunningTrial(ingester(cluster.connection(), name), rows=1, position=position)
    wait_until(again.intake.enough.is_set, "the record behind the position")
    assert numbers_of(again.stop()) == [4]


def test_records_that_are_gone_are_told_and_what_no_topic_takes_is_a_dead_letter(
    cluster: SecureKafka,
) -> None:
    name = topic(cluster, "gone")
    produce(cluster, name, *range(5))
    trim_topics(cluster.open, {(name, 0): 3})
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, max_request_size=4 << 20)
    producer.send(name, b"x" * 1_000_000)
    producer.send(name, None, b"k")
    producer.close()
    header = [{"name": "trace", "place": "header"}]
    position = {"topic": name, "offsets": {"0": 1}}
    running = RunningTrial(ingester(cluster.connection(), name, columns=header), rows=4, position=position)
    wait_until(running.intake.enough.is_set, "what is left")
    taken = running.stop()
    assert [record.headers for record in taken.records[:2]] == [(("trace", b"t"),)] * 2
    large, tombstone = (dict(record.headers)["fogline-unread"] for record in taken.records[2:])
    assert large.startswith(b"it has 1,000,000 bytes")
    assert b"tombstone" in tombstone
    assert any("had deleted records" in note for note in taken.notes)


@pytest.mark.full
def test_a_cluster_that_dies_is_told_and_its_records_come_when_it_is_back(cluster: SecureKafka) -> None:
    name = topic(cluster, "dies")
    produce(cluster, name, 0)
    running = RunningTrial(ingester(cluster.connection(), name), rows=2)
    wait_until(lambda: len(running.taken.records) == 1, "the first record")
    cluster.stop()
    wait_until(lambda: running.status.state == "failing", "the words")
    assert "the Kafka cluster" in running.status.why
    cluster.start()
    produce(cluster, name, 1)
    wait_until(running.intake.enough.is_set, "the record behind the restart")
    assert numbers_of(running.stop()) == [0, 1]
