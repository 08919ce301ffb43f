"""Compares the nodes to which a group may move: their room, their ways to the group's neighbours, and how
much of its state they have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline_runtime.model.document import parse_reference
from pipeline_runtime.placement.links import Latencies
from pipeline_runtime.placement.move_cost import (
    Change,
    Neighbours,
    Rates,
    Spot,
    downstream_ms,
    move_cost,
    upstream_ms,
)
from pipeline_runtime.placement.policy.facts import GroupNow
from pipeline_runtime.placement.policy.look import share_of
from webapp.handovers.facts import coming
from webapp.handovers.schemas import BeforeAfter, MoveCost, OtherNode
from webapp.nodes.links import site_links, stream_ways
from webapp.nodes.models import Node
from webapp.placements.fleet import Fleet, machine_of
from webapp.placements.group_state import GroupFacts, rows_per_s, target_refusal
from webapp.placements.models import Deployment, Replica


@dataclass(frozen=True)
class Surroundings:
    """What surrounds one group that has a node."""

    spots: Mapping[str, Spot]  # by name, for all nodes
    latencies: Latencies  # of a stream's row
    lines: Latencies
    rates: Rates
    neighbours: Neighbours
    share: float | None  # of its node's CPU, 0..1; None when it is not known


def surroundings(deployment: Deployment, group: GroupFacts) -> Surroundings:
    spots = {node.name: _spot(node) for node in Node.objects.all()}
    here = spots.get(group.node or "")
    cpu = here.cpu_ratio if here is not None else None
    links = site_links()
    return Surroundings(
        spots=spots,
        latencies=stream_ways(links),
        lines={(link.a, link.b): link.latency_ms for link in links},
        rates={(link.a, link.b): link.bytes_per_s for link in links},
        neighbours=_neighbours(deployment, group, spots),
        share=_share(deployment, group, cpu) if cpu is not None else None,
    )


def cost_json(around: Surroundings, group: GroupFacts, target: str, *, has_copy: bool) -> MoveCost | None:
    """Returns what a move to `target` costs and changes, or None if one of the two nodes is gone."""
    origin, there = around.spots.get(group.node or ""), around.spots.get(target)
    if origin is None or there is None:
        return None
    status = group.owner.status if group.owner is not None else {}
    cost = move_cost(
        origin,
        there,
        state_bytes=status.get("checkpoint_bytes"),
        has_copy=has_copy,
        share=around.share,
        neighbours=around.neighbours,
        latencies=around.latencies,
        rates=around.rates,
    )
    return {
        "bytes": cost.copy_bytes,
        "bytes_per_s": cost.copy_bytes_per_s,
        "latency_ms": around.lines.get((origin.site, there.site)),
        "copy_s": cost.copy_s,
        "same_site": cost.same_site,
        "cpu": _change(cost.cpu),
        "origin_cpu": _change(cost.origin_cpu),
        "upstream_ms": _change(cost.upstream) if cost.upstream is not None else None,
        "downstream_ms": _change(cost.downstream) if cost.downstream is not None else None,
    }


def other_nodes(deployment: Deployment, group: GroupFacts) -> list[OtherNode]:
    """Returns all nodes except its own, by name."""
    around, against = surroundings(deployment, group), Fleet(coming()).warnings(deployment, group.group)
    return [
        _other(around, group, spot, against.get(spot.name, []))
        for _, spot in sorted(around.spots.items())
        if spot.name != group.node
    ]


def _other(around: Surroundings, group: GroupFacts, spot: Spot, against: list[str]) -> OtherNode:
    replica = group.replica_on(spot.name)
    follows = replica is not None and replica.role == "standby" and not replica.status.get("error")
    where = (group.owner.status.get("checkpoint_where") or ()) if group.owner is not None else ()
    ways = (
        upstream_ms(spot.site, around.neighbours, around.latencies),
        downstream_ms(spot.site, around.neighbours, around.latencies),
    )
    known = spot.cpu_ratio is not None and spot.cores > 0
    return {
        "node": spot.name,
        "refusal": target_refusal(group, spot.name),
        "cores": spot.cores,
        "cores_free": round(spot.cores * (1 - (spot.cpu_ratio or 0.0)), 2) if known else None,
        "upstream_ms": ways[0],
        "downstream_ms": ways[1],
        "state": "standby" if follows else "backup" if spot.name in where else "none",
        "warnings": against,
    }


def _spot(node: Node) -> Spot:
    # What a silent node reported last may have changed.
    load = (node.load or {}) if node.up else {}
    return Spot(node.name, node.place, node.cores, load.get("cpu_ratio"), machine_of(node))


def _neighbours(deployment: Deployment, group: GroupFacts, spots: Mapping[str, Spot]) -> Neighbours:
    """Returns the group's neighbours, from what each group of the deployment reads now."""
    own = set(group.elements)
    sites: dict[str, str] = {}  # by element, for other groups
    upstream: set[str] = set()  # elements
    downstream: set[str] = set()  # sites
    # Specs are large, so only the parts that are used are parsed.
    rows = deployment.placements.values_list("group", "node__name", "spec__inputs", "spec__elements")
    for name, node, inputs, elements in rows:
        sources = {parse_reference(stream["source"])[0] for stream in inputs}
        site = spots[node].site
        if name == group.group:
            upstream |= sources - own
        else:
            sites |= {element["id"]: site for element in elements}
            downstream |= {site} if sources & own else set()
    return Neighbours(sorted({sites[id] for id in upstream & sites.keys()}), sorted(downstream))


def _share(deployment: Deployment, group: GroupFacts, cpu: float) -> float:
    rows = Replica.objects.filter(
        role="owner", node__name=group.node, deployment__status__in=Deployment.ACTIVE
    ).values_list("deployment_id", "group", "rates")
    there = [
        GroupNow(f"{id}.{name}", name, group.node or "", rows_per_s(rates or {})) for id, name, rates in rows
    ]
    key = f"{deployment.pk}.{group.group}"
    own = next((each for each in there if each.id == key), None)
    return share_of(own, there, cpu) if own is not None else 0.0


def _change(change: Change) -> BeforeAfter:
    return {"before": change.before, "after": change.after}
