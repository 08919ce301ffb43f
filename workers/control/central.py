"""The central chunk service: the StateDatabase that all checkpoints are replicated to, and the files."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.files import FileStore
from pipeline_runtime.checkpoint.retention import CENTRALLY, Retention
from pipeline_runtime.checkpoint.service import Server, chunk_service, serve

log = logging.getLogger(__name__)

PRUNE_INTERVAL_S = 60.0


class CentralStore:
    """`forgotten(group id, newest checkpoint's time in ms)`: nobody will ask for its checkpoints again."""

    def __init__(
        self,
        directory: Path,
        cluster_key: str,
        host: str,
        port: int,
        forgotten: Callable[[str, int], bool],
        kept: Retention = CENTRALLY,
    ) -> None:
        self.database = StateDatabase(directory / "state")
        self._app = chunk_service(self.database, cluster_key, FileStore(directory / "files"))
        self._host, self._port = host, port
        self._server: Server | None = None
        self._forgotten = forgotten
        self._kept = kept
        self._closing = threading.Event()
        self._pruner = threading.Thread(target=self._prune, name="prune", daemon=True)

    def start(self) -> None:
        """Raises ServiceUnavailable when the port is taken."""
        self._server = serve(self._app, self._host, self._port)
        self._pruner.start()

    def close(self) -> None:
        self._closing.set()
        if self._server is not None:
            self._server.close(timeout_s=2.0)
            self._pruner.join(5.0)
        self.database.close()

    def _prune(self) -> None:
        while not self._closing.wait(PRUNE_INTERVAL_S):
            for group in self.database.groups():
                try:
                    manifests = self.database.manifests(group)
                    if manifests and self._forgotten(group, manifests[0].created_at_ms):
                        self.database.drop_group(group)
                        continue
                    self.database.retain(group, self._kept, int(time.time() * 1000))
                except Exception:
                    log.exception("%s: old checkpoints could not be removed", group)
