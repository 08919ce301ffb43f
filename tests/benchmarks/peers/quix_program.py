"""One work on Quix Streams, exactly once, JSON in and out. It runs in an environment without this project.

For its arguments see program.py. Settings: commit_interval and poll_timeout in seconds, and consumer.* and
producer.* for librdkafka.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from time import perf_counter
from typing import Any

from quixstreams import Application, State
from quixstreams.dataframe.windows import Count, Max, Mean

WINDOW_MS, SLIDE_MS = 1000, 250
_END_S = 30.0


class Progress:
    """Says how far the program has come, and stops it after the last event."""

    def __init__(self, count: int, warm: int) -> None:
        self._count, self._warm, self._seen, self._warm_at = count, warm, 0, 0.0
        self.stop: Any = None

    def event(self, _topic: str, _partition: int, _offset: int) -> None:
        self._seen += 1
        if self._seen == self._warm:
            self._warm_at = perf_counter()
            print(f"WARM {self._seen}", flush=True)
        if self._seen == self._count:
            rate = (self._count - self._warm) / (perf_counter() - self._warm_at)
            print(f"EVENTS_PER_S {rate}", flush=True)
            self.stop()
            # A group that is left takes its time; what is not committed by then, the oracle finds missing.
            end = threading.Timer(_END_S, os._exit, (0,))
            end.daemon = True
            end.start()


def twice(row: dict[str, Any]) -> dict[str, Any]:
    row["double"] = row["value"] * 2
    return row


def difference(row: dict[str, Any], state: State) -> dict[str, Any]:
    before = state.get("before")
    row["made"] = None if before is None else row["value"] - before
    state.set("before", row["value"])
    return row


def statistics(
    row: dict[str, Any], key: str, time_ms: int, _headers: Any, state: State
) -> list[dict[str, Any]]:
    """Welford's statistics of a sensor: a row when the first event after a second of event time has come."""
    count, mean, squares, low, high, due = state.get("s") or (0, 0.0, 0.0, math.inf, -math.inf, None)
    reports = []
    if due is not None and time_ms >= due:
        deviation = math.sqrt(squares / (count - 1)) if count > 1 else None
        report = {"sensor": key, "count": count, "mean": mean, "stddev": deviation}
        reports.append({**report, "minimum": low, "maximum": high})
        due = None
    value = row["value"]
    count += 1
    delta = value - mean
    mean += delta / count
    squares += delta * (value - mean)
    low, high = min(low, value), max(high, value)
    if due is None:
        due = (time_ms // 1000 + 1) * 1000
    state.set("s", (count, mean, squares, low, high, due))
    return reports


def window_row(window: dict[str, Any], key: str, _time_ms: int, _headers: Any) -> dict[str, Any]:
    return {
        "window_start": window["start"],
        "window_end": window["end"],
        "sensor": key,
        "average": window["average"],
        "highest": window["highest"],
        "count": window["count"],
    }


def made(work: str, rows: Any) -> Any:
    """Adds the work to a data frame of events."""
    if work == "filter":
        return rows.filter(lambda row: row["n"] % 10 == 0)
    if work == "map":
        return rows.apply(twice)
    if work == "difference":
        return rows.apply(difference, stateful=True)
    if work == "chain":
        rows = rows.apply(twice).apply(difference, stateful=True)
        return rows.filter(lambda row: row["n"] % 10 == 0)
    if work == "keyed":
        return rows.apply(statistics, stateful=True, expand=True, metadata=True)
    if work == "windows":
        windows = rows.tumbling_window(duration_ms=WINDOW_MS)
    elif work == "sliding":
        windows = rows.hopping_window(duration_ms=WINDOW_MS, step_ms=SLIDE_MS)
    else:
        raise ValueError(work)
    windows = windows.agg(average=Mean("value"), highest=Max("value"), count=Count())
    return windows.final().apply(window_row, metadata=True)


def main() -> None:
    bootstrap, name, directory, topic, output, work, count, warm, _threads, *settings = sys.argv[1:]
    values = dict(setting.split("=", 1) for setting in settings)

    def of(client: str) -> dict[str, str]:
        return {key.removeprefix(client): value for key, value in values.items() if key.startswith(client)}

    progress = Progress(int(count), int(warm))
    app = Application(
        bootstrap,
        consumer_group=name,
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        commit_interval=float(values["commit_interval"]),
        consumer_poll_timeout=float(values.get("poll_timeout", "0.1")),
        consumer_extra_config=of("consumer."),
        producer_extra_config=of("producer."),
        state_dir=directory,
        loglevel="WARNING",
        on_message_processed=progress.event,
    )
    progress.stop = app.stop
    rows = app.dataframe(app.topic(topic, key_deserializer="str"))
    made(work, rows).to_topic(app.topic(output, key_serializer="str"))
    app.run()


if __name__ == "__main__":
    main()
