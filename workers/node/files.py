"""The files that elements read: shipped recordings, and uploads, which are fetched once and kept."""

from __future__ import annotations

from pathlib import Path

from pipeline_runtime.checkpoint.client import ChunkClient
from pipeline_runtime.checkpoint.files import FileCache
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.recording import DATA, DEMOS
from workers.node.checkpoints import token_minter


class NodeFiles:
    def __init__(self, directory: Path, central_url: str, cluster_key: str) -> None:
        self._cache = FileCache(directory, ChunkClient(central_url, token_minter(cluster_key)))
        self._hashes: dict[str, str] = {}  # reference -> sha256, for all groups that came here
        self._uploaded = self._cache.resolver(self._hashes)

    def fetch(self, spec: GroupSpec) -> None:
        """Brings the files that a group reads onto this node, before it starts. Raises CheckpointError."""
        self._hashes.update(spec.files)
        for sha in spec.files.values():
            self._cache.path(sha)

    def resolve(self, reference: str) -> Path:
        """See pipeline_runtime.operators.sdk.FileResolver."""
        demo = DEMOS.get(reference)
        return self._uploaded(reference) if demo is None else DATA / demo
