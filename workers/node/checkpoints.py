"""Takes checkpoints of the replicas that run on this node, keeps them, and sends them to other places."""

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
"""A node keeps the checkpoints of a group for so long after it is neither owner, standby nor backup of the
group."""
ASKED_S, ASKED_ALONE_S = 3.0, 30.0
"""For how long the node asks a place that does not answer: if there are other places, and if there are
none."""


@dataclass(frozen=True)
class Tried:
    """The time and the seq of the last attempt to take a group's checkpoint. The attempt may have failed."""

    at_s: float  # monotonic
    seq: Seq


def due(tried: Tried, seq: Seq, now_s: float, every_s: float, batches: int) -> bool:
    """Returns whether an owner that stands at `seq` should take a checkpoint now. Pure.

    A checkpoint is due after `every_s` seconds, and after `batches` batches if that is not 0. Without a new
    batch, none is due. A failed attempt counts, so that a full disk does not cause an attempt at each batch.
    """
    if seq <= tried.seq:
        return False
    return now_s - tried.at_s >= every_s or 0 < batches <= seq - tried.seq


def token_minter(cluster_key: str) -> Callable[[str], str]:
    """Returns a function that makes tokens for one scope, valid for an hour."""
    return lambda scope: access.mint(cluster_key, scope, time.time() + TOKEN_S)


class NodeCheckpoints:
    """Implements runtime.Checkpoints. A node process has one, which owns the node's StateDatabase."""

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
        self._work = directory / "snapshots"  # for snapshots that are being stored
        shutil.rmtree(self._work, ignore_errors=True)  # a killed process may have left snapshots
        self._lock = threading.Lock()
        self._wanted: frozenset[str] | None = None  # groups, or None until the first desired state
        self._keeps: frozenset[str] = frozenset()
        self._unwanted_since_s: dict[str, float] = {}
        self._failed: dict[str, str] = {}  # group -> why its newest checkpoint failed
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
        """Takes over the node's desired state: its groups, the groups whose checkpoints it keeps for others,
        and the places to which its own checkpoints go."""
        with self._lock:
            # A refused group is still a wanted group, so its checkpoints are kept.
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
        """Returns the faults of this node's checkpoints, as one text for people for each fault."""
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
            # The error's traceback would keep the files open that are now set aside.
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
        """Fetches the newest whole checkpoint, from the source, its fallbacks or this node's database."""
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
        """Removes checkpoints after `after`, because the group's owner rewinds to `after`."""
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
        """Removes old checkpoints, also those of groups that this node keeps for others. No other process
        does that."""
        with self._lock:
            wanted, keeps = self._wanted, self._keeps
        if wanted is None:
            return  # the node has no desired state yet
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
