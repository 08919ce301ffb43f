"""Records and their position in one transaction of a real Kafka, by processes that shut each other out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from pipeline_runtime.connectors import once
from pipeline_runtime.connectors.config import ConnectorConfig
from pipeline_runtime.connectors.once import KeptIntake
from pipeline_runtime.connectors.report import Report
from pipeline_runtime.connectors.sdk import ConnectorError, Record
from pipeline_runtime.journal.records import Claim, encode
from pipeline_runtime.kafka.admin import Topic, delete_topics, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.peek import peek
from pipeline_runtime.kafka.transactions import OutgoingRecord, Transactions
from pipeline_runtime.model.ids import Epoch, journal_topic, position_key, position_topic
from tests.groups import group_has_read

pytestmark = pytest.mark.integration

Make = Callable[..., KeptIntake]


@pytest.fixture
def config(kafka: str) -> ConnectorConfig:
    deployment = uuid4().hex[:8]
    made = ConnectorConfig(
        kind="in",
        deployment=deployment,
        element="e",
        topic=f"fl.{deployment}.e.intake",
        group=f"{deployment}.g",
        kafka_bootstrap=kafka,
        spool="/nowhere",
    )
    topics = [Topic(made.topic), Topic(position_topic(deployment, "e"), "position")]
    ensure_topics(KafkaSettings(kafka), [*topics, Topic(journal_topic(deployment, "g"), "journal")])
    return made


@pytest.fixture
def make(kafka: str, config: ConnectorConfig) -> Iterator[Make]:
    made: list[KeptIntake] = []

    def begun(epoch: int, group: str = "") -> KeptIntake:
        given = config.model_copy(update={"group": group}) if group else config
        report = Report("e", lambda *_: None)
        made.append(KeptIntake(KafkaSettings(kafka), given, epoch, report))
        made[-1].begin()
        return made[-1]

    yield begun
    for each in made:
        each.close()


def _die() -> None:
    raise InterruptedError


def records(*texts: str) -> list[Record]:
    return [Record(text.encode()) for text in texts]


def test_a_later_owner_goes_on_and_an_earlier_one_neither_writes_nor_begins(
    kafka: str, config: ConnectorConfig, make: Make
) -> None:
    first = make(1)
    assert first.position is None
    assert first.commit(records("a", "b"), {"at": 2})
    dying = make(1)
    assert dying._transactions is not None
    with pytest.raises(InterruptedError):  # its records are written, and not committed
        dying._transactions.commit([OutgoingRecord(config.topic, b"lost")], written=_die)
    second = make(2)
    assert second.position == {"at": 2}
    with pytest.raises(ConnectorError, match="Another process of this element has begun"):
        first.commit(records("twice"), {"at": 3})
    with pytest.raises(ConnectorError, match="A later owner") as caught:
        first.begin()
    assert caught.value.lasting
    group_has_read(kafka, config.group, config.topic, 5)
    assert second.commit(records("c"), {"at": 3})
    assert [each.value for each in peek(KafkaSettings(kafka), config.topic, 10)] == ["a", "b", "c"]
    # An element that another group took over counts its owners from the start.
    other = f"{config.deployment}.other"
    ensure_topics(KafkaSettings(kafka), [Topic(journal_topic(config.deployment, "other"), "journal")])
    assert make(1, other).position == {"at": 3}


def test_a_group_that_began_anew_where_the_former_one_stopped_has_read_what_that_one_read(
    kafka: str, config: ConnectorConfig, make: Make
) -> None:
    first = make(1)
    assert first.commit(records("a", "b"), 2)
    journal = journal_topic(config.deployment, "other")
    ensure_topics(KafkaSettings(kafka), [Topic(journal, "journal")])
    claim = Claim(Epoch(1), "order", "node", start={position_key(config.topic, 0): 3})
    transactions = Transactions(KafkaSettings(kafka), f"{journal}.test")
    transactions.initialise()
    transactions.commit([OutgoingRecord(journal, encode(claim))])
    transactions.close()
    assert make(1, f"{config.deployment}.other").commit(records("c"), 3)


def test_a_position_that_is_lost_is_told_and_not_taken_for_that_of_a_new_element(
    kafka: str, config: ConnectorConfig, make: Make
) -> None:
    first = make(1)
    assert first.commit(records("a"), 1)
    first.close()
    positions = position_topic(config.deployment, "e")
    delete_topics(KafkaSettings(kafka), [positions])
    with pytest.raises(ConnectorError, match=r"is lost: the topic .* is not there") as gone:
        make(2)
    assert gone.value.lasting
    ensure_topics(KafkaSettings(kafka), [Topic(positions, "position")])
    with pytest.raises(ConnectorError, match="is empty, and rows have come in") as emptied:
        make(2)
    assert emptied.value.lasting


def test_nothing_more_is_taken_while_the_group_has_not_read_enough(
    kafka: str, config: ConnectorConfig, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("LOOK_S", 0.0), ("UNREAD_BYTES_MAX", 400), ("MARK_BYTES", 1)):
        monkeypatch.setattr(once, name, value)
    intake = make(1)
    # Each takes 221 bytes.
    assert intake.commit(records("a"), 1)  # at 0, and the marker at 1
    assert intake.commit(records("b"), 2)  # at 2, and the marker at 3
    assert not intake.commit(records("c"), 3)
    assert intake.position == 2
    group_has_read(kafka, config.group, config.topic, 1)
    assert intake.commit(records("c"), 3)
    assert not intake.commit(records("d"), 4)
    # The next process does not know how much is left, so it waits for all of it.
    after = make(2)
    assert not after.commit(records("d"), 4)
    group_has_read(kafka, config.group, config.topic, 5)
    assert after.commit(records("d"), 4)
    assert [each.value for each in peek(KafkaSettings(kafka), config.topic, 10)] == ["a", "b", "c", "d"]
