"""Reads from the database what placement needs: the nodes and what is free there, what groups need, and lines
and what they carry."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from pipeline_runtime.model.document import PipelineDocument, parse_reference
from pipeline_runtime.model.ids import document_group
from pipeline_runtime.placement.choose import Placed, choose_target
from pipeline_runtime.placement.constraints import Candidate, Flows, Ground, GroupToPlace, Room, warnings
from pipeline_runtime.placement.links import Latencies
from pipeline_runtime.placement.needs import NOTHING, GroupUse, Need, NodeUse, need_of
from webapp.nodes.links import site_links, stream_ways
from webapp.nodes.models import Node
from webapp.pipelines.shape import apart_of, names_of
from webapp.placements.group_state import rows_per_s
from webapp.placements.models import Deployment, GroupPlacement, Replica

Copy = tuple[str, str, str]
"""(deployment, group, node)."""


@dataclass(frozen=True)
class Runs:
    """A group as it runs, or will run."""

    deployment: str
    group: str
    node: str
    kinds: Mapping[str, str]  # element -> type
    reads: frozenset[str]  # streams, "element.port"

    @property
    def kind(self) -> tuple[str, ...]:
        return kind_of(self.kinds.values())


def kind_of(types: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(types))


def candidate(node: Node, elements: int = 0, coming: Need = NOTHING) -> Candidate:
    """Returns a node in the form that placement uses. `elements` run or will run there; `coming` are the
    needs of those elements that the node does not report yet."""
    load = _mapping(node.load)
    total, used = load.get("memory_total_bytes"), load.get("memory_ratio")
    return Candidate(
        node.name,
        node.up,
        node.ready,
        node.closed,
        elements,
        node.place,
        cpu_ratio=load.get("cpu_ratio") or 0.0,
        cores=node.cores,
        memory_free_bytes=total * (1 - used) if total and used is not None else None,
        machine=machine_of(node),
        coming=coming,
    )


def machine_of(node: Node) -> str:
    """Returns the machine of a node: nodes that others reach at the same host count as one machine. Empty if
    the host is not known."""
    return urlsplit(node.url).hostname or ""


class Fleet:
    """The facts of one moment. `coming` are copies that were ordered and that no row shows yet."""

    def __init__(self, coming: Collection[Copy] = ()) -> None:
        self.rows = {node.name: node for node in Node.objects.all()}
        self.groups = {(each.deployment, each.group): each for each in _running()}
        self._uses: list[GroupUse] = []
        self._needs: dict[tuple[str, ...], Need] = {}
        self._sent: dict[tuple[str, str], float] = {}  # (deployment, stream) -> bytes/s
        self._there: set[Copy] = set()  # that nodes report
        for id, group, node, role, rates in _copies():
            runs = self.groups.get((id, group))
            if runs is None:
                continue
            self._there.add((id, group, node))
            owns = role == "owner"
            self._uses.append(GroupUse(runs.kind, node, rows_per_s(rates), owns))
            if owns:
                self._sent |= {
                    (id, stream): rate for stream, rate in (rates.get("bytes_per_s") or {}).items()
                }
        self.nodes = self._candidates({*coming})

    def _candidates(self, coming: set[Copy]) -> list[Candidate]:
        elements: dict[str, int] = {}
        needs: dict[str, Need] = {}
        wanted = {(each.deployment, each.group, each.node) for each in self.groups.values()} | coming
        for id, group, node in sorted(wanted):
            runs = self.groups.get((id, group))
            if runs is None:
                continue
            elements[node] = elements.get(node, 0) + len(runs.kinds)
            if (id, group, node) not in self._there:
                needs[node] = needs.get(node, NOTHING) + self.need(runs.kind)
        return [
            candidate(node, elements.get(name, 0), needs.get(name, NOTHING))
            for name, node in self.rows.items()
        ]

    def need(self, kind: tuple[str, ...]) -> Need:
        if kind not in self._needs:
            self._needs[kind] = need_of(kind, self._uses, self._node_uses)
        return self._needs[kind]

    @cached_property
    def _node_uses(self) -> dict[str, NodeUse]:
        return {name: _use(node) for name, node in self.rows.items()}

    # -- lines -------------------------------------------------------------------------------------------

    @cached_property
    def _lines(self) -> tuple[Latencies, dict[tuple[str, str], float | None]]:
        links = site_links()
        return (
            stream_ways(links),
            {(link.a, link.b): link.bytes_per_s for link in links},
        )

    def ground(self, deployment: str | None, flows: Flows, names: Mapping[str, str]) -> Ground:
        """Returns the ground on which placement decides. `flows` and `names` are those of the pipeline's
        groups, by the ids under which they are placed."""
        latencies, rates = self._lines
        return Ground(latencies, rates, flows, self._carried_but_for(deployment), names)

    def _carried_but_for(self, deployment: str | None) -> dict[tuple[str, str], float]:
        found: dict[tuple[str, str], float] = {}
        for id in self._members.keys() - {deployment}:
            for (origin, reader), rate in self.flows_of(id).items():
                ends = [self.rows[self.groups[id, group].node].place for group in (origin, reader)]
                if ends[0] != ends[1]:
                    found[ends[0], ends[1]] = found.get((ends[0], ends[1]), 0.0) + rate
        return found

    def flows_of(self, deployment: str) -> Flows:
        """Returns the flows among the deployment's groups as they run."""
        home = self._home(deployment)
        found: dict[tuple[str, str], float] = {}
        for runs in self._members.get(deployment, ()):
            for stream in runs.reads:
                _add_flow(
                    found,
                    home.get(parse_reference(stream)[0]),
                    runs.group,
                    self._sent.get((deployment, stream)),
                )
        return found

    def flows_by(
        self, document: PipelineDocument, group_of: Mapping[str, str], deployment: str | None
    ) -> Flows:
        """Returns the flows once the document is deployed. `group_of` maps each element that nodes run to its
        group.

        A stream's rate is known if its element runs already.
        """
        found: dict[tuple[str, str], float] = {}
        streams = {
            (".".join(parse_reference(reference)), group_of[element.id])
            for element in document.spec.elements
            if element.id in group_of
            for reference in element.inputs.values()
        }
        for stream, reader in sorted(streams):
            origin = group_of.get(parse_reference(stream)[0])
            _add_flow(found, origin, reader, self._sent.get((deployment or "", stream)))
        return found

    def _home(self, deployment: str) -> dict[str, str]:
        """Returns element -> the group that it runs in."""
        return {element: runs.group for runs in self._members.get(deployment, ()) for element in runs.kinds}

    @cached_property
    def _members(self) -> dict[str, list[Runs]]:
        """Returns deployment -> its groups, with where they ran when this was first called."""
        found: dict[str, list[Runs]] = {}
        for runs in self.groups.values():
            found.setdefault(runs.deployment, []).append(runs)
        return found

    # -- a group that runs -------------------------------------------------------------------------------

    def runs_on(self, deployment: str) -> dict[str, str]:
        groups = [runs.group for runs in self._members.get(deployment, ())]
        return {group: self.groups[deployment, group].node for group in groups}

    def apart_of(self, deployment: Deployment, group: str) -> frozenset[str]:
        home = self._home(deployment.pk)
        return apart_groups(deployment.version.document, home).get(group, frozenset())

    def apart_nodes(self, deployment: Deployment, group: str) -> frozenset[str]:
        """Returns the nodes that run a group which this one must not share a node with."""
        runs_on = self.runs_on(deployment.pk)
        return frozenset(runs_on[other] for other in self.apart_of(deployment, group) if other in runs_on)

    def _to_move(self, deployment: Deployment, group: str, without: Iterable[str]) -> GroupToPlace:
        runs = self.groups[deployment.pk, group]
        home, here = self._home(deployment.pk), self.rows.get(runs.node)
        producers = {home.get(parse_reference(stream)[0]) for stream in runs.reads} - {None, group}
        return GroupToPlace(
            group,
            len(runs.kinds),
            reads=frozenset(each for each in producers if each is not None),
            apart=self.apart_of(deployment, group),
            without=frozenset({runs.node, *without}),
            need=self.need(runs.kind),
            machine=machine_of(here) if here is not None and here.up else "",
        )

    def _ground_of(self, deployment: Deployment) -> Ground:
        names = names_of(deployment.version.document)
        called = {
            group: names.get(document_group(group), document_group(group))
            for group in self.runs_on(deployment.pk)
        }
        return self.ground(deployment.pk, self.flows_of(deployment.pk), called)

    def target(
        self,
        deployment: Deployment,
        group: str,
        *,
        without: Iterable[str] = (),
        planned: str = "",
        at_any_cost: bool = False,
    ) -> Placed:
        """Returns where a placed group goes when it has to leave its node. Raises NoPlacement.

        `at_any_cost`: the group would not run otherwise. It still stays apart from the groups from which it
        must.
        """
        keep, ground = self.runs_on(deployment.pk), self._ground_of(deployment)
        moved = self._to_move(deployment, group, without)
        return choose_target(moved, self.nodes, keep, ground, planned, at_any_cost=at_any_cost)

    def warnings(self, deployment: Deployment, group: str) -> dict[str, list[str]]:
        """Returns node -> the reasons against moving the group there. A person may still move it."""
        if (deployment.pk, group) not in self.groups:
            return {}
        moved = self._to_move(deployment, group, ())
        room = Room(self.nodes, self._ground_of(deployment), self.runs_on(deployment.pk))
        return {
            node.name: warnings(moved, node, room) for node in self.nodes if node.name not in moved.without
        }

    # -- what if -----------------------------------------------------------------------------------------

    def lose(self, node: str) -> None:
        """Counts the node as one that does not answer."""
        self.rows[node].up = False
        self.nodes = [replace(each, up=False) if each.name == node else each for each in self.nodes]

    def move(self, deployment: str, group: str, node: str) -> None:
        """Counts the group as ordered to the node."""
        runs = self.groups[deployment, group]
        self.groups[deployment, group] = replace(runs, node=node)
        # A standby there already has what it needs.
        follows = (deployment, group, node) in self._there
        more, need = len(runs.kinds), NOTHING if follows else self.need(runs.kind)
        self.nodes = [
            replace(each, elements=each.elements + more, coming=each.coming + need)
            if each.name == node
            else each
            for each in self.nodes
        ]


def apart_groups(document: dict[str, Any], group_of: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Returns group -> those that it must not share a node with. `group_of` maps each element that nodes run
    to its group."""
    found: dict[str, set[str]] = {}
    for element, others in apart_of(document).items():
        if element in group_of:
            there = {group_of[other] for other in others if other in group_of}
            found.setdefault(group_of[element], set()).update(there - {group_of[element]})
    return {group: frozenset(others) for group, others in found.items()}


def _add_flow(
    found: dict[tuple[str, str], float], origin: str | None, reader: str, rate: float | None
) -> None:
    if origin is not None and origin != reader and rate is not None:
        found[origin, reader] = found.get((origin, reader), 0.0) + rate


def _running() -> Iterable[Runs]:
    # Specs are large, so only the parts that are used are parsed.
    rows = GroupPlacement.objects.filter(deployment__status__in=Deployment.ACTIVE)
    for id, group, node, elements, inputs in rows.values_list(
        "deployment_id", "group", "node__name", "spec__elements", "spec__inputs"
    ):
        yield Runs(
            id,
            group,
            node,
            {each["id"]: each["type"] for each in _mappings(elements)},
            frozenset(each["source"] for each in _mappings(inputs) if not each.get("external")),
        )


def _copies() -> Iterable[tuple[str, str, str, str, dict[str, Any]]]:
    rows = Replica.objects.filter(deployment__status__in=Deployment.ACTIVE).exclude(role="stopped")
    for id, group, node, role, rates in rows.values_list(
        "deployment_id", "group", "node__name", "role", "rates"
    ):
        yield id, group, node, role, _mapping(rates)


def _mapping(value: object) -> dict[str, Any]:
    """Returns the value if it is a mapping, or else {}. So a row that cannot be read does not prevent the
    placement of other groups."""
    return value if isinstance(value, dict) else {}


def _mappings(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _use(node: Node) -> NodeUse:
    load = _mapping(node.load)
    java = load.get("java_bytes") or 0  # 0: it does not run
    return NodeUse(
        node.cores, load.get("cpu_ratio") or 0.0, (load.get("memory_bytes") or 0) - java if java else 0
    )
