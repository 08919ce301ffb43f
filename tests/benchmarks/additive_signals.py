"""DEBS 2012 Query 1 as the digital-twin papers ran it: a machine's samples, the pipeline over them, and what
must come out of it, in plain Python.

A sample has all six signals of the additives (a sensor and a valve of each of three). Each pair begins a
cycle every six seconds: the sensor rises, and falls a second later; the valve follows 2.5 s after the sensor.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipeline_runtime.model.templates import load_template

PER_HOUR = 379_820  # messages, as published
INTERVAL_MS = 3_600_000 / PER_HOUR
SIGNALS = ("bm05", "bm06", "bm07", "bm08", "bm09", "bm10")
NAME = "debs"
GROUPS = ("watch", "pairs", "growth", "alarm", "trend")
_CYCLE_MS, _APART_MS, _HELD_MS, _ANSWER_MS = 6_000, 2_000, 1_000, 2_500


def levels(at_ms: float) -> tuple[bool, ...]:
    """Returns the levels of SIGNALS, so long after the beginning."""
    found = [False] * len(SIGNALS)
    for pair in range(3):
        since = at_ms - _APART_MS * pair
        if since >= 0:
            # A valve may still be open from the cycle before.
            found[pair] = since % _CYCLE_MS < _HELD_MS
            found[pair + 3] = since >= _ANSWER_MS and (since - _ANSWER_MS) % _CYCLE_MS < _HELD_MS
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Sample:
    n: int
    time_ms: int  # when it was due at the sensor

    def encode(self) -> bytes:
        values = dict(zip(SIGNALS, levels(self.n * INTERVAL_MS), strict=True))
        return json.dumps({"index": self.n, **values}, separators=(",", ":")).encode()


def samples(begin_ms: float, first: int, end: int) -> Iterator[Sample]:
    return (Sample(n, int(begin_ms + n * INTERVAL_MS)) for n in range(first, end))


@dataclass(frozen=True, slots=True)
class Rise:
    """What the edge detection has to find: one row each, in this order."""

    signal: str
    time_ms: int


def rises(begin_ms: float, count: int) -> list[Rise]:
    found = []
    before = levels(0)
    for sample in samples(begin_ms, 1, count):
        now = levels(sample.n * INTERVAL_MS)
        found += [
            Rise(signal, sample.time_ms)
            for signal, was, is_now in zip(SIGNALS, before, now, strict=True)
            if is_now and not was
        ]
        before = now
    return found


def document(topic: str, nodes: dict[str, str]) -> dict[str, Any]:
    """The template additive-control on this topic, without what it shows. `nodes`: group -> node.

    An answer is not held back for rows that come late (`delay_s`), since the paper's is not either.
    """
    data: dict[str, Any] = load_template("additive-control").to_data()
    data["metadata"] = {"name": NAME}
    columns = [{"name": "index", "type": "integer"}, *({"name": name, "type": "boolean"} for name in SIGNALS)]
    kept = []
    for element in data["spec"]["elements"]:
        if element["type"].startswith("live-"):
            continue
        if element["id"] == "readings":
            element |= {"type": "kafka-in", "params": {"topic": topic, "columns": columns}}
        if element["id"] == "answers":
            element["params"]["delay_s"] = 0
        element["node"] = nodes[_group_of(element["id"])]
        kept.append(element)
    groups = [
        {"id": "watch", "elements": ["readings", "edges", "named"]},
        {"id": "pairs", "elements": ["answers", "matched", "missing"]},
    ]
    data["spec"] = {"elements": kept, "groups": groups}
    return data


def _group_of(element: str) -> str:
    if element in ("readings", "edges", "named"):
        return "watch"
    return "pairs" if element in ("answers", "matched", "missing") else element
