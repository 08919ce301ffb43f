"""Says where a deployment would put a pipeline's groups, and why. Control places groups by the same code."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pipeline_runtime.model.document import PipelineDocument, parse_document
from pipeline_runtime.model.ids import document_group
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.placement.choose import place
from pipeline_runtime.placement.constraints import Ground, GroupToPlace
from pipeline_runtime.placement.needs import NOTHING
from pipeline_runtime.planning.plan import group_of, pins, reads, sites
from pipeline_runtime.planning.regroup import elements_of
from webapp.pipelines.shape import is_view, names_of
from webapp.placements.fleet import Fleet, apart_groups, kind_of
from webapp.placements.models import Deployment
from webapp.placements.schemas import DeployChange
from webapp.placements.selectors import nodes_before, planned_for, specs_of


def asked_nodes(document: PipelineDocument, placement: Mapping[str, str]) -> dict[str, str | None]:
    """Returns group -> node: the document's pins, overridden by the choices made with the deployment."""
    asked = pins(document)
    asked |= {group_of(document, key): node for key, node in placement.items()}
    return asked


def groups_to_place(
    specs: Iterable[GroupSpec],
    document: PipelineDocument,
    deployment: Deployment,
    fleet: Fleet,
) -> tuple[list[GroupToPlace], Ground]:
    """Returns the groups, each with the place chosen for it. Groups with new members stay where their first
    element is, if they can."""
    asked, pinned = asked_nodes(document, deployment.placement), pins(document)
    at, before, specs = sites(document), reads(document), tuple(specs)
    called = {document_group(spec.group): spec.group for spec in specs}
    wanted = {group_of(document, key) for key in deployment.placement}
    names = names_of(deployment.version.document)
    runs_on = nodes_before(deployment)
    free = {node.name for node in fleet.nodes if node.up and node.closed is None}
    group_of_element = {each.id: spec.group for spec in specs for each in spec.elements}
    apart = apart_groups(document.to_data(), group_of_element)

    def to_place(spec: GroupSpec) -> GroupToPlace:
        group, elements = document_group(spec.group), len(spec.elements)
        there = next((node for each in spec.elements if (node := runs_on.get(each.id)) in free), None)
        need = fleet.need(kind_of(each.type for each in spec.elements))
        asks = GroupToPlace(spec.group, elements, apart=apart.get(spec.group, frozenset()), need=need)
        # The choices made with the first deployment say nothing about what was moved since.
        if there is None and group in wanted:
            return replace(asks, pin=asked[group], pinned_by="the deployment asked for it")
        if node := pinned.get(group):
            by = _pinned_by(document, spec.elements[0].id, group, names)
            return replace(asks, pin=node, pinned_by=by)
        return replace(
            asks,
            pin=there,
            pinned_by="the elements that it runs together with ran there",
            site=at.get(group),
            reads=frozenset(called[other] for other in before[group] if other in called),
            need=need if there is None else NOTHING,
        )

    flows = fleet.flows_by(document, group_of_element, deployment.pk)
    titles = {spec.group: names.get(document_group(spec.group), spec.group) for spec in specs}
    return [to_place(spec) for spec in specs], fleet.ground(deployment.pk, flows, titles)


def places_of_regrouped(deployment: Deployment, document: dict[str, Any]) -> dict[str, DeployChange]:
    """Returns where elements of a valid document that will run in another group go, if that is not where they
    run. In the form of `first_placement`."""
    runs_on, fleet = nodes_before(deployment), Fleet()
    there = {spec.group for spec in specs_of(deployment)}
    specs = [spec for spec in planned_for(deployment, document) if spec.group not in there]
    groups, ground = groups_to_place(specs, parse_document(document), deployment, fleet)
    placed, faults = place(groups, fleet.nodes, fleet.runs_on(deployment.pk), ground)
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
                    "why": "with the elements that it runs together with",
                }
    return found


def first_placement(
    document: dict[str, Any],
    placement: Mapping[str, str],
    only: Collection[str] | None = None,
    running: Deployment | None = None,
) -> list[DeployChange]:
    """Returns {element, change: "added", node, why, problem, warning} for each element of a valid document,
    in its order.

    `node` is None if only the dashboard shows the element, or if `problem` says why no node can take it. With
    `waits` that may pass by itself: a deployment waits for nodes that are starting. `only` holds the elements
    that are added to what runs already in `running`. Without it, nothing runs yet.
    """
    parsed, names = parse_document(document), names_of(document)
    members: dict[str, list[str]] = {}
    elements = [element for element in parsed.spec.elements if only is None or element.id in only]
    for element in elements:
        if not is_view(element.type):
            members.setdefault(group_of(parsed, element.id), []).append(element.id)
    asked = asked_nodes(parsed, placement)
    wanted = {group_of(parsed, key) for key in placement}
    at, before, fleet = sites(parsed), reads(parsed), Fleet()
    types = {element.id: element.type for element in parsed.spec.elements if not is_view(element.type)}
    home = {id: group_of(parsed, id) for id in types}
    apart = apart_groups(document, home)
    groups = [
        GroupToPlace(
            group,
            len(ids),
            asked.get(group),
            site=at.get(group),
            reads=before[group],
            apart=apart.get(group, frozenset()),
            need=fleet.need(kind_of(types[id] for id in ids)),
        )
        for group, ids in members.items()
    ]
    runs_on = (
        {document_group(each.group): each.node.name for each in running.placements.select_related("node")}
        if running is not None
        else {}
    )
    keep = {group: node for group, node in runs_on.items() if group not in members}
    deployed = running.pk if running is not None else None
    ground = fleet.ground(deployed, fleet.flows_by(parsed, home, deployed), names)
    placed, faults = place(groups, fleet.nodes, keep, ground)
    problems = {fault.group: fault for fault in faults}
    found: list[DeployChange] = []
    for element in elements:
        group = group_of(parsed, element.id)
        told: DeployChange = {"element": element.id, "change": "added", "node": None, "waits": False}
        if is_view(element.type):
            told |= {"why": "the dashboard shows it", "problem": None, "view": True}
        elif group in problems:
            told |= {"why": None, "problem": problems[group].message, "waits": problems[group].passing}
        else:
            why = placed[group].why
            if group in wanted:
                why = "this deployment asks for it"
            elif asked.get(group):
                why = _pinned_by(parsed, element.id, group, names)
            told |= {
                "node": placed[group].node,
                "why": why,
                "problem": None,
                "warning": placed[group].warning or None,
            }
        found.append(told)
    return found


def _pinned_by(document: PipelineDocument, id: str, group: str, names: Mapping[str, str]) -> str:
    pinned = [
        element.id
        for element in document.spec.elements
        if element.node is not None and group_of(document, element.id) == group
    ]
    if id in pinned or not pinned:
        return "the draft names this node"
    return f"it runs as one with {names[pinned[0]]}, for which the draft names this node"
