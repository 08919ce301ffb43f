"""Finds out whether a journal that begins at an offset still tells which epoch owns."""

from __future__ import annotations

from pipeline_runtime.journal.reader import read_once
from pipeline_runtime.journal.records import Claim, Commit, Release
from pipeline_runtime.kafka.clients import KafkaSettings


def grants_from(kafka: KafkaSettings, topic: str, offset: int) -> bool:
    """Returns whether a COMMIT, CLAIM or RELEASE stands at `offset` or later. Each of them tells the highest
    epoch.

    Raises Doubtful when the broker does not answer.
    """
    return any(isinstance(record, Commit | Claim | Release) for record in read_once(kafka, topic, offset))
