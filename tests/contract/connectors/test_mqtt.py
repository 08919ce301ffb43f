"""MQTT beside a real mosquitto that is killed, hung and started again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.client import Client

from pipeline_runtime.connectors import mqtt_session, pulse
from pipeline_runtime.connectors.mqtt import MqttIngester
from pipeline_runtime.connectors.mqtt_out import MqttDeliverer
from pipeline_runtime.connectors.mqtt_topics import probe, search
from pipeline_runtime.connectors.sdk import Batch, ConnectorError, Place
from pipeline_runtime.connectors.trial import RunningTrial, trial_deliverer, trial_ingester
from pipeline_runtime.operators.mqtt import MqttConnection, MqttInParams, MqttOutParams
from tests.brokers import Broker
from tests.chosen import chosen
from tests.ports import free_ports
from tests.slow_line import slow_line
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.integration

VERSIONS = chosen(["5", "3.1.1"], always=["5"])


@pytest.fixture(scope="module")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("mosquitto")) as broker:
        yield broker


def ingester(connection: MqttConnection, element: str = "in", **params: Any) -> MqttIngester:
    given = {
        "connection": "b",
        "topics": ["plant/+/t"],
        "columns": [{"name": "v", "type": "number"}],
        **params,
    }
    return MqttIngester(Place("dep", element, MqttInParams.model_validate(given), connection))


def deliverer(connection: MqttConnection, **params: Any) -> MqttDeliverer:
    given = {"connection": "b", "topic": "out/{n}", **params}
    return MqttDeliverer(Place("dep", "out", MqttOutParams.model_validate(given), connection))


@pytest.mark.parametrize("version", VERSIONS)
def test_messages_come_by_wildcards_with_their_topics(shared_broker: Broker, version: str) -> None:
    running = RunningTrial(ingester(shared_broker.connection(version=version), element=f"wild{version}"), 2)
    wait_until(lambda: running.status.state == "connected", "a connection")
    shared_broker.publish("plant/a/t", b'{"v": 1}')
    shared_broker.publish("plant/a/other", b'{"v": 2}')
    shared_broker.publish("plant/b/t", b'{"v": 3}')
    assert running.intake.enough.wait(PATIENCE_S)
    rows = running.stop().rows
    assert [(row["levels"][1], row["value"]["v"]) for row in rows] == [("a", 1), ("b", 3)]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_broker_keeps_what_comes_while_nobody_reads_and_forgets_when_told(
    shared_broker: Broker, version: str
) -> None:
    connection = shared_broker.connection(version=version)
    running = RunningTrial(ingester(connection, element=f"kept{version}"))
    wait_until(lambda: running.status.state == "connected", "a connection")
    running.stop()
    shared_broker.publish("plant/a/t", *[b'{"v": %d}' % number for number in range(200)])
    again = trial_ingester(ingester(connection, element=f"kept{version}"), rows=200)
    assert [row["value"]["v"] for row in again.rows] == list(range(200))
    ingester(connection, element=f"kept{version}").forget()
    shared_broker.publish("plant/a/t", b'{"v": 1}')
    assert trial_ingester(ingester(connection, element=f"kept{version}"), rows=1, timeout_s=1).rows == []


def _broken(*_: Any) -> bool:
    raise RuntimeError


def test_a_message_that_was_not_safe_comes_again(shared_broker: Broker) -> None:
    """Where there is no room, nothing is acknowledged."""
    connection = shared_broker.connection()
    first = RunningTrial(ingester(connection, element="again"))
    wait_until(lambda: first.status.state == "connected", "a connection")
    first.intake.put = lambda records, done=None: False  # type: ignore[method-assign]
    shared_broker.publish("plant/a/t", b'{"v": 1}', b'{"v": 2}')
    wait_until(lambda: "no room" in first.status.why, "the full intake to be told")
    first.stop()
    second = RunningTrial(ingester(connection, element="again"))
    second.intake.put = _broken  # type: ignore[method-assign]
    wait_until(lambda: "could not be taken: RuntimeError" in second.taken.why, "the error to be told")
    second.stop()
    rows = trial_ingester(ingester(connection, element="again"), rows=2).rows
    assert sorted({row["value"]["v"] for row in rows}) == [1, 2]


def test_a_thread_of_the_library_that_stands_still_ends_the_process(
    shared_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = RunningTrial(ingester(shared_broker.connection(), element="still"))
    wait_until(lambda: running.status.state == "connected", "a connection")
    let_go = threading.Event()
    monkeypatch.setattr(running.intake, "put", lambda *_: let_go.wait())
    monkeypatch.setattr(pulse, "PATIENCE_S", 1.5)
    monkeypatch.setattr(pulse, "END_AFTER_S", 0.5)
    shared_broker.publish("plant/still/t", b"{}")
    assert running.hung.wait(60)
    assert "Its connector hangs" in running.status.why
    let_go.set()
    running.stop(30)


def test_a_topic_that_the_element_has_no_more_is_left_out_and_retained_messages_come_once(
    shared_broker: Broker,
) -> None:
    client = shared_broker.client()
    client.publish("once/t", b'{"v": 1}', 1, retain=True).wait_for_publish(5)
    client.disconnect()
    connection, topics = shared_broker.connection(), ["once/t", "old/t", "new/t"]
    assert len(trial_ingester(ingester(connection, "changed", topics=topics), rows=1).rows) == 1
    shared_broker.publish("old/t", b'{"v": 2}')
    shared_broker.publish("new/t", b'{"v": 3}')
    running = RunningTrial(ingester(connection, "changed", topics=["once/t", "new/t"]), 2)
    wait_until(lambda: running.status.state == "connected", "a connection")
    shared_broker.publish("old/t", b'{"v": 4}')
    shared_broker.publish("new/t", b'{"v": 5}')
    assert running.intake.enough.wait(PATIENCE_S)
    assert [row["value"]["v"] for row in running.stop().rows] == [3, 5]


def test_no_message_is_lost_while_the_broker_is_killed_and_comes_back(tmp_path: Path) -> None:
    """The broker has each message on its disk before the next one is sent."""
    with Broker(tmp_path, None, "autosave_interval 1", "autosave_on_changes true") as broker:
        running = RunningTrial(ingester(broker.connection()), 30)
        wait_until(lambda: running.status.state == "connected", "a connection")
        for number in range(30):
            if number == 15:
                broker.kill()
                wait_until(lambda: running.status.state == "failing", "the end to be noticed")
                broker.start()
                wait_until(lambda: running.status.state == "connected", "a new connection")
            broker.publish("plant/a/t", b'{"v": %d}' % number)
        assert running.intake.enough.wait(PATIENCE_S)
        assert {row["value"]["v"] for row in running.stop().rows} == set(range(30))


@pytest.mark.full
def test_a_broker_that_ends_or_hangs_is_told_in_words_and_nothing_is_lost(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        running = RunningTrial(ingester(broker.connection()), 3)
        wait_until(lambda: running.status.state == "connected", "a connection")
        broker.publish("plant/a/t", b'{"v": 1}')
        broker.stop()
        wait_until(lambda: "Nobody listens at the MQTT broker 127.0.0.1" in running.status.why, "the words")
        broker.start()
        wait_until(lambda: running.status.state == "connected", "a new connection")
        broker.publish("plant/a/t", b'{"v": 2}')
        broker.hang()
        wait_until(lambda: running.status.state == "failing", "the hang to be noticed")
        broker.go_on()
        wait_until(lambda: running.status.state == "connected", "a new connection")
        broker.publish("plant/a/t", b'{"v": 3}')
        assert running.intake.enough.wait(PATIENCE_S)
        assert {row["value"]["v"] for row in running.stop().rows} == {1, 2, 3}


def test_what_is_wrong_is_said_in_words(shared_broker: Broker, tmp_path: Path) -> None:
    def why(connection: MqttConnection) -> str:
        with pytest.raises(ConnectorError) as caught:
            probe(connection, "")
        return str(caught.value)

    [free] = free_ports(1)
    right = shared_broker.connection()
    assert "Nobody listens at" in why(right.model_copy(update={"port": free}))
    assert "is not known here" in why(right.model_copy(update={"host": "nowhere.invalid"}))
    assert "speaks no TLS" in why(right.model_copy(update={"tls": True})) or "closed" in why(
        right.model_copy(update={"tls": True})
    )
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        assert "takes the connection and does not answer. Is it an MQTT broker" in why(
            right.model_copy(update={"port": port})
        )
    with Broker(tmp_path, user="ann") as locked:
        refused = why(locked.connection(user="ann", password="wrong-secret"))
        assert "does not let the user ann in" in refused
        assert "wrong-secret" not in refused
        assert probe(locked.connection(user="ann", password="right"), "").words.startswith("Connected.")


def test_a_broker_may_take_longer_to_answer_than_it_is_told_to_wait_for_packets(
    shared_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt_session, "KEEPALIVE_S", 1)
    monkeypatch.setattr(mqtt_session, "CONNACK_S", 60.0)  # a busy machine is slow
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def refuse() -> None:
            client, _ = listening.accept()
            with client:
                client.recv(4096)
                client.settimeout(2)  # so long nothing comes from a client that waits
                with suppress(TimeoutError):
                    client.recv(1)
                client.sendall(bytes((0x20, 3, 0, 0x86, 0)))  # CONNACK: bad user name or password

        threading.Thread(target=refuse, daemon=True).start()
        connection = shared_broker.connection(version="5", user="ann", password="right")
        slow = connection.model_copy(update={"port": listening.getsockname()[1]})
        with pytest.raises(ConnectorError, match="does not let the user ann in"):
            probe(slow, "")


@pytest.mark.full
def test_a_large_row_arrives_over_a_slow_line(tmp_path: Path) -> None:
    """It takes longer than a broker may take for an answer, and does not count as one that hangs."""
    got: list[int] = []
    with Broker(tmp_path) as broker, slow_line(broker.port, 100_000) as port:
        client = broker.client(lambda _, payload: got.append(len(payload)), "out/#")
        connection = broker.connection().model_copy(update={"port": port})
        rows = [{"n": 1, "v": "x" * 3_000_000}, {"n": 2, "v": "y"}]
        taken = trial_deliverer(deliverer(connection, value="v"), rows, timeout_s=PATIENCE_S)
        wait_until(lambda: len(got) == 2, "both messages")
        client.disconnect()
    assert (got, taken.refused, taken.why) == ([3_000_000, 1], [], "")
    assert "failing" not in [status.state for status in taken.statuses]


def test_a_probe_shows_the_first_messages_and_the_topics(shared_broker: Broker) -> None:
    client = shared_broker.client()
    payload = '{"v": 1, "at": "2026-03-01T06:00:00Z", "in": {"a b": true, "none": null}}'
    client.publish("kept/a", payload, 1, retain=True).wait_for_publish(5)
    client.publish("kept/b", b"on", 1, retain=True).wait_for_publish(5)
    client.publish("kept/c", b"2.5", 1, retain=True).wait_for_publish(5)
    client.disconnect()
    probed = probe(shared_broker.connection(), "kept/#")
    shown = {row["topic"]: row["payload"] for row in probed.rows}
    assert shown == {"kept/a": payload, "kept/b": "on", "kept/c": "2.5"}
    assert [(each.path, each.type, each.holds) for each in probed.found] == [
        ("kept/a", "JSON object", None),
        ("kept/b", "text", "string"),
        ("kept/c", "number", "number"),
    ]
    assert [(each.name, each.type) for each in probed.found[0].parts] == [
        ("v", "number"),
        ("at", "timestamp"),
        ('in["a b"]', "boolean"),
    ]
    assert [each.path for each in search(shared_broker.connection(), "PT/B").found] == ["kept/b"]


def test_one_odd_message_spoils_no_others(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        client = broker.client()
        odd = {"odd/key": b'{"\\ud800": 1}', "odd/" + "x" * 6000: b"1", "odd/large": b"0" * (1 << 20) + b"1"}
        for topic, payload in {**odd, "good": b'{"v": 1}'}.items():
            client.publish(topic, payload, 1, retain=True).wait_for_publish(PATIENCE_S)
        client.disconnect()

        def is_whole() -> bool:
            probed = probe(broker.connection(), "")
            return [each.path for each in probed.found] == ["good"] and "Left out: 3" in probed.words

        wait_until(is_whole, "the good topic, and the count of the others")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_rows_are_published_each_to_its_topic(shared_broker: Broker, version: str, qos: int) -> None:
    got: list[tuple[str, bytes]] = []
    client = shared_broker.client(lambda topic, payload: got.append((topic, payload)), "out/#")
    rows = [{"n": number, "v": 0.5} for number in range(3)] + [{"n": None, "v": 1.0}]
    taken = trial_deliverer(
        deliverer(shared_broker.connection(version=version), qos=qos, id_field="id"), rows
    )
    wait_until(lambda: len(got) == 3, "three messages")
    client.disconnect()
    assert got[2] == ("out/2", b'{"n": 2, "v": 0.5, "id": 2}')
    assert [letter.reason for letter in taken.refused] == ["its n is empty, and the topic is made of it"]


def test_no_more_is_sent_than_the_broker_takes_at_once(tmp_path: Path) -> None:
    with Broker(tmp_path, None, "max_inflight_messages 2", "max_packet_size 2000") as broker:
        got: list[str] = []
        client = broker.client(lambda topic, payload: got.append(topic), "out/#")
        rows: list[dict[str, Any]] = [{"n": n, "v": ""} for n in range(50)]
        rows.append({"n": 50, "v": "x" * 2_000})
        taken = trial_deliverer(deliverer(broker.connection(), qos=2, value="v"), rows, batch_rows=60)
        wait_until(lambda: len(got) == 50, "the messages")
        client.disconnect()
    assert taken.why == ""
    assert "and the broker takes at most 2000" in taken.refused[0].reason


def test_a_receiver_knows_repeats_by_their_keys_also_after_the_broker_was_killed(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        got: list[tuple[str, bytes]] = []

        def listen() -> Client:
            client = broker.client(topic="out/#")
            client.on_message = lambda _, __, message: got.append(
                (dict(message.properties.UserProperty)["fogline-id"], message.payload)
            )
            subscribed = threading.Event()
            client.on_subscribe = lambda *_: subscribed.set()
            client.subscribe("out/#", 1)
            wait_until(subscribed.is_set, "a subscription")
            return client

        first = listen()
        sink = deliverer(broker.connection(), id_field="id")
        batch = Batch([{"n": n} for n in range(5)], [0] * 5, list(range(7, 12)), 7, 12)
        sink.open(1)
        assert sink.deliver(batch) == []
        wait_until(lambda: len(got) == 5, "the messages")
        first.disconnect()
        broker.kill()
        with pytest.raises(ConnectorError, match="was lost"):
            sink.deliver(batch)
        sink.close()
        broker.start()
        again = listen()
        sink.open(1)
        assert sink.deliver(batch) == []
        wait_until(lambda: len(got) == 10, "the messages again")
        again.disconnect()
        sink.close()
    assert got[:5] == got[5:]
    assert got[0] == ("dep.out.7", b'{"n": 0, "id": 7}')


def test_the_last_will_comes_when_the_connection_is_lost_and_not_after_a_goodbye(
    shared_broker: Broker,
) -> None:
    got: list[tuple[str, bytes]] = []
    client = shared_broker.client(lambda topic, payload: got.append((topic, payload)), "state/#")
    for epoch, loses in ((1, False), (2, True)):
        sink = deliverer(shared_broker.connection(), will_topic="state/out", will_payload=f"gone {epoch}")
        sink.open(epoch)
        if loses:
            assert sink._session is not None
            cut = sink._session.client.socket()
            assert cut is not None
            cut.shutdown(socket.SHUT_RDWR)
            wait_until(lambda: got, "the last will")
        sink.close()
    client.disconnect()
    assert got == [("state/out", b"gone 2")]


@pytest.mark.full
def test_rows_wait_while_the_broker_is_away_and_all_arrive(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        broker.stop()
        connection = broker.connection()
        late = threading.Timer(2.0, broker.start)
        late.start()
        taken = trial_deliverer(
            deliverer(connection, retain=True), [{"n": n} for n in range(20)], timeout_s=30
        )
        late.join()
        assert any("Nobody listens" in status.why for status in taken.statuses)
        assert len(probe(connection, "out/#").found) == 20
