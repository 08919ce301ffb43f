"""Pipelines that several laws use, and their oracles."""

from __future__ import annotations

import csv
import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kafka import KafkaProducer

from tests.integration.runtime.engine import Element

COLUMNS = [{"name": "k"}, {"name": "v", "type": "integer"}]

Row = dict[str, Any]
_BURST_S = 0.1  # a request for each row would cost producer and broker more than all the rest


def events(topic: str, **params: Any) -> Element:
    """A user's topic of {"k": text, "v": integer}."""
    return {
        "id": "events",
        "type": "kafka-in",
        "params": {"topic": topic, "columns": COLUMNS, "key": "k", **params},
    }


def sums(before: str = "events") -> Element:
    return {"id": "sums", "type": "picky", "inputs": {"in": before}, "params": {}}


def file(before: str = "sums") -> Element:
    return {"id": "file", "type": "csv-sink", "inputs": {"in": before}, "params": {"file": "out.csv"}}


def out(topic: str, before: str = "sums") -> Element:
    return {"id": "out", "type": "kafka-out", "inputs": {"in": before}, "params": {"topic": topic}}


def running_sums(rows: Iterable[Row]) -> dict[str, list[int]]:
    """The oracle of `sums`: per key, the sum after each row that is not negative."""
    totals: dict[str, int] = defaultdict(int)
    made: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        if row["v"] >= 0:
            totals[row["k"]] += row["v"]
            made[row["k"]].append(totals[row["k"]])
    return dict(made)


def by_key(rows: Iterable[Row]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        found[row["k"]].append(int(row["v"]))
    return dict(found)


def lines(path: Path) -> list[Row]:
    with path.open(newline="") as opened:
        return list(csv.DictReader(opened))


class Stream(threading.Thread):
    """Sends {"k", "v"} steadily until it is finished; some rows are negative, which `sums` refuses."""

    def __init__(self, kafka: str, topic: str, rate: float = 100) -> None:
        super().__init__(daemon=True)
        self._kafka, self._topic, self._rate = kafka, topic, rate
        self._finishing = threading.Event()
        self.rows: list[Row] = []

    def run(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self._kafka, linger_ms=5)
        begun = time.monotonic()
        while not self._finishing.wait(_BURST_S):
            for n in range(len(self.rows), int((time.monotonic() - begun) * self._rate)):
                row = {"k": f"k{n % 7}", "v": n % 11 - 1}
                producer.send(self._topic, key=row["k"].encode(), value=json.dumps(row).encode())
                self.rows.append(row)
        producer.flush()
        producer.close()

    def finish(self) -> list[Row]:
        self._finishing.set()
        self.join()
        return self.rows
