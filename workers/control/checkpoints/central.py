"""The central store: the database to which all checkpoints are replicated, the uploaded files, and their HTTP
service."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from pipeline_runtime.checkpoint.care import Caretaker
from pipeline_runtime.checkpoint.files import FileStore
from pipeline_runtime.checkpoint.retention import CENTRALLY, Retention
from pipeline_runtime.checkpoint.service import Server, chunk_service, serve

log = logging.getLogger(__name__)

PRUNE_INTERVAL_S = 60.0


class CentralStore:
    """The central store.

    `forgotten(group id, newest checkpoint's time in ms)` returns whether the group's checkpoints may be
    deleted. `alert(text)` is called once for each new fault of the store. It may write to the database.
    """

    def __init__(
        self,
        directory: Path,
        cluster_key: str,
        host: str,
        port: int,
        forgotten: Callable[[str, int], bool],
        kept: Retention = CENTRALLY,
        reserve_bytes: int = 0,
        alert: Callable[[str], None] = lambda text: log.error("%s", text),
    ) -> None:
        self._kept = kept
        self._forgotten = forgotten
        self._alert = alert
        self._alerted: set[str] = set()
        self._server: Server | None = None
        self._care = Caretaker(
            directory / "state",
            self._tend,
            self._changed,
            every_s=PRUNE_INTERVAL_S,
            reserve_bytes=reserve_bytes,
        )
        self.database = self._care.database
        self._app = chunk_service(self.database, cluster_key, FileStore(directory / "files"))
        self._host, self._port = host, port

    def start(self) -> None:
        """Raises ServiceUnavailable if the port is taken."""
        self._server = serve(self._app, self._host, self._port)
        self._care.start()
        self._care.tell()

    def close(self) -> None:
        if self._server is not None:
            self._server.close(timeout_s=2.0)
        self._care.close()

    def alerts(self) -> tuple[str, ...]:
        """Returns the present faults of the store."""
        return self._care.alerts()

    def _changed(self) -> None:
        if self._server is None:
            return  # the store reports this when it starts
        alerts = self._care.alerts()
        self._alerted &= set(alerts)
        for text in alerts:
            if text not in self._alerted:
                # `alert` may raise, for example if its database is on the same full disk. Then the fault
                # counts as not reported.
                self._alert(text)
                self._alerted.add(text)

    def _tend(self) -> None:
        for group in self.database.groups():
            try:
                manifests = self.database.manifests(group)
                if manifests and self._forgotten(group, manifests[0].created_at_ms):
                    self.database.drop_group(group)
                    continue
                self.database.retain(group, self._kept, int(time.time() * 1000))
            except Exception:
                log.exception("%s: old checkpoints could not be removed", group)
