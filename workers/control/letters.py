"""Carries out orders about dead letters: drops them, puts them back, replays their rows, each exactly once.

The database has the order, and Kafka has the truth: a mark among the letters, in one transaction with the
rows that come back. An order about many letters goes through them step by step, each step one transaction. So
it goes on after any failure: a step that is taken again finds its own mark, and writes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from django.db import close_old_connections, transaction
from django.utils import timezone

from pipeline_runtime.batch.replayed import Mended, NotReplayed, as_it_was, as_mended
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.letters import (
    Settling,
    ends_of,
    records_at,
    replayed_at,
    replayed_record,
    settling,
)
from pipeline_runtime.kafka.peek import PeekedRecord
from pipeline_runtime.kafka.transactions import Outgoing, RecordsRefused
from pipeline_runtime.model.dead_letters import Did, Mark, Place, WayIn, WaysIn, place_of, spans_of
from pipeline_runtime.model.ids import dead_letter_topic, letters_id
from pipeline_runtime.model.plain_data import object_in
from webapp.audit.announcements import announce
from webapp.handovers.letters import ways_of
from webapp.handovers.models import LetterOrder
from webapp.placements.models import Deployment
from webapp.placements.selectors import specs_of
from workers.control.context import ControlContext, now_ms

log = logging.getLogger(__name__)

STEP_OFFSETS = 1000
"""How many offsets of the letters' topic one step goes through. A letter may have 100,000 characters."""
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
    again, and an order goes on where it was."""
    while not context.closing.is_set():
        close_old_connections()
        orders = LetterOrder.objects.filter(
            deployment=deployment, element=element, status=LetterOrder.Status.PENDING
        )
        order = orders.order_by("created_at").first()
        if order is None:
            return
        try:
            _carry_out(order.pk, context)
        except (NotCarriedOut, RecordsRefused) as error:
            _end(order.pk, LetterOrder.Status.FAILED, message=str(error))


def _carry_out(id: UUID, context: ControlContext) -> None:
    """Shuts out who wrote before, then goes on step by step from where the order was."""
    order = _seen(id)
    if order is None:
        return
    topic = dead_letter_topic(order.deployment_id, order.element)
    writer = letters_id(order.deployment_id, order.element)
    with settling(context.kafka, writer, topic, max(order.first, order.position)) as letters:
        while order is not None and not context.closing.is_set():
            _Step(order, letters, context.kafka).take()
            order = _seen(id)


def _seen(id: UUID) -> LetterOrder | None:
    """Returns the order as it is now, or None if it has ended. Ends one that was cancelled. Raises
    NotCarriedOut."""
    pending = LetterOrder.objects.select_related("deployment__version").filter(
        pk=id, status=LetterOrder.Status.PENDING
    )
    order = pending.first()
    if order is not None and order.cancel_requested:
        _end(id, LetterOrder.Status.CANCELLED)
        return None
    if order is not None:
        _require_topic(order)
    return order


def _require_topic(order: LetterOrder) -> None:
    """The letters' topic goes with the deployment, and with the element when an upgrade removes it."""
    if order.deployment.status not in Deployment.ACTIVE:
        raise NotCarriedOut(
            "The pipeline is no longer deployed, so its dead letters are gone. Nothing is to be done."
        )
    elements = {element.id for spec in specs_of(order.deployment) for element in spec.elements}
    if order.element not in elements:
        raise NotCarriedOut(
            "An upgrade has removed the element, and its dead letters with it. Nothing is to be done."
        )


def _end(id: UUID, status: str, **found: Any) -> None:
    with transaction.atomic():
        LetterOrder.objects.filter(pk=id, status=LetterOrder.Status.PENDING).update(
            status=status, ended_at=timezone.now(), rows=None, **found
        )
        announce()


@dataclass(frozen=True)
class Decided:
    """What is done about the letters of one step, by their offsets."""

    done: list[int]  # for which the order has done it before
    taken: list[int]  # for which it is done now
    stayed: dict[int, str]  # why rows do not come back
    rows: list[Outgoing]  # that come back


class _Step:
    """The next letters of an order. They lie in so few offsets that they are one transaction.

    1. Store where the streams end behind which the rows will lie.
    2. Read the letters, and decide by what has become of them.
    3. Write the rows and the mark.
    4. Look where the rows lie.
    5. Store what has come of it, and where the next step begins.

    A step that ended anywhere before 5 is taken again, and finds its own mark.
    """

    def __init__(self, order: LetterOrder, letters: Settling, kafka: KafkaSettings) -> None:
        self._order = order
        self._letters = letters
        self._kafka = kafka
        replays = order.did == LetterOrder.Did.REPLAY
        # How rows come back, or why they cannot. None if none are to.
        self._ways = ways_of(order.deployment, order.element) if replays else None

    def take(self) -> None:
        """Raises NotCarriedOut, and what `settling` does."""
        order, chosen = self._order, self._order.chosen
        end = min(chosen.until, self._letters.end)
        first = chosen.next_from(order.position)
        if first is None or first >= end:
            self._finish()
            return
        until = min(first + STEP_OFFSETS, end)
        if isinstance(self._ways, WaysIn) and order.behind is None:
            order.behind = {way.topic: _told(ends_of(self._kafka, way.topic)) for way in self._ways.each}
            nobody_else = LetterOrder.objects.filter(pk=order.pk, behind__isnull=True)
            if not nobody_else.update(behind=order.behind):
                return  # another control process is a step further
        found = [each for each in self._letters.letters(first, until) if chosen.has(each.offset, each.value)]
        decided = self._decided(found)
        if decided.taken:
            topic = dead_letter_topic(order.deployment_id, order.element)
            mark = Mark(str(order.pk), cast(Did, order.did), tuple(decided.taken))
            self._letters.commit(mark, topic, decided.rows)
        self._store(until, decided)

    def _decided(self, letters: list[PeekedRecord]) -> Decided:
        order, fates = self._order, self._letters.fates
        id, did = str(order.pk), cast(Did, order.did)
        of = None if order.of_id is None else str(order.of_id)
        done = [each.offset for each in letters if fates.did(id, each.offset)]
        left = [each for each in letters if fates.is_left(id, did, each.offset, of)]
        if isinstance(self._ways, str) and left:
            raise NotCarriedOut(self._ways)
        rows, stayed = self._rows(left)
        return Decided(done, [each.offset for each in left if each.offset not in stayed], stayed, rows)

    def _store(self, until: int, decided: Decided) -> None:
        """Stores the step, unless another control process has done so meanwhile."""
        order, ways = self._order, self._ways
        stayed = [*order.stayed, *([offset, why] for offset, why in decided.stayed.items())]
        now: dict[str, Any] = {
            "position": until,
            "taken": order.taken + len(decided.done) + len(decided.taken),
            "stayed": stayed[:TOLD_MAX],
            "stayed_count": order.stayed_count + len(decided.stayed),
        }
        topics = (
            [way.topic for way in ways.each if way.consumer is not None] if isinstance(ways, WaysIn) else []
        )
        for topic in topics:
            behind = {int(partition): end for partition, end in (order.behind or {}).get(topic, {}).items()}
            places = replayed_at(self._kafka, topic, str(order.pk), behind)
            order.places = with_places(order.places or {}, topic, places)
            order.behind = {**(order.behind or {}), topic: _told(ends_behind(behind, places))}
            now |= {"places": order.places, "behind": order.behind}
        with transaction.atomic():
            LetterOrder.objects.filter(
                pk=order.pk, status=LetterOrder.Status.PENDING, position=order.position
            ).update(**now)
            announce()

    def _finish(self) -> None:
        order = self._order
        before = max(0, order.letters - order.taken - order.stayed_count)
        _end(order.pk, LetterOrder.Status.DONE, before=before)

    def _rows(self, letters: list[PeekedRecord]) -> tuple[list[Outgoing], dict[int, str]]:
        """Returns the rows that come back, and why others do not, by the offsets of their letters."""
        ways, order = self._ways, self._order
        if not isinstance(ways, WaysIn) or not letters:
            return [], {}
        said = {each.offset: object_in(each.value) for each in letters}
        places = {offset: place_of(found) for offset, found in said.items()}
        originals = self._originals(ways, [place for place in places.values() if place is not None])
        rows: list[Outgoing] = []
        stayed: dict[int, str] = {}
        for letter in letters:
            place = places[letter.offset]
            way, original = ways.of(place), originals.get(place) if place is not None else None
            raw, mended = str(said[letter.offset].get("raw") or ""), _mended(order.rows, letter.offset)
            try:
                if isinstance(way, str):
                    raise NotReplayed(way)
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

    def _originals(self, ways: WaysIn, places: Iterable[Place]) -> dict[Place, PeekedRecord]:
        """Returns the records that still lie at these places."""
        by_source: dict[str, list[Place]] = {}
        for place in places:
            by_source.setdefault(place.source, []).append(place)
        found: dict[Place, PeekedRecord] = {}
        for mine in by_source.values():
            way = ways.of(mine[0])
            if isinstance(way, WayIn):
                wanted = [(place.partition, place.offset) for place in mine]
                there = records_at(self._kafka, way.read_from, wanted)
                found |= {place: there[at] for place, at in zip(mine, wanted, strict=True) if at in there}
        return found


def _told(ends: Mapping[int, int]) -> dict[str, int]:
    """Returns offsets by partition as the database has them."""
    return {str(partition): end for partition, end in ends.items()}


def with_places(before: Mapping[str, Any], topic: str, new: Iterable[tuple[int, int]]) -> dict[str, Any]:
    """Returns the places of an order's rows by topic and partition, as spans of offsets, with new ones of one
    topic behind them."""
    offsets: dict[str, list[int]] = {}
    for partition, offset in sorted(new):
        offsets.setdefault(str(partition), []).append(offset)
    mine = before.get(topic, {})
    there = {
        partition: [*mine.get(partition, ()), *spans_of(offsets.get(partition, ()))]
        for partition in mine.keys() | offsets.keys()
    }
    return {**before, topic: there}


def ends_behind(behind: Mapping[int, int], places: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Returns the offsets behind which the next rows of an order lie, by partition."""
    found = dict(behind)
    for partition, offset in places:
        found[partition] = max(found.get(partition, 0), offset + 1)
    return found


def _mended(rows: Mapping[str, Any] | None, offset: int) -> Mended | None:
    found = (rows or {}).get(str(offset))
    return None if found is None else Mended(*found)
