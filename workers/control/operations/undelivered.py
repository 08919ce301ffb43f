"""Counts the rows that wait at elements which deliver to systems outside, and stores the counts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from functools import partial

from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.delivered import undelivered
from webapp.operations.models import Operation
from webapp.pipelines.shape import names_of
from webapp.placements.delivered import DeliveredStream, delivered_streams, failing_connectors
from workers.control.context import now_ms
from workers.control.operations.model import Answer, Undelivered


def streams(
    operation: Operation, only: Collection[str] | None = None, staying: Collection[str] = ()
) -> tuple[DeliveredStream, ...]:
    """Returns those of all groups, or of the groups in `only`, without those of elements that stay."""
    former = names_of(operation.replaces.document) if operation.replaces else {}
    return tuple(
        each
        for each in delivered_streams(operation.deployment, former)
        if (only is None or each.group in only) and each.element not in staying
    )


def counted(operation: Operation, found: Sequence[DeliveredStream], kafka: KafkaSettings) -> Answer:
    """Asks Kafka. One stream of which it says nothing hides nothing of the others."""
    whys = failing_connectors(operation.deployment)
    before = {each.element: each.why for each in stored(operation, found)}
    result, away = [], ""
    for each in found:
        told = partial(Undelivered, each.element, each.title, each.group, topic=each.topic)
        # A connector that has ended says nothing any more.
        why = whys.get(each.element, before.get(each.element, ""))
        try:
            rows = undelivered(kafka, each.topic)
        except Exception as error:  # any error of the Kafka client
            away = f"Kafka at {kafka.bootstrap} does not answer ({type(error).__name__})"
            result.append(told(None, why=why))
        else:
            result.append(told(rows.rows, rows.at, rows.estimated, why if rows.rows else ""))
    return Answer(now_ms(), away=away, undelivered=tuple(result))


def stored(operation: Operation, found: Sequence[DeliveredStream]) -> tuple[Undelivered, ...]:
    """Returns what was counted last of these streams."""
    elements = {each.element for each in found}
    return tuple(Undelivered(**each) for each in operation.undelivered if each["element"] in elements)


def topics_kept(operation: Operation) -> set[str]:
    """Returns the streams of which Kafka did not say what was not delivered, also to an upgrade before: they
    may hold the only copy."""
    before = operation.deployment.operations.filter(status=Operation.Status.DONE)
    return {each["topic"] for one in (operation, *before) for each in one.undelivered if each["rows"] is None}


def note(operation: Operation, found: Sequence[Undelivered]) -> None:
    """Stores the counts, beside those of groups that have ended before. The caller saves the operation."""
    elements = {each.element for each in found}
    others = [each for each in operation.undelivered if each["element"] not in elements]
    operation.undelivered = [*others, *(asdict(each) for each in found)]
