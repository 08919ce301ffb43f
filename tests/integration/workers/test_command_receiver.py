"""Celery commands over a real Redis."""

from __future__ import annotations

import threading

import pytest
from celery import Celery, bootsteps
from celery._state import set_default_app

from tests.waiting import PATIENCE_S
from workers import messages
from workers.messages import CommandReceiver, CommandsLost, celery_app, send


@pytest.mark.integration
def test_a_command_is_carried_out_whichever_app_celery_took_for_the_default(redis_url: str) -> None:
    set_default_app(Celery("another", set_as_current=False))
    app = celery_app("receiver", redis_url, "node.receiver")
    carried_out = threading.Event()
    app.task(name="ring", shared=False)(carried_out.set)
    receiver = CommandReceiver(app, "receiver", threads=1)
    receiver.start()
    try:
        send(celery_app("sender", redis_url), "ring", [], "node.receiver")
        assert carried_out.wait(PATIENCE_S)
    finally:
        receiver.stop(10)


class Broken(bootsteps.StartStopStep):
    """A part of Celery's worker that fails with what Celery does not try again."""

    requires = {"celery.worker.consumer.tasks:Tasks"}
    starts = 0

    def start(self, parent: object) -> None:
        Broken.starts += 1
        raise RuntimeError("broken")


@pytest.mark.integration
def test_a_receiver_that_celery_gives_up_each_time_fails_instead_of_being_deaf(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "PAUSE_S", 0.001)
    app = celery_app("deaf", redis_url, "node.deaf")
    app.steps["consumer"].add(Broken)
    receiver = CommandReceiver(app, "deaf", threads=1)
    ended: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", ended.append)
    receiver.start()
    receiver._thread.join(PATIENCE_S)
    assert [one.exc_type for one in ended] == [CommandsLost]
    assert Broken.starts == messages.TRIES
