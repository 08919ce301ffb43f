"""At which sites the groups of a pipeline run, by latency. Pure.

Spout, cloud and task of the paper are source, site and copy here. H. P. Sajjad, K. Danniswara, A. Al-
Shishtawy, V. Vlassov, "SpanEdge: Towards Unifying Stream Processing over Central and Near-the-Edge Data
Centers", IEEE/ACM SEC 2016, doi:10.1109/SEC.2016.17, and its scheduler (github.com/Telolets/StormOnEdge):

- A group that holds a source is local: there is a copy of it at each site of its sources.
- Any other group is global: it runs at the one site c that minimises the greatest latency Lat[d][c] from
  the sites d of all that it reads from.
- What a local copy emits goes to the copies at its own site where there are any, else to all (zone
  grouping).

Added here: groups are decided after those that they read from, whatever their order; of sites that are
alike the one with the least load is taken, then by name; a pin to a site; and sites may be refused to a
group, with the reason (see `fit`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter


@dataclass(frozen=True)
class Latencies:
    """In ms, from each site to each; they need not be symmetric."""

    sites: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]  # rows[d][c]: from sites[d] to sites[c]
    _index: dict[str, int] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._index.update({site: number for number, site in enumerate(self.sites)})

    def __contains__(self, site: str) -> bool:
        return site in self._index

    def between(self, origin: str, target: str) -> float:
        return self.rows[self._index[origin]][self._index[target]]

    def greatest(self, origins: Iterable[str], target: str) -> float:
        """0 where there is no origin."""
        return max((self.between(origin, target) for origin in origins), default=0.0)


@dataclass(frozen=True)
class GeoGroup:
    """A group as this decision sees it."""

    group: str
    sources: frozenset[str] = frozenset()  # the sites of the sources that it holds; none: it is global
    reads: frozenset[str] = frozenset()  # the groups whose streams it reads
    pin: str | None = None  # of a global group: the site that was asked for


@dataclass(frozen=True)
class Sited:
    """Where a group runs; `sites` is empty where `problem` says why it cannot."""

    sites: tuple[str, ...]
    local: bool
    latency_ms: float = 0.0  # of a global group: the greatest from what it reads
    why: str = ""
    problem: str | None = None


Fit = Callable[[str, str], str | None]
"""(group, site) -> why the group cannot run there; None: it can. Asked of each site that is considered."""


def site_groups(
    groups: Sequence[GeoGroup],
    latencies: Latencies,
    load: Mapping[str, float] | None = None,
    fit: Fit = lambda group, site: None,
) -> dict[str, Sited]:
    """Group -> where it runs. The same arguments give the same answer, whatever the order of the groups.

    `load`: of each site, in whatever unit; among sites of the same latency the least loaded is taken.
    ValueError where groups read from each other in a circle, or from one that is not there.
    """
    by_id = {each.group: each for each in groups}
    placed: dict[str, Sited] = {}
    for id in _upstream_first(by_id):
        group = by_id[id]
        if group.sources:
            placed[id] = _local(group, latencies, fit)
        else:
            origins = {site for other in group.reads for site in placed[other].sites}
            placed[id] = _global(group, sorted(origins), latencies, load or {}, fit)
    return {each.group: placed[each.group] for each in groups}


def _upstream_first(groups: Mapping[str, GeoGroup]) -> list[str]:
    for group in groups.values():
        if missing := sorted(group.reads - groups.keys()):
            raise ValueError(f"{group.group} reads from {missing[0]}, which is no group here")
    graph = {id: sorted(groups[id].reads) for id in sorted(groups)}
    try:
        return [*TopologicalSorter(graph).static_order()]
    except CycleError as error:
        raise ValueError(f"groups read from each other in a circle: {' > '.join(error.args[1])}") from error


def _local(group: GeoGroup, latencies: Latencies, fit: Fit) -> Sited:
    problems = [f"{site}: {problem}" for site in sorted(group.sources) if (problem := fit(group.group, site))]
    if problems:
        # Its source's rows come up there and nowhere else, so no other site can do.
        return Sited(
            (), True, problem=f"it has to run at each site of its sources, and cannot: {problems[0]}"
        )
    sites = tuple(sorted(group.sources))
    where = f"the {len(sites)} sites" if len(sites) > 1 else "the site"
    return Sited(sites, True, why=f"a copy at {where} of its sources")


def _global(
    group: GeoGroup, origins: Sequence[str], latencies: Latencies, load: Mapping[str, float], fit: Fit
) -> Sited:
    unknown = [site for site in origins if site not in latencies]
    if unknown:
        return Sited((), False, problem=f"the latencies from {unknown[0]} are not known")
    candidates = latencies.sites if group.pin is None else (group.pin,)
    refused: list[str] = []
    able: list[tuple[float, float, str]] = []
    for site in candidates:
        if site not in latencies:
            refused.append(f"{site}: no latency to it is known")
        elif problem := fit(group.group, site):
            refused.append(f"{site}: {problem}")
        else:
            able.append((latencies.greatest(origins, site), load.get(site, 0.0), site))
    if not able:
        return Sited((), False, problem=f"no site can run it ({'; '.join(refused) or 'there is none'})")
    latency_ms, _, site = min(able)
    if group.pin is not None:
        why = "pinned"
    elif origins:
        why = f"at most {latency_ms:g} ms from all that it reads, the least of {len(able)} sites"
    else:
        why = "it reads from nowhere; the least loaded site"
    return Sited((site,), False, latency_ms, why)


def zone_targets(site: str, copies: Mapping[str, Collection[str]]) -> list[str]:
    """Of a reader's copies (copy -> the sites at which it runs), those to which what is emitted at `site`
    goes: at the same site where there are any, else all. Sorted."""
    near = [copy for copy, sites in copies.items() if site in sites]
    return sorted(near or copies)
