"""The benchmarks' input, and what must come out of it: a plain Python oracle that knows no Spark."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

SENSORS = 100
EVENT_TIME_RATE = 10_000  # per second of event time, of events that are produced up front
EPOCH_MS = 1_700_000_000_000
WINDOW_MS = 1000
COLUMNS = [
    {"name": "sensor", "type": "string"},
    {"name": "n", "type": "integer"},
    {"name": "value", "type": "number"},
    {"name": "state", "type": "string"},
]

Output = tuple[str, dict[str, Any]]
"""The record's key and its data."""


@dataclass(frozen=True, slots=True)
class Event:
    n: int
    time_ms: int

    @property
    def sensor(self) -> str:
        return f"s-{self.n % SENSORS:03d}"

    @property
    def value(self) -> float:
        # Quarters: sums of them are exact in whatever order they are added.
        return (self.n * 7919 % 4001) / 4

    @property
    def key(self) -> bytes:
        return self.sensor.encode()

    def encode(self) -> bytes:
        """Some 70 bytes of JSON."""
        text = f'{{"sensor":"{self.sensor}","n":{self.n},"value":{self.value},"state":"running, nominal"}}'
        return text.encode()


def up_front(count: int) -> Iterator[Event]:
    return (Event(n, EPOCH_MS + n * 1000 // EVENT_TIME_RATE) for n in range(count))


def filtered(events: Iterable[Event]) -> list[Output]:
    return [(event.sensor, _data(event)) for event in events if event.n % 10 == 0]


def mapped(events: Iterable[Event]) -> list[Output]:
    return [(event.sensor, {**_data(event), "double": event.value * 2}) for event in events]


def windowed(events: Iterable[Event]) -> list[Output]:
    """Every window that holds an event; how many of them are closed depends on the batches."""
    windows: dict[tuple[int, str], list[float]] = {}
    for event in events:
        start = event.time_ms // WINDOW_MS * WINDOW_MS
        windows.setdefault((start, event.sensor), []).append(event.value)
    return [
        (
            sensor,
            {
                "window_start": start,
                "sensor": sensor,
                "average": sum(values) / len(values),
                "highest": max(values),
                "count": len(values),
            },
        )
        for (start, sensor), values in windows.items()
    ]


def reported(events: Iterable[Event]) -> list[Output]:
    """Welford's statistics of each sensor, reported once a second of event time."""
    states: dict[str, dict[str, Any]] = {}
    out: list[Output] = []
    for event in events:
        state = states.setdefault(
            event.sensor, {"count": 0, "mean": 0.0, "squares": 0.0, "low": math.inf, "high": -math.inf}
        )
        due_ms = state.get("due_ms")
        if due_ms is not None and event.time_ms >= due_ms:
            out.append((event.sensor, _report(event.sensor, state)))
            del state["due_ms"]
        state["count"] += 1
        delta = event.value - state["mean"]
        state["mean"] += delta / state["count"]
        state["squares"] += delta * (event.value - state["mean"])
        state["low"], state["high"] = min(state["low"], event.value), max(state["high"], event.value)
        state.setdefault("due_ms", (event.time_ms // 1000 + 1) * 1000)
    return out


def _report(sensor: str, state: dict[str, Any]) -> dict[str, Any]:
    count = state["count"]
    return {
        "sensor": sensor,
        "count": count,
        "mean": state["mean"],
        "stddev": math.sqrt(state["squares"] / (count - 1)) if count > 1 else None,
        "minimum": state["low"],
        "maximum": state["high"],
    }


def _data(event: Event) -> dict[str, Any]:
    return {"sensor": event.sensor, "n": event.n, "value": event.value, "state": "running, nominal"}


@dataclass(frozen=True)
class Verdict:
    lost: int
    duplicated: int
    reordered: int
    wrong: int  # came, but not as computed

    @property
    def clean(self) -> bool:
        return not (self.lost or self.duplicated or self.reordered or self.wrong)

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(
            self.lost + other.lost,
            self.duplicated + other.duplicated,
            self.reordered + other.reordered,
            self.wrong + other.wrong,
        )


NOTHING_WRONG = Verdict(0, 0, 0, 0)


def judge(expected: Iterable[Output], got: Iterable[Output], identity: str) -> Verdict:
    """Compare by (key, `identity`), a column that rises within each key."""
    wanted = {(key, data[identity]): data for key, data in expected}
    seen: Counter[tuple[str, Any]] = Counter()
    last: dict[str, Any] = {}
    reordered = wrong = 0
    for key, data in got:
        name = (key, data[identity])
        seen[name] += 1
        wrong += wanted.get(name) != data
        reordered += key in last and data[identity] < last[key]
        last[key] = data[identity]
    duplicated = sum(count - 1 for count in seen.values())
    return Verdict(len(wanted.keys() - seen.keys()), duplicated, reordered, wrong)


def decoded(records: Iterable[Any]) -> Iterator[Output]:
    for record in records:
        yield record.key.decode(), json.loads(record.value)
