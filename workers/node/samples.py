"""Reads some records from an outside system, for the preview of an element that is not deployed.

The connector runs for a moment in a fork of its own, as a test of its connection does: beside the element
that may run already, without Kafka, and under another name for its system.
"""

from __future__ import annotations

import hashlib
import json
import logging
import subprocess
import threading
from collections.abc import Iterable
from time import monotonic
from typing import Any

from pydantic import ValidationError

from pipeline_runtime.connectors.config import ConnectorConfig, name_of
from pipeline_runtime.model.connectors import SAMPLE_S, SampleAnswer
from pipeline_runtime.model.preview import PreviewAnswer, PreviewQuestion
from pipeline_runtime.model.spec import ElementSpec, GroupSpec
from pipeline_runtime.operators.connected import ConnectorSource
from pipeline_runtime.operators.registry import OperatorUnknown, default_registry
from workers.node.asked_processes import AskedProcesses
from workers.node.sealed_fields import SealedFields

log = logging.getLogger(__name__)

KEPT_S = 15.0
"""What was read is used for so long, so that a draft that changes does not ask its machine each time."""
WAIT_S = SAMPLE_S + 1.0
"""How long a preview waits for it. A small node takes longer, and goes on."""
_END_S = 30.0
_AT_ONCE = threading.BoundedSemaphore(4)
"""Each takes a process of some 50 MiB; the others wait."""

Arrived = dict[str, list[list[Any]]]
"""Stream ("element.port") -> its records, as kafka.ahead.pack gives them."""


class _Reading:
    """A connector that reads for a moment, and what it has read."""

    def __init__(self, config: ConnectorConfig, processes: AskedProcesses) -> None:
        self._processes = processes
        self._done = threading.Event()
        self._answer = SampleAnswer()
        self._until_s: float | None = None
        threading.Thread(target=self._run, args=(config,), name="sample of a connector", daemon=True).start()

    @property
    def is_old(self) -> bool:
        return self._until_s is not None and self._until_s <= monotonic()

    def answer(self, wait_s: float) -> SampleAnswer | None:
        """Returns it, or None if it is not there within that time."""
        return self._answer if self._done.wait(wait_s) else None

    def _run(self, config: ConnectorConfig) -> None:
        with _AT_ONCE:
            self._answer = _read_by(config, self._processes)
        self._until_s = monotonic() + KEPT_S
        self._done.set()


class Samples:
    """For one thread."""

    def __init__(self, cluster_key: str, processes: AskedProcesses) -> None:
        self._sealed = SealedFields(cluster_key)
        self._processes = processes
        self._readings: dict[str, _Reading] = {}

    def arrived(self, question: PreviewQuestion) -> Arrived | PreviewAnswer:
        """Returns what has come to the connectors of the question, or why it has not."""
        self._sealed.keep(question.connections)
        self._readings = {key: each for key, each in self._readings.items() if not each.is_old}
        found: Arrived = {}
        sources = list(_sources(question))
        for spec, operator in sources:
            if operator.no_preview:
                return PreviewAnswer(refused="unread", at=spec.elements[0].id, why=operator.no_preview)
        if not sources:
            self._processes.get_ready()  # who draws may come to a connector next
        until_s = monotonic() + WAIT_S
        # All of them begin before the first is waited for.
        readings = [self._reading(spec.elements[0], operator, question) for spec, operator in sources]
        for (spec, _), reading in zip(sources, readings, strict=True):
            answer = reading.answer(max(0.0, until_s - monotonic()))
            if answer is None:
                return PreviewAnswer(refused="reading", at=spec.elements[0].id)
            if answer.why and not answer.records:
                return PreviewAnswer(refused="unreachable", at=spec.elements[0].id, why=answer.why)
            found[spec.inputs[0].source] = [
                [offset, time_ms, key, value, []]
                for offset, (time_ms, key, value) in enumerate(answer.records)
            ]
        return found

    def _reading(
        self, element: ElementSpec, operator: type[ConnectorSource], question: PreviewQuestion
    ) -> _Reading:
        by_name = {each.name: each for each in question.connections}
        fields, missing = self._sealed.fields(element, operator.given(), by_name)
        # A digest: the fields hold secrets.
        asked = json.dumps([element.type, element.params, fields, missing], sort_keys=True)
        key = hashlib.sha256(asked.encode()).hexdigest()
        if key not in self._readings:
            config = ConnectorConfig(
                kind="in",
                deployment=f"preview-{question.id[:8]}",
                element=element.id,
                topic="",
                connector=operator.connector,
                operator=name_of(operator),
                params=element.params,
                connections=fields,
                missing=missing,
                kafka_bootstrap="",
                spool="",
            )
            self._readings[key] = _Reading(config, self._processes)
        return self._readings[key]


def _sources(question: PreviewQuestion) -> Iterable[tuple[GroupSpec, type[ConnectorSource]]]:
    """Yields the groups of the elements whose connectors are to read, each with its operator."""
    for spec in question.groups:
        try:
            operator = default_registry().get(spec.elements[0].type)
        except OperatorUnknown:
            continue
        is_given = any(each.source in question.given for each in spec.inputs)
        if issubclass(operator, ConnectorSource) and spec.inputs and not is_given:
            yield spec, operator


def _read_by(config: ConnectorConfig, processes: AskedProcesses) -> SampleAnswer:
    try:
        return SampleAnswer.model_validate_json(
            processes.answer("sample", config.model_dump(mode="json"), _END_S)
        )
    except subprocess.TimeoutExpired:
        return SampleAnswer(why=f"it did not answer within {_END_S:.0f} s.")
    except ValidationError:
        log.error("a sample could not be read")
        return SampleAnswer(why="the connector has ended without an answer.")
