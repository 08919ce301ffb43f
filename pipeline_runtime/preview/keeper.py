"""Stands in for a replica's gate: it answers the work of one group, and keeps everything in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from pipeline_runtime.batch.gate_messages import GroupDescription, RecordWaits, Reject, Request, SliceRead
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.trial import StatesInMemory

A = TypeVar("A")


class PreviewKeeper(StatesInMemory):
    """Implements batch.rows.Asked. Of the gate's requests it answers those that reading, elements and
    processors make."""

    def __init__(
        self, spec: GroupSpec, kafka: KafkaSettings, files: Mapping[str, str], directory: Path
    ) -> None:
        super().__init__()
        self._description = GroupDescription(
            spec.model_dump(mode="json"), asdict(kafka), dict(files), str(directory)
        )
        self.rejects: list[Reject] = []  # of the rows that were read since they were last taken
        self.rows = 0  # that were read, good or not

    def ask(self, request: Request[A]) -> A:
        keeper: Any = self
        return request.answered_by(keeper)

    def describe(self) -> GroupDescription:
        return self._description

    def slice_read(self, read: SliceRead) -> None:
        self.rejects += read.rejects
        self.rows += read.rows

    def record_waits(self, waits: RecordWaits) -> None:
        """The preview ends, and says why."""

    def take_rejects(self) -> Sequence[Reject]:
        """Returns the rejects since the last call."""
        found, self.rejects = self.rejects, []
        return found
