"""How long the thread that waits for a producer polls. The producer's side is a stand-in."""

from __future__ import annotations

import threading
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline_runtime.kafka import sender_loop
from pipeline_runtime.kafka.sender_loop import SenderLoop

_NO_END_MS = 0x7FFFFFFF


class Producer:
    """Polls without an end, as kafka-python's does when it has nothing to send. Notes how long it may, in the
    thread that waits for it."""

    def __init__(self) -> None:
        self.polls_ms: list[float] = []
        self._client = SimpleNamespace(poll=self._poll, wakeup=lambda: None)
        self._sender = SimpleNamespace(_client=self._client, run_once=self._run_once)
        self._wait_on_metadata = None

    def start(self) -> None:
        """The producer's own thread, which only begins its first turn."""
        threading.Thread(target=self._begin, daemon=True).start()

    def _begin(self) -> None:
        while self._sender.run_once == self._run_once:
            pass  # SenderLoop replaces it
        self._sender.run_once()

    def _run_once(self) -> None:
        self._client.poll(timeout_ms=_NO_END_MS)

    def _poll(self, timeout_ms: float, future: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            self.polls_ms.append(timeout_ms)


def loop_of(producer: Any) -> SenderLoop:
    producer.start()
    return SenderLoop(producer)


def test_who_waits_polls_no_longer_than_to_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_loop, "_TICK_S", 3_600.0)
    producer = Producer()
    loop = loop_of(producer)
    assert not loop.until(lambda: False, monotonic() + 0.05)
    assert producer.polls_ms
    assert all(0 <= each <= 50 for each in producer.polls_ms)


def test_what_has_to_be_sent_again_is_looked_for_while_somebody_waits() -> None:
    """Nothing wakes a poll when a request is due again, whose connection was lost."""
    producer = Producer()
    loop = loop_of(producer)
    assert loop.until(lambda: len(producer.polls_ms) >= 3, monotonic() + 3_600)
    assert all(each <= 1_000 for each in producer.polls_ms)
