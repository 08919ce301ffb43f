"""The tools of these tests: lines that delay and break, a broker that is killed and comes back."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from tests.handover.proxy import Proxies
from tests.handover.rig import Rig
from tests.handover.tail import Tail

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A rig without its nodes."""
    rig = Rig(tmp_path_factory.mktemp("lines"), ("near", "far"))
    rig.broker.start()
    yield rig
    rig.close()


def settings(rig: Rig, name: str) -> KafkaSettings:
    return KafkaSettings(f"127.0.0.1:{rig.proxies.lines[name].port}")


def producer_by(rig: Rig, name: str) -> KafkaProducer:
    return KafkaProducer(bootstrap_servers=settings(rig, name).bootstrap, acks="all", linger_ms=0)


def test_clients_behind_a_line_never_leave_it(lines: Rig) -> None:
    ensure_topics(settings(lines, "near"), [Topic("near")])
    before = lines.proxies.lines["near"].counts()
    producer = producer_by(lines, "near")
    producer.send("near", b"x" * 10_000).get(10)
    after = lines.proxies.lines["near"].counts()
    # Also the connection that it opened to the address that the broker told it.
    assert after.connections >= before.connections + 1
    assert after.bytes_up >= before.bytes_up + 10_000
    assert after.bytes_down > before.bytes_down
    assert lines.proxies.lines["far"].counts().bytes_up == 0
    producer.close()


def test_a_delayed_line_takes_a_round_trip_longer(lines: Rig) -> None:
    ensure_topics(lines.kafka, [Topic("delayed")])
    line = lines.proxies.lines["far"]
    producer = producer_by(lines, "far")
    producer.send("delayed", b"first").get(10)
    line.delay(200)
    begun = monotonic()
    producer.send("delayed", b"second").get(10)
    # No promise is broken by a slow machine: it can only take longer.
    assert monotonic() - begun >= 0.2
    line.delay(0)
    producer.close()


def test_what_was_sent_into_a_cut_line_arrives_when_it_is_whole_again(lines: Rig) -> None:
    ensure_topics(lines.kafka, [Topic("cut")])
    line, tail = lines.proxies.lines["far"], Tail(lines.kafka.bootstrap, "cut")
    producer = producer_by(lines, "far")
    producer.send("cut", b'"before"').get(10)
    line.cut()
    up = line.counts().bytes_up
    sent = producer.send("cut", b'"into the cut"')
    lines.wait(lambda: line.counts().bytes_up > up, "the record to be held back", 10)
    assert tail.values() == ["before"]
    line.heal()
    sent.get(20)
    assert tail.values() == ["into the cut"]
    producer.close()
    tail.close()


def test_a_reset_line_takes_no_connection(lines: Rig) -> None:
    line = lines.proxies.lines["far"]
    line.cut("reset")
    with pytest.raises(KafkaError):
        KafkaConsumer(bootstrap_servers=settings(lines, "far").bootstrap, bootstrap_timeout_ms=1000)
    line.heal()
    KafkaConsumer(bootstrap_servers=settings(lines, "far").bootstrap).close()


def test_a_killed_broker_comes_back_with_all_it_had(lines: Rig) -> None:
    ensure_topics(lines.kafka, [Topic("kept")])
    tail = Tail(lines.kafka.bootstrap, "kept")
    producer = producer_by(lines, "near")
    for number in range(20):
        producer.send("kept", str(number).encode()).get(10)
    assert tail.values() == list(range(20))
    lines.kill_broker()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: producer.send("kept", b"20").get(60))
        lines.start_broker()
        waiting.result()
    assert tail.values() == [20]
    producer.close()
    tail.close()


def test_lines_have_ports_of_their_own(tmp_path: Path) -> None:
    proxies = Proxies(("a", "b"))
    ports = [*proxies.advertised, *proxies.advertised.values()]
    assert len(set(ports)) == 4
    proxies.close()
