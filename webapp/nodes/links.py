"""Reads the lines between sites: values that nodes measured, and values that a person entered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Literal

from pipeline_runtime.placement import links as decisions
from webapp.nodes.given import LATENCIES, RATES, between
from webapp.nodes.models import GivenLatency, Link, Node


@dataclass(frozen=True)
class SiteLink:
    """One direction, from site `a` to another site `b`."""

    a: str
    b: str
    latency_ms: float
    bytes_per_s: float | None  # None if it was not measured
    source: Literal["measured", "given"]
    measured_at: datetime | None
    rate_given: bool = False  # by a person


@dataclass(frozen=True)
class BrokenLink:
    """Between two sites no probe gets through, in either direction."""

    a: str
    b: str
    since: datetime


@dataclass(frozen=True)
class BrokerWay:
    """One way, from a site to the Kafka broker."""

    site: str
    latency_ms: float
    measured_at: datetime


def site_links() -> list[SiteLink]:
    """Returns all known links, by name. Within a site there is no link.

    A pair of sites is left out when nothing is known about it, or when no probe gets through and nothing is
    given. Then nobody should count on it.
    """
    return links_now()[0]


def latencies() -> decisions.Latencies:
    """Returns latencies between the sites of nodes, and given ones of other sites, where users may be."""
    return {**between(LATENCIES), **{(link.a, link.b): link.latency_ms for link in site_links()}}


def stream_ways(links: Iterable[SiteLink] | None = None) -> decisions.Latencies:
    """Returns how long a row of a stream takes between the sites of nodes. `links` are those of `site_links`,
    if the caller has them already."""
    ways = {(link.a, link.b): link.latency_ms for link in (site_links() if links is None else links)}
    to_broker = {way.site: way.latency_ms for way in broker_ways()}
    return decisions.ways_of_streams(ways, to_broker, between(LATENCIES))


def broker_ways() -> list[BrokerWay]:
    """Returns the way from each site for which it was measured, by name: the median over its nodes."""
    found: dict[str, list[Node]] = {}
    for node in Node.objects.exclude(broker_rtt_ms=None):
        found.setdefault(node.place, []).append(node)
    return [
        BrokerWay(
            site,
            median(node.broker_rtt_ms for node in nodes) / 2,
            max(node.broker_measured_at for node in nodes),
        )
        for site, nodes in sorted(found.items())
    ]


def known_sites() -> set[str]:
    """Returns the sites of nodes and those for which latencies are given."""
    return {*_sites(), *GivenLatency.objects.values_list("origin", flat=True).distinct()}


def links_now() -> tuple[list[SiteLink], list[BrokenLink]]:
    """Returns the links of `site_links`, and the pairs of sites between which no probe gets through now."""
    measurements, sites = list(_measurements()), _sites()
    rates = {pair: mbit_s * 1e6 / 8 for pair, mbit_s in between(RATES).items()}
    found = decisions.between_sites(measurements, between(LATENCIES), sites, rates)
    known = [
        SiteLink(a, b, link.latency_ms, link.bytes_per_s, link.source, link.measured_at, (a, b) in rates)
        for (a, b), link in sorted(found.items())
    ]
    broken = decisions.unreachable(measurements, sites)
    return known, [BrokenLink(a, b, since) for (a, b), since in sorted(broken.items())]


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
            # The silence of a node that is down says nothing about the line.
            unreachable_since=link.unreachable_since if link.target.up else None,
        )
