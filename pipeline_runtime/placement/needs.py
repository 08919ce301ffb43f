"""What a group takes of its node: CPU and memory, estimated, since groups share Java and machine. Pure.

By groups of the same kind (the same operators) that run already, else what is assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Need:
    cores: float = 0.0
    memory_bytes: float = 0.0
    assumed: bool = False  # of no group of that kind it is known

    def __add__(self, other: Need) -> Need:
        return Need(
            self.cores + other.cores,
            self.memory_bytes + other.memory_bytes,
            self.assumed or other.assumed,
        )


NOTHING = Need()
"""Of what runs there already."""
ASSUMED = Need(cores=0.05, memory_bytes=80e6, assumed=True)
"""About twice what each of ten groups took at 100 events/s: of (1,004 - 588) MiB, of 0.22 cores
(docs/benchmarks.md). One that Spark plans takes more, which was not measured."""
CORES_MIN = 0.01
"""One that rests takes half of that."""
AGENT_BYTES = 200e6
"""Of a node's Python processes whatever it runs: the agent has 175 MB, what workers are forked from 25."""


@dataclass(frozen=True)
class GroupUse:
    """A copy of a group as its node reports it: what follows takes memory, too."""

    kind: tuple[str, ...]  # the types of its elements
    node: str
    rows_per_s: float
    owns: bool = True


@dataclass(frozen=True)
class NodeUse:
    cores: int
    cpu_ratio: float  # 0..1, of all cores
    python_bytes: float  # that its Fogline takes beside Java, whose heap all groups share; 0: not known


def part_of(rows_per_s: float, there: Sequence[float]) -> float:
    """Of one group in what its node does, 0..1: as its rows/s to all rows/s `there`, its own among them."""
    rows = sum(there)
    return rows_per_s / rows if rows > 0 else 1 / max(1, len(there))


def need_of(kind: tuple[str, ...], groups: Iterable[GroupUse], nodes: Mapping[str, NodeUse]) -> Need:
    """The median of the groups of that kind. Their memory is at least what is assumed: no figure shows what
    each has of Java's."""
    on: dict[str, list[GroupUse]] = {}
    for each in groups:
        on.setdefault(each.node, []).append(each)
    there_are = [each for name in on.keys() & nodes.keys() for each in on[name]]
    alike = [each for each in there_are if each.kind == kind and each.owns]
    if not alike:
        return ASSUMED
    cores, memory = [], []
    for each in alike:
        node, there = nodes[each.node], on[each.node]
        rows = [other.rows_per_s for other in there if other.owns]
        cores.append(max(CORES_MIN, node.cores * node.cpu_ratio * part_of(each.rows_per_s, rows)))
        memory.append(max(ASSUMED.memory_bytes, (node.python_bytes - AGENT_BYTES) / len(there)))
    return Need(median(cores), median(memory))
