"""The files that elements read: shipped recordings, and uploads, which are fetched once and kept."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from pipeline_runtime.checkpoint.client import ChunkClient
from pipeline_runtime.checkpoint.files import FileCache
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.recording import DATA, DEMOS
from workers.node.checkpoints import token_minter

log = logging.getLogger(__name__)

UNUSED_S = 600.0
"""A file that was fetched or opened within so many seconds stays: its element may be just about to start."""
CLEAN_EACH_S = 600.0


class NodeFiles:
    """Fetches files once. Those that nothing here reads are kept as long as they have at most `unused_bytes`;
    the least recently used are deleted first."""

    def __init__(self, directory: Path, central_url: str, cluster_key: str, unused_bytes: int) -> None:
        self._cache = FileCache(directory, ChunkClient(central_url, token_minter(cluster_key)))
        self._hashes: dict[str, str] = {}  # reference -> sha256, for all groups that came here
        self._uploaded = self._cache.resolver(self._hashes)
        self._unused_bytes = unused_bytes
        self._closing = threading.Event()

    def start(self, in_use: Callable[[], Collection[str]]) -> None:
        """Begins to delete what is too much. `in_use` returns the sha256s of what is read here."""
        threading.Thread(target=self._clean, args=(in_use,), name="unused files", daemon=True).start()

    def close(self) -> None:
        self._closing.set()

    def fetch(self, spec: GroupSpec) -> None:
        """Brings the files that a group reads onto this node, before it starts. Raises CheckpointError."""
        self._hashes.update(spec.files)
        for sha in spec.files.values():
            self._cache.path(sha)

    def paths(self, files: Mapping[str, str]) -> dict[str, str]:
        """Returns reference -> path of files that a preview reads: reference -> sha256. What groups read
        under the same references stays. Raises CheckpointError."""
        return {reference: str(self._cache.path(sha)) for reference, sha in files.items()}

    def resolve(self, reference: str) -> Path:
        """See pipeline_runtime.operators.sdk.FileResolver."""
        demo = DEMOS.get(reference)
        return self._uploaded(reference) if demo is None else DATA / demo

    def clean(self, in_use: Collection[str]) -> list[str]:
        """Deletes what is too much, the least recently used first. Returns the sha256s."""
        return self._cache.drop(in_use, UNUSED_S, self._unused_bytes)

    def _clean(self, in_use: Callable[[], Collection[str]]) -> None:
        while not self._closing.wait(CLEAN_EACH_S):
            try:
                for sha in self.clean(in_use()):
                    log.info("%s is deleted from this node: nothing here reads it", sha)
            except OSError as error:
                log.warning("no unused files were deleted this time: %s", error)
