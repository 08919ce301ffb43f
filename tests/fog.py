"""Fog installations at random: what placement is tried and measured on."""

from __future__ import annotations

import numpy as np

from pipeline_runtime.placement.recovery import Link, RecoveryGroup, RecoveryNode, RecoveryProblem

MB = 1e6


def fog(groups: int, nodes: int, seed: int, *, tight: float = 1.0) -> RecoveryProblem:
    """Nodes at sites of five, whose switches are joined in a ring with some chords: 100 Mbit/s or 1 Gbit/s to
    the switch, 40 to 400 Mbit/s between sites. Each node has 2 to 8 cores to spare, divided by `tight` as the
    links are; a group takes 0.1 to 1.5 cores, has 1 to 200 MB to be fetched and stores 0.05 to 1 MB/s.
    """
    random = np.random.default_rng(seed)
    sites = max(2, nodes // 5)
    at = [f"site-{number % sites}" for number in range(nodes)]
    found = [
        RecoveryNode(f"n{number}", random.uniform(2, 8) / tight, random.uniform(100, 500) * MB)
        for number in range(nodes)
    ]
    links = [
        Link(node.name, site, random.choice([12.5, 125.0]) * random.uniform(0.9, 1) * MB / tight)
        for node, site in zip(found, at, strict=True)
    ]
    joined = {frozenset((site, (site + 1) % sites)) for site in range(sites)}
    joined |= {frozenset(random.choice(sites, 2, replace=False).tolist()) for _ in range(sites // 2)}
    for a, b in sorted(sorted(pair) for pair in joined if len(pair) == 2):
        links.append(Link(f"site-{a}", f"site-{b}", random.uniform(5, 50) * MB / tight))
    return RecoveryProblem(
        found,
        links,
        [
            RecoveryGroup(
                f"g{number}",
                node=found[random.integers(nodes)].name,
                cpu=random.uniform(0.1, 1.5),
                backup_bytes=random.uniform(1, 200) * MB,
                store_bytes_per_s=random.uniform(0.05, 1.0) * MB,
                latency_ms=random.uniform(1, 1000),
            )
            for number in range(groups)
        ],
    )
