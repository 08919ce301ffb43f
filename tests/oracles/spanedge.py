"""SpanEdge's placement of groups at sites. `placement/choose.py` is held against its rule for global groups.

Spout, cloud and task of the paper are source, site and copy here. H. P. Sajjad, K. Danniswara, A. Al-
Shishtawy, V. Vlassov, "SpanEdge: Towards Unifying Stream Processing over Central and Near-the-Edge Data
Centers", IEEE/ACM SEC 2016, doi:10.1109/SEC.2016.17, and its scheduler (github.com/Telolets/StormOnEdge):

- A group that holds a source is local: a copy of it runs at each site of its sources.
- Any other group is global: it runs at the one site c that minimises the greatest latency Lat[d][c] from
  the sites d of all groups that it reads from.

Two rules are added here. Groups are decided after the groups that they read from, whatever their order. Among
sites with the same latency the least loaded one is taken, then the first by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter

from pipeline_runtime.placement.site_matrix import read_matrix


@dataclass(frozen=True)
class Latencies:
    """Latencies in ms from each site to each site. The two directions may differ."""

    sites: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]  # rows[d][c]: from sites[d] to sites[c]
    _index: dict[str, int] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._index.update({site: number for number, site in enumerate(self.sites)})

    def between(self, origin: str, target: str) -> float:
        return self.rows[self._index[origin]][self._index[target]]

    def greatest(self, origins: Iterable[str], target: str) -> float:
        """Returns the greatest latency from an origin to the target; 0 without origins."""
        return max((self.between(origin, target) for origin in origins), default=0.0)


@dataclass(frozen=True)
class GeoGroup:
    group: str
    sources: frozenset[str] = frozenset()  # the sites of its sources; a group without sources is global
    reads: frozenset[str] = frozenset()  # the groups whose streams it reads
    pin: str | None = None  # the site that a user chose for a global group


@dataclass(frozen=True)
class Sited:
    """The sites at which a group runs."""

    sites: tuple[str, ...]
    local: bool
    latency_ms: float = 0.0  # for a global group: the greatest latency from a group that it reads


def site_groups(
    groups: Sequence[GeoGroup], latencies: Latencies, load: Mapping[str, float] | None = None
) -> dict[str, Sited]:
    """Returns where each group runs. The order of the groups does not change the answer.

    `load` is a figure for each site, in any unit. Among sites with the same latency, the least loaded is
    taken.
    """
    by_id = {each.group: each for each in groups}
    placed: dict[str, Sited] = {}
    for id in TopologicalSorter({id: sorted(by_id[id].reads) for id in sorted(by_id)}).static_order():
        group = by_id[id]
        if group.sources:
            placed[id] = Sited(tuple(sorted(group.sources)), local=True)
        else:
            origins = {site for other in group.reads for site in placed[other].sites}
            sites = latencies.sites if group.pin is None else (group.pin,)
            latency_ms, _, site = min(
                (latencies.greatest(origins, site), (load or {}).get(site, 0.0), site) for site in sites
            )
            placed[id] = Sited((site,), False, latency_ms)
    return {each.group: placed[each.group] for each in groups}


def read_latencies(text: str) -> Latencies:
    return Latencies(*read_matrix(text, "latency in ms"))


def read_sources(text: str) -> dict[str, tuple[str, ...]]:
    """Returns the sites of each source. A line reads `messages;EdgeA,EdgeB`."""
    lines = (line.partition(";") for line in text.splitlines() if line.strip())
    return {source: tuple(sites.split(",")) for source, _, sites in lines}
