"""Counts the rows that wait at elements which deliver to systems outside, and stores the counts."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from functools import partial
from time import monotonic

from pipeline_runtime.journal.positions import read_positions
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.delivered import undelivered, unread as unread_of
from pipeline_runtime.model.ids import position_key
from pipeline_runtime.model.spec import GroupSpec
from webapp.operations.models import Operation
from webapp.pipelines.shape import names_of
from webapp.placements.delivered import DeliveredStream, delivered_streams, failing_connectors
from webapp.placements.models import GroupPlacement
from workers.control.context import now_ms
from workers.control.operations.model import Answer, Undelivered

log = logging.getLogger(__name__)

UNREAD_S = 5.0
"""If Kafka has failed to answer for one group, it is asked about others for only so long after the first."""


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
            away = _away(kafka, error)
            result.append(told(None, why=why))
        else:
            result.append(told(rows.rows, rows.at, rows.estimated, why if rows.rows else ""))
    return Answer(now_ms(), away=away, undelivered=tuple(result))


def unread(operation: Operation, groups: Collection[str], kafka: KafkaSettings) -> Answer:
    """Asks Kafka how many rows these groups have not read, of those that other groups have put out and that
    their own ingesters have taken in. One group of which it says nothing hides nothing of the others."""
    result: list[Undelivered] = []
    away, late_s = "", monotonic() + UNREAD_S
    for placement in operation.deployment.placements.filter(group__in=groups).order_by("group"):
        spec = GroupSpec.model_validate(placement.spec)
        topics = sorted({stream.topic for stream in spec.inputs if not stream.external or stream.intake})
        title = operation.deployment.name_of(placement.group)
        told = partial(Undelivered, spec.elements[0].id, title, spec.group, unread=True)
        try:
            if away and monotonic() > late_s:
                raise TimeoutError("Kafka has not answered for other groups")
            rows, estimated = _unread(placement, spec, topics, kafka)
        except Exception as error:  # any error of the Kafka client
            away = away or _away(kafka, error)
            result += [told(None, topic=topic) for topic in topics]
        else:
            result += [told(rows, estimated=estimated)] if rows else []
    return Answer(now_ms(), away=away, undelivered=tuple(result))


def _unread(
    placement: GroupPlacement, spec: GroupSpec, topics: Sequence[str], kafka: KafkaSettings
) -> tuple[int, bool]:
    """Returns how many rows, and whether that is estimated. Raises any error of the Kafka client."""
    stands = {**placement.starts, **read_positions(kafka, spec.journal)} if topics else {}
    found = [unread_of(kafka, topic, stands.get(position_key(topic, 0), 0)) for topic in topics]
    return sum(each.rows for each in found), any(each.estimated for each in found)


def with_unread(counted: Answer, unread: Answer) -> Answer:
    found = (*counted.undelivered, *unread.undelivered)
    return replace(counted, away=counted.away or unread.away, undelivered=found)


def _away(kafka: KafkaSettings, error: Exception) -> str:
    log.debug("rows that wait were not counted", exc_info=error)
    return f"Kafka at {kafka.bootstrap} does not answer ({type(error).__name__})"


def stored(operation: Operation, found: Sequence[DeliveredStream]) -> tuple[Undelivered, ...]:
    """Returns what was counted last of these streams."""
    elements = {each.element for each in found}
    counts = (Undelivered(**each) for each in operation.undelivered)
    return tuple(each for each in counts if each.unread or each.element in elements)


def topics_kept(operation: Operation) -> set[str]:
    """Returns the streams of which Kafka did not say what was not read or not delivered, also to an upgrade
    before, if it has not said it since: they may hold the only copy."""
    known = {each["topic"] for each in operation.undelivered if each["rows"] is not None}
    before = operation.deployment.operations.exclude(pk=operation.pk)
    return _unknown(operation) | {topic for one in before for topic in _unknown(one)} - known


def _unknown(operation: Operation) -> set[str]:
    return {each["topic"] for each in operation.undelivered if each["rows"] is None}


def note(operation: Operation, found: Sequence[Undelivered]) -> None:
    """Stores the counts, in an upgrade beside those of groups that have ended before. An undeployment counts
    all of its groups at once. The caller saves the operation."""
    counted = {each.element for each in found}
    upgrades = operation.kind == Operation.Kind.UPGRADE
    others = [each for each in operation.undelivered if upgrades and each["element"] not in counted]
    operation.undelivered = [*others, *(asdict(each) for each in found)]
