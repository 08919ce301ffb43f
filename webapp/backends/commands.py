"""Sends commands to control. They hold ids only; the database says what to do."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

import kombu.transport.redis  # noqa: F401 - by itself it comes with the first order: too late to find it missing
from celery import Celery
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

from pipeline_runtime.wire.tasks import COMMAND_EXPIRES_S, CONTROL_QUEUE
from webapp.problems import BackendAway

log = logging.getLogger(__name__)


@cache
def sender(redis_url: str) -> Celery:
    app = Celery("fogline", broker=redis_url, set_as_current=False)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_default_queue=CONTROL_QUEUE,
        # Fails at once while Redis is away, since a request waits for this.
        broker_transport_options={
            "socket_connect_timeout": 2,
            "socket_timeout": 5,
            "max_retries": 0,
            "interval_start": 0,
            "interval_step": 0,
            "interval_max": 0,
        },
    )
    return app


def send(task: str, *args: Any, has_row: bool = True) -> None:
    """Sends a command to control, after the commit.

    A lost command does no harm if a row asks for the same, since control also looks by itself. If no row does
    (not `has_row`), raises BackendAway when the command cannot be sent.
    """

    def tell() -> None:
        try:
            sender(settings.FOGLINE.redis_url).send_task(
                task,
                args=args,
                queue=CONTROL_QUEUE,
                expires=COMMAND_EXPIRES_S,
                retry=False,
                ignore_result=True,
            )
        except (OperationalError, OSError) as error:
            log.warning("Redis is away, %s%s was not sent: %s", task, args, error)
            if not has_row:
                raise BackendAway(
                    "The order could not be sent: Redis does not answer.",
                    safe="Nothing was changed. Running pipelines keep running.",
                    next="Try again when Redis is back.",
                ) from error

    transaction.on_commit(tell)
