"""Queries start in turns."""

from __future__ import annotations

import threading

import pytest

from pipeline_runtime.replica.starts import StartTurns
from tests.shortages import no_more_threads


def never() -> bool:
    return False


def test_a_turn_is_over_when_the_process_is_connected() -> None:
    turns, connected, stopping = StartTurns(1), threading.Event(), threading.Event()
    assert turns.take(stopping)
    turns.give_back_when(connected, never)
    connected.set()
    assert turns.take(stopping)


def test_a_query_that_has_ended_does_not_keep_the_others_waiting() -> None:
    turns, stopping = StartTurns(1), threading.Event()
    assert turns.take(stopping)
    turns.give_back_when(threading.Event(), lambda: True)
    assert turns.take(stopping)


def test_a_turn_is_given_back_when_there_are_no_more_threads() -> None:
    turns, connected, stopping = StartTurns(1), threading.Event(), threading.Event()
    assert turns.take(stopping)
    with no_more_threads(), pytest.raises(RuntimeError, match="can't start new thread"):
        turns.give_back_when(connected, never)
    stopping.set()
    assert turns.take(stopping)


def test_who_is_told_to_stop_does_not_wait_for_a_turn() -> None:
    turns, stopping = StartTurns(1), threading.Event()
    assert turns.take(stopping)
    stopping.set()
    assert not turns.take(stopping)
