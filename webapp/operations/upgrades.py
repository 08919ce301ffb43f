"""Finds what changes if another document is deployed over a running deployment, and whether that is
allowed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.planning.reconnect import Reconnections, reconnections
from pipeline_runtime.planning.upgrade import ElementChange, element_changes, group_changes
from webapp.handovers.models import Handover
from webapp.operations.models import Operation
from webapp.pipelines.shape import elements_of, is_view, names_of
from webapp.placements.models import Deployment
from webapp.placements.selectors import left_over_of, planned_for, specs_of
from webapp.problems import Conflict

SAFE = "The running pipeline is unchanged."


def upgrade_changes(deployment: Deployment, document: dict[str, Any]) -> list[ElementChange]:
    """Returns a change for each element of a valid document, and for each that it no longer has, including
    those that only the dashboard shows."""
    new = planned_for(deployment, document)
    old, left_over = specs_of(deployment), left_over_of(deployment)
    names = names_of(deployment.version.document) | names_of(document)
    found = element_changes(old, new, default_registry(), deployment.removed, left_over, names)
    return [*found, *_views(deployment, document)]


def refuse_upgrade(
    deployment: Deployment,
    document: dict[str, Any],
    placement: Mapping[str, str],
    restart: Collection[str],
) -> list[str]:
    """Raises Conflict when the document cannot take over from what runs, or not now.

    `restart` holds the elements that may begin without their state. Returns those of them that have to.
    """
    name = deployment.pipeline.title
    if placement:
        raise Conflict(
            f'"{name}" runs already, and an upgrade leaves its elements where they are.',
            safe=SAFE,
            next="Deploy without a placement, and move the elements.",
        )
    changes = upgrade_changes(deployment, document)
    begin_fresh = [change for change in changes if change.change == "restart"]
    wrong = [change for change in changes if change.change == "incompatible"]
    wrong += [change for change in begin_fresh if change.element not in restart]
    if wrong:
        named = "; ".join(f"{change.element}: {change.reason}" for change in wrong)
        raise Conflict(
            f'"{name}" is running already (version {deployment.version.number}), and this version cannot '
            f"take over from it: {named}.",
            safe=SAFE,
            next=_way_out(wrong),
            code="upgrade-refused",
            deployment=deployment.pk,
            faults=[
                {
                    "element": change.element,
                    "path": f"spec.elements.{change.element}" + (f".{change.path}" if change.path else ""),
                    "message": change.reason or "",
                    "code": change.change,
                }
                for change in wrong
            ],
        )
    _refuse_now(deployment, document)
    return [change.element for change in begin_fresh]


def _way_out(wrong: Collection[ElementChange]) -> str:
    if any(change.change == "incompatible" for change in wrong):
        return (
            "Take these changes back, or undeploy the pipeline and deploy it again: it then "
            "starts without its present state."
        )
    lost = "; ".join(f"{change.element} loses {change.loses}" for change in wrong)
    named = ", ".join(f'"{change.element}"' for change in wrong)
    return (
        "Take these changes back, or let only these elements start without their state: deploy "
        f"with restart: [{named}]. {lost}. Each of them reads on in its input; the others are not affected."
    )


def _refuse_now(deployment: Deployment, document: dict[str, Any]) -> None:
    name = deployment.pipeline.title
    going = deployment.operations.filter(status__in=[Operation.Status.PENDING, Operation.Status.RUNNING])
    if going.exists():
        raise Conflict(f'"{name}" is being upgraded already.', safe=SAFE, next="Wait until that has ended.")
    new = planned_for(deployment, document)
    old = specs_of(deployment)
    groups = group_changes(old, new)
    changed, removed = ([group.group for group in each] for each in (groups.changed, groups.removed))
    ending = [*changed, *removed]
    moving = Handover.objects.filter(deployment=deployment, group__in=ending, outcome__isnull=True).first()
    if moving is not None:
        raise Conflict(
            f'"{moving.element}" is being moved, so it cannot be upgraded or removed now.',
            safe=SAFE,
            next="Deploy again when its handover has ended.",
        )
    # The others go on where these stopped, so these have to report where that is.
    connected = reconnections(old, new, left_over_of(deployment))
    givers = connected.givers.intersection(removed)
    paused = deployment.placements.filter(group__in=connected.ends, paused_at__isnull=False).first()
    if paused is not None:
        raise Conflict(
            f'"{deployment.name_of(paused.group)}" is paused, so its group cannot change now.',
            safe=SAFE,
            next="Resume it, then deploy again.",
        )
    _refuse_what_stands_still(deployment, connected)
    silent = deployment.placements.filter(group__in=[*changed, *givers], node__up=False)
    for placement in silent.select_related("node"):
        done = "removed" if placement.group in givers else "upgraded"
        if placement.group in connected.ends:
            done = "put into other groups"
        group, node = deployment.name_of(placement.group), placement.node.name
        raise Conflict(
            f'"{group}" cannot be {done}: its node {node} does not answer.',
            safe=SAFE,
            next="Restore it on another node, then deploy again.",
        )


def _refuse_what_stands_still(deployment: Deployment, connected: Reconnections) -> None:
    """Refuses the upgrade if a group has to read what others left for it and cannot: the upgrade would end
    these others first."""
    readers = {last.group for last in connected.last_rows}
    for placement in deployment.placements.filter(group__in=readers):
        copies = deployment.replicas.filter(group=placement.group, node=placement.node_id)
        if any(copy.status.get("error") for copy in copies):
            name = deployment.name_of(placement.group)
            raise Conflict(
                f'"{name}" shows an error, and must run again before its groups or connections can change.',
                safe=SAFE,
                next="Correct it first without other changes, then deploy again.",
            )


def _views(deployment: Deployment, document: dict[str, Any]) -> list[ElementChange]:
    """Returns the views. No node runs views, so people may add, change and remove them freely."""
    before = {
        item["id"]: item for item in elements_of(deployment.version.document) if is_view(item.get("type"))
    }
    after = {item["id"]: item for item in elements_of(document) if is_view(item.get("type"))}
    found = []
    for id, item in after.items():
        keys = ("type", "params", "inputs")
        same = id in before and all(before[id].get(key) == item.get(key) for key in keys)
        change = "unchanged" if same else "upgraded" if id in before else "added"
        found.append(ElementChange(element=id, change=change, view=True))
    found += [ElementChange(element=id, change="removed", view=True) for id in before if id not in after]
    return found
