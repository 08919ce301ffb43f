"""What the move of a group to a node takes and changes: bytes to copy, CPU, the ways to its neighbours. Pure.

Nothing is made up: where the way between two sites was neither measured nor given, nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from pipeline_runtime.placement.links import Latencies, farthest_ms

Rates = Mapping[tuple[str, str], float | None]
"""(From site, to another) -> bytes/s of the line; None, or not there: not measured."""


@dataclass(frozen=True)
class Spot:
    """A node as this sees it."""

    name: str
    site: str  # the node's own name where nobody has said
    cores: int = 0  # 0: not known
    cpu_ratio: float | None = None  # of all its cores, with what else the machine runs; None: not heard now
    host: str = ""  # where others reach it; nodes of one host are on one machine. Empty: not known


@dataclass(frozen=True)
class Neighbours:
    """The sites of the nodes that own what a group reads from, and what reads from it. Empty: none are."""

    upstream: Collection[str] = ()
    downstream: Collection[str] = ()


@dataclass(frozen=True)
class Change:
    """None: not known."""

    before: float | None
    after: float | None


@dataclass(frozen=True)
class MoveCost:
    copy_bytes: int | None  # to be fetched before the target can own; None: no checkpoint is known
    copy_bytes_per_s: float | None  # of the line from the origin; None: not measured, or it is the same site
    copy_s: float | None  # at that rate; 0: nothing is copied
    same_site: bool
    cpu: Change  # of the target, 0..1; more than 1: it would not keep up
    upstream: Change | None  # ms, the farthest one's way to the group; None: it reads from none
    downstream: Change | None  # ms, the group's way to the farthest one; None: none reads from it


def upstream_ms(site: str, neighbours: Neighbours, latencies: Latencies) -> float | None:
    """From the farthest of what the group reads from. None: it reads from none, or a way is not known."""
    return _farthest_ms([(each, site) for each in neighbours.upstream], latencies)


def downstream_ms(site: str, neighbours: Neighbours, latencies: Latencies) -> float | None:
    """To the farthest of what reads from the group, likewise."""
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
    """Of the move of one group.

    `state_bytes`: of its newest checkpoint, None: there is none; `has_copy`: that lies at the target, or a
    standby follows there. `share`: of the origin's CPU, 0..1, by `policy.share_of`; None: not known.
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
        upstream=upstream if neighbours.upstream else None,
        downstream=downstream if neighbours.downstream else None,
    )


def _cpu_after(origin: Spot, target: Spot, share: float | None) -> float | None:
    """Cores alike: 10 % of 8 are 40 % of 2. What moves within one machine is in its load
    already."""
    if target.cpu_ratio is None or share is None or not origin.cores or not target.cores:
        return None
    if origin.host and origin.host == target.host:
        return target.cpu_ratio
    return target.cpu_ratio + share * origin.cores / target.cores
