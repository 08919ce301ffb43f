"""A connector's process between a real broker of MQTT and a real Kafka."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from time import time
from typing import Any
from uuid import uuid4

import pytest

from pipeline_runtime.connectors.config import ConnectorConfig, Order, name_of
from pipeline_runtime.connectors.kafka_ends import StreamRows
from pipeline_runtime.connectors.polls import missed_in
from pipeline_runtime.connectors.sdk import ConnectorError, Noted, Record
from pipeline_runtime.connectors.sparkplug import parsed
from pipeline_runtime.connectors.spool import Spool
from pipeline_runtime.kafka.admin import Topic, ensure_topics, trim_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.peek import peek
from pipeline_runtime.kafka.transactions import OutgoingRecord, Transactions
from pipeline_runtime.model.connectors import ConnectorStatus
from pipeline_runtime.model.ids import position_topic
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.connected import ConnectorSink, ConnectorSource
from pipeline_runtime.operators.modbus import ModbusIn
from pipeline_runtime.operators.mqtt import MqttIn, MqttOut
from pipeline_runtime.operators.sparkplug import SparkplugOut
from tests.brokers import Broker
from tests.ports import free_ports
from tests.waiting import wait_until
from workers.node.connector_process import ConnectorProcess

pytestmark = pytest.mark.integration


class Running:
    """A process, with what it has said."""

    def __init__(self, config: ConnectorConfig) -> None:
        self.statuses: list[ConnectorStatus] = []
        self.notes: list[str] = []
        self.said_all = threading.Event()
        """The process has ended, and what it said last is here."""
        self.process = ConnectorProcess(config.model_dump_json(), self._said, self.said_all.set)
        self.process.say(Order(do="run", epoch=1).model_dump_json())

    def _said(self, status: ConnectorStatus, note: str) -> None:
        self.statuses.append(status)
        self.notes.append(note)

    @property
    def status(self) -> ConnectorStatus | None:
        return self.statuses[-1] if self.statuses else None

    def stop(self) -> None:
        self.process.say(Order(do="stop").model_dump_json())
        assert self.said_all.wait(60)
        assert self.process.code == 0
        self.process.kill()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path) as running:
        yield running


def config(
    kind: str,
    kafka: str,
    broker: Broker,
    spool: Path,
    operator: type[ConnectorSource | ConnectorSink],
    **params: Any,
) -> ConnectorConfig:
    name = uuid4().hex[:8]
    made = ConnectorConfig(
        kind=kind,
        deployment=name,
        element="e",
        topic=f"fl.{name}.e.{kind}",
        dead_letters=f"fl.{name}.e.dead",
        connector=operator.connector,
        operator=name_of(operator),
        params={"connection": "b", **params},
        connections={"connection": broker.connection().model_dump(mode="json")},
        kafka_bootstrap=kafka,
        spool=str(spool),
    )
    ensure_topics(KafkaSettings(kafka), [Topic(made.topic), Topic(made.dead_letters, "dead")])
    return made


def test_rows_come_in_and_those_that_an_earlier_process_has_left_come_first(
    kafka: str, broker: Broker, tmp_path: Path
) -> None:
    columns = [{"name": "v", "type": "number"}]
    asked = config("in", kafka, broker, tmp_path / "spool", MqttIn, topics=["a/#"], columns=columns)
    left = Spool(tmp_path / "spool", 1 << 20)
    left.append([Record(b'{"value": {"v": 0}}', 1)])
    left.close()
    running = Running(asked)
    wait_until(lambda: running.status is not None and running.status.state == "connected", "a connection")
    broker.publish("a/b", b'{"v": 1}', b"odd", b"x" * 10_000_000, b'{"v": 2}')

    def values() -> list[str]:
        return [record.value for record in peek(KafkaSettings(kafka), asked.topic, 10)]

    wait_until(lambda: len(values()) == 5, "five records")
    running.stop()
    first, second, third, fourth, fifth = values()
    assert first == '{"value": {"v": 0}}'
    assert json.loads(second) == {"topic": "a/b", "levels": ["a", "b"], "value": {"v": 1}}
    assert third == "a/b: odd"
    assert fourth.startswith("10000005 bytes are too many (at most 900000); it begins with: a/b: xxx")
    assert json.loads(fifth)["value"] == {"v": 2}
    assert not list((tmp_path / "spool").glob("*.spool"))


@pytest.mark.full  # it takes as long as a connector may wait
def test_a_process_whose_library_hangs_says_so_and_ends_with_what_it_has_taken_safe(
    kafka: str, broker: Broker, tmp_path: Path
) -> None:
    columns = [{"name": "v", "type": "number"}]
    asked = config("in", kafka, broker, tmp_path / "spool", MqttIn, topics=["a"], columns=columns)
    asked = asked.model_copy(update={"connector": "tests.hanging:HangingIngester"})
    for start in (1, 2):
        running = Running(asked)
        assert running.said_all.wait(120)
        assert running.process.code == 1
        running.process.kill()
        whys = list(dict.fromkeys(each.why for each in running.statuses if each.state == "failing"))
        assert len(whys) == 2
        assert "has waited for an answer of its system for 5 s" in whys[0]
        assert whys[1].startswith("Its connector hangs")
        # What was counted before the restart is not forgotten.
        assert running.statuses[-1].gaps_total == start
        assert len(peek(KafkaSettings(kafka), asked.topic, 10)) == start


def test_what_a_system_sends_between_two_processes_is_told_as_a_gap_if_it_keeps_nothing(
    kafka: str, broker: Broker, tmp_path: Path
) -> None:
    columns = [{"name": "v", "type": "number"}]
    asked = config("in", kafka, broker, tmp_path / "spool", MqttIn, topics=["a/#"], columns=columns, qos=0)
    first = Running(asked)
    wait_until(lambda: first.status is not None and first.status.state == "connected", "a connection")
    broker.publish("a/b", b'{"v": 1}')
    wait_until(lambda: first.status is not None and first.status.rows_total == 1, "a row")
    first.stop()
    assert first.status is not None
    assert first.status.gaps_total == 0
    # The next row comes at once, as the broker keeps it for whoever subscribes.
    broker.publish("a/b", b'{"v": 2}', retain=True)
    again = Running(asked)
    wait_until(lambda: len(peek(KafkaSettings(kafka), asked.topic, 10)) == 2, "the row")
    wait_until(lambda: again.status is not None and again.status.gaps_total == 1, "the gap")
    again.stop()


def test_rows_that_come_while_kafka_is_away_from_the_start_are_on_the_disk_at_once(
    kafka: str, broker: Broker, tmp_path: Path
) -> None:
    columns = [{"name": "v", "type": "number"}]
    asked = config("in", kafka, broker, tmp_path / "spool", MqttIn, topics=["a/#"], columns=columns, qos=0)
    [nobody] = free_ports(1)
    first = Running(asked.model_copy(update={"kafka_bootstrap": f"127.0.0.1:{nobody}"}))
    wait_until(lambda: first.status is not None and first.status.state == "connected", "a connection")
    broker.publish("a/b", b'{"v": 1}', b'{"v": 2}')
    wait_until(lambda: first.status is not None and first.status.rows_total == 2, "rows on the disk")
    first.process.kill()
    assert (tmp_path / "begun.json").exists()
    again = Running(asked)

    def values() -> list[Any]:
        return [json.loads(each.value)["value"]["v"] for each in peek(KafkaSettings(kafka), asked.topic, 10)]

    wait_until(lambda: values() == [1, 2], "the rows of the first process")
    # The element is new, so nothing was lost before the first process.
    wait_until(lambda: again.status is not None and again.status.gaps_total == 1, "the gap between the two")
    again.stop()
    assert not (tmp_path / "begun.json").exists()


def test_polls_between_two_processes_are_counted(kafka: str, broker: Broker, tmp_path: Path) -> None:
    registers = [{"name": "speed", "address": 0, "type": "uint16"}]
    asked = config("in", kafka, broker, tmp_path / "spool", ModbusIn, registers=registers, every_ms=200)
    asked = asked.model_copy(update={"connections": {"connection": {"host": "simulated-pump"}}})

    def seen(running: Running, rows: int) -> bool:
        return running.status is not None and running.status.rows_total >= rows

    first = Running(asked)
    wait_until(lambda: seen(first, 3), "rows")
    first.process.kill()
    again_ms = time() * 1000
    again = Running(asked)
    wait_until(lambda: seen(again, 3), "rows of the next process")
    again.stop()
    times_ms = [row.timestamp_ms for row in peek(KafkaSettings(kafka), asked.topic, 1000)]
    last_ms = max(each for each in times_ms if each < again_ms)
    answered_ms = next(each.since_ms for each in again.statuses if each.state == "connected")
    # A slow machine misses polls within a process, too. They are other gaps.
    [note] = [each for each in again.notes if each.startswith("The element has begun again.")]
    missed = missed_in((answered_ms - last_ms) / 1000, 0.2)
    assert missed >= 1
    assert note.endswith(f"({missed} rows)")


def test_rows_go_out_each_once_over_a_restart_and_odd_ones_are_dead_letters(
    kafka: str, broker: Broker, tmp_path: Path
) -> None:
    asked = config("out", kafka, broker, tmp_path / "spool", MqttOut, topic="out/{n}")
    got: list[tuple[str, bytes]] = []
    client = broker.client(lambda topic, payload: got.append((topic, payload)), "out/#")
    transactions = Transactions(KafkaSettings(kafka), f"{asked.topic}.1")
    transactions.initialise()

    def write(*rows: dict[str, Any]) -> None:
        transactions.commit([OutgoingRecord(asked.topic, json.dumps(row).encode()) for row in rows])

    write({"n": 1}, {"n": None}, {"n": 2})
    running = Running(asked)
    wait_until(lambda: len(got) == 2, "two messages")
    wait_until(lambda: running.status is not None and running.status.rows_total == 2, "the count")
    running.stop()
    write({"n": 3})
    again = Running(asked)
    wait_until(lambda: len(got) == 3, "the third message")
    again.stop()
    transactions.close()
    client.disconnect()
    assert [topic for topic, _ in got] == ["out/1", "out/2", "out/3"]
    [letter] = [json.loads(each.value) for each in peek(KafkaSettings(kafka), asked.dead_letters, 10)]
    assert (letter["raw"], letter["element"]) == ('{"n": null}', "e")
    assert "its n is empty" in letter["reason"]


def test_the_connections_of_an_edge_node_are_numbered_over_a_restart(
    kafka: str, broker: Broker, tmp_path: Path
) -> None:
    asked = config("out", kafka, broker, tmp_path / "spool", SparkplugOut, group="plant", node="n")
    rows = StreamSchema(fields=(Field(name="n", type=FieldType.INTEGER),))
    asked = asked.model_copy(update={"rows": rows})
    ensure_topics(KafkaSettings(kafka), [Topic(position_topic(asked.deployment, "e"), "position")])
    heard: list[Any] = []
    client = broker.client(
        lambda topic, payload: heard.append((topic.split("/")[2], parsed(payload))), "spBv1.0/plant/+/n"
    )
    for number in range(2):
        running = Running(asked)
        wait_until(lambda: [kind for kind, _ in heard][-1:] == ["NBIRTH"], "a birth")
        running.stop()
        wait_until(lambda: [kind for kind, _ in heard][-1:] == ["NDEATH"], "a death")
        numbers = [
            each.long_value for _, payload in heard[-2:] for each in payload.metrics if each.name == "bdSeq"
        ]
        assert numbers == [number, number]
    client.disconnect()


def test_rows_that_kafka_deletes_before_a_deliverer_are_counted_and_the_others_are_read(kafka: str) -> None:
    settings, topic = KafkaSettings(kafka), f"fl.{uuid4().hex[:8]}.e.out"
    ensure_topics(settings, [Topic(topic)])
    transactions = Transactions(settings, topic)
    transactions.initialise()
    transactions.commit([OutgoingRecord(topic, json.dumps({"n": n}).encode()) for n in range(3)])
    transactions.close()
    rows = StreamRows(settings, topic, f"{topic}.dead", "e")
    rows.begin(None)
    trim_topics(settings, {(topic, 0): 2})

    def refused() -> str:
        try:
            assert rows.next(10) is None
        except ConnectorError as error:
            return str(error)
        return ""

    assert "has deleted rows" in wait_until(refused, "the deleted rows to be noticed")
    rows.begin(None)
    assert [count for _, count in rows.gaps] == [2]
    batch = wait_until(lambda: rows.next(10), "the row that is left")
    assert (batch.first, batch.rows) == (2, [{"n": 2}])
    rows.close()


def test_a_change_of_a_note_is_seen_by_the_next_one_and_shuts_out_one_that_had_begun(kafka: str) -> None:
    settings, topic = KafkaSettings(kafka), f"fl.{uuid4().hex[:8]}.e.out"
    notes = topic.replace(".out", ".position")
    ensure_topics(settings, [Topic(topic), Topic(notes, "position")])
    rows = [StreamRows(settings, topic, f"{topic}.dead", "e", notes) for _ in range(2)]

    def raised(noted: Noted) -> Noted:
        return Noted(mark={"n": str(int(noted.mark.get("n", 0)) + 1)})

    def stands_still(noted: Noted) -> Noted:
        rows[1].change(raised)
        return raised(noted)

    rows[0].change(raised)
    with pytest.raises(ConnectorError, match="Another process of this element has begun"):
        rows[0].change(stands_still)
    assert rows[0].noted() == Noted(mark={"n": "2"})
    rows[0].change(raised)
    assert rows[1].noted() == Noted(mark={"n": "3"})
    for each in rows:
        each.close()


def test_how_far_rows_were_delivered_is_noted_beside_the_system_that_keeps_it(kafka: str) -> None:
    settings, topic = KafkaSettings(kafka), f"fl.{uuid4().hex[:8]}.e.out"
    notes = topic.replace(".out", ".position")
    ensure_topics(settings, [Topic(topic), Topic(notes, "position")])
    rows = StreamRows(settings, topic, f"{topic}.dead", "e", notes)
    assert rows.noted() == Noted()
    rows.note(Noted(2, {"topic": "a"}))
    rows.note(Noted(5, {"topic": "b"}))
    rows.close()
    again = StreamRows(settings, topic, f"{topic}.dead", "e", notes)
    # The stream is empty: it was made again.
    assert again.noted() == Noted(5, {"topic": "b"}, is_past=True)
    again.note(Noted(0, {"topic": "c"}))
    again.close()
    assert again.noted() == Noted(0, {"topic": "c"})
    assert StreamRows(settings, topic, f"{topic}.dead", "e", f"{topic}.gone").noted() is None
    assert StreamRows(settings, topic, f"{topic}.dead", "e").noted() == Noted()
