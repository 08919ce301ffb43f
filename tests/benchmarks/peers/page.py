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

_SYSTEMS = {
    "fogline": "Fogline",
    "streams": "Kafka Streams",
    "flink": "Flink",
    "quix": "Quix Streams",
    "spark": "plain Spark",
    "realtime": "Real-time Mode",
}
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
_CANNOT = "cannot"

_Rows = dict[str, dict[str, Any]]


def tables(result: dict[str, Any]) -> str:
    """Returns the table of throughput, that of the others' duplicates if there are any, that of latency if it
    was measured, and what a system cannot do. Where Fogline is furthest behind comes first."""
    rows = result["rows"]
    systems = [name for name in _SYSTEMS if any(row["system"] == name for row in rows)]
    lines = [
        _head(
            "events/s", systems, "of the best exactly-once one", "of Real-time Mode", "CPU, µs", "memory, MiB"
        )
    ]
    lines += [line for _, line in sorted(_throughput(_by_work(rows), systems))]
    parts = ["\n".join(lines)]
    latency = [row for row in rows if row.get("latency_ms")]
    if latency:
        parts.append("\n".join([_head("latency, p50 / p99", systems), *_latency(latency, systems)]))
    notes = [*_unable(rows), *_repeated(rows)]
    if notes:
        parts.append("\n".join(notes))
    return "\n\n".join(parts) + "\n"


def _head(what: str, systems: list[str], *more: str) -> str:
    names = [what, *(_SYSTEMS[system] for system in systems), *more]
    return f"| {' | '.join(names)} |\n|{'---|' * len(names)}"


def _by_work(rows: list[dict[str, Any]]) -> dict[str, _Rows]:
    found: dict[str, _Rows] = {}
    for row in rows:
        if row.get("rounds_events_per_s") or row.get("cannot"):
            found.setdefault(row["work"], {})[row["system"]] = row
    return found


def _throughput(works: dict[str, _Rows], systems: list[str]) -> Iterator[tuple[float, str]]:
    """Yields how Fogline compares with the best of the others that are exactly once, and the line of the
    table."""
    for work, title in _WORKS.items():
        measured = {
            system: row for system, row in works.get(work, {}).items() if row.get("rounds_events_per_s")
        }
        ours = measured.get("fogline")
        rivals = [row for system, row in measured.items() if system != "fogline" and row["exactly_once"]]
        if ours is None or not rivals:
            continue
        best = max(rivals, key=lambda row: row["events_per_s"]["p50"])
        realtime = measured.get("realtime")
        given = [works[work].get(system, {}) for system in systems]
        cells = [
            title,
            *(_rate(row) for row in given),
            _compared(ours, best),
            _compared(ours, realtime) if realtime else "",
            ", ".join(f"{row['cpu_us_per_event']['p50']:.1f}" for row in given if row in measured.values()),
            ", ".join(f"{row['memory_mib']['p50']:,.0f}" for row in given if row in measured.values()),
        ]
        yield median(_ratios(ours, best)), f"| {' | '.join(cells)} |"


def _rate(row: dict[str, Any]) -> str:
    if row.get("cannot"):
        return _CANNOT
    return f"{round(row['events_per_s']['p50'], -3):,.0f}" if row else ""


def _ratios(ours: dict[str, Any], theirs: dict[str, Any]) -> list[float]:
    pairs = zip(ours["rounds_events_per_s"], theirs["rounds_events_per_s"], strict=False)
    return [mine / other for mine, other in pairs]


def _compared(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """The median of the rounds, and the least."""
    ratios = _ratios(ours, theirs)
    return f"{median(ratios):.2f} ({min(ratios):.2f})"


def _latency(rows: list[dict[str, Any]], systems: list[str]) -> Iterator[str]:
    for work, rate in dict.fromkeys((row["work"], row["at_events_per_s"]) for row in rows):
        found = {
            row["system"]: row["latency_ms"]
            for row in rows
            if (row["work"], row["at_events_per_s"]) == (work, rate)
        }
        values = [found.get(system) for system in systems]
        cells = [f"{each['p50']:.0f} / {each['p99']:.0f} ms" if each else "" for each in values]
        yield f"| {_WORKS[work]}, {rate:,}/s | {' | '.join(cells)} |"


def _unable(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        if row.get("cannot"):
            yield f"- {_SYSTEMS[row['system']]}, {_WORKS[row['work']]}: {row['cannot']}."


def _repeated(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        if row.get("duplicated") and not row["exactly_once"]:
            count = f"{row['duplicated']:,}"
            yield f"- {_SYSTEMS[row['system']]}, {_WORKS[row['work']]}: {count} rows came twice."


if __name__ == "__main__":
    print(tables(json.loads(Path(sys.argv[1]).read_text())), end="")
