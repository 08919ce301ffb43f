"""A call that may not come back."""

from __future__ import annotations

import threading

import pytest

from pipeline_runtime.kafka.clients import KafkaError, close_spent, within
from tests.waiting import PATIENCE_S


def failing() -> None:
    raise TimeoutError("its own")


def test_a_call_gives_what_it_gives() -> None:
    assert within(PATIENCE_S, lambda: 7) == 7
    with pytest.raises(TimeoutError, match="its own"):
        within(PATIENCE_S, failing)


def test_a_call_that_does_not_come_back_is_left_alone() -> None:
    never = threading.Event()
    with pytest.raises(KafkaError, match="no answer"):
        within(0.01, never.wait)
    never.set()


def test_a_client_that_does_not_close_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline_runtime.kafka.clients._CLOSE_S", 0.01)
    never = threading.Event()

    class Client:
        def close(self) -> None:
            never.wait()

    close_spent(Client())
    assert not never.is_set()
    never.set()
