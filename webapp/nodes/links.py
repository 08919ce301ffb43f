"""What is known of the lines between sites: measured by the nodes, or given by a person."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pipeline_runtime.placement import links as decisions
from webapp.nodes.models import GivenLatency, Link, Node
from webapp.nodes.schemas import GivenLatencies


@dataclass(frozen=True)
class SiteLink:
    """One way, from site `a` to another site `b`."""

    a: str
    b: str
    latency_ms: float
    bytes_per_s: float | None  # None: not measured
    source: Literal["measured", "given"]
    measured_at: datetime | None


@dataclass(frozen=True)
class BrokenLink:
    """Between two sites, both ways: no probe gets through."""

    a: str
    b: str
    since: datetime


def site_links() -> list[SiteLink]:
    """All that are known, by name. Within a site there is no link.

    A pair of sites is absent when nothing is known of it, or when no probe gets through and nothing is given:
    then nobody should count on it.
    """
    return links_now()[0]


def latencies() -> decisions.Latencies:
    """Between the sites of nodes; and what was given of others, where users may be."""
    given = {(each.origin, each.target): each.ms for each in GivenLatency.objects.all()}
    return {**given, **{(link.a, link.b): link.latency_ms for link in site_links()}}


def known_sites() -> set[str]:
    """Where nodes stand, and of which latencies are given."""
    return {*_sites(), *GivenLatency.objects.values_list("origin", flat=True).distinct()}


def links_now() -> tuple[list[SiteLink], list[BrokenLink]]:
    """As `site_links`, and the pairs of sites between which no probe gets through now."""
    given = {(each.origin, each.target): each.ms for each in GivenLatency.objects.all()}
    measurements, sites = list(_measurements()), _sites()
    known = [
        SiteLink(a, b, link.latency_ms, link.bytes_per_s, link.source, link.measured_at)
        for (a, b), link in sorted(decisions.between_sites(measurements, given, sites).items())
    ]
    broken = decisions.unreachable(measurements, sites)
    return known, [BrokenLink(a, b, since) for (a, b), since in sorted(broken.items())]


def given_latencies() -> GivenLatencies:
    """The matrix as it was given; empty: there is none."""
    rows: dict[str, list[float]] = {}
    for cell in GivenLatency.objects.all():
        rows.setdefault(cell.origin, []).append(cell.ms)
    return {"sites": list(rows), "rows": list(rows.values()), "unknown": sorted(rows.keys() - _sites())}


def _sites() -> set[str]:
    return {node.place for node in Node.objects.only("site", "name")}


def _measurements() -> Iterable[decisions.Measurement]:
    for link in Link.objects.select_related("origin", "target"):
        yield decisions.Measurement(
            origin=link.origin.place,
            target=link.target.place,
            rtt_ms=link.rtt_ms,
            bytes_per_s=link.bytes_per_s,
            measured_at=link.measured_at,
            # Of a node that is down, its silence says nothing about the line.
            unreachable_since=link.unreachable_since if link.target.up else None,
        )
