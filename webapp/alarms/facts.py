"""The values that rules judge: of deployed elements and of nodes, as the dashboard shows them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from webapp.alarms.rules import Metric, Subject

Values = Mapping[Metric, float | None]
AT_WORK = ("running", "lagging", "moving", "failed", "silent", "stalled", "starting", "restoring")
"""Statuses in which an element should process: in others, that no row comes says nothing."""
FAILED = ("failed",)


def element_values(item: Mapping[str, Any], now: datetime) -> Values:
    """Returns the values of an element by metric. `item` is a LiveElement. An unknown figure is None."""
    works = item["status"] in AT_WORK
    rates = item["rows_in_per_s"], item["rows_out_per_s"]
    rate = next((each for each in rates if each), rates[0] if rates[0] is not None else rates[1])
    known = item["heard"]
    return {
        "lag_rows": item["lag_rows"],
        "latency_ms": item["latency_ms_p95"],
        "rate_low": rate if works else None,
        "rate_high": rate,
        "no_rows_s": _age_s(item["last_row_at"], now) if known and works else None,
        "element_failed": float(item["status"] in FAILED) if item["status"] not in ("unheard",) else None,
        "dead_letters": item["dead_letters_open"],
    }


def node_values(node: Mapping[str, Any]) -> Values:
    """Returns the values of a node by metric. `node` is a Node of the REST API."""
    load = (node["load"] or {}) if node["up"] else {}
    return {
        # A node that was stopped on purpose is not silent. While nobody is heard, it is not known.
        "node_silent": float(node["silent_at"] is not None) if node["heard"] else None,
        "disk_percent": _percent(load.get("disk_ratio")),
        "cpu_percent": _percent(load.get("cpu_ratio")),
        "memory_percent": _percent(load.get("memory_ratio")),
    }


def subjects(
    elements: Iterable[tuple[str, str, Mapping[str, Any]]],
    nodes: Iterable[Mapping[str, Any]],
    now: datetime,
) -> dict[Subject, Values]:
    """Returns the values of all elements and nodes that rules look at. `elements`: name and title of the
    pipeline, and the element."""
    nodes = list(nodes)
    sites = {node["name"]: node["site"] or node["name"] for node in nodes}
    found: dict[Subject, Values] = {}
    for pipeline, title, item in elements:
        if item["status"] == "view":
            continue
        node = item["node"] or ""
        subject = Subject(pipeline, item["id"], node, sites.get(node, ""), f"{item['title']} of {title}")
        found[subject] = element_values(item, now)
    for node in nodes:
        name = node["name"]
        found[Subject(node=name, site=sites[name], title=name)] = node_values(node)
    return found


def _age_s(at: str | None, now: datetime) -> float | None:
    return max(0.0, (now - datetime.fromisoformat(at)).total_seconds()) if at else None


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else 100 * ratio
