"""The map: sites, the lines between them, and where outside data is read."""

from __future__ import annotations

from webapp.backends.control_state import control_state
from webapp.handovers.node_removal import names_by_deployment
from webapp.nodes.given import LATENCIES, RATES, matrix_of
from webapp.nodes.links import broker_ways, links_now
from webapp.nodes.models import Node
from webapp.nodes.schemas import Map, MapLink, MapNode, MapSite, MapSource
from webapp.placements.models import GroupPlacement
from webapp.placements.selectors import active_deployments


def site_map() -> Map:
    sources, heard = _sources(), control_state().hears
    sites: dict[str, MapSite] = {}
    for node in Node.objects.all():
        site = sites.setdefault(node.place, {"name": node.place, "named": False, "nodes": [], "sources": []})
        site["named"] = site["named"] or bool(node.site)
        site["nodes"].append(_node(node, heard))
        site["sources"] += sources.get(node.name, [])
    return {
        "sites": sorted(sites.values(), key=lambda site: site["name"]),
        "broker": [
            {"site": way.site, "latency_ms": way.latency_ms, "measured_at": way.measured_at.isoformat()}
            for way in broker_ways()
        ],
        "links": _links(),
        "given": matrix_of(LATENCIES),
        "given_rates": matrix_of(RATES),
    }


def _node(node: Node, heard: bool) -> MapNode:
    # What a silent node reported last may have changed.
    load = (node.load or {}) if node.up and heard else {}
    return {
        "name": node.name,
        "up": node.up and heard,
        "cordoned": node.cordoned,
        "cores": node.cores,
        "cpu_ratio": load.get("cpu_ratio"),
        "memory_bytes": load.get("memory_bytes"),
        "memory_total_bytes": load.get("memory_total_bytes"),
        "battery_ratio": load.get("battery_ratio"),
    }


def _links() -> list[MapLink]:
    known, broken = links_now()
    since = {pair: link.since.isoformat() for link in broken for pair in ((link.a, link.b), (link.b, link.a))}
    found: dict[tuple[str, str], MapLink] = {
        (a, b): {
            "a": a,
            "b": b,
            "latency_ms": None,
            "bytes_per_s": None,
            "source": "measured",
            "rate_given": False,
            "measured_at": None,
            "unreachable_since": at,
        }
        for (a, b), at in since.items()
    }
    for link in known:
        found[link.a, link.b] = {
            "a": link.a,
            "b": link.b,
            "latency_ms": link.latency_ms,
            "bytes_per_s": link.bytes_per_s,
            "source": link.source,
            "rate_given": link.rate_given,
            "measured_at": link.measured_at.isoformat() if link.measured_at else None,
            "unreachable_since": since.get((link.a, link.b)),
        }
    return [found[pair] for pair in sorted(found)]


def _sources() -> dict[str, list[MapSource]]:
    """Returns by node the elements without an input, which read from outside."""
    called = names_by_deployment(active_deployments())
    found: dict[str, list[MapSource]] = {}
    rows = GroupPlacement.objects.filter(deployment__in=called, role="owner")
    rows = rows.order_by("deployment__pipeline__name", "group")
    for node, deployment, elements in rows.values_list("node__name", "deployment_id", "spec__elements"):
        pipeline, _, names = called[deployment]
        found.setdefault(node, []).extend(
            {
                "pipeline": pipeline,
                "element": element["id"],
                "title": names.get(element["id"], element["id"]),
                "node": node,
            }
            for element in elements
            if not element.get("inputs")
        )
    return found
