"""The tools that measure moves of Kafka Streams and Flink: the process under test, the load, the observer,
the oracle."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import monotonic, sleep

from kafka import TopicPartition

from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer
from tests.benchmarks import events
from tests.benchmarks.events import Output, Verdict
from tests.benchmarks.harness import plain_producer
from tests.handover.traffic import ACTIVE_KEYS, RATE

_LOOK_S = 0.003
_TICK_S = 0.002
_USUAL_S = 2.0  # so long before a move the usual interval is taken from
_BURST_S = 0.005  # outputs that are further apart are of different commits


class MoveFailed(RuntimeError):
    """A process ended, or what it was told did not come about in time."""


def wait(condition: Callable[[], bool], limit_s: float, what: Callable[[], str]) -> None:
    deadline = monotonic() + limit_s
    while not condition():
        if monotonic() > deadline:
            raise MoveFailed(f"not within {limit_s:.0f} s: {what()}")
        sleep(_LOOK_S)


class Spoken:
    """A process that takes orders as lines, and answers in lines."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self._log = log
        self._lines: list[str] = []
        with log.open("a") as file:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True, bufsize=1
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line.strip())

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def expect(self, prefix: str, limit_s: float, since: int = 0) -> str:
        """Waits for a line that begins so, from the `since`-th on, and returns the rest of it."""
        found: list[str] = []

        def is_there() -> bool:
            found[:] = [line for line in self._lines[since:] if line.startswith(prefix)]
            if not found and self._process.poll() is not None:
                raise MoveFailed(f"{self.name} ended: {self._log.read_text()[-2000:]}")
            return bool(found)

        wait(is_there, limit_s, lambda: f"{prefix} of {self.name}, which said {self._lines[-3:]}")
        return found[0].removeprefix(prefix).strip()

    def ask(self, line: str, prefix: str, limit_s: float = 20) -> str:
        since = len(self._lines)
        self.say(line)
        return self.expect(prefix, limit_s, since)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@dataclass(frozen=True, slots=True)
class Seen:
    """An output, and when a reader of committed records had it."""

    at: float
    owner: str
    key: str
    count: int
    number: int  # of its event
    intact: bool


@dataclass(frozen=True)
class Gap:
    """`ms`: from the old owner's last output to the first of the new one. `usual_ms`: between two commits."""

    ms: float
    usual_ms: float


def gap(seen: Sequence[Seen], old: str, new: str) -> Gap:
    """The last change of the owner from `old` to `new`."""
    last = max(each.at for each in seen if each.owner == old)
    first = min(each.at for each in seen if each.owner == new and each.at >= last)
    times = [each.at for each in seen if each.owner == old and last - _USUAL_S < each.at]
    bursts = [after - before for before, after in pairwise(times)]
    bursts = [each for each in bursts if each > _BURST_S]
    return Gap((first - last) * 1000, median(bursts) * 1000 if bursts else 0.0)


def verdict(seen: Iterable[Seen], sent: int) -> Verdict:
    """Each event has one output, in order, with its place among the events of its key. Blobs came along."""
    expected: Iterator[Output] = (
        (_key(n), {"number": n, "count": n // ACTIVE_KEYS + 1, "intact": True}) for n in range(sent)
    )
    got = ((each.key, {"number": each.number, "count": each.count, "intact": each.intact}) for each in seen)
    return events.judge(expected, got, "number")


def _key(n: int) -> str:
    return f"k{n % ACTIVE_KEYS:04d}"


class Traffic:
    """RATE events a second into one topic, and an observer of the other."""

    def __init__(self, kafka: KafkaSettings, topic: str, output: str) -> None:
        self._kafka, self._topic, self._output = kafka, topic, output
        self.seen: list[Seen] = []
        self.sent = 0
        self._sending, self._observing = threading.Event(), threading.Event()
        self._sending.set()
        self._observing.set()
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._observer = threading.Thread(target=self._observe, daemon=True)

    @property
    def owner(self) -> str | None:
        return self.seen[-1].owner if self.seen else None

    def since_last_s(self) -> float:
        return monotonic() - self.seen[-1].at

    def _send(self) -> None:
        producer = plain_producer(self._kafka)
        producer.partitions_for(self._topic)
        begin = monotonic()
        while self._sending.is_set():
            due = int((monotonic() - begin) * RATE)
            for n in range(self.sent, due):
                producer.send(self._topic, str(n).encode(), _key(n).encode(), partition=0)
            self.sent = max(self.sent, due)
            sleep(_TICK_S)
        producer.flush()
        producer.close()

    def _observe(self) -> None:
        consumer = open_consumer(self._kafka, fetch_max_wait_ms=50, fetch_min_bytes=1)
        partition = TopicPartition(self._output, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        while self._observing.is_set():
            for records in consumer.poll(20).values():
                at = monotonic()
                for record in records:
                    owner, key, count, number, intact = record.value.decode().split("|")
                    self.seen.append(Seen(at, owner, key, int(count), int(number), intact == "1"))
        consumer.close()

    def finish(self, limit_s: float) -> Verdict:
        """Ends the load, waits for the last outputs, and judges them."""
        self._sending.clear()
        self._sender.join()
        try:
            wait(lambda: len(self.seen) >= self.sent, limit_s, lambda: "the last outputs")
            sleep(1.0)  # whatever comes twice
        except MoveFailed:
            pass  # the oracle says what is missing
        self.end()
        return verdict(self.seen, self.sent)

    def start(self) -> None:
        self._observer.start()
        self._sender.start()

    def end(self) -> None:
        self._sending.clear()
        self._observing.clear()
        for thread in (self._sender, self._observer):
            if thread.is_alive():
                thread.join()


@contextmanager
def flowing(kafka: KafkaSettings, topic: str, output: str) -> Iterator[Traffic]:
    traffic = Traffic(kafka, topic, output)
    try:
        yield traffic
    finally:
        traffic.end()
