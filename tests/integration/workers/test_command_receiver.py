"""Celery commands over a real Redis."""

from __future__ import annotations

import threading

import pytest
from celery import Celery
from celery._state import set_default_app

from workers.messages import CommandReceiver, celery_app, send


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
        assert carried_out.wait(30)
    finally:
        receiver.stop(10)
