"""The node's checkpoints: cut from running replicas, kept here, pushed to the central store."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipeline_runtime.checkpoint import access
from pipeline_runtime.checkpoint.client import ChunkClient
from pipeline_runtime.checkpoint.cut import cut
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.errors import NothingCommitted
from pipeline_runtime.checkpoint.replicator import Replicator
from pipeline_runtime.checkpoint.retention import ON_NODES, Retention
from pipeline_runtime.checkpoint.store import store
from pipeline_runtime.checkpoint.transfer import fetch_checkpoint
from pipeline_runtime.model.desired import CheckpointSource
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import GroupSpec
from workers.messages import CENTRAL
from workers.node.runtime import Taken

log = logging.getLogger(__name__)

TOKEN_S = 3600


@dataclass(frozen=True)
class Tried:
    """When a group's checkpoint was tried last, and at which seq; it need not have succeeded."""

    at_s: float  # monotonic
    seq: Seq


def due(tried: Tried, seq: Seq, now_s: float, every_s: float, batches: int) -> bool:
    """Whether an owner that stands at `seq` shall be checkpointed now. Pure.

    After `every_s` seconds, or after `batches` batches when that is not 0; never without a new batch.
    What failed counts as tried, so a full disk is not asked again at each batch.
    """
    if seq <= tried.seq:
        return False
    return now_s - tried.at_s >= every_s or 0 < batches <= seq - tried.seq


def token_minter(cluster_key: str) -> Callable[[str], str]:
    """Tokens for one scope and an hour, made when they are needed."""
    return lambda scope: access.mint(cluster_key, scope, time.time() + TOKEN_S)


class NodeCheckpoints:
    """See runtime.Checkpoints. One per node process: it owns the node's StateDatabase."""

    def __init__(
        self,
        node: str,
        directory: Path,
        central_url: str,
        cluster_key: str,
        changed: Callable[[], None],
        kept: Retention = ON_NODES,
        bytes_per_s: int | None = None,
    ) -> None:
        self._node = node
        self._central_url = central_url
        self._kept = kept
        self._work = directory / "cuts"
        shutil.rmtree(self._work, ignore_errors=True)  # of a process that was killed
        self.database = StateDatabase(directory / "state")
        self._changed = changed
        self._lock = threading.Lock()
        self._central: dict[str, Seq] = {}  # group -> newest that is whole there
        self._replicator = Replicator(
            self.database,
            ChunkClient(central_url, token_minter(cluster_key)),
            self._replicated,
            where=CENTRAL,
            bytes_per_s=bytes_per_s,
        )

    def start(self) -> None:
        self._replicator.start()

    def close(self) -> None:
        self._replicator.close(timeout_s=2.0)
        self.database.close()

    def take(self, spec: GroupSpec, epoch: Epoch, directory: Path) -> Taken | None:
        self._work.mkdir(parents=True, exist_ok=True)
        try:
            with cut(directory, self._work) as found:
                manifest = store(
                    found,
                    self.database,
                    group=spec.id,
                    epoch=epoch,
                    version=spec.version,
                    node=self._node,
                )
        except NothingCommitted:
            return None
        self.database.retain(spec.id, self._kept, int(time.time() * 1000))
        self._replicator.offer(spec.id, manifest.seq)
        return Taken(manifest.seq, manifest.epoch, manifest.created_at_ms, manifest.bytes_total)

    def fetch(
        self, group: str, source: CheckpointSource, directory: Path, note: Callable[[str], None]
    ) -> int:
        url = self._central_url if source.url == CENTRAL else source.url
        what = "the newest checkpoint" if source.seq is None else f"checkpoint {source.seq}"
        note(f"fetching {what} from {url}")
        client = ChunkClient(url, source.token)
        try:
            fetched = fetch_checkpoint(client, group, source.seq, directory, self.database)
        finally:
            client.close()
        if fetched.damaged:
            note(
                f"checkpoints {list(fetched.damaged)} were damaged; {fetched.manifest.seq} was taken instead"
            )
        note(f"fetched checkpoint {fetched.manifest.seq}, {fetched.bytes_fetched} bytes")
        return fetched.bytes_fetched

    def where(self, group: str, seq: Seq) -> tuple[str, ...]:
        with self._lock:
            central = self._central.get(group, -1) >= seq
        return (self._node, CENTRAL) if central else (self._node,)

    def forget(self, group: str) -> None:
        self._replicator.withdraw(group)
        self.database.drop_group(group)

    def _replicated(self, group: str, seq: Seq, where: str) -> None:
        with self._lock:
            self._central[group] = max(seq, self._central.get(group, seq))
        self._changed()
