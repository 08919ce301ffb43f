"""What an operation's step depends on, as the database has it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from pipeline_runtime.model.desired import Role
from pipeline_runtime.model.ids import document_group
from webapp.handovers.models import Handover
from webapp.operations.models import Operation
from webapp.pipelines.shape import names_of
from webapp.placements.models import GroupPlacement, Replica
from workers.control.operations import effects
from workers.control.operations.model import GroupSeen


def concerned(operation: Operation, groups: Collection[str]) -> Collection[str] | None:
    """Returns the groups that a phase concerns, or None for all of the deployment."""
    return groups if operation.kind == Operation.Kind.UPGRADE else None


def groups_seen(operation: Operation, only: Collection[str] | None) -> tuple[GroupSeen, ...]:
    rows = operation.deployment.placements.select_related("node").order_by("group")
    names = titles(operation)
    return tuple(_group(row, names) for row in (rows if only is None else rows.filter(group__in=only)))


def titles(operation: Operation) -> dict[str, str]:
    """Returns what people call the groups, also those that the present version lacks or names otherwise."""
    names = names_of(operation.deployment.version.document)
    placed = operation.deployment.placements.values_list("group", flat=True)
    called = {group: names.get(document_group(group), group) for group in placed}
    steps = {step["name"]: step["title"] for step in operation.steps if "title" in step}
    return {**names, **called, **steps}


def _group(placement: GroupPlacement, names: Mapping[str, str]) -> GroupSeen:
    handovers = Handover.objects.filter(
        deployment=placement.deployment_id, group=placement.group, outcome__isnull=True
    )
    known = GroupSeen(
        group=placement.group,
        title=names.get(placement.group, placement.group),
        element=placement.spec["elements"][0]["id"],
        node=placement.node.name,
        node_up=placement.node.up,
        wanted=placement.role == "owner",
        ends=placement.retire,
        paused=placement.paused_at is not None,
        takes_in=_takes_in(placement),
        moving=handovers.exists(),
    )
    status = effects.status_on(placement)
    if status is None:
        return known
    return replace(
        known,
        state=status.phase or status.role.value,
        owns=status.role is Role.OWNER and status.order_id == placement.order_id,
        error=None if status.error is None else status.error.message,
        traceback=None if status.error is None else status.error.traceback,
        refused=effects.refusal(placement, status),
        retired=status.retired,
    )


def _takes_in(placement: GroupPlacement) -> str:
    """Returns a node on which an ingester of the group works, or takes to Kafka what is left on the node's
    disk. It may be a node that had the group before. Empty if there is none."""
    ingesters = {stream["consumer"] for stream in placement.spec["inputs"] if stream.get("intake")}
    if not ingesters:
        return ""
    rows = Replica.objects.filter(deployment=placement.deployment_id, group=placement.group)
    for row in rows.select_related("node").order_by("node__name"):
        if any(each["element"] in ingesters for each in row.status.get("connectors", ())):
            return row.node.name
    return ""


def unsettled(operation: Operation, removed: Collection[str]) -> tuple[str, ...]:
    """Returns what else is under way, in words.

    An undeployment waits for all handovers and for the operation before it. They end when they see the
    deployment's status. An upgrade waits for handovers of the groups that it removes.
    """
    deployment, names = operation.deployment, titles(operation)
    handovers = Handover.objects.filter(deployment=deployment, outcome__isnull=True).order_by("group")
    if operation.kind == Operation.Kind.UPGRADE:
        handovers = handovers.filter(group__in=removed)
    moving = [f"the move of {names.get(each.group, each.group)} to end" for each in handovers]
    if operation.kind == Operation.Kind.UPGRADE:
        return tuple(moving)
    before = deployment.operations.filter(
        status__in=Operation.UNFINISHED, created_at__lt=operation.created_at
    )
    return (*moving, *(f"the {each.get_kind_display().lower()} before it to end" for each in before))


def unconfirmed(operation: Operation, groups: Collection[str]) -> tuple[str, ...]:
    placements = operation.deployment.placements.filter(group__in=groups)
    silent = [placement.group for placement in placements if placement.retire]
    return _copies(operation, silent)


def running(operation: Operation, only: Collection[str] | None) -> tuple[str, ...]:
    return _copies(operation, only, node__up=True)


def _copies(operation: Operation, only: Collection[str] | None, **where: object) -> tuple[str, ...]:
    """Returns the copies that have not stopped, in words. A copy stands still before its connectors end."""
    rows = Replica.objects.filter(deployment=operation.deployment, **where)
    rows, names = rows if only is None else rows.filter(group__in=only), titles(operation)
    return tuple(
        f"{names.get(row.group, row.group)} on {row.node.name}"
        for row in rows.select_related("node").order_by("group", "node__name")
        if row.role != Role.STOPPED.value or row.status.get("connectors")
    )
