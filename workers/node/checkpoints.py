"""The node's checkpoints: taken of running replicas, kept here, sent to other places."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pipeline_runtime.checkpoint import access
from pipeline_runtime.checkpoint.care import Caretaker
from pipeline_runtime.checkpoint.client import ChunkClient
from pipeline_runtime.checkpoint.errors import CheckpointError, NothingCommitted, StateDatabaseUnavailable
from pipeline_runtime.checkpoint.growing import GrowingFiles
from pipeline_runtime.checkpoint.manifest import Manifest
from pipeline_runtime.checkpoint.retention import ON_NODES, Retention
from pipeline_runtime.checkpoint.snapshot import take_snapshot
from pipeline_runtime.checkpoint.store import store
from pipeline_runtime.checkpoint.transfer import fetch_from_any
from pipeline_runtime.model.desired import CheckpointSource, NodeDesired
from pipeline_runtime.model.ids import Epoch, Seq, document_group
from pipeline_runtime.model.spec import GroupSpec
from workers.messages import CENTRAL
from workers.node.replication import Replication
from workers.node.runtime import Taken

log = logging.getLogger(__name__)

TOKEN_S = 3600
TEND_S = 60.0
UNWANTED_S = 3600.0
"""How long checkpoints are kept of a group for which this node is neither owner, standby nor backup."""
ASKED_S, ASKED_ALONE_S = 3.0, 30.0
"""How long a place that does not answer is asked again: if there are others, and if there are none."""


@dataclass(frozen=True)
class Tried:
    """When a group's checkpoint was last tried, and at which seq. It may have failed."""

    at_s: float  # monotonic
    seq: Seq


def due(tried: Tried, seq: Seq, now_s: float, every_s: float, batches: int) -> bool:
    """Returns whether an owner that stands at `seq` should take a checkpoint now. Pure.

    It is due after `every_s` seconds, or after `batches` batches if that is not 0, and never without a new
    batch. A failed try counts, so that a full disk is not tried again at each batch.
    """
    if seq <= tried.seq:
        return False
    return now_s - tried.at_s >= every_s or 0 < batches <= seq - tried.seq


def token_minter(cluster_key: str) -> Callable[[str], str]:
    """Returns a function that makes tokens for one scope, valid for an hour."""
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
        reserve_bytes: int = 0,
    ) -> None:
        self._node = node
        self._central_url = central_url
        self._kept = kept
        self._changed = changed
        self._work = directory / "snapshots"  # while a checkpoint is taken
        shutil.rmtree(self._work, ignore_errors=True)  # a killed process may have left some
        self._lock = threading.Lock()
        self._wanted: frozenset[str] | None = None  # groups, or None before it is told
        self._keeps: frozenset[str] = frozenset()
        self._unwanted_since_s: dict[str, float] = {}
        self._failed: dict[str, str] = {}  # group -> why it has no new checkpoint
        self._care = Caretaker(
            directory / "state", self._tend, changed, every_s=TEND_S, reserve_bytes=reserve_bytes
        )
        self.database = self._care.database
        self._replication = Replication(
            self.database, central_url, token_minter(cluster_key), changed, bytes_per_s
        )

    def start(self) -> None:
        self._care.start()
        self._replication.start()

    def close(self) -> None:
        self._replication.close()
        self._care.close()

    def direct(self, desired: NodeDesired) -> None:
        """Takes over what this node runs, what it keeps for others, and where its own checkpoints go."""
        with self._lock:
            # A refused group is wanted all the same, so its checkpoints are kept.
            self._wanted = frozenset(
                [replica.spec.id for replica in desired.replicas] + [part.group for part in desired.refused]
            )
            self._keeps = frozenset(desired.keeps)
            for group in self._failed.keys() - self._wanted:
                del self._failed[group]
        self._replication.direct({replica.spec.id: replica.backup for replica in desired.replicas})
        for replica in desired.replicas:
            if replica.order is not None and replica.order.rewind is not None:
                self._void(replica.spec.id, replica.order.rewind, replica.order.over)

    def alerts(self) -> tuple[str, ...]:
        """Returns what people should know of this node's checkpoints, as one text for each fault."""
        with self._lock:
            failed = [text for _, text in sorted(self._failed.items())]
        return (*self._care.alerts(), *failed, *self._replication.alerts())

    def take(
        self, spec: GroupSpec, epoch: Epoch, directory: Path, growing: GrowingFiles | None
    ) -> Taken | None:
        try:
            manifest = self._take(spec, epoch, directory, growing)
        except NothingCommitted:
            return None
        except (CheckpointError, OSError) as error:
            with self._lock:
                self._failed[spec.id] = (
                    f"No checkpoint of {spec.pipeline}/{document_group(spec.group)}: {error}"
                )
            self._changed()
            raise
        with self._lock:
            self._failed.pop(spec.id, None)
        self._replication.offer(spec.id, manifest.seq)
        self._retain(spec.id)
        return Taken(manifest.seq, manifest.epoch, manifest.created_at_ms, manifest.bytes_total)

    def _take(self, spec: GroupSpec, epoch: Epoch, directory: Path, growing: GrowingFiles | None) -> Manifest:
        """Takes a checkpoint. If the database was damaged, it tries once more with a new one."""
        unusable: StateDatabaseUnavailable | None = None
        try:
            return self._store(spec, epoch, directory, growing)
        except StateDatabaseUnavailable as error:
            if error.reason not in ("damaged", "closed", "other"):
                raise
            # Its traceback would keep the files open that are set aside now.
            unusable = error.with_traceback(None)
        if not self._care.mend():
            raise self.database.failure or unusable
        return self._store(spec, epoch, directory, growing)

    def _store(
        self, spec: GroupSpec, epoch: Epoch, directory: Path, growing: GrowingFiles | None
    ) -> Manifest:
        self._work.mkdir(parents=True, exist_ok=True)
        with take_snapshot(directory, self._work, growing) as found:
            return store(
                found, self.database, group=spec.id, epoch=epoch, version=spec.version, node=self._node
            )

    def fetch(
        self, group: str, source: CheckpointSource, directory: Path, note: Callable[[str], None]
    ) -> int:
        """Fetches from where the newest whole one is: the source, its fallbacks or this node's database."""
        urls = [self._central_url if source.url == CENTRAL else source.url, *source.fallbacks]
        what = "the newest checkpoint" if source.seq is None else f"checkpoint {source.seq}"
        note(f"fetching {what} from {', '.join(urls)}")
        retry_s = ASKED_S if source.fallbacks else ASKED_ALONE_S
        with ExitStack() as clients:
            places = [ChunkClient(url, source.token, retry_s=retry_s) for url in dict.fromkeys(urls)]
            for place in places:
                clients.callback(place.close)
            fetched = fetch_from_any(places, group, source.seq, directory, self.database)
        if fetched.damaged:
            note(
                f"checkpoints {list(fetched.damaged)} were damaged; {fetched.manifest.seq} was taken instead"
            )
        note(f"fetched checkpoint {fetched.manifest.seq} from {fetched.place}, {fetched.bytes_fetched} bytes")
        return fetched.bytes_fetched

    def where(self, group: str, seq: Seq) -> tuple[str, ...]:
        return (self._node, *self._replication.where(group, seq))

    def forget(self, group: str) -> None:
        self._replication.withdraw(group)
        with self._lock:
            self._failed.pop(group, None)
            kept_for_others = group in self._keeps
        if not kept_for_others:
            self.database.drop_group(group)

    def _void(self, group: str, after: Seq, up_to: Epoch) -> None:
        """Its owner goes back to `after`, so later checkpoints must never be restored."""
        try:
            self.database.void(group, after, up_to)
        except CheckpointError as error:
            log.warning("%s: undone checkpoints are still there: %s", group, error)
        self._replication.void(group, after, up_to)

    def _retain(self, group: str) -> None:
        try:
            self.database.retain(group, self._kept, int(time.time() * 1000))
        except CheckpointError as error:
            log.warning("%s: old checkpoints could not be removed: %s", group, error)

    def _tend(self) -> None:
        """Removes old checkpoints, also of groups that this node keeps for others: nobody else does that."""
        with self._lock:
            wanted, keeps = self._wanted, self._keeps
        if wanted is None:
            return  # nobody has said yet what this node runs and keeps
        now_s = time.monotonic()
        groups = set(self.database.groups())
        unwanted = groups - wanted - keeps
        since = {group: self._unwanted_since_s.get(group, now_s) for group in unwanted}
        self._unwanted_since_s = since
        for group in sorted(groups):
            if now_s - since.get(group, now_s) >= UNWANTED_S:
                log.info("%s: its checkpoints are no longer wanted here", group)
                self.database.drop_group(group)
            else:
                self._retain(group)
