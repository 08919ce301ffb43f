"""Carries out orders about dead letters: drops them, puts them back, replays their rows, each exactly once.

The database has the order, and Kafka has the truth: a mark among the letters, in one transaction with the
rows that come back. So an order can be carried out again after any failure. It finds its own mark, and writes
nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import close_old_connections, transaction
from django.utils import timezone

from pipeline_runtime.batch.replayed import Mended, NotReplayed, as_it_was, as_mended
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.letters import (
    LettersRead,
    ends_of,
    mark_record,
    records_at,
    replayed_at,
    replayed_record,
    settle,
)
from pipeline_runtime.kafka.peek import PeekedRecord
from pipeline_runtime.kafka.transactions import Outgoing, RecordsRefused
from pipeline_runtime.model.dead_letters import Mark, WayIn, concerned, place_of
from pipeline_runtime.model.ids import dead_letter_topic, letters_id
from pipeline_runtime.model.plain_data import object_in
from webapp.audit.announcements import announce
from webapp.handovers.letters import way_of
from webapp.handovers.models import LetterOrder
from webapp.placements.models import Deployment
from webapp.placements.selectors import specs_of
from workers.control.context import ControlContext, now_ms

log = logging.getLogger(__name__)

TOLD_MAX = 100
"""For how many rows an order keeps why they did not come back."""


class NotCarriedOut(Exception):
    """The order cannot be carried out. The message says why."""


def elements_with_orders() -> Iterator[tuple[str, str]]:
    """Yields the deployment and the element of orders that have no outcome yet."""
    pending = LetterOrder.objects.filter(status=LetterOrder.Status.PENDING)
    yield from pending.order_by().values_list("deployment", "element").distinct()


def settle_letters(deployment: str, element: str, context: ControlContext) -> None:
    """Carries out the element's orders, the oldest first. Raises what Kafka does not do now: it is tried
    again."""
    while not context.closing.is_set():
        close_old_connections()
        orders = LetterOrder.objects.select_related("deployment__version").filter(
            deployment=deployment, element=element, status=LetterOrder.Status.PENDING
        )
        order = orders.order_by("created_at").first()
        if order is None:
            return
        try:
            _carry_out(order, context.kafka)
        except (NotCarriedOut, RecordsRefused) as error:
            _end(order, LetterOrder.Status.FAILED, message=str(error))


def _carry_out(order: LetterOrder, kafka: KafkaSettings) -> None:
    """1. Find the way back to the element.
    2. Store where its stream ends: behind that the rows will lie.
    3. Settle the letters in Kafka.
    4. Look where the rows lie.
    5. Store the outcome."""
    _require_topic(order)
    replays = order.did == LetterOrder.Did.REPLAY
    way = way_of(order.deployment, order.element) if replays else None
    if isinstance(way, WayIn) and order.behind is None:
        order.behind = {str(partition): end for partition, end in ends_of(kafka, way.topic).items()}
        order.save(update_fields=["behind"])
    work = _Settling(order, way, kafka)
    topic, id = (
        dead_letter_topic(order.deployment_id, order.element),
        letters_id(order.deployment_id, order.element),
    )
    settle(kafka, id, topic, min(order.offsets), work.decide)
    places = None
    if isinstance(way, WayIn) and way.consumer is not None:
        behind = {int(partition): end for partition, end in (order.behind or {}).items()}
        places = replayed_at(kafka, way.topic, str(order.pk), behind)
    outcome = work.outcome
    _end(
        order,
        LetterOrder.Status.DONE,
        taken=len(outcome.taken),
        before=outcome.before,
        stayed=[[offset, why] for offset, why in outcome.stayed.items()][:TOLD_MAX],
        stayed_count=len(outcome.stayed),
        places=places,
        rows=None,
    )


def _require_topic(order: LetterOrder) -> None:
    """The letters' topic goes with the deployment, and with the element when an upgrade removes it."""
    if order.deployment.status not in Deployment.ACTIVE:
        raise NotCarriedOut("The pipeline is no longer deployed.")
    elements = {element.id for spec in specs_of(order.deployment) for element in spec.elements}
    if order.element not in elements:
        raise NotCarriedOut("The element runs nowhere.")


def _end(order: LetterOrder, status: str, **found: Any) -> None:
    with transaction.atomic():
        LetterOrder.objects.filter(pk=order.pk, status=LetterOrder.Status.PENDING).update(
            status=status, ended_at=timezone.now(), **found
        )
        announce()


@dataclass
class Outcome:
    """What became of an order's letters, by their offsets."""

    taken: tuple[int, ...] = ()
    stayed: dict[int, str] = field(default_factory=dict)
    before: int = 0
    """letters for which something else was done before, or that the topic no longer has"""


class _Settling:
    def __init__(self, order: LetterOrder, way: WayIn | str | None, kafka: KafkaSettings) -> None:
        """`way`: how rows come back, or why they cannot. None if none are to."""
        self._order = order
        self._way = way
        self._kafka = kafka
        self.outcome = Outcome()

    def decide(self, read: LettersRead) -> list[Outgoing]:
        """Returns what is to be written, by what lies in the topic now. Raises NotCarriedOut."""
        order = self._order
        mine = next((mark for mark in read.marks if mark.order == str(order.pk)), None)
        if mine is None and isinstance(self._way, str):
            raise NotCarriedOut(self._way)
        there = {each.offset: each for each in read.letters}
        open_ones = [each for each in concerned(order.did, order.offsets, read.marks) if each in there]
        rows, stayed = self._rows([there[offset] for offset in open_ones])
        if mine is not None:  # it was carried out already
            taken, made = mine.offsets, []
        else:
            taken, made = tuple(offset for offset in open_ones if offset not in stayed), rows
            if taken:
                topic = dead_letter_topic(order.deployment_id, order.element)
                made.append(mark_record(topic, Mark(str(order.pk), order.did, taken)))
        self.outcome = Outcome(taken, stayed, len(order.offsets) - len(taken) - len(stayed))
        return made

    def _rows(self, letters: list[PeekedRecord]) -> tuple[list[Outgoing], dict[int, str]]:
        """Returns the rows that come back, and why others do not, by the offsets of their letters."""
        way, order = self._way, self._order
        if not isinstance(way, WayIn):
            return [], {}
        said = {each.offset: object_in(each.value) for each in letters}
        places = {offset: place for offset, found in said.items() if (place := place_of(found)) is not None}
        wanted = [(place.partition, place.offset) for place in places.values()]
        originals = records_at(self._kafka, way.read_from, wanted)
        rows: list[Outgoing] = []
        stayed: dict[int, str] = {}
        for letter in letters:
            place = places.get(letter.offset)
            original = originals.get((place.partition, place.offset)) if place is not None else None
            raw, mended = str(said[letter.offset].get("raw") or ""), _mended(order.rows, letter.offset)
            try:
                row = (
                    as_it_was(original, raw, way, now_ms())
                    if mended is None
                    else as_mended(original, raw, mended, way, now_ms())
                )
            except NotReplayed as error:
                stayed[letter.offset] = str(error)
                continue
            rows.append(
                replayed_record(way.topic, row.value, row.key, row.time_ms, way.consumer, str(order.pk))
            )
        return rows, stayed


def _mended(rows: Mapping[str, Any] | None, offset: int) -> Mended | None:
    found = (rows or {}).get(str(offset))
    return None if found is None else Mended(*found)
