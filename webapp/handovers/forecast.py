"""Forecasts how long a live migration or a restoration takes, by how long earlier ones took. Pure.

what the target has getting ready takes follows the time to catch up, since its copy already follows the
journal warm fetching the state and starting a query cold the same where nothing runs yet: a node's first
query takes much longer

For a restoration, which has no pause of its own, the time from the order until the target owns is forecast.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from webapp.handovers.schemas import Basis, Begun, Expected, NodeForecast, Start, Way
from webapp.placements.group_state import GroupFacts

NEWEST = 5
"""This many of the newest moves count."""

# Measured with small states on two cores. They are used until something was measured.
TYPICAL_READY_MS: dict[Start, int] = {"follows": 2_000, "warm": 10_000, "cold": 45_000}
TYPICAL_PAUSE_MS: dict[str, dict[Start, int]] = {
    "standby": {"follows": 300, "warm": 300, "cold": 300},
    "stop-and-copy": {"follows": 10_000, "warm": 10_000, "cold": 45_000},
}
# From the order until the target owns: docs/benchmarks.md, E2 (a checkpoint of 10,000 events ago; cold: a new
# process with its Spark). A rewind does not read again what was committed since.
TYPICAL_OWNS_MS: dict[str, dict[Start, int]] = {
    "hot-standby": {"follows": 500},
    "checkpoint": {"warm": 3_000, "cold": 16_000},
    "rewind": {"warm": 1_000, "cold": 14_000},
}


@dataclass(frozen=True)
class Past:
    """A live migration or a restoration that is done."""

    pipeline: str
    group: str
    target: str
    strategy: str
    start: Start
    ready_ms: int | None  # from the order until ownership passed; for a restoration, until the target owned
    pause_ms: int | None


def start_on(group: GroupFacts, target: str, busy: Iterable[str]) -> Start:
    """Returns what `target` has for taking over the group. `busy` are the nodes that run a query."""
    replica = group.replica_on(target)
    if replica is not None and replica.role == "standby" and not replica.status.get("error"):
        return "follows"
    return "warm" if target in busy else "cold"


def begun_json(group: GroupFacts, target: str, busy: Iterable[str]) -> Begun:
    """Returns what is stored with an order."""
    status = group.owner.status if group.owner is not None else {}
    return {
        "start": start_on(group, target, busy),
        "bytes": status.get("checkpoint_bytes"),
        "had": target in (status.get("checkpoint_where") or ()),
    }


def forecast_json(
    past: Iterable[Past], pipeline: str, group: GroupFacts, busy: Iterable[str]
) -> dict[str, NodeForecast]:
    """Returns the forecast for each node other than its own.

    Each holds what is there (as `begun_json`), and for each strategy {"ready": Expected or null, "pause":
    Expected}. "restore" holds an Expected for each way to restore the group there, or null if there is no
    standby for it. `past` is newest first.
    """
    known, running = list(past), set(busy)
    found: dict[str, NodeForecast] = {}
    for node in sorted(set(group.nodes) - {group.node}):
        there = begun_json(group, node, running)
        of = (known, pipeline, group.group, node)
        found[node] = {
            "start": there["start"],
            "bytes": there["bytes"],
            "had": there["had"],
            "standby": _way(*of, "standby", there["start"]),
            "stop-and-copy": _way(*of, "stop-and-copy", there["start"]),
            "restore": {
                "hot-standby": _owns(*of, "hot-standby", there["start"]),
                "checkpoint": _owns(*of, "checkpoint", there["start"]),
                "rewind": _owns(*of, "rewind", there["start"]),
            },
            "cost": None,
            "warnings": [],
        }
    return found


def _owns(
    past: list[Past], pipeline: str, group: str, node: str, strategy: str, start: Start
) -> Expected | None:
    if strategy == "hot-standby" and start != "follows":
        return None
    # A restoration from a checkpoint does not use the standby there, so the node is as warm as any other.
    begins: Start = "warm" if start == "follows" and strategy != "hot-standby" else start
    alike = [
        (each, each.ready_ms)
        for each in past
        if each.strategy == strategy and (each.start == begins or each.start == start)
    ]
    return _expected(alike, pipeline, group, node, TYPICAL_OWNS_MS[strategy][begins])


def _way(past: list[Past], pipeline: str, group: str, node: str, strategy: str, start: Start) -> Way:
    same = [each for each in past if each.strategy == strategy]
    alike = [each for each in same if each.start == start]
    # A stop-and-copy prepares nothing: all of it is the pause, which depends on what is there.
    stops = strategy == "stop-and-copy"
    paused = [(each, each.pause_ms) for each in (alike if stops else same)]
    ready = [(each, each.ready_ms) for each in alike]
    pause = _expected(paused, pipeline, group, node, TYPICAL_PAUSE_MS[strategy][start])
    before = None if stops else _expected(ready, pipeline, group, node, TYPICAL_READY_MS[start])
    return {"ready": before, "pause": pause}


def _expected(
    figures: list[tuple[Past, int | None]], pipeline: str, group: str, node: str, typical_ms: int
) -> Expected:
    """Returns the median of the most similar moves that there are."""
    known = [(each, ms) for each, ms in figures if ms is not None]
    kinds: list[tuple[Basis, list[int]]] = [
        ("group", [ms for each, ms in known if (each.pipeline, each.group) == (pipeline, group)]),
        ("node", [ms for each, ms in known if each.target == node]),
        ("pipeline", [ms for each, ms in known if each.pipeline == pipeline]),
    ]
    for basis, all_of_it in kinds:
        newest = all_of_it[:NEWEST]
        if newest:
            least, most = min(newest), max(newest)
            ms = round(median(newest))
            return {"ms": ms, "least_ms": least, "most_ms": most, "basis": basis, "n": len(newest)}
    return {"ms": typical_ms, "least_ms": typical_ms, "most_ms": typical_ms, "basis": "typical", "n": 0}
