"""Orders about dead letters: to drop them, to put them back, to replay their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, cast

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet, Sum

from pipeline_runtime.batch.replayed import Mended, mended_values
from pipeline_runtime.kafka.letters import CountedLetters, count_open, records_at
from pipeline_runtime.model.dead_letters import Chosen, Place, WayIn, WaysIn, place_of
from pipeline_runtime.model.ids import dead_letter_topic
from pipeline_runtime.model.plain_data import object_in
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.planning.replay import streams_read, ways_in
from pipeline_runtime.wire import tasks
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.backends import commands
from webapp.backends.kafka import asked_of_kafka
from webapp.handovers.facts import deployed_group
from webapp.handovers.models import LetterOrder
from webapp.handovers.schemas import DidToLetters, LetterOrder as LetterOrderJson
from webapp.placements.models import Deployment
from webapp.placements.selectors import specs_of
from webapp.problems import Conflict, Fault, Invalid, Missing

LETTERS_MAX = 1000
"""How many letters one order names, at most."""
SPAN_MAX = 100_000
"""How many offsets of the topic an order about a reason looks through, at most."""
SHOWN = 20
"""How many orders are shown: the newest ones."""
FAULTS_MAX = 100
KEPT = "The dead letters stay as they are."
_ACTIONS = {
    "drop": "element.drop_letters",
    "put-back": "element.put_letters_back",
    "replay": "element.replay_letters",
}


class MendedRow(TypedDict):
    cells: dict[str, Any]
    at: str | None


def count_letters(name: str, element: str, chosen: Chosen) -> CountedLetters:
    """Returns how many open letters of a reason an order would cover now, and where these letters lie."""
    deployment, _ = deployed_group(name, element, "count dead letters")
    return _counted(deployment, element, chosen)


def _counted(deployment: Deployment, element: str, chosen: Chosen) -> CountedLetters:
    topic = dead_letter_topic(deployment.pk, element)
    return asked_of_kafka(lambda kafka: count_open(kafka, topic, chosen, SPAN_MAX))


def order_letters(
    actor: User,
    name: str,
    element: str,
    did: DidToLetters,
    chosen: Chosen,
    rows: Mapping[int, MendedRow] | None = None,
) -> LetterOrder:
    """Orders control to drop or to replay these letters. With `rows`, their rows come back mended: then the
    order names each letter, and has one row for each, by the letter's offset."""
    _require(actor, did, mends=rows is not None)
    found = None
    if chosen.offsets is None:
        deployment, _ = deployed_group(name, element, f"{did} dead letters")
        found = _counted(deployment, element, chosen)
        _require_some(found, chosen)
        chosen = replace(chosen, first=found.first, until=found.until)
    places = _places_of(name, element, rows or ())
    with transaction.atomic():
        deployment, group = deployed_group(name, element, f"{did} dead letters")
        if did == "replay":
            if group.owner is not None and group.owner.status.get("ended"):
                raise Conflict(
                    f"{deployment.name_of(element)} cannot replay dead letters: it has read its input to the"
                    " end, and reads nothing more.",
                    safe=KEPT,
                    next="Download the letters, or drop them.",
                )
            ways = ways_of(deployment, element)
            if isinstance(ways, str):
                raise Conflict(ways, safe=KEPT, next="Download the letters, or drop them.")
            if rows is not None:
                _check(element, chosen.offsets, rows, ways, places)
        mended = {str(offset): [row["cells"], row["at"]] for offset, row in (rows or {}).items()}
        order = LetterOrder(
            deployment=deployment,
            element=element,
            did=did,
            letters=found.letters if found is not None else len(chosen.offsets or ()),
            rows=mended if rows is not None else None,
            mended=rows is not None,
            **_where(chosen),
        )
        return _ordered(actor, name, order)


def _places_of(name: str, element: str, offsets: Iterable[int]) -> dict[int, Place | None]:
    """Returns where the rows of these letters lie, as far as the letters say so. If an element has one input,
    nobody needs to know it."""
    wanted = [(0, offset) for offset in offsets]
    if not wanted:
        return {}
    deployment, _ = deployed_group(name, element, "replay dead letters")
    if len(topics_read(deployment, element)) < 2:
        return {}
    topic = dead_letter_topic(deployment.pk, element)
    found = asked_of_kafka(lambda kafka: records_at(kafka, topic, wanted))
    return {offset: place_of(object_in(each.value)) for (_, offset), each in found.items()}


def _require_some(found: CountedLetters, chosen: Chosen) -> None:
    if found.more and found.first > chosen.first:
        raise Invalid(
            f"One order looks through {SPAN_MAX:,} offsets at most, and these are more.",
            safe=KEPT,
            next="Count the letters again, and send the order with the offsets that the count returns.",
        )
    if not found.letters:
        raise Conflict(
            "No dead letter of this reason is open.", safe=KEPT, next="Look at the dead letters again."
        )


def _where(chosen: Chosen) -> dict[str, Any]:
    """Returns which letters an order is about, as the database has it."""
    return {
        "first": chosen.first,
        "until": chosen.until,
        "offsets": None if chosen.offsets is None else [*chosen.offsets],
        "reason": chosen.reason,
        "text": chosen.text,
    }


def put_back(actor: User, name: str, element: str, id: str) -> LetterOrder:
    """Orders control to undo an order that dropped letters: the letters are open again."""
    _require(actor, "put-back")
    with transaction.atomic():
        deployment, _ = deployed_group(name, element, "put dead letters back")
        of = order_of(deployment, element, id)
        if not _may_be_put_back(of):
            raise Conflict(
                "Only letters that were dropped can be put back, and only once.",
                safe=KEPT,
                next="Look at what was done about them.",
            )
        where = _where(of.chosen)
        order = LetterOrder(
            deployment=deployment, element=element, did="put-back", letters=of.taken, of=of, **where
        )
        return _ordered(actor, name, order)


def cancel_order(actor: User, name: str, element: str, id: str) -> LetterOrder:
    """Asks control to end an order that is under way. What the order has done stays done. A second call
    changes nothing."""
    require(actor, Role.OPERATOR, "cancel orders about dead letters")
    with transaction.atomic():
        deployment, _ = deployed_group(name, element, "cancel what is done about dead letters")
        order = order_of(deployment, element, id)
        if order.status != LetterOrder.Status.PENDING:
            raise Conflict(
                "The order has ended, so it cannot be cancelled.",
                safe=KEPT,
                next="Look at what was done. Letters that were dropped can be put back.",
            )
        if not order.cancel_requested:
            LetterOrder.objects.filter(pk=order.pk).update(cancel_requested=True)
            order.cancel_requested = True
            audit(actor, "element.cancel_letters", f"{name}/{element}", order=id, did=order.did)
            commands.send(tasks.LETTERS, order.deployment_id, element)
            announce()
        return order


def _require(actor: User, did: DidToLetters, *, mends: bool = False) -> None:
    """Raises Forbidden if the role is too low. Mending needs a higher role, because a mended row is data that
    no source has sent."""
    if mends:
        require(actor, Role.EDITOR, "change rows and replay them")
    else:
        require(actor, Role.OPERATOR, "replay dead letters" if did == "replay" else "drop dead letters")


def _ordered(actor: User, name: str, order: LetterOrder) -> LetterOrder:
    order.created_by = actor
    order.save()
    audit(
        actor,
        _ACTIONS[order.did],
        f"{name}/{order.element}",
        letters=order.letters,
        reason=order.reason,
        text=order.text,
        mended=order.mended,
        order=str(order.pk),
    )
    commands.send(tasks.LETTERS, order.deployment_id, order.element)
    announce()
    return order


def _check(
    element: str,
    offsets: Sequence[int] | None,
    rows: Mapping[int, MendedRow],
    ways: WaysIn,
    places: Mapping[int, Place | None],
) -> None:
    """Raises Invalid with what is wrong in each cell. `places`: where the rows lie, by their letters."""
    faults: list[Fault] = []
    if offsets is None or set(rows) != set(offsets):
        said = "The letters and the rows do not fit together: send one row for each letter, and no other row."
        fault: Fault = {"element": element, "path": "rows", "message": said}
        raise Invalid(
            said, safe=KEPT, next="Send the missing rows, and leave out the others.", faults=[fault]
        )
    for offset, row in rows.items():
        way = ways.of(places.get(offset))
        if not isinstance(way, WayIn):  # that the row stays a letter, the order says
            continue
        _, wrong = mended_values(Mended(row["cells"], row["at"]), way.schema)
        faults += [
            {"element": element, "path": f"rows.{offset}.{column}", "message": why, "code": "cell"}
            for column, why in wrong.items()
        ]
    if faults:
        raise Invalid(
            f"{len(faults):,} cells do not fit their columns.",
            safe=KEPT,
            next="Change them, then replay again.",
            faults=faults[:FAULTS_MAX],
        )


def ways_of(deployment: Deployment, element: str) -> WaysIn | str:
    """Returns how rows can come back to the element, or a sentence that says why none can."""
    return ways_in(specs_of(deployment), element, deployment.name_of)


def topics_read(deployment: Deployment, element: str) -> dict[str, str]:
    """Returns the topics in which the rows of the element's letters lie, by stream ("element.port"), if its
    letters say where."""
    read = (streams_read(spec, element) for spec in specs_of(deployment) if _has(spec, element))
    return {each.source: each.topic for streams in read for each in streams}


def _has(spec: GroupSpec, element: str) -> bool:
    return any(each.id == element for each in spec.elements)


# -- what is read ----------------------------------------------------------------------------------


def orders_of(deployment: Deployment, element: str) -> list[LetterOrderJson]:
    """Returns the newest orders about the element's letters, the newest first."""
    return [order_json(each) for each in _orders(deployment, element)[:SHOWN]]


def order_of(deployment: Deployment, element: str, id: str) -> LetterOrder:
    """Returns one of these orders, or raises Missing."""
    found = _orders(deployment, element).filter(pk=id).first()
    if found is None:
        raise Missing(
            "There is no such order about dead letters.", next="See what was done about the letters."
        )
    return found


def _orders(deployment: Deployment, element: str) -> QuerySet[LetterOrder]:
    ended = (LetterOrder.Status.FAILED, LetterOrder.Status.CANCELLED)
    again = LetterOrder.objects.filter(of=OuterRef("pk")).exclude(status__in=ended)
    found = LetterOrder.objects.filter(deployment=deployment, element=element).defer("rows")
    return found.select_related("created_by").annotate(was_put_back=Exists(again))


def _may_be_put_back(order: LetterOrder) -> bool:
    is_drop = order.did == LetterOrder.Did.DROP and order.status != LetterOrder.Status.PENDING
    return is_drop and order.taken > 0 and not getattr(order, "was_put_back", False)


def order_json(order: LetterOrder) -> LetterOrderJson:
    return {
        "id": str(order.pk),
        "did": cast(DidToLetters, order.did),
        "reason": order.reason,
        "text": order.text,
        "letters": order.letters,
        "mended": order.mended,
        "status": order.status,
        "cancel_requested": order.cancel_requested,
        "message": order.message,
        "taken": order.taken,
        "before": order.before,
        "stayed": [{"offset": offset, "why": why} for offset, why in order.stayed],
        "stayed_count": order.stayed_count,
        "may_be_put_back": _may_be_put_back(order),
        "at": order.created_at.isoformat(),
        "by": order.created_by.username if order.created_by else None,
    }


def settled_counts(deployments: Iterable[str]) -> dict[tuple[str, str], int]:
    """Returns how many letters were dropped or replayed, by deployment and element."""
    done = LetterOrder.objects.filter(deployment__in=deployments, taken__gt=0)
    found: dict[tuple[str, str], int] = {}
    for id, element, did, taken in (
        done.order_by().values_list("deployment", "element", "did").annotate(Sum("taken"))
    ):
        signed = -taken if did == LetterOrder.Did.PUT_BACK else taken
        found[id, element] = found.get((id, element), 0) + signed
    return found
