"""Orders about dead letters: to drop them, to put them back, to replay their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, cast

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet, Sum

from pipeline_runtime.batch.replayed import Mended, mended_values
from pipeline_runtime.model.dead_letters import WayIn
from pipeline_runtime.planning.replay import way_in
from pipeline_runtime.wire import tasks
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.backends import commands
from webapp.handovers.facts import deployed_group
from webapp.handovers.models import LetterOrder
from webapp.handovers.schemas import DidToLetters, LetterOrder as LetterOrderJson
from webapp.placements.models import Deployment
from webapp.placements.selectors import specs_of
from webapp.problems import Conflict, Fault, Invalid, Missing

LETTERS_MAX = 1000
"""How many letters one order concerns, at most."""
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


def order_letters(
    actor: User,
    name: str,
    element: str,
    did: DidToLetters,
    offsets: Sequence[int],
    reason: str = "",
    rows: Mapping[int, MendedRow] | None = None,
) -> LetterOrder:
    """Orders that these letters are dropped or replayed. With `rows` their rows come back mended: each letter
    has one then, by its offset."""
    _require(actor, did, mends=rows is not None)
    with transaction.atomic():
        deployment, group = deployed_group(name, element, f"{did} dead letters")
        if did == "replay":
            if group.owner is not None and group.owner.status.get("ended"):
                _refuse(deployment, element, "it has read its input to the end, and reads nothing more")
            way = way_of(deployment, element)
            if isinstance(way, str):
                raise Conflict(way, safe=KEPT, next="Download the letters, or drop them.")
            if rows is not None:
                _check(element, offsets, rows, way)
        mended = {str(offset): [row["cells"], row["at"]] for offset, row in (rows or {}).items()}
        order = LetterOrder(
            deployment=deployment,
            element=element,
            did=did,
            reason=reason,
            offsets=sorted(set(offsets)),
            rows=mended if rows is not None else None,
            mended=rows is not None,
        )
        return _ordered(actor, name, order)


def put_back(actor: User, name: str, element: str, id: str) -> LetterOrder:
    """Orders that the letters of an order that dropped them are letters again."""
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
        order = LetterOrder(
            deployment=deployment,
            element=element,
            did="put-back",
            reason=of.reason,
            offsets=of.offsets,
            of=of,
        )
        return _ordered(actor, name, order)


def _require(actor: User, did: DidToLetters, *, mends: bool = False) -> None:
    """A row that somebody has mended is data that no source has sent."""
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
        letters=len(order.offsets),
        reason=order.reason,
        mended=order.mended,
        order=str(order.pk),
    )
    commands.send(tasks.LETTERS, order.deployment_id, order.element)
    announce()
    return order


def _refuse(deployment: Deployment, element: str, why: str) -> None:
    raise Conflict(f"{deployment.name_of(element)} cannot replay dead letters: {why}.", safe=KEPT)


def _check(element: str, offsets: Sequence[int], rows: Mapping[int, MendedRow], way: WayIn) -> None:
    """Raises Invalid with what is wrong in each cell."""
    faults: list[Fault] = []
    if set(rows) != set(offsets):
        said = "Each letter needs its row, and each row its letter."
        fault: Fault = {"element": element, "path": "rows", "message": said}
        raise Invalid(said, safe=KEPT, faults=[fault])
    for offset, row in rows.items():
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


def way_of(deployment: Deployment, element: str) -> WayIn | str:
    """Returns how rows come back to the element, or why they cannot, as a sentence."""
    return way_in(specs_of(deployment), element, deployment.name_of)


# -- what is read ----------------------------------------------------------------------------------


def orders_of(deployment: Deployment, element: str) -> list[LetterOrderJson]:
    """Returns the newest orders about the element's letters, the newest first."""
    return [order_json(each) for each in _orders(deployment, element)[:SHOWN]]


def order_of(deployment: Deployment, element: str, id: str) -> LetterOrder:
    """Returns one of them, or raises Missing."""
    found = _orders(deployment, element).filter(pk=id).first()
    if found is None:
        raise Missing("There is no such order about dead letters.")
    return found


def _orders(deployment: Deployment, element: str) -> QuerySet[LetterOrder]:
    again = LetterOrder.objects.filter(of=OuterRef("pk")).exclude(status=LetterOrder.Status.FAILED)
    found = LetterOrder.objects.filter(deployment=deployment, element=element).defer("rows")
    return found.select_related("created_by").annotate(was_put_back=Exists(again))


def _may_be_put_back(order: LetterOrder) -> bool:
    is_drop = order.did == LetterOrder.Did.DROP and order.status == LetterOrder.Status.DONE
    return is_drop and order.taken > 0 and not getattr(order, "was_put_back", False)


def order_json(order: LetterOrder) -> LetterOrderJson:
    return {
        "id": str(order.pk),
        "did": cast(DidToLetters, order.did),
        "reason": order.reason,
        "letters": len(order.offsets),
        "mended": order.mended,
        "status": order.status,
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
    done = LetterOrder.objects.filter(deployment__in=deployments, status=LetterOrder.Status.DONE)
    found: dict[tuple[str, str], int] = {}
    for id, element, did, taken in (
        done.order_by().values_list("deployment", "element", "did").annotate(Sum("taken"))
    ):
        signed = -taken if did == LetterOrder.Did.PUT_BACK else taken
        found[id, element] = found.get((id, element), 0) + signed
    return found
