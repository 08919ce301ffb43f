"""The work of each compared system, with one oracle for the results of all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from kafka import TopicPartition

from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer
from pipeline_runtime.kafka.incoming import decoded
from pipeline_runtime.kafka.whole_batches import read_whole_batches
from tests.benchmarks import events
from tests.benchmarks.events import WINDOW_MS, Event, Output, Verdict
from tests.benchmarks.peers import user_operator

SLIDE_MS = 250
REPORT_EVERY = 100
PARTITIONS = 4
_AGGREGATES = [
    {"function": "avg", "column": "value", "as": "average"},
    {"function": "max", "column": "value", "as": "highest"},
    {"function": "count", "column": "value", "as": "count"},
]
_DERIVE = {"type": "derive", "params": {"columns": [{"name": "double", "expression": "value * 2"}]}}
_DIFFERENCE = {"type": "difference", "params": {"column": "value", "name": "made"}}
_FILTER = {"type": "filter", "params": {"condition": "n % 10 = 0"}}
_CHAIN = [_DERIVE, _DIFFERENCE, _FILTER]
_STATISTICS = {"type": "running-statistics", "params": {"column": "value", "every_s": 1}}


def _window(**more: float) -> dict[str, Any]:
    params = {"size_s": WINDOW_MS / 1000, "keys": ["sensor"], "aggregates": _AGGREGATES, **more}
    return {"type": "window-aggregate", "params": params}


@dataclass(frozen=True)
class Work:
    """`elements`: of Fogline, one after another, each in a group of its own, or with `one_group` all in one.
    The source is in the first group, and in the last the sink, which writes JSON to a topic of the user's
    own. `program`: what the others' programs call it. `identity`: a column of the output that rises within
    each key."""

    elements: Sequence[dict[str, Any]]
    program: str
    expected: Callable[[Iterable[Event]], list[Output]]
    identity: str = "n"
    partitions: int = 1
    one_group: bool = False

    @property
    def threads(self) -> int:
        """Threads or slots of the others: one, but as many as cores where there is work for more."""
        return 2 if self.partitions > 1 or len(self.elements) > 1 else 1

    def document(self, topic: str, output: str) -> list[dict[str, Any]]:
        """The elements of a pipeline that does it."""
        source = {
            "topic": topic,
            "columns": events.COLUMNS,
            "key": "sensor",
            "partitions": self.partitions,
        }
        found: list[dict[str, Any]] = [{"id": "input", "type": "kafka-in", "params": source}]
        for number, element in enumerate(self.elements):
            found.append({"id": f"work-{number}", "inputs": {"in": found[-1]["id"]}, **element})
        sink = {"topic": output, "partitions": self.partitions}
        found.append({"id": "output", "type": "kafka-out", "inputs": {"in": found[-1]["id"]}, "params": sink})
        return found

    @property
    def groups(self) -> list[dict[str, Any]]:
        names = [[f"work-{number}"] for number in range(len(self.elements))]
        if self.one_group:
            names = [[id for [id] in names]]
        names[0].insert(0, "input")
        names[-1].append("output")
        return [{"id": f"group-{number}", "elements": each} for number, each in enumerate(names)]


def differed(given: Iterable[Event]) -> list[Output]:
    """Each event, with the difference to its sensor's one before."""
    before: dict[str, float] = {}
    out: list[Output] = []
    for event in given:
        earlier, before[event.sensor] = before.get(event.sensor), event.value
        made = None if earlier is None else event.value - earlier
        data = {"sensor": event.sensor, "n": event.n, "value": event.value, "state": "running, nominal"}
        out.append((event.sensor, {**data, "made": made}))
    return out


def chained(given: Iterable[Event]) -> list[Output]:
    return [
        (key, {**data, "double": data["value"] * 2}) for key, data in differed(given) if data["n"] % 10 == 0
    ]


def slid(given: Iterable[Event]) -> list[Output]:
    """Windows that begin each SLIDE_MS, as the sums of their parts."""
    panes: dict[tuple[int, str], tuple[int, float, float]] = {}
    for event in given:
        name = event.time_ms // SLIDE_MS * SLIDE_MS, event.sensor
        count, total, highest = panes.get(name, (0, 0.0, event.value))
        panes[name] = count + 1, total + event.value, max(highest, event.value)
    windows: dict[tuple[int, str], list[tuple[int, float, float]]] = {}
    for (start, sensor), sums in panes.items():
        for window in range(start - WINDOW_MS + SLIDE_MS, start + 1, SLIDE_MS):
            windows.setdefault((window, sensor), []).append(sums)
    out: list[Output] = []
    for (start, sensor), parts in sorted(windows.items()):
        rows = sum(count for count, _, _ in parts)
        data: dict[str, Any] = {"window_start": start, "sensor": sensor, "count": rows}
        data["average"] = sum(total for _, total, _ in parts) / rows
        out.append((sensor, {**data, "highest": max(highest for _, _, highest in parts)}))
    return out


def counted(given: Iterable[Event], every: int = 1) -> list[Output]:
    """The running statistics of a sensor, at each `every`-th of its events."""
    states: dict[str, tuple[int, float, float, float]] = {}
    out: list[Output] = []
    for event in given:
        value = event.value
        count, total, low, high = states.get(event.sensor, (0, 0.0, value, value))
        count, total, low, high = count + 1, total + value, min(low, value), max(high, value)
        states[event.sensor] = count, total, low, high
        if count % every == 0:
            data = {"sensor": event.sensor, "count": count, "mean": total / count}
            out.append((event.sensor, {**data, "minimum": low, "maximum": high}))
    return out


def counted_seldom(given: Iterable[Event]) -> list[Output]:
    return counted(given, REPORT_EVERY)


WORKS = {
    "filter": Work([_FILTER], "filter", events.filtered),
    "map": Work([_DERIVE], "map", events.mapped),
    "windows": Work([_window()], "windows", events.windowed, "window_start"),
    "sliding": Work([_window(slide_s=SLIDE_MS / 1000)], "sliding", slid, "window_start"),
    "keyed": Work([_STATISTICS], "keyed", events.reported, "count"),
    "python": Work([{"type": user_operator.TYPE, "params": {}}], "keyed", events.reported, "count"),
    "difference": Work([_DIFFERENCE], "difference", differed),
    "chain": Work(_CHAIN, "chain", chained),
    "chain-in-one": Work(_CHAIN, "chain", chained, one_group=True),
    "partitions": Work([_STATISTICS], "keyed", events.reported, "count", PARTITIONS),
}


# Real-time Mode has neither timers nor state of a user's own from Python. It does what is nearest: as many
# rows, of the same statistics without the deviation.
_STAND_INS = {
    ("realtime", "keyed"): (counted_seldom, "count"),
    ("realtime", "difference"): (counted, "count"),
}


def work_of(system: str, name: str) -> Work:
    """Returns what `system` does as the work `name`."""
    expected, identity = _STAND_INS.get((system, name), (None, ""))
    work = WORKS[name]
    return work if expected is None else replace(work, expected=expected, identity=identity)


def number_in(value: bytes) -> int:
    """Returns which event a row of `map` or `difference`, or of what stands in for it, comes from."""
    data = json.loads(value)
    if "n" in data:
        return data["n"]
    return (data["count"] - 1) * events.SENSORS + int(data["sensor"].removeprefix("s-"))


@lru_cache(maxsize=2)
def _expected(expected: Callable[[Iterable[Event]], list[Output]], count: int) -> list[Output]:
    return expected(events.up_front(count))


def judge(
    system: str, name: str, bootstrap: str, topic: str, count: int, source: str | None = None
) -> Verdict:
    """Compares what a system has made of `count` events: those that were produced up front, or of the topic
    `source`."""
    kafka, work = KafkaSettings(bootstrap), work_of(system, name)
    if source is None:
        return _judged(work, outputs(kafka, topic), _expected(work.expected, count), count)
    given = [Event(n, time_ms) for n, time_ms in enumerate(times_ms(kafka, source))]
    if len(given) != count:
        raise AssertionError(f"{len(given):,} of {count:,} events are in the topic {source}")
    return _judged(work, outputs(kafka, topic), work.expected(given), count)


def times_ms(kafka: KafkaSettings, topic: str) -> list[int]:
    """The timestamps of all committed records of a topic."""
    return [time_ms for times, _, _ in _batches(kafka, topic) for time_ms in times]


def _judged(work: Work, got: Iterable[Output], expected: list[Output], count: int) -> Verdict:
    if work.identity == "window_start":
        # Which windows are closed depends on the batches: all up to the last one that was emitted are.
        got = [(key, _in_ms(data)) for key, data in got]
        newest = max((data["window_start"] for _, data in got), default=0)
        last_ms = events.EPOCH_MS + (count - 1) * 1000 // events.EVENT_TIME_RATE
        bound = max(newest, last_ms - 10 * WINDOW_MS)
        expected = [item for item in expected if item[1]["window_start"] <= bound]
    return events.judge(expected, got, work.identity)


def _in_ms(data: dict[str, Any]) -> dict[str, Any]:
    start = data["window_start"]
    if isinstance(start, str):
        start = round(datetime.fromisoformat(start).timestamp() * 1000)
    rest = {name: value for name, value in data.items() if name != "window_end"}
    return {**rest, "window_start": start}


def outputs(kafka: KafkaSettings, topic: str) -> Iterator[Output]:
    """All committed rows of a topic, partition by partition."""
    for _, keys, values in _batches(kafka, topic):
        rows = json.loads(b"[" + b",".join(values) + b"]")
        yield from zip((key.decode() for key in keys), rows, strict=True)


def _batches(kafka: KafkaSettings, topic: str) -> Iterator[tuple[list[int], list[bytes], list[bytes]]]:
    consumer = open_consumer(kafka, fetch_max_wait_ms=20)
    read_whole_batches(consumer)
    try:
        for partition in sorted(consumer.partitions_for_topic(topic) or ()):
            tp = TopicPartition(topic, partition)
            consumer.assign([tp])
            consumer.seek_to_beginning(tp)
            end = consumer.end_offsets([tp])[tp]
            while consumer.position(tp) < end:
                for polled in consumer.poll(200).values():
                    records = decoded([each.value.batch for each in polled])
                    yield records.timestamps_ms.tolist(), records.keys.to_pylist(), records.values.to_pylist()
    finally:
        consumer.close()
