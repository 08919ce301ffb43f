"""Orders several moves of a pipeline one after another, lists them, and cancels moves that wait.

Control orders the next move when the one before it is done (`workers/control/handovers/queues.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from pipeline_runtime.wire import tasks
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.backends import commands
from webapp.handovers import schemas
from webapp.handovers.facts import facts_by_element, group_facts
from webapp.handovers.models import QueuedMove
from webapp.pipelines.models import Pipeline
from webapp.pipelines.selectors import pipeline_named
from webapp.placements.group_state import GroupFacts, migrate_refusal
from webapp.placements.models import Deployment
from webapp.placements.selectors import active_deployment
from webapp.problems import Conflict, Fault, Invalid, Missing

MOVES_MAX = 500
"""How many moves a queue has, at most, with those that have ended."""
SHOWN = timedelta(minutes=10)
"""How long a queue is shown after its last move has ended."""
UNCHANGED = "No move was added to the queue. All elements keep running."


@dataclass(frozen=True)
class Wanted:
    element: str
    target: str


def locked_queue(deployment: str) -> list[QueuedMove]:
    """Returns the deployment's queue, in its order, and locks it: nobody else changes it until the
    transaction ends."""
    # The key is not locked, so rows that refer to the deployment can still be written.
    rows = Deployment.objects.select_for_update(no_key=True, of=("self",))
    locked = rows.select_related("pipeline", "version").get(pk=deployment)
    queue = list(
        QueuedMove.objects.filter(deployment=deployment)
        .select_related("handover", "created_by")
        .defer("handover__written")
    )
    for move in queue:
        move.deployment = locked
    return queue


@transaction.atomic
def queue_moves(actor: User, name: str, wanted: Sequence[Wanted]) -> list[schemas.QueuedMove]:
    """Puts these moves at the end of the queue, all of them or none. Returns the whole queue."""
    require(actor, Role.OPERATOR, "move elements")
    pipeline, deployment = _deployed(name)
    queue = locked_queue(deployment.pk)
    if all(move.outcome is not None for move in queue):
        QueuedMove.objects.filter(deployment=deployment).delete()
        queue = []
    if len(queue) + len(wanted) > MOVES_MAX:
        raise Conflict(
            f"The queue of {pipeline.title} has {len(queue)} moves. With these it would have more than "
            f"{MOVES_MAX}.",
            safe=UNCHANGED,
            next="Wait until the moves of the queue have ended.",
        )
    facts = facts_by_element(group_facts([deployment])[deployment.pk])
    _check(deployment, facts, queue, wanted)
    QueuedMove.objects.bulk_create(
        QueuedMove(deployment=deployment, element=each.element, target=each.target, created_by=actor)
        for each in wanted
    )
    moves = [{"element": each.element, "to": each.target} for each in wanted]
    audit(actor, "pipeline.queue_moves", name, deployment=deployment.pk, moves=moves)
    commands.send(tasks.LOOK)
    announce()
    return queue_of(pipeline)


def _deployed(name: str) -> tuple[Pipeline, Deployment]:
    pipeline = pipeline_named(name)
    deployment = active_deployment(pipeline)
    if deployment is None:
        raise Conflict(
            f"{pipeline.title} is not deployed, so nothing of it can move.",
            safe="Nothing was changed.",
            next="Deploy the pipeline first.",
        )
    return pipeline, deployment


def _check(
    deployment: Deployment,
    facts: dict[str, GroupFacts],
    queue: Sequence[QueuedMove],
    wanted: Sequence[Wanted],
) -> None:
    """Raises Invalid with the reason against each of these moves."""
    going = {
        facts[move.element].group: move.target
        for move in queue
        if move.state == "waits" and move.element in facts
    }
    faults: list[Fault] = []
    for index, each in enumerate(wanted):
        group = facts.get(each.element)
        path, reason = "element", "no element of that name runs on a node"
        if group is not None:
            path, reason = _refusal(group, each.target, going.get(group.group))
            going[group.group] = each.target
        if reason:
            name = deployment.name_of(each.element)
            message = f"{name} cannot move to {each.target}: {reason}"
            faults.append({"element": each.element, "path": f"moves.{index}.{path}", "message": message})
    if faults:
        more = f" {len(faults) - 1} more cannot move, either." if len(faults) > 1 else ""
        raise Invalid(
            f"{faults[0]['message']}.{more}",
            safe=UNCHANGED,
            next="Leave out what cannot move, and order the others again.",
            faults=faults,
        )


def _refusal(group: GroupFacts, target: str, going: str | None) -> tuple[str, str]:
    """Returns the field that is wrong, and why; ("", "") if the move can wait for its turn. `going` is where
    a move that waits takes the group already."""
    if going is not None:
        return "element", f"it waits in the queue already, to move to {going}: cancel that first"
    # A move of it that is under way is waited for.
    reason = migrate_refusal(replace(group, handover=None))
    if reason is not None:
        return "element", reason
    reason = migrate_refusal(replace(group, handover=None), target)
    return ("", "") if reason is None else ("target", reason)


@transaction.atomic
def cancel_queued(actor: User, name: str, id: int | None = None) -> list[schemas.QueuedMove]:
    """Cancels a move that waits, or all moves that wait if none is named. Later moves go on, and so does a
    move that is under way. Returns the whole queue."""
    require(actor, Role.OPERATOR, "cancel moves")
    pipeline, deployment = _deployed(name)
    queue = locked_queue(deployment.pk)
    if id is None:
        cancelled = [move for move in queue if move.state == "waits"]
    else:
        cancelled = [move for move in queue if move.pk == id]
        _check_waits(cancelled, deployment)
        cancelled = [move for move in cancelled if move.outcome is None]
    if cancelled:
        QueuedMove.objects.filter(pk__in=[move.pk for move in cancelled]).update(
            outcome=QueuedMove.Outcome.CANCELLED, message="", ended_at=timezone.now()
        )
        elements = [move.element for move in cancelled]
        audit(actor, "pipeline.cancel_moves", name, deployment=deployment.pk, elements=elements)
        commands.send(tasks.LOOK)
        announce()
    return queue_of(pipeline)


def _check_waits(found: Sequence[QueuedMove], deployment: Deployment) -> None:
    if not found:
        raise Missing("There is no such move in the queue.", next="Look at the queue again.")
    [move] = found
    if move.handover_id is not None or move.outcome not in (None, QueuedMove.Outcome.CANCELLED):
        moving = move.outcome is None
        raise Conflict(
            f"The move of {deployment.name_of(move.element)} {'has begun' if moving else 'has ended'}, so it "
            "no longer waits.",
            safe="Nothing was changed.",
            next=f"Cancel the handover {move.handover_id}." if moving else "Look at the queue again.",
        )


# -- what is read ----------------------------------------------------------------------------------


def queue_of(pipeline: Pipeline) -> list[schemas.QueuedMove]:
    """Returns the pipeline's queue, in its order."""
    active = QueuedMove.objects.filter(deployment__status__in=Deployment.ACTIVE)
    return _in_order(active.filter(deployment__pipeline=pipeline).values_list("deployment", flat=True))


def open_queues() -> list[schemas.QueuedMove]:
    """Returns the moves of all queues that have not ended, or ended just now."""
    fresh = Q(outcome__isnull=True) | Q(ended_at__gt=timezone.now() - SHOWN)
    active = QueuedMove.objects.filter(fresh, deployment__status__in=Deployment.ACTIVE)
    return _in_order(active.values_list("deployment", flat=True))


def _in_order(deployments: Iterable[str]) -> list[schemas.QueuedMove]:
    rows = QueuedMove.objects.filter(deployment__in=deployments).order_by("deployment", "id")
    found = rows.select_related("deployment__pipeline", "created_by").defer("deployment__pipeline__draft")
    return [each for _, queue in groupby(found, lambda row: row.deployment_id) for each in _json(list(queue))]


def _json(queue: Sequence[QueuedMove]) -> Iterable[schemas.QueuedMove]:
    before: str | None = None  # the newest element so far that has not moved yet
    for place, move in enumerate(queue, start=1):
        yield {
            "id": move.pk,
            "pipeline": move.deployment.pipeline.name,
            "element": move.element,
            "target": move.target,
            "state": move.state,
            "place": place,
            "of": len(queue),
            "waits_for": before if move.state == "waits" else None,
            "handover": None if move.handover_id is None else str(move.handover_id),
            "message": move.message,
            "created_at": move.created_at.isoformat(),
            "created_by": move.created_by.username if move.created_by else None,
            "ended_at": move.ended_at.isoformat() if move.ended_at else None,
        }
        if move.outcome is None:
            before = move.element
