"""Estimates the CPU and memory that a group takes of its node, since groups share Java and machine. Pure.

The estimate is the use of groups of the same kind (the same operators) that run already, else an assumption.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Need:
    cores: float = 0.0
    memory_bytes: float = 0.0
    assumed: bool = False  # no group of this kind is known

    def __add__(self, other: Need) -> Need:
        return Need(
            self.cores + other.cores,
            self.memory_bytes + other.memory_bytes,
            self.assumed or other.assumed,
        )


NOTHING = Need()
"""For a group that runs there already."""
ASSUMED = Need(cores=0.05, memory_bytes=80e6, assumed=True)
"""About twice what each of ten groups took at 100 events/s: (1,004 - 588) MiB and 0.22 cores in all
(docs/benchmarks.md). A group that Spark plans takes more, which was not measured."""
CORES_MIN = 0.01
"""An idle group takes half of that."""
AGENT_BYTES = 200e6
"""A node's Python processes take this whatever it runs: the agent 175 MB, the process that workers are forked
from 25 MB."""


@dataclass(frozen=True)
class GroupUse:
    """One copy of a group, as its node reports it. A standby takes memory, too."""

    kind: tuple[str, ...]  # the types of its elements
    node: str
    rows_per_s: float
    owns: bool = True


@dataclass(frozen=True)
class NodeUse:
    cores: int
    cpu_ratio: float  # 0..1, over all cores
    python_bytes: float  # taken by Fogline besides Java, whose heap all groups share; 0 when it is not known


def part_of(rows_per_s: float, there: Sequence[float]) -> float:
    """Returns the group's part of what its node does, 0..1: its rows/s divided by all rows/s `there`,
    including its own."""
    rows = sum(there)
    return rows_per_s / rows if rows > 0 else 1 / max(1, len(there))


def need_of(kind: tuple[str, ...], groups: Iterable[GroupUse], nodes: Mapping[str, NodeUse]) -> Need:
    """Returns the median use of groups of that kind. Memory is at least the assumption, since no figure shows
    what each group takes of Java's."""
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
