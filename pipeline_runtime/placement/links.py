"""The lines between sites: which nodes probe which, and what their probes say together. Pure.

A node asks a few nodes of each other site how long a small request takes (the round trip) and how fast they
send. Latency is one way: half the round trip, which cannot tell the way there from the way back. A value that
a person gave counts before a measured one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from statistics import median
from types import MappingProxyType
from typing import Literal

PEERS_MAX = 20
"""The most nodes that one node probes, so that the cost of its probes is bounded."""
PEERS_PER_SITE = 2
WEIGHT = 0.3
"""The weight of a new measurement, against 0.7 for all before. An outlier moves the value by a third."""
STALE_AFTER = timedelta(minutes=10)
"""A pair of nodes whose measurement is this much older than another pair's of the same two sites counts no
more."""


Latencies = Mapping[tuple[str, str], float]
"""(from site, to another) -> ms one way. Unknown ones are left out."""
NO_LATENCIES: Latencies = MappingProxyType({})


def farthest_ms(ways: Iterable[tuple[str, str]], latencies: Latencies) -> float:
    """Returns the greatest latency of these ways, each from a site to a site. It is 0 without ways, 0 within
    a site unless more is known, and inf if a way is not known."""
    return max((latencies.get((a, b), 0.0 if a == b else inf) for a, b in ways), default=0.0)


def ways_of_streams(between: Latencies, to_broker: Mapping[str, float], given: Latencies) -> Latencies:
    """Returns how long a row of a stream takes from one site to another, or to a reader at the same site.

    Every stream goes through the Kafka broker. So once the way to the broker is known for any site, only ways
    through it count, and nothing is known of sites without one. Before that, the way `between` two sites
    stands for it. A `given` value counts before any measurement; a site with given ways has 0 within itself.
    """
    if not to_broker:
        return between
    by_broker = {(a, b): to_broker[a] + to_broker[b] for a in to_broker for b in to_broker}
    within = {(site, site): 0.0 for pair in given for site in pair}
    return {**by_broker, **within, **given}


@dataclass(frozen=True)
class Place:
    """A node, with the facts that count for probes."""

    node: str
    site: str


@dataclass(frozen=True)
class Measurement:
    """What the probes of a node at site `origin` say about a node at site `target`, which sends the bytes
    that the rate is measured by."""

    origin: str
    target: str
    rtt_ms: float | None
    bytes_per_s: float | None
    measured_at: datetime
    unreachable_since: datetime | None = None


@dataclass(frozen=True)
class SiteLink:
    """One direction, from a site to another."""

    latency_ms: float
    bytes_per_s: float | None  # None until it is measured
    source: Literal["measured", "given"]
    measured_at: datetime | None  # of the newest probe that counts; None if there is none


def peers(node: str, places: Iterable[Place]) -> tuple[str, ...]:
    """Returns the nodes that `node` probes, sorted: up to two of each other site, or one when there are many
    sites.

    The nodes of one site share the nodes of another site among them. The same places give the same peers, in
    any order, so a node's peers change only when nodes come or go.
    """
    sites: dict[str, list[str]] = {}
    for place in sorted(places, key=lambda place: place.node):
        sites.setdefault(place.site, []).append(place.node)
    own = next((site for site, names in sites.items() if node in names), None)
    if own is None:
        return ()
    rank = sites[own].index(node)
    others = sorted(sites.keys() - {own})
    each = max(1, min(PEERS_PER_SITE, PEERS_MAX // len(others))) if others else 0
    found: list[str] = []
    # Each node of its own site begins at another site, so that together they reach more than one node may.
    first = rank * PEERS_MAX % len(others) if others else 0
    for site in (others[first:] + others[:first])[: PEERS_MAX // each if each else 0]:
        names = sites[site]
        found += {names[(rank * each + step) % len(names)] for step in range(each)}
    return tuple(sorted(found))


def smoothed(before: float | None, sample: float) -> float:
    """Returns the value after one more measurement, exponentially weighted. The first measurement counts in
    full."""
    return sample if before is None else before + WEIGHT * (sample - before)


def between_sites(
    measurements: Iterable[Measurement],
    given: Latencies,
    sites: Collection[str],
    given_rates: Mapping[tuple[str, str], float] = MappingProxyType({}),
) -> dict[tuple[str, str], SiteLink]:
    """Returns (from, to) -> what is known about the way between two different sites of `sites`.

    A pair is left out when nothing is known, or when no probe gets through and no latency (ms) is given. The
    latency is the median over all pairs of nodes, whichever of the two measures. The rate is the median over
    the pairs that probed in that direction, or the one in `given_rates` (bytes/s).
    """
    fresh = _fresh(measurements)
    found: dict[tuple[str, str], SiteLink] = {}
    for origin in sites:
        for target in sites:
            if origin == target:
                continue
            # A probe fetches, so what the nodes of `target` measure is the rate from `origin` to it.
            there, back = fresh.get((target, origin), []), fresh.get((origin, target), [])
            pair = (origin, target)
            link = _link([*there, *back], there, given.get(pair), given_rates.get(pair))
            if link is not None:
                found[origin, target] = link
    return found


def unreachable(
    measurements: Iterable[Measurement], sites: Collection[str]
) -> dict[tuple[str, str], datetime]:
    """Returns (site, other site), in order of name -> since when no probe between them gets through."""
    fresh = _fresh(measurements)
    found: dict[tuple[str, str], datetime] = {}
    ordered = sorted(sites)
    for number, one in enumerate(ordered):
        for other in ordered[number + 1 :]:
            both = [*fresh.get((one, other), []), *fresh.get((other, one), [])]
            since = [each.unreachable_since for each in both if each.unreachable_since is not None]
            if both and len(since) == len(both):
                found[one, other] = max(since)  # until then, one probe still got through
    return found


def _fresh(measurements: Iterable[Measurement]) -> dict[tuple[str, str], list[Measurement]]:
    """Returns the measurements by direction, without those much older than the newest between the same two
    sites."""
    pairs: dict[frozenset[str], list[Measurement]] = {}
    for each in measurements:
        pairs.setdefault(frozenset((each.origin, each.target)), []).append(each)
    found: dict[tuple[str, str], list[Measurement]] = {}
    for those in pairs.values():
        newest = max(each.measured_at for each in those)
        for each in those:
            if newest - each.measured_at < STALE_AFTER:
                found.setdefault((each.origin, each.target), []).append(each)
    return found


def _link(
    both: list[Measurement], there: list[Measurement], given_ms: float | None, given_rate: float | None
) -> SiteLink | None:
    through = [each for each in both if each.unreachable_since is None]
    round_trips = [each.rtt_ms for each in through if each.rtt_ms is not None]
    rates = [each.bytes_per_s for each in there if each in through and each.bytes_per_s is not None]
    if given_ms is None and not round_trips:
        return None
    if given_rate is not None:
        rates = [given_rate]
    return SiteLink(
        latency_ms=median(round_trips) / 2 if given_ms is None else given_ms,
        bytes_per_s=median(rates) if rates else None,
        source="measured" if given_ms is None else "given",
        measured_at=max((each.measured_at for each in through), default=None),
    )
