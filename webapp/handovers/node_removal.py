"""Removes a node, and says what prevents that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from django.db import transaction
from django.utils import timezone

from pipeline_runtime.model.ids import document_group
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.handovers.models import Handover
from webapp.nodes.models import EnrolmentToken, Node
from webapp.pipelines.shape import names_of
from webapp.placements.models import Deployment, ExtraReplica, GroupPlacement
from webapp.placements.selectors import active_deployments
from webapp.problems import Conflict, Missing


@transaction.atomic
def remove(actor: User, name: str) -> None:
    """Revokes open invitations for the name, and removes the node if it has nothing to run."""
    require(actor, Role.ADMIN, "remove nodes")
    now = timezone.now()
    revoked = EnrolmentToken.objects.filter(
        node_name=name, used_at=None, revoked_at=None, expires_at__gt=now
    ).update(revoked_at=now)
    # Locked before the rows that belong to it, in the same order in which control locks them.
    node = Node.objects.select_for_update().filter(name=name).first()
    if node is None and not revoked:
        raise Missing(
            f'There is no node "{name}", nor an open invitation for one.', next="See the list of nodes."
        )
    if node is not None:
        needed = removal_refusals().get(name)
        if needed is not None:
            raise Conflict(
                f'"{name}" cannot be removed: {needed.why}.', safe="Nothing was removed.", next=needed.next
            )
        # Operations that ended long ago may still point here. Those rows go with their deployment's history.
        GroupPlacement.objects.filter(node=node).exclude(deployment__status__in=Deployment.ACTIVE).delete()
        node.delete()
    audit(actor, "node.remove", name, revoked_tokens=revoked)
    announce()


class Names(NamedTuple):
    """What users see of a deployment: its pipeline's title, and the names of its elements and groups."""

    pipeline: str
    title: str
    members: dict[str, str]


Called = dict[str, Names]
"""Deployment -> its names."""


def names_by_deployment(deployments: Iterable[Deployment]) -> Called:
    return {
        row.pk: Names(row.pipeline.name, row.pipeline.title, names_of(row.version.document))
        for row in deployments
    }


class Needed(NamedTuple):
    """Why a node cannot be removed now, and what to do first."""

    why: str
    next: str

    @property
    def words(self) -> str:
        return f"{self.why}. {self.next}"


def removal_refusals(called: Called | None = None) -> dict[str, Needed]:
    """Returns node -> why nobody can remove it now. A node that is missing in the result can be removed."""
    to_run: dict[str, list[str]] = {}
    active = names_by_deployment(active_deployments()) if called is None else called

    def name(deployment: str, group: str) -> str:
        names = active.get(deployment)
        if names is None:
            return group
        return f"{names.members.get(document_group(group), document_group(group))} of {names.title}"

    placed = GroupPlacement.objects.filter(deployment__in=active)
    for node, deployment, group in placed.values_list("node__name", "deployment", "group"):
        to_run.setdefault(node, []).append(name(deployment, group))
    found = {
        node: Needed(
            f"it should run {', '.join(sorted(groups))}",
            "Drain it, or restore those elements on another node, first.",
        )
        for node, groups in to_run.items()
    }
    for handover in Handover.objects.filter(outcome__isnull=True):
        moving = name(handover.deployment_id, handover.group)
        for node in (handover.origin, handover.target):
            going = Needed(f"{moving} is being moved from it or to it", "Wait until that has ended.")
            found.setdefault(node, going)
    # An extra copy that is no standby is the origin of a move whose target does not own yet. A standby would
    # be only a convenience, and prevents nothing.
    kept = ExtraReplica.objects.filter(deployment__in=active).exclude(role="standby")
    for node, deployment, group in kept.values_list("node__name", "deployment", "group"):
        state = (
            f"it keeps the state of {name(deployment, group)}, perhaps the newest, until that runs elsewhere"
        )
        found.setdefault(node, Needed(state, "Wait for that, or restore it."))
    return found
