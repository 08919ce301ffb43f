"""Computes the cost of a move of a group to a node: bytes to copy, CPU, latencies to its neighbours. Pure.

Nothing is made up. When the way between two sites was neither measured nor given, nothing is said about it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from pipeline_runtime.placement.links import Latencies, farthest_ms

Rates = Mapping[tuple[str, str], float | None]
"""(from site, to another) -> bytes/s of the line. None, or left out, when it was not measured."""


@dataclass(frozen=True)
class Spot:
    """A node, with the facts that count for a move."""

    name: str
    site: str  # the node's own name if no user set a site
    cores: int = 0  # 0 when it is not known
    # over all its cores, with everything the machine runs; None when it is not heard now
    cpu_ratio: float | None = None
    host: str = ""  # where others reach it; nodes of one host are on one machine. Empty when it is not known


@dataclass(frozen=True)
class Neighbours:
    """The sites of the nodes that own what a group reads, and what reads from it. Empty when there are
    none."""

    upstream: Collection[str] = ()
    downstream: Collection[str] = ()


@dataclass(frozen=True)
class Change:
    """A value before and after the move. None when it is not known."""

    before: float | None
    after: float | None


@dataclass(frozen=True)
class MoveCost:
    copy_bytes: int | None  # to be fetched before the target can own; None when no checkpoint is known
    # of the line from the origin; None when it was not measured or the site is the same
    copy_bytes_per_s: float | None
    copy_s: float | None  # at that rate; 0 when nothing is copied
    same_site: bool
    cpu: Change  # of the target, 0..1; with more than 1 it would not keep up
    origin_cpu: Change  # of the node that it leaves, 0..1
    upstream: Change | None  # ms from the farthest group that it reads; None when it reads none
    downstream: Change | None  # ms to the farthest group that reads it; None when no group does


def upstream_ms(site: str, neighbours: Neighbours, latencies: Latencies) -> float | None:
    """Returns the way from the farthest group that it reads. Returns None if it reads none, or a way is not
    known."""
    return _farthest_ms([(each, site) for each in neighbours.upstream], latencies)


def downstream_ms(site: str, neighbours: Neighbours, latencies: Latencies) -> float | None:
    """Returns the way to the farthest group that reads it. Returns None if none reads it, or a way is not
    known."""
    return _farthest_ms([(site, each) for each in neighbours.downstream], latencies)


def _farthest_ms(ways: Sequence[tuple[str, str]], latencies: Latencies) -> float | None:
    ms = farthest_ms(ways, latencies)
    return ms if ways and ms < inf else None


def move_cost(
    origin: Spot,
    target: Spot,
    *,
    state_bytes: int | None,
    has_copy: bool,
    share: float | None,
    neighbours: Neighbours,
    latencies: Latencies,
    rates: Rates,
) -> MoveCost:
    """Returns what moving one group costs.

    `state_bytes` is the size of its newest checkpoint, or None if it has none. `has_copy` says that the
    checkpoint lies at the target, or that a standby follows there. `share` is the group's part of the
    origin's CPU, 0..1, by `policy.share_of`, or None if it is not known.
    """
    copies, there, here = 0 if has_copy else state_bytes, target.site, origin.site
    rate = rates.get((here, there))
    upstream, downstream = (
        Change(far(here, neighbours, latencies), far(there, neighbours, latencies))
        for far in (upstream_ms, downstream_ms)
    )
    return MoveCost(
        copy_bytes=copies,
        copy_bytes_per_s=rate,
        copy_s=0.0 if copies == 0 else copies / rate if copies and rate else None,
        same_site=here == there,
        cpu=Change(target.cpu_ratio, _cpu_after(origin, target, share)),
        origin_cpu=Change(origin.cpu_ratio, _origin_after(origin, target, share)),
        upstream=upstream if neighbours.upstream else None,
        downstream=downstream if neighbours.downstream else None,
    )


def _origin_after(origin: Spot, target: Spot, share: float | None) -> float | None:
    """Returns the origin's CPU once the group is gone. A move within one machine takes no load away."""
    if origin.cpu_ratio is None or share is None:
        return None
    if _one_machine(origin, target):
        return origin.cpu_ratio
    return max(0.0, origin.cpu_ratio - share)


def _one_machine(a: Spot, b: Spot) -> bool:
    return bool(a.host) and a.host == b.host


def _cpu_after(origin: Spot, target: Spot, share: float | None) -> float | None:
    """Returns the target's CPU. All cores count the same: 10 % of 8 cores are 40 % of 2. A move within one
    machine adds no load."""
    if target.cpu_ratio is None or share is None or not origin.cores or not target.cores:
        return None
    if _one_machine(origin, target):
        return target.cpu_ratio
    return target.cpu_ratio + share * origin.cores / target.cores
