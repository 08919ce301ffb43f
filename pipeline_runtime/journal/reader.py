"""Reads a journal, once to its end or continuously."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from time import monotonic, sleep

from pipeline_runtime.journal.records import Record, decode
from pipeline_runtime.kafka.clients import (
    KafkaError,
    KafkaSettings,
    TopicPartition,
    close_spent,
    open_consumer,
    polled_by_its_thread,
)
from pipeline_runtime.kafka.reading import committed_records, committed_values
from pipeline_runtime.kafka.transactions import Doubtful

_POLL_MS = 500
_REST_ASKED_S = 0.05


class JournalTrimmed(RuntimeError):
    """The journal begins after the point from which it is to be read. The records between are gone."""


def read_once(kafka: KafkaSettings, topic: str, offset: int = 0, *, hidden: bool = False) -> Iterator[Record]:
    """Yields the records from `offset` to the end of the journal at the time of the call. See TopicEnd for
    `hidden`. Raises Doubtful."""
    return (decode(value) for value in committed_values(kafka, topic, offset, hidden=hidden))


def read_since(kafka: KafkaSettings, topic: str, since_ms: int) -> Iterator[tuple[int, Record]]:
    """Yields the records that the broker took at `since_ms` or later, with its times (ms), to the end of the
    journal at the time of the call. Raises Doubtful."""
    records = committed_records(kafka, topic, since_ms=since_ms)
    return ((at_ms, decode(value)) for at_ms, value in records)


class JournalTail:
    """Passes every committed record to `apply`, in order, with its offset and the broker's time (ms), in a
    thread of its own, until it is closed.

    The thread holds no lock while `apply` runs, so `apply` takes its own. An exception in `apply` ends the
    thread and is kept in `failure`.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topic: str,
        start_offset: int | None,
        apply: Callable[[list[tuple[int, int, Record]]], None],
        *,
        rest_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`start_offset`: None reads only what comes after the start. `rest_s`: how long it rests after
        records, before it reads on."""
        self._kafka = kafka
        self._topic = topic
        self._start_offset = start_offset
        self._rest_s = rest_s
        self._apply = apply
        self._closing = threading.Event()
        self._progress = threading.Condition()
        self._position = -1
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"journal {topic}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Asks the thread to end, which it does within its poll of 500 ms."""
        self._closing.set()

    def wait_until(self, offset: int, timeout_s: float) -> None:
        """Blocks until all records before `offset` are applied, however many they are. Raises Doubtful when
        there is no progress for `timeout_s`."""
        deadline, seen = monotonic() + timeout_s, self._position
        with self._progress:
            while self._position < offset:
                if self.failure is not None:
                    raise self.failure
                if self._position != seen:
                    deadline, seen = monotonic() + timeout_s, self._position
                remaining = deadline - monotonic()
                if remaining <= 0 or self._closing.is_set():
                    raise Doubtful(f"{self._topic} was read to offset {seen} of {offset}, and no further")
                self._progress.wait(min(remaining, 0.5))

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self._follow()
            except KafkaError:
                sleep(0.2)  # the broker is away: try for ever
            except BaseException as error:
                with self._progress:
                    self.failure = error
                    self._progress.notify_all()
                return

    def _follow(self) -> None:
        consumer = open_consumer(
            self._kafka,
            fetch_max_wait_ms=2000,
            max_poll_records=5000,
            # The thread was without the broker for so long that records it needs are gone. It must not go on
            # after the gap.
            auto_offset_reset="none",
        )
        polled_by_its_thread(consumer)
        try:
            tp = TopicPartition(self._topic, 0)
            consumer.assign([tp])
            first, end = consumer.beginning_offsets([tp])[tp], consumer.end_offsets([tp])[tp]
            resume = self._position if self._position >= 0 else self._start_offset
            if resume is None:
                resume = end
            if not first <= resume <= end:
                raise JournalTrimmed(
                    f"{self._topic} has the offsets from {first} up to {end}, but {resume} is needed"
                )
            consumer.seek(tp, resume)
            self._has_come_to(consumer.position(tp))
            while not self._closing.is_set():
                records = consumer.poll(_POLL_MS).get(tp, [])
                if records:
                    self._apply(
                        [(record.offset, record.timestamp, decode(record.value)) for record in records]
                    )
                self._has_come_to(consumer.position(tp))
                if records:
                    self._rest()
        finally:
            close_spent(consumer)

    def _rest(self) -> None:
        """Rests, and now and then asks for how long: that may change meanwhile."""
        since_s = monotonic()
        while (left_s := since_s + self._rest_s() - monotonic()) > 0 and not self._closing.is_set():
            self._closing.wait(min(left_s, _REST_ASKED_S))

    def _has_come_to(self, position: int) -> None:
        if position != self._position:
            with self._progress:
                self._position = position
                self._progress.notify_all()
