"""Stands in for a group that reads what an ingester writes."""

from __future__ import annotations

from pipeline_runtime.journal.records import Boundary, Commit, encode
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.transactions import OutgoingRecord, Transactions
from pipeline_runtime.model.ids import Epoch, Seq, journal_topic, position_key


def group_has_read(kafka: str, group: str, topic: str, up_to: int) -> None:
    """Writes into the group's journal that it has read the topic before this offset. `group`: its id,
    deployment.group."""
    journal = journal_topic(*group.split("."))
    boundary = Boundary(Seq(1), {position_key(topic, 0): up_to}, 0)
    transactions = Transactions(KafkaSettings(kafka), f"{journal}.test")
    transactions.initialise()
    transactions.commit([OutgoingRecord(journal, encode(Commit(Epoch(1), boundary)))])
    transactions.close()
