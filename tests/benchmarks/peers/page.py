"""The tables that docs/benchmarks.md has of a run of bench-peers.

python -m tests.benchmarks.peers.page build/bench/peers.json      prints them
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

_SYSTEMS = {"fogline": "Fogline", "streams": "Kafka Streams", "flink": "Flink"}
_WORKS = {
    "filter": "filter (1 in 10)",
    "map": "map (1:1)",
    "windows": "windows of 1 s, 100 keys",
    "sliding": "the same, sliding by 250 ms",
    "keyed": "keyed statistics, 100 keys",
    "python": "the same, a user's Python (theirs: Java)",
    "difference": "a keyed row for each row",
    "chain": "a chain of three",
    "chain-in-one": "the same chain, on Fogline in one group",
    "partitions": "keyed statistics, 4 partitions",
}


def tables(result: dict[str, Any]) -> str:
    """Returns the table of throughput, and that of latency if it was measured. Where Fogline is furthest
    behind comes first."""
    rates = {(row["work"], row["system"]): row for row in result["rows"] if row.get("rounds_events_per_s")}
    lines = [_head("events/s", "of the better one, median (least)", "CPU, µs an event", "memory, MiB")]
    lines += [line for _, line in sorted(_throughput(rates))]
    parts = ["\n".join(lines)]
    latency = [row for row in result["rows"] if row.get("latency_ms")]
    if latency:
        parts.append("\n".join([_head("latency, p50 / p99"), *_latency(latency)]))
    return "\n\n".join(parts) + "\n"


def _head(what: str, *more: str) -> str:
    names = [what, *_SYSTEMS.values(), *more]
    return f"| {' | '.join(names)} |\n|{'---|' * len(names)}"


def _throughput(rates: dict[tuple[str, str], dict[str, Any]]) -> Iterator[tuple[float, str]]:
    """Yields how Fogline compares with the better of the others, and the line of the table."""
    for work, title in _WORKS.items():
        found = [rates.get((work, system)) for system in _SYSTEMS]
        if any(row is None for row in found):
            continue
        ours, *others = [row for row in found if row is not None]
        better = max(others, key=lambda row: row["events_per_s"]["p50"])
        ratios = [
            mine / theirs
            for mine, theirs in zip(ours["rounds_events_per_s"], better["rounds_events_per_s"], strict=False)
        ]
        cells = [
            title,
            *(f"{round(row['events_per_s']['p50'], -3):,.0f}" for row in (ours, *others)),
            f"{median(ratios):.2f} ({min(ratios):.2f})",
            ", ".join(f"{row['cpu_us_per_event']['p50']:.1f}" for row in (ours, *others)),
            ", ".join(f"{row['memory_mib']['p50']:,.0f}" for row in (ours, *others)),
        ]
        yield median(ratios), f"| {' | '.join(cells)} |"


def _latency(rows: list[dict[str, Any]]) -> Iterator[str]:
    for work, rate in dict.fromkeys((row["work"], row["at_events_per_s"]) for row in rows):
        found = {
            row["system"]: row["latency_ms"]
            for row in rows
            if (row["work"], row["at_events_per_s"]) == (work, rate)
        }
        values = [found.get(system) for system in _SYSTEMS]
        cells = [f"{each['p50']:.0f} / {each['p99']:.0f} ms" if each else "" for each in values]
        yield f"| {_WORKS[work]}, {rate:,}/s | {' | '.join(cells)} |"


if __name__ == "__main__":
    print(tables(json.loads(Path(sys.argv[1]).read_text())), end="")
