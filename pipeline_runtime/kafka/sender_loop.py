"""Lets the thread that waits for a producer's requests run the producer's loop itself.

kafka-python sends and receives in a thread of the producer. Each step of a transaction then wakes that thread
and is woken by it, which takes CPU, and time where other threads run Python. So while somebody waits, the
loop runs in the waiting thread. Otherwise the producer's own thread runs it: all the time, until somebody has
waited for the first time, and from then on once in a while or when it is told.

This uses internals of kafka-python. tests/contract/kafka/test_transactions.py runs it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic
from typing import Any

from kafka import KafkaProducer

log = logging.getLogger(__name__)

_TICK_S = 1.0
"""How often the producer's own thread sees to connections and metadata while nobody waits."""


class SenderLoop:
    def __init__(self, producer: KafkaProducer) -> None:
        self._sender = sender = producer._sender
        self._client = sender._client
        self._turn = sender.run_once
        self._until_s = inf  # how long somebody waits (monotonic)
        self._poll = self._client.poll
        self._client.poll = self._poll_for_a_while
        self._running = threading.Lock()  # held by the thread that runs the loop
        self._resumed = threading.Event()  # the producer's own thread is to run it
        self._resumed.set()
        self._needed = 0  # how many callers wait for the producer's own thread
        self._counting = threading.Lock()
        self._wait_on_metadata = producer._wait_on_metadata
        producer._wait_on_metadata = self._metadata_of
        entered = threading.Event()

        def turn_by_itself() -> None:
            entered.set()
            is_told = self._resumed.wait(_TICK_S)
            with self._running:
                if not is_told:
                    self._client.wakeup()  # it only looks
                self._turn()

        sender.run_once = turn_by_itself
        self._client.wakeup()
        entered.wait()

    def until(self, is_done: Callable[[], bool], deadline_s: float) -> bool:
        """Runs the loop until `is_done`, or to the deadline (monotonic). Returns whether it is done."""
        if is_done():
            return True
        self._resumed.clear()
        if not self._running.acquire(blocking=False):
            self._client.wakeup()
            self._running.acquire()
        self._until_s = deadline_s
        try:
            while not is_done():
                if monotonic() > deadline_s:
                    return False
                self._turn_safely()
            return True
        finally:
            self._until_s = inf
            self._running.release()
            if self._needed:
                self._resumed.set()

    def resume(self) -> None:
        """Lets the producer's own thread run the loop, until somebody waits again."""
        self._resumed.set()

    @contextmanager
    def by_itself(self) -> Iterator[None]:
        """Inside, the producer's own thread runs the loop."""
        with self._counting:
            self._needed += 1
        self._resumed.set()
        try:
            yield
        finally:
            with self._counting:
                self._needed -= 1

    def _turn_safely(self) -> None:
        try:
            self._turn()
        except Exception:  # as kafka-python's own thread does
            log.exception("a producer's loop failed, and goes on")

    def _poll_for_a_while(self, timeout_ms: float | None = None, future: Any = None) -> None:
        """Replaces the client's poll. kafka-python polls without an end when it has nothing to send.

        It does so also while a request has to be sent again, since its connection was lost. Nothing wakes it.
        """
        most_ms = 1000 * max(0.0, min(_TICK_S, self._until_s - monotonic()))
        self._poll(timeout_ms=most_ms if timeout_ms is None else min(timeout_ms, most_ms), future=future)

    def _metadata_of(self, topic: str, wait_ms: float) -> Any:
        """Replaces KafkaProducer._wait_on_metadata, which waits for the producer's own thread."""
        known = self._client.cluster.partitions_for_topic(topic)
        if known is not None:
            return known
        with self.by_itself():
            return self._wait_on_metadata(topic, wait_ms)
