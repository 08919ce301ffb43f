"""Sends reports to the control side, every second and soon after each change. Redis may be away."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable

import redis

from pipeline_runtime.model.desired import NodeReport
from pipeline_runtime.wire.keys import CONTROL_STATE, REPORT_FIELD, REPORTS_STREAM
from pipeline_runtime.wire.reports import packed
from workers.messages import REPORTS_LENGTH_MAX

log = logging.getLogger(__name__)

COALESCE_S = 0.1
BACKOFF_S_MAX = 10.0


def new_run_id() -> str:
    return f"{int(time.time() * 1000)}-{secrets.token_hex(4)}"


class Heartbeat:
    """A thread that sends `make_report(number)`.

    Nothing is queued while Redis is away: the next report says everything that the lost ones said.
    """

    def __init__(
        self, redis_url: str, make_report: Callable[[int], NodeReport], interval_s: float = 1.0
    ) -> None:
        self._redis = redis.Redis.from_url(
            redis_url, socket_timeout=5, socket_connect_timeout=5, health_check_interval=10
        )
        self._make_report = make_report
        self._interval_s = interval_s
        self._number = 0
        self._sending = threading.Lock()
        self._changed = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def changed(self) -> None:
        self._changed.set()

    def control_is_there(self) -> bool:
        """Returns whether Redis answers and a control process works: such a process writes there each
        second."""
        try:
            return bool(self._redis.exists(CONTROL_STATE))
        except redis.RedisError:
            return False

    def close(self, bye: bool = True) -> None:
        """Stops, then says goodbye if Redis is there.

        Without `bye` it sends a last report, which tells of the cause, and the control side notices the
        silence.
        """
        self._closing.set()
        self._changed.set()
        if self._thread.ident is not None:
            self._thread.join(2.0)
        try:
            self._send("bye" if bye else "heartbeat")
        except redis.RedisError:
            log.info("Redis is away, so there is no goodbye. The control side will notice the silence.")

    def _run(self) -> None:
        delay_s = 0.0
        while not self._closing.is_set():
            try:
                self._send("heartbeat")
                if delay_s:
                    log.info("Redis is back; reports go on")
                delay_s = 0.0
            except redis.RedisError as error:
                if not delay_s:
                    log.warning(
                        "Redis is away (%s). The replicas go on. Reports are tried again for ever.", error
                    )
                delay_s = min(max(self._interval_s, delay_s * 2), BACKOFF_S_MAX)
            except Exception:
                log.exception("a report could not be made; the next one follows")
            if delay_s:
                self._closing.wait(delay_s)
            else:
                self._changed.wait(self._interval_s)
                self._closing.wait(COALESCE_S)
            self._changed.clear()

    def _send(self, kind: str) -> None:
        with self._sending:
            self._number += 1
            report = self._make_report(self._number).model_copy(update={"kind": kind})
            self._redis.xadd(
                REPORTS_STREAM,
                {REPORT_FIELD: packed(report.model_dump_json())},
                maxlen=REPORTS_LENGTH_MAX,
                approximate=True,
            )
