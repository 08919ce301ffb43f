"""The facts of a deployed group, from the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.db.models.fields.json import KT

from webapp.handovers.models import Handover
from webapp.nodes.models import Node
from webapp.pipelines.selectors import no_element, pipeline_named
from webapp.pipelines.shape import element_of, group_of, is_view, names_of
from webapp.placements.fleet import Copy
from webapp.placements.group_state import GroupFacts, NodeFacts, ReplicaFacts, StandbyFacts
from webapp.placements.models import Deployment, ExtraReplica, GroupPlacement, Replica
from webapp.placements.selectors import active_deployment, elements_by_group, held
from webapp.problems import Conflict


def node_facts(heard: bool = True) -> dict[str, NodeFacts]:
    return {
        node.name: NodeFacts(node.name, node.up, node.ready, node.closed, heard)
        for node in Node.objects.all()
    }


def coming() -> set[Copy]:
    """Returns the copies that are on their way to each node. When many groups leave a node at once, these
    counts keep them from all going to the same node."""
    under_way = Handover.objects.filter(outcome__isnull=True)
    return set(under_way.values_list("deployment_id", "group", "target"))


def group_facts(deployments: Iterable[Deployment], heard: bool = True) -> dict[str, dict[str, GroupFacts]]:
    """Returns facts by deployment, then by group. A group without a placement is left out. `heard` says
    whether control hears the nodes."""
    by_id = {deployment.pk: deployment for deployment in deployments}
    nodes = node_facts(heard)
    replicas: dict[tuple[str, str], list[ReplicaFacts]] = {}
    for row in Replica.objects.filter(deployment__in=by_id).select_related("node").order_by("node__name"):
        replicas.setdefault((row.deployment_id, row.group), []).append(
            ReplicaFacts(row.node.name, row.role, row.epoch, row.seq, row.status, row.rates)
        )
    standbys: dict[tuple[str, str], list[StandbyFacts]] = {}
    extras = ExtraReplica.objects.filter(deployment__in=by_id, role="standby").select_related("node")
    for extra in extras.order_by("-wanted", "node__name"):
        standbys.setdefault((extra.deployment_id, extra.group), []).append(
            StandbyFacts(extra.node.name, extra.wanted)
        )
    handovers = {
        (row.deployment_id, row.group): row
        for row in Handover.objects.filter(deployment__in=by_id, outcome__isnull=True)
    }
    elements = elements_by_group(by_id)
    unfinished = Deployment.objects.filter(operations__kind="upgrade", operations__ended_at__isnull=True)
    upgrading = set(unfinished.filter(pk__in=by_id).values_list("pk", flat=True))
    found: dict[str, dict[str, GroupFacts]] = {id: {} for id in by_id}
    # Specs are large, so only the parts that are shown are parsed.
    placements = GroupPlacement.objects.filter(deployment__in=by_id).defer("spec").select_related("node")
    for placement in placements.annotate(follow=KT("spec__follow")):
        key = (placement.deployment_id, placement.group)
        found[placement.deployment_id][placement.group] = GroupFacts(
            group=placement.group,
            elements=elements.get(key, ()),
            deployment_status=by_id[placement.deployment_id].status,
            node=placement.node.name,
            role=placement.role,
            paused=placement.paused_at is not None,
            resumed_at=placement.resumed_at,
            retire=placement.retire,
            follow=placement.follow or "exact",
            fresh_from=placement.fresh_from,
            upgrading=placement.deployment_id in upgrading,
            handover=str(handovers[key].pk) if key in handovers else None,
            restoring=key in handovers and handovers[key].kind == Handover.Kind.RESTORATION,
            replicas=tuple(replicas.get(key, ())),
            standbys=tuple(standbys.get(key, ())),
            nodes=nodes,
            held=held(placement),
            recovery_node=placement.recovery_node,
            backlog_rows=placement.backlog_rows,
        )
    return found


def facts_by_element(facts: Mapping[str, GroupFacts]) -> dict[str, GroupFacts]:
    """Returns facts by element. `facts` are those of the groups of a deployment. While an upgrade groups
    elements differently, and after such an upgrade failed, some elements run in other groups than their
    document says."""
    return {id: group for group in facts.values() for id in group.elements}


def group_id(deployment: Deployment, element: str) -> str:
    """Returns the id of the group that the element runs in, or will run in."""
    facts = facts_by_element(group_facts([deployment])[deployment.pk]).get(element)
    return group_of(deployment.version.document, element) if facts is None else facts.group


def deployed_group(name: str, element: str, doing: str) -> tuple[Deployment, GroupFacts]:
    """Returns the group of an element of a deployed pipeline, or raises the refusal. Asks only the database,
    because transactions call it."""
    pipeline = pipeline_named(name)
    deployment = active_deployment(pipeline)
    document = deployment.version.document if deployment else pipeline.draft
    found = element_of(document, element)
    if found is None:
        raise no_element(name, element)
    title = names_of(document)[element]
    if deployment is None:
        raise Conflict(
            f"{title} cannot {doing}: {pipeline.title} is not deployed.",
            safe="Nothing was changed.",
            next="Deploy the pipeline first.",
        )
    if is_view(found.get("type")):
        raise Conflict(
            f"{title} cannot {doing}: it is shown by the dashboard and runs on no node.",
            safe="Nothing was changed.",
            next="Choose an element that runs on a node.",
        )
    facts = facts_by_element(group_facts([deployment])[deployment.pk]).get(element)
    group = group_of(deployment.version.document, element)
    return deployment, facts or GroupFacts(group=group, deployment_status=deployment.status)
