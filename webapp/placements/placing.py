"""Where a deployment would put a pipeline's groups, and why; the control side places by the same."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pipeline_runtime.model.document import PipelineDocument, parse_document
from pipeline_runtime.model.ids import document_group
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.placement.choose import Candidate, GroupToPlace, place
from pipeline_runtime.planning.plan import group_of, pins, reads, sites
from pipeline_runtime.planning.regroup import elements_of
from webapp.nodes.links import latencies
from webapp.nodes.models import Node
from webapp.pipelines.shape import is_view, names_of
from webapp.placements.models import Deployment, GroupPlacement
from webapp.placements.schemas import DeployChange
from webapp.placements.selectors import nodes_before, planned_for, specs_of


def candidates() -> list[Candidate]:
    """The registered nodes as placement sees them."""
    elements: dict[int, int] = {}
    for placement in GroupPlacement.objects.filter(deployment__status__in=Deployment.ACTIVE):
        elements[placement.node_id] = elements.get(placement.node_id, 0) + len(placement.spec["elements"])
    return [candidate(node, elements.get(node.pk, 0)) for node in Node.objects.all()]


def candidate(node: Node, elements: int = 0) -> Candidate:
    """`elements`: how many run or shall run there."""
    cpu_ratio = node.load.get("cpu_ratio", 0.0)
    return Candidate(node.name, node.up, node.ready, node.closed, elements, node.place, cpu_ratio)


def asked_nodes(document: PipelineDocument, placement: Mapping[str, str]) -> dict[str, str | None]:
    """Group -> node: the document's pins, and over them what is asked for with the deployment."""
    asked = pins(document)
    asked |= {group_of(document, key): node for key, node in placement.items()}
    return asked


def groups_to_place(
    specs: Iterable[GroupSpec],
    document: PipelineDocument,
    deployment: Deployment,
    nodes: Iterable[Candidate],
) -> list[GroupToPlace]:
    """With where each is asked for. What is grouped otherwise stays where its first element is, if it can."""
    asked, pinned = asked_nodes(document, deployment.placement), pins(document)
    at, before, specs = sites(document), reads(document), tuple(specs)
    called = {document_group(spec.group): spec.group for spec in specs}
    wanted = {group_of(document, key) for key in deployment.placement}
    names = names_of(deployment.version.document)
    runs_on = nodes_before(deployment)
    free = {node.name for node in nodes if node.up and node.closed is None}

    def to_place(spec: GroupSpec) -> GroupToPlace:
        group, elements = document_group(spec.group), len(spec.elements)
        there = next((node for each in spec.elements if (node := runs_on.get(each.id)) in free), None)
        # What was asked for with the first deployment says nothing of what has been moved since.
        if there is None and group in wanted:
            return GroupToPlace(spec.group, elements, asked[group], "it was asked for with the deployment")
        if node := pinned.get(group):
            by = _pinned_by(document, spec.elements[0].id, group, names)
            return GroupToPlace(
                spec.group, elements, node, "the document pins it there" if by == "pinned" else by
            )
        return GroupToPlace(
            spec.group,
            elements,
            there,
            "what it runs together with ran there",
            site=at.get(group),
            reads=frozenset(called[other] for other in before[group] if other in called),
        )

    return [to_place(spec) for spec in specs]


def places_of_regrouped(deployment: Deployment, document: dict[str, Any]) -> dict[str, DeployChange]:
    """Of the elements of a valid document that run in another group from then on: where that is, if it is not
    where they run, as of `first_placement`."""
    runs_on, nodes = nodes_before(deployment), candidates()
    there = {spec.group for spec in specs_of(deployment)}
    specs = [spec for spec in planned_for(deployment, document) if spec.group not in there]
    groups = groups_to_place(specs, parse_document(document), deployment, nodes)
    placed, faults = place(groups, nodes, latencies=latencies())
    problems = {fault.group: fault for fault in faults}
    found: dict[str, DeployChange] = {}
    for spec in specs:
        for id in elements_of(spec) & runs_on.keys():
            told: DeployChange = {"element": id, "change": "upgraded"}
            if fault := problems.get(spec.group):
                found[id] = {**told, "problem": fault.message, "waits": fault.passing}
            elif placed[spec.group].node != runs_on[id]:
                found[id] = {
                    **told,
                    "node": placed[spec.group].node,
                    "why": "with what it runs together with",
                }
    return found


def first_placement(
    document: dict[str, Any],
    placement: Mapping[str, str],
    only: Collection[str] | None = None,
    running: Deployment | None = None,
) -> list[DeployChange]:
    """Of each element of a valid document, in its order: {element, change: "added", node, why, problem}.

    `node` None: only the dashboard shows it, or `problem` says why no node can take it. With `waits`, that
    may pass by itself: a deployment waits for nodes that are starting. `only`: the elements that come to
    what runs already, as `running`; None: nothing does.
    """
    parsed, names = parse_document(document), names_of(document)
    members: dict[str, list[str]] = {}
    elements = [element for element in parsed.spec.elements if only is None or element.id in only]
    for element in elements:
        if not is_view(element.type):
            members.setdefault(group_of(parsed, element.id), []).append(element.id)
    asked = asked_nodes(parsed, placement)
    wanted = {group_of(parsed, key) for key in placement}
    at, before = sites(parsed), reads(parsed)
    groups = [
        GroupToPlace(group, len(ids), asked.get(group), site=at.get(group), reads=before[group])
        for group, ids in members.items()
    ]
    runs_on = (
        {document_group(each.group): each.node.name for each in running.placements.select_related("node")}
        if running is not None
        else {}
    )
    keep = {group: node for group, node in runs_on.items() if group not in members}
    placed, faults = place(groups, candidates(), keep, latencies())
    problems = {fault.group: fault for fault in faults}
    found: list[DeployChange] = []
    for element in elements:
        group = group_of(parsed, element.id)
        told: DeployChange = {"element": element.id, "change": "added", "node": None, "waits": False}
        if is_view(element.type):
            told |= {"why": "the dashboard itself shows it", "problem": None}
        elif group in problems:
            told |= {"why": None, "problem": problems[group].message, "waits": problems[group].passing}
        else:
            why = placed[group].why
            if group in wanted:
                why = "asked for with this deployment"
            elif asked.get(group):
                why = _pinned_by(parsed, element.id, group, names)
            told |= {"node": placed[group].node, "why": why, "problem": None}
        found.append(told)
    return found


def _pinned_by(document: PipelineDocument, id: str, group: str, names: Mapping[str, str]) -> str:
    pinned = [
        element.id
        for element in document.spec.elements
        if element.node is not None and group_of(document, element.id) == group
    ]
    if id in pinned or not pinned:
        return "pinned"
    return f"it runs as one with {names[pinned[0]]}, which is pinned there"
