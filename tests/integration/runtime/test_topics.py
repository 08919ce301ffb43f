"""A user's topic is deleted, created again, extended or trimmed while a group reads it: nothing goes on
silently with other records than those that come next."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from time import time
from typing import Any

import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewPartitions, NewTopic

from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.topics import TopicLook
from pipeline_runtime.model.desired import Role
from pipeline_runtime.model.ids import stream_topic
from pipeline_runtime.replica.host import ReplicaHost
from pipeline_runtime.replica.replica import Replica
from tests.chosen import chosen
from tests.directing import tell
from tests.handover.plain_engine import PlainEngine
from tests.integration.runtime.engine import (
    STOP_S,
    Deployed,
    Node,
    create_topic,
    end_clients,
    owning,
    produce,
    read_all,
    values,
    wait_for_status,
)
from tests.unit.batch.test_outside_cases import COLUMNS, REFUSED, ROW, ROWS
from tests.waiting import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def host(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplicaHost]:
    """A node that runs its batches without Spark: all of this lies before them."""
    directory = tmp_path_factory.mktemp("plain")
    host = ReplicaHost(
        "a", directory, KafkaSettings(kafka), lambda: None, {}.__getitem__, engine=PlainEngine()
    )
    host.start()
    yield host
    host.close()


@pytest.fixture
def node(host: ReplicaHost, tmp_path: Path) -> Iterator[Node]:
    node = Node(host, tmp_path / "a", {})
    yield node
    node.stop_all()


@pytest.fixture
def admin(kafka: str) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=kafka)
    yield client
    client.close()


class Fed:
    """A topic of numbers, and what a pipeline has read of them."""

    def __init__(
        self, kafka: str, *, keeps_state: bool = False, partitions_of_topic: int = 1, **params: Any
    ) -> None:
        self.kafka, self.topic = kafka, create_topic(kafka, partitions_of_topic)
        columns = [{"name": "n", "type": "integer"}]
        source = {"id": "plant", "type": "kafka-in", "params": {"topic": self.topic, "columns": columns}}
        source["params"] |= params  # type: ignore[index]
        once = {"id": "once", "type": "deduplicate", "inputs": {"in": "plant"}}
        self.last = "once" if keeps_state else "plant"
        members = [source, once] if keeps_state else [source]
        self.deployed = Deployed(kafka, members, {"all": [str(each["id"]) for each in members]})
        self.spec = self.deployed.specs["all"]

    def fill(self, *numbers: int, partition: int = 0) -> None:
        produce(self.kafka, self.topic, [{"n": n} for n in numbers], partition=lambda _: partition)

    def run(self, node: Node, over: int = 0) -> Replica:
        replica = node.own(self.spec, over=over)
        owning(replica)
        return replica

    def read(self) -> list[int]:
        return [row["n"] for row in self.deployed.records(self.last)]

    def wait_for(self, *numbers: int) -> None:
        wait_until(lambda: self.read() == list(numbers), lambda: f"{numbers} to be read: {self.read()}")


def delete(admin: KafkaAdminClient, kafka: str, topic: str) -> None:
    end_clients()  # a producer that knows the topic would go on with its place in it
    admin.delete_topics([topic])
    wait_until(lambda: TopicLook(KafkaSettings(kafka)).ask([topic])[topic] is None, "it to be deleted")


def create(admin: KafkaAdminClient, topic: str, partitions: int = 1) -> None:
    admin.create_topics([NewTopic(topic, partitions, 1)])
    admin.wait_for_topics([topic])


def stands(replica: Replica, code: str) -> Any:
    """Waits until the group stands for that reason, and returns what it says."""
    status = wait_for_status(
        replica, lambda status: status.error is not None and status.error.code == code, f"to stand: {code}"
    )
    return status.error


def test_a_topic_that_was_created_again_is_not_read_on_until_a_person_says_so(
    kafka: str, node: Node, admin: KafkaAdminClient
) -> None:
    fed = Fed(kafka)
    fed.fill(0, 1)
    replica = fed.run(node)
    fed.wait_for(0, 1)
    delete(admin, kafka, fed.topic)
    stands(replica, "topic-missing")
    create(admin, fed.topic)
    fed.fill(10, 11, 12, 13)
    error = stands(replica, "topic-recreated")
    [way] = error.ways
    assert way.title == "From the new beginning"
    assert "4 records wait" in way.cost
    assert fed.read() == [0, 1], "nothing of the new topic is taken for the old one's"
    tell(replica, accepts=(way.id,))
    fed.wait_for(0, 1, 10, 11, 12, 13)
    wait_for_status(replica, lambda status: status.error is None and status.role is Role.OWNER, "to go on")
    fed.fill(14)
    fed.wait_for(0, 1, 10, 11, 12, 13, 14)
    fed.deployed.assert_journal_lawful("all")


def test_partitions_that_a_topic_gets_later_are_read_from_their_first_record(
    kafka: str, node: Node, admin: KafkaAdminClient
) -> None:
    fed = Fed(kafka)
    fed.fill(0)
    replica = fed.run(node)
    fed.wait_for(0)
    admin.create_partitions({fed.topic: NewPartitions(2)})
    end_clients()
    fed.fill(1, partition=1)
    fed.wait_for(0, 1)
    fed.fill(2)
    fed.wait_for(0, 1, 2)
    assert any("has 2 partitions" in note.message for note in replica.status().notes)


def test_an_element_that_was_told_a_number_of_partitions_asks_before_it_reads_more(
    kafka: str, node: Node, admin: KafkaAdminClient
) -> None:
    fed = Fed(kafka, partitions=1)
    fed.fill(0)
    replica = fed.run(node)
    fed.wait_for(0)
    admin.create_partitions({fed.topic: NewPartitions(2)})
    error = stands(replica, "topic-partitions-differ")
    assert "partitions" in error.message
    end_clients()
    fed.fill(1, partition=1)
    # What that costs is counted again while it stands.
    wait_for_status(replica, lambda status: "1 record waits" in status.error.ways[0].cost, "to count it")
    [way] = stands(replica, "topic-partitions-differ").ways
    assert way.title == "With the new partitions"
    tell(replica, accepts=(way.id,))
    fed.wait_for(0, 1)


def test_rows_that_were_deleted_before_they_were_read_are_passed_with_a_count(
    kafka: str, node: Node, admin: KafkaAdminClient
) -> None:
    fed = Fed(kafka)
    fed.fill(0, 1)
    replica = fed.run(node)
    fed.wait_for(0, 1)
    replica.stop(STOP_S)
    fed.fill(2, 3, 4)
    admin.delete_records({TopicPartition(fed.topic, 0): 4})
    again = fed.run(node, over=1)
    fed.wait_for(0, 1, 4)
    status = again.status()
    assert status.left_out_total == 2
    assert any("At most 2 records are left out" in note.message for note in status.notes)
    assert status.error is None


def test_an_element_that_stops_at_a_gap_goes_on_behind_it_when_a_person_says_so(
    kafka: str, node: Node, admin: KafkaAdminClient
) -> None:
    fed = Fed(kafka, gap="stop")
    fed.fill(0)
    replica = fed.run(node)
    fed.wait_for(0)
    replica.stop(STOP_S)
    fed.fill(1, 2, 3)
    admin.delete_records({TopicPartition(fed.topic, 0): 2})
    again = node.own(fed.spec, over=1)
    error = stands(again, "rows-gone")
    [way] = error.ways
    assert way.title == "Behind the gap"
    assert "1 record" in way.cost
    tell(again, accepts=(way.id,))
    fed.wait_for(0, 2, 3)


def test_a_record_that_kafka_refuses_is_a_dead_letter_and_the_rows_around_it_go_on(
    kafka: str, node: Node
) -> None:
    source, target = create_topic(kafka), create_topic(kafka)
    columns = [{"name": "n", "type": "integer"}, {"name": "picture"}]
    deployed = Deployed(
        kafka,
        [
            {
                "id": "plant",
                "type": "kafka-in",
                "params": {"topic": source, "columns": columns, "time": {"from": "at", "format": "ms"}},
            },
            {"id": "out", "type": "kafka-out", "params": {"topic": target}, "inputs": {"in": "plant"}},
        ],
        {"all": ["plant", "out"]},
    )
    replica = node.own(deployed.specs["all"])
    owning(replica)
    now_ms = int(time() * 1000)
    too_large = {"n": 1, "picture": "x" * 5 * 1024 * 1024, "at": now_ms}
    too_soon = {"n": 3, "picture": "s", "at": now_ms + 2 * 3_600_000}  # a broker takes an hour by default
    rows = [{"n": n, "picture": "s", "at": now_ms} for n in (0, 2, 4)]
    big = KafkaProducer(bootstrap_servers=kafka, max_request_size=8 * 1024 * 1024)
    for row in (rows[0], too_large, rows[1], too_soon, rows[2]):
        big.send(source, json.dumps(row).encode())
    big.close()
    wait_until(lambda: [row["n"] for row in values(kafka, target)] == [0, 2, 4], "the rows around them")
    reasons = [letter["reason"] for letter in deployed.dead_letters("out")]
    assert ["4,194,304" in reason for reason in reasons] == [True, False]
    assert "60 minutes ahead" in reasons[1]
    [note] = replica.status().notes
    assert "120 minutes after its arrival" in note.message or "2.0 hours after" in note.message
    assert replica.status().error is None


GONE = [(keeps, how) for keeps in (False, True) for how in ("created again", "trimmed", "deleted")]


@pytest.mark.parametrize("case", chosen(GONE, [(False, "created again"), (True, "trimmed")]))
def test_a_follower_takes_nothing_for_committed_rows_that_are_gone(
    kafka: str,
    host: ReplicaHost,
    node: Node,
    admin: KafkaAdminClient,
    tmp_path: Path,
    case: tuple[bool, str],
) -> None:
    keeps_state, happens = case
    fed = Fed(kafka, keeps_state=keeps_state)
    fed.fill(0, 1, 2)
    owner = fed.run(node)
    fed.wait_for(0, 1, 2)
    last = owner.status().seq
    owner.stop(STOP_S)
    if happens == "trimmed":
        fed.fill(3)
        admin.delete_records({TopicPartition(fed.topic, 0): 3})
    else:
        delete(admin, kafka, fed.topic)
        if happens == "created again":
            create(admin, fed.topic)
            fed.fill(10, 11, 12, 13)
    other = Node(host, tmp_path / "b", {})
    follower = other.start(fed.spec)
    if keeps_state:
        error = stands(follower, "state-outdated")
        assert error.damaged, "a newer checkpoint takes its place"
        assert (f"{fed.topic} does not exist any more" in error.message) is (happens == "deleted")
        assert follower.status().seq < last
    else:
        wait_for_status(follower, lambda status: status.seq == last, "to follow without the rows")
        assert follower.status().rows_processed_total == 0
    other.stop_all()
    if happens == "deleted":
        create(admin, fed.topic)  # which ends the task that still waits for its rows


@pytest.mark.full
def test_a_topic_may_come_back_with_fewer_partitions(kafka: str, node: Node, admin: KafkaAdminClient) -> None:
    """Also while nobody reads it."""
    fed = Fed(kafka, partitions_of_topic=3)
    for partition in range(3):
        fed.fill(partition, partition=partition)
    replica = fed.run(node)
    wait_until(lambda: sorted(fed.read()) == [0, 1, 2], "the first rows")
    replica.stop(STOP_S)
    delete(admin, kafka, fed.topic)
    create(admin, fed.topic)
    fed.fill(10, 11)
    again = node.own(fed.spec, over=1)
    error = stands(again, "topic-recreated")
    assert "2 records wait" in error.ways[0].cost
    tell(again, accepts=(error.ways[0].id,))
    wait_until(lambda: sorted(fed.read()) == [0, 1, 2, 10, 11], lambda: f"the new rows: {fed.read()}")
    admin.create_partitions({fed.topic: NewPartitions(2)})
    end_clients()
    fed.fill(12, partition=1)
    wait_until(lambda: sorted(fed.read()) == [0, 1, 2, 10, 11, 12], lambda: f"its partition: {fed.read()}")
    assert again.status().error is None
    fed.deployed.assert_journal_lawful("all")


def test_what_is_no_row_stops_nothing_whatever_it_is(kafka: str, node: Node) -> None:
    """The cases of tests/unit/batch, through a broker, with records of no key, no timestamp, and of aborted
    transactions between them."""
    rows = {name: value for name, (value, _) in ROWS.items() if len(value) < 900_000}
    topic = create_topic(kafka)
    source = {"id": "plant", "type": "kafka-in", "params": {"topic": topic, "columns": COLUMNS}}
    deployed = Deployed(kafka, [source], {"all": ["plant"]})
    sender = KafkaProducer(bootstrap_servers=kafka, transactional_id=f"outside-{topic}")
    sender.init_transactions()
    for number, (value, _) in enumerate([*REFUSED.values(), *((value, "") for value in rows.values())]):
        sender.begin_transaction()
        sender.send(topic, b'{"n":666}', timestamp_ms=-1)
        sender.abort_transaction()
        sender.begin_transaction()
        sender.send(topic, value, key=None if number % 2 and value else b"\xff", timestamp_ms=-1)
        sender.commit_transaction()
    sender.close()
    began_ms = int(time() * 1000)
    replica = node.own(deployed.specs["all"])
    wait_until(
        lambda: len(deployed.records("plant")) == len(rows),
        lambda: f"{len(rows)} rows: {len(deployed.records('plant'))} {replica.status().error}",
    )
    expected = [ROW | ROWS[name][1] for name in rows]
    assert deployed.records("plant") == expected
    reasons = [letter["reason"] for letter in deployed.dead_letters("plant")]
    assert len(reasons) == len(REFUSED)
    for reason, (_, said) in zip(reasons, REFUSED.values(), strict=True):
        assert said in reason
    assert replica.status().error is None
    times_ms = [record.timestamp for record in read_all(kafka, stream_topic(deployed.id, "plant"))]
    assert min(times_ms) >= began_ms, "a record without a timestamp has the time of its arrival"
