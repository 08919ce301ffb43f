"""The values that rules judge: of deployed elements and of nodes, as the dashboard shows them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pipeline_runtime.model.connectors import SPOOL_BYTES_MAX
from pipeline_runtime.model.names import sentence
from webapp.alarms.rules import Metric, Subject

Values = Mapping[Metric, float | None]
AT_WORK = ("running", "lagging", "moving", "failed", "silent", "stalled", "starting", "restoring")
"""Statuses in which an element should process: in others, that no row comes says nothing."""
COMING = ("deploying", "starting", "moving", "restoring")
"""Statuses in which an element's connector may not have begun yet."""
FAILED = ("failed",)
OF_CONNECTORS: tuple[Metric, ...] = ("connector_failing", "rows_lost", "spool_percent")
LOST_FOR = timedelta(minutes=5)
"""For so long after a gap an element counts as one that loses rows."""


@dataclass(frozen=True)
class Measured:
    """What is known of an element or of a node. An unknown figure is None."""

    values: Values
    reasons: Mapping[Metric, str] = field(default_factory=dict)
    """what to say behind what is wrong, in sentences"""


def element_measured(item: Mapping[str, Any], now: datetime) -> Measured:
    """Returns what is known of an element. `item` is a LiveElement."""
    works = item["status"] in AT_WORK
    rates = item["rows_in_per_s"], item["rows_out_per_s"]
    rate = next((each for each in rates if each), rates[0] if rates[0] is not None else rates[1])
    values: Values = {
        "lag_rows": item["lag_rows"],
        "latency_ms": item["latency_ms_p95"],
        "rate_low": rate if works else None,
        "rate_high": rate,
        "no_rows_s": _no_rows_s(item, now) if item["heard"] and works else None,
        "element_failed": float(item["status"] in FAILED) if item["status"] not in ("unheard",) else None,
        "dead_letters": item["dead_letters_open"],
        **_connector_values(item, now),
    }
    return Measured(values, _reasons(item))


def _no_rows_s(item: Mapping[str, Any], now: datetime) -> float | None:
    """Returns for how long rows were missing. A pause does not count. One that never had a row counts from
    when it runs."""
    since = (item["last_row_at"] or item["owner_since"], item["resumed_at"])
    known = [datetime.fromisoformat(each) for each in since if each]
    return max(0.0, (now - max(known)).total_seconds()) if known else None


def _connector_values(item: Mapping[str, Any], now: datetime) -> Values:
    said = item["connector"]
    if said is None:
        # What has no connector loses no rows by it. One that is coming may have lost some.
        known = item["heard"] and item["status"] not in COMING
        return dict.fromkeys(OF_CONNECTORS, 0.0 if known else None)
    lost = said["gap_at"] is not None and now - datetime.fromisoformat(said["gap_at"]) < LOST_FOR
    return {
        "connector_failing": float(said["trouble"] is not None),
        "rows_lost": float(lost),
        "spool_percent": 100 * said["spool_bytes"] / SPOOL_BYTES_MAX,
    }


def _reasons(item: Mapping[str, Any]) -> Mapping[Metric, str]:
    said, found = item["connector"], dict[Metric, str]()
    if item["error"] is not None and item["error"]["message"]:
        found["element_failed"] = sentence(item["error"]["message"])
    if said is not None:
        found["connector_failing"] = said["trouble"] or ""
        gaps, rows = said["gaps_total"], said["gap_rows_total"]
        found["rows_lost"] = f"Gaps so far: {gaps:,}, with {rows:,} rows or more."
    return found


def node_measured(node: Mapping[str, Any]) -> Measured:
    """Returns what is known of a node. `node` is a Node of the REST API."""
    load = (node["load"] or {}) if node["up"] else {}
    values: Values = {
        # A node that was stopped on purpose is not silent. While nobody is heard, it is not known.
        "node_silent": float(node["silent_at"] is not None) if node["heard"] else None,
        "disk_percent": _percent(load.get("disk_ratio")),
        "cpu_percent": _percent(load.get("cpu_ratio")),
        "memory_percent": _percent(load.get("memory_ratio")),
    }
    return Measured(values)


def subjects(
    elements: Iterable[tuple[str, str, Mapping[str, Any]]],
    nodes: Iterable[Mapping[str, Any]],
    now: datetime,
) -> dict[Subject, Measured]:
    """Returns what is known of all elements and nodes that rules look at. `elements`: name and title of the
    pipeline, and the element."""
    nodes = list(nodes)
    sites = {node["name"]: node["site"] or node["name"] for node in nodes}
    found: dict[Subject, Measured] = {}
    for pipeline, title, item in elements:
        if item["status"] == "view":
            continue
        node = item["node"] or ""
        subject = Subject(pipeline, item["id"], node, sites.get(node, ""), f"{item['title']} of {title}")
        found[subject] = element_measured(item, now)
    for node in nodes:
        name = node["name"]
        found[Subject(node=name, site=sites[name], title=name)] = node_measured(node)
    return found


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else 100 * ratio
