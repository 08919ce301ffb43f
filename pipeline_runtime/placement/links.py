"""What lies between sites: which nodes probe which, and what their probes say together. Pure.

A node asks a few nodes of each other site how long a small request takes (the round trip) and how fast they
send. Latency is the way one way: half the round trip, which cannot tell the ways there and back apart.
What was given by a person beats what was measured.
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
"""How many others one node probes, so that the cost of its probes is bounded whatever there is."""
PEERS_PER_SITE = 2
WEIGHT = 0.3
"""Of a new measurement, against 0.7 for all before: one that is far off moves the value by a third."""
STALE_AFTER = timedelta(minutes=10)
"""A pair of nodes that was measured so long before another pair of the same two sites counts no more."""


Latencies = Mapping[tuple[str, str], float]
"""(From site, to another) -> ms one way. What is not known is not there."""
NO_LATENCIES: Latencies = MappingProxyType({})


def farthest_ms(ways: Iterable[tuple[str, str]], latencies: Latencies) -> float:
    """The greatest latency of these ways, each from a site to a site: 0 within one, if nothing else is known,
    and where there are no ways; inf where one of them is not known."""
    return max((latencies.get((a, b), 0.0 if a == b else inf) for a, b in ways), default=0.0)


def ways_of_streams(between: Latencies, to_broker: Mapping[str, float], given: Latencies) -> Latencies:
    """How long a row of a stream is under way from a site to another, or to a reader at the same one.

    Every stream goes by the Kafka broker, so that is what counts once it is known of any site: of the others
    nothing is then. As long as it is known of none, the way `between` the sites stands for it; and what was
    `given` counts whatever was measured, with 0 within a site of which a way was given.
    """
    if not to_broker:
        return between
    by_broker = {(a, b): to_broker[a] + to_broker[b] for a in to_broker for b in to_broker}
    within = {(site, site): 0.0 for pair in given for site in pair}
    return {**by_broker, **within, **given}


@dataclass(frozen=True)
class Place:
    """A node as this decision sees it."""

    node: str
    site: str


@dataclass(frozen=True)
class Measurement:
    """What the probes of a node at site `origin` say of one at site `target`: this one sends what the rate is
    measured by."""

    origin: str
    target: str
    rtt_ms: float | None
    bytes_per_s: float | None
    measured_at: datetime
    unreachable_since: datetime | None = None


@dataclass(frozen=True)
class SiteLink:
    """One way, from a site to another."""

    latency_ms: float
    bytes_per_s: float | None  # None: not measured
    source: Literal["measured", "given"]
    measured_at: datetime | None  # of the newest probe that counts; None: there is none


def peers(node: str, places: Iterable[Place]) -> tuple[str, ...]:
    """The nodes that `node` probes, sorted: up to two of each other site, one where there are many sites.

    Nodes of one site share those of another between them. The same places give the same peers, in whatever
    order they come, so what a node is told changes only with the nodes that there are.
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
    # From another site on for each node of the own one: together they reach more than one alone may.
    first = rank * PEERS_MAX % len(others) if others else 0
    for site in (others[first:] + others[:first])[: PEERS_MAX // each if each else 0]:
        names = sites[site]
        found += {names[(rank * each + step) % len(names)] for step in range(each)}
    return tuple(sorted(found))


def smoothed(before: float | None, sample: float) -> float:
    """The value after one more measurement: exponentially weighted; the first one counts whole."""
    return sample if before is None else before + WEIGHT * (sample - before)


def between_sites(
    measurements: Iterable[Measurement],
    given: Latencies,
    sites: Collection[str],
    given_rates: Mapping[tuple[str, str], float] = MappingProxyType({}),
) -> dict[tuple[str, str], SiteLink]:
    """(from, to) -> what is known of the way between two different sites of `sites`.

    A pair is absent when nothing is known, or when no probe gets through and no latency (ms) is given. The
    latency is the median over all pairs of nodes, whichever of the two measures; the rate that over those
    whose probes went that way, or that in `given_rates` (bytes/s).
    """
    fresh = _fresh(measurements)
    found: dict[tuple[str, str], SiteLink] = {}
    for origin in sites:
        for target in sites:
            if origin == target:
                continue
            # A probe fetches: what the nodes of `target` measure is the rate from `origin` to it.
            there, back = fresh.get((target, origin), []), fresh.get((origin, target), [])
            pair = (origin, target)
            link = _link([*there, *back], there, given.get(pair), given_rates.get(pair))
            if link is not None:
                found[origin, target] = link
    return found


def unreachable(
    measurements: Iterable[Measurement], sites: Collection[str]
) -> dict[tuple[str, str], datetime]:
    """(site, other site), in order of name -> since when no probe between them gets through."""
    fresh = _fresh(measurements)
    found: dict[tuple[str, str], datetime] = {}
    ordered = sorted(sites)
    for number, one in enumerate(ordered):
        for other in ordered[number + 1 :]:
            both = [*fresh.get((one, other), []), *fresh.get((other, one), [])]
            since = [each.unreachable_since for each in both if each.unreachable_since is not None]
            if both and len(since) == len(both):
                found[one, other] = max(since)  # until then, one still got through
    return found


def _fresh(measurements: Iterable[Measurement]) -> dict[tuple[str, str], list[Measurement]]:
    """By direction, without what is old beside the newest between the same two sites."""
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
