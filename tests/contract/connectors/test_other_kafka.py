"""Topics of another Kafka cluster, beside a real broker that asks for SCRAM and TLS."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import Any

import pytest

from pipeline_runtime.connectors.kafka_session import probe
from pipeline_runtime.connectors.other_kafka_out import OtherKafkaDeliverer
from pipeline_runtime.connectors.sdk import Batch, ConnectorError, Place
from pipeline_runtime.connectors.trial import trial_deliverer
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.reading import committed_records
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.other_kafka import KafkaConnection, OtherKafkaOutParams
from tests.chosen import chosen
from tests.kafka_clusters import Authority, SecureKafka
from tests.ports import free_ports
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
    return OtherKafkaDeliverer(Place("dep", topic, given, connection, "dep.g", ROWS))


def row(n: int, line: str = "a") -> dict[str, Any]:
    return {"line": line, "n": n}


def batch(rows: Sequence[Mapping[str, Any]], first: int) -> Batch:
    numbers = list(range(first, first + len(rows)))
    return Batch(rows, [1_790_000_000_000] * len(rows), numbers, first, first + len(rows))


def written(cluster: SecureKafka, topic: str) -> list[dict[str, Any]]:
    return [json.loads(value) for _, value in committed_records(cluster.open, topic)]


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
    assert "signed by nobody who is known here" in _words(cluster.connection(ca=Authority().pem))
    assert "Nobody listens" in _words(cluster.connection(servers=f"127.0.0.1:{nobody}"))
    assert "is not known here" in _words(cluster.connection(servers="no-such-host.invalid:9093"))
    assert re.search("speaks no TLS|closed the connection", _words(cluster.connection(servers=open_port)))
    assert 'has no topic "elsewhere"' in _words(cluster.connection(), "elsewhere")
    assert "the Kafka cluster" in _words(cluster.connection(tls=False))


def test_a_probe_shows_topics_and_records(cluster: SecureKafka) -> None:
    name = topic(cluster, "probed")
    trial_deliverer(deliverer(cluster.connection(), name), [row(7)], timeout_s=60)
    assert name in [each.path for each in probe(cluster.connection(), "").found]
    assert probe(cluster.connection(), name).rows == ({"key": "a", "value": '{"line":"a","n":7}'},)
