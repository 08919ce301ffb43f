"""Sends commands and reports over Redis between web, control and nodes.

The names are in pipeline_runtime.wire.

    web  --task, queue control-->  control  --fogline.node.sync, queue node.<name>-->  node
    node --XADD fogline:reports-->  control  --channel layer "live"-->  web
    web  --fogline.node.look, queue node.<name>-->  node  --RPUSH fogline:answer:<id>-->  web

Every message may be lost, late or doubled. So a task only says "look again", or carries a whole desired state
with its revision. Nothing depends on a message that is sent once.
"""

from __future__ import annotations

import threading
from time import monotonic
from typing import Any

from celery import Celery
from celery.worker import WorkController, state as worker_state
from kombu.entity import Queue

from pipeline_runtime.wire.tasks import COMMAND_EXPIRES_S, CONTROL_QUEUE

REPORTS_LENGTH_MAX = 500
"""How many reports Redis keeps while control is away. Control deletes those that it has read.

A report is whole, so control needs only the newest of each node. Many more, of some 10 KB each, would fill
Redis.
"""

HISTORY_POINTS_MAX = 1_800  # an hour at one point every 2 s
HISTORY_INTERVAL_S = 2.0

CENTRAL = "central"
"""Stands for the central store in a CheckpointSource's url. Each node knows its address."""


STEADY_S = 60.0
"""After a receiver has taken commands for this long, its next failure is counted from one again."""
TRIES = 5
PAUSE_S = 1.0  # before the second try; it doubles before each further one


class CommandsLost(RuntimeError):
    """No more commands can be taken."""


def celery_app(name: str, redis_url: str, queue: str | None = None) -> Celery:
    """Returns a Celery app that speaks only JSON and never gives up its broker.

    `queue` is the one that a worker of this app reads, or None for an app that only sends.
    """
    # Without fixups: if the environment names Django's settings, Celery imports the whole web when a worker
    # starts, also in a node. A task that uses the database looks after its connection itself.
    app = Celery(name, broker=redis_url, set_as_current=False, fixups=())
    app.conf.update(
        task_serializer="json",
        result_serializer="json",
        accept_content=["json"],
        result_accept_content=["json"],
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        # Commands are idempotent and sent again. One that is lost with a killed worker is no loss, but one
        # that comes again an hour later would be a surprise. So they are acknowledged on receipt.
        task_acks_late=False,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        broker_connection_retry=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,  # for ever
        broker_transport_options={
            "visibility_timeout": 60,
            "socket_keepalive": True,
            "socket_connect_timeout": 5,
            "socket_timeout": 30,
            "health_check_interval": 10,
        },
        task_create_missing_queues=True,
        enable_utc=True,
    )
    if queue is not None:
        app.conf.task_queues = [Queue(queue)]
        app.conf.task_default_queue = queue
    return app


def send(app: Celery, task: str, args: list[Any], queue: str) -> None:
    """Sends a command. Raises kombu's OperationalError at once if Redis is away.

    It is not tried again here: the sender sends again, from what the database or the disk wants.
    """
    expires_s = COMMAND_EXPIRES_S if queue == CONTROL_QUEUE else None
    app.send_task(task, args=args, queue=queue, expires=expires_s, retry=False, ignore_result=True)


class CommandReceiver:
    """A Celery worker in a thread of this process, without signal handlers of its own.

    Celery's command-line worker takes over SIGTERM and the root logger. These processes have more to end than
    Celery, so they keep both, and run its bare controller instead.
    """

    def __init__(self, app: Celery, name: str, threads: int) -> None:
        self._app = app
        self._name = name
        self._threads = threads
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="commands", daemon=True)

    def start(self) -> None:
        worker_state.should_stop = None
        # The pool's threads look a task up in Celery's default app. The bare controller does not set it, and
        # without it a command may be dropped silently.
        self._app.set_default()
        self._thread.start()

    def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            began_s = monotonic()
            controller = WorkController(
                app=self._app,
                hostname=self._name,
                pool_cls="threads",
                concurrency=self._threads,
                loglevel="WARNING",
                without_heartbeat=True,
                without_mingle=True,
                without_gossip=True,
            )
            # Returns when it is asked to stop, and on an error that Celery does not retry, which it logs. If
            # Redis is away, it waits in there.
            controller.start()
            failures = 1 if monotonic() - began_s > STEADY_S else failures + 1
            if failures == TRIES and not self._stopping.is_set():
                raise CommandsLost(f"Celery gave up {TRIES} times in a row; see its errors above")
            self._stopping.wait(PAUSE_S * 2 ** (failures - 1))

    def stop(self, timeout_s: float) -> None:
        """Takes no more commands. Returns after `timeout_s` at the latest, even if one is still running."""
        self._stopping.set()
        worker_state.should_stop = 0
        self._thread.join(timeout_s)
