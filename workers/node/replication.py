"""Sends a node's checkpoints to the central store, and to the backup node of each group."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pipeline_runtime.checkpoint.client import ChunkClient
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.errors import CheckpointError
from pipeline_runtime.checkpoint.replicator import Replicator, TokenBucket
from pipeline_runtime.model.desired import BackupPlace
from pipeline_runtime.model.ids import Epoch, Seq
from workers.messages import CENTRAL

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Line:
    """The way to one place."""

    url: str
    replicator: Replicator


class Replication:
    """Sends checkpoints to their places. Thread-safe.

    All places share one limit of bytes per second. For each group and place, only the newest checkpoint is on
    its way. A place that is away holds up no other, and gets the newest checkpoint when it is back.
    """

    def __init__(
        self,
        database: StateDatabase,
        central_url: str,
        tokens: Callable[[str], str],
        changed: Callable[[], None],
        bytes_per_s: int | None,
    ) -> None:
        self._database = database
        self._tokens = tokens
        self._changed = changed
        self._bytes_per_s = bytes_per_s
        self._closed = threading.Event()
        self._bucket = TokenBucket(bytes_per_s, self._closed.wait)
        self._lock = threading.RLock()
        self._backups: dict[str, BackupPlace | None] = {}  # group that runs here -> its backup node
        self._whole: dict[tuple[str, str], Seq] = {}  # (group, place) -> the newest that is whole there
        self._voided: dict[str, tuple[Seq, Epoch]] = {}  # group -> the newest rewind that was told
        self._lines: dict[str, _Line] = {}
        self._central = self._lines[CENTRAL] = self._line(CENTRAL, central_url)

    def start(self) -> None:
        self._central.replicator.start()

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            lines, self._lines = self._lines, {}
        for line in lines.values():
            line.replicator.close(timeout_s=2.0)

    def direct(self, backups: Mapping[str, BackupPlace | None]) -> None:
        """Sets where the checkpoints of each group go beside the central store.

        A group that is new here, or has another backup node, sends its newest one: it may never have arrived.
        """
        with self._lock:
            if self._closed.is_set():
                return
            before, self._backups = self._backups, dict(backups)
            places = [place for place in backups.values() if place is not None]
            for place in places:
                line = self._lines.get(place.node)
                if line is None or line.url != place.url:
                    self._end(place.node)
                    self._lines[place.node] = self._line(place.node, place.url)
                    self._lines[place.node].replicator.start()
            used = {place.node for place in places} | {CENTRAL}
            for name in self._lines.keys() - used:
                self._end(name)
            moved = [group for group in backups if group not in before or before[group] != backups[group]]
        for group in moved:
            self._offer_what_is_there(group)

    def void(self, group: str, after: Seq, up_to: Epoch) -> None:
        """A rewind has undone what followed `after`. The places are told before they get anything newer."""
        with self._lock:
            if self._voided.get(group) == (after, up_to):
                return
            self._voided[group] = (after, up_to)
            for name in self._places(group):
                self._lines[name].replicator.void(group, after, up_to)
        self._offer_what_is_there(group)

    def offer(self, group: str, seq: Seq) -> None:
        with self._lock:
            for name in self._places(group):
                self._lines[name].replicator.offer(group, seq)

    def withdraw(self, group: str) -> None:
        with self._lock:
            for line in self._lines.values():
                line.replicator.withdraw(group)
            self._backups.pop(group, None)
            self._voided.pop(group, None)
            for key in [key for key in self._whole if key[0] == group]:
                del self._whole[key]

    def where(self, group: str, seq: Seq) -> tuple[str, ...]:
        """Returns the places that have this checkpoint or a newer one."""
        with self._lock:
            return tuple(n for n in self._places(group) if self._whole.get((group, n), -1) >= seq)

    def alerts(self) -> tuple[str, ...]:
        with self._lock:
            away = [name for name, line in self._lines.items() if line.replicator.error is not None]
        return tuple(
            f"Checkpoints do not reach {'the central store' if name == CENTRAL else name} at the moment. "
            "Running elements are not affected. They are sent as soon as it takes them."
            for name in sorted(away)
        )

    def _places(self, group: str) -> list[str]:
        if self._closed.is_set():
            return []
        backup = self._backups.get(group)
        return [CENTRAL] if backup is None else [CENTRAL, backup.node]

    def _line(self, name: str, url: str) -> _Line:
        replicator = Replicator(
            self._database,
            ChunkClient(url, self._tokens),
            self._arrived,
            where=name,
            bytes_per_s=self._bytes_per_s,
            bucket=self._bucket,
        )
        return _Line(url, replicator)

    def _end(self, name: str) -> None:
        line = self._lines.pop(name, None)
        if line is not None:
            # Its thread may be in the middle of a transfer, and nobody needs to wait for its end.
            line.replicator.close(timeout_s=0.0)

    def _offer_what_is_there(self, group: str) -> None:
        try:
            newest = self._database.manifests(group)[:1]
        except CheckpointError as error:
            log.warning("%s: only the next checkpoint goes to its backup node: %s", group, error)
            return
        for manifest in newest:
            self.offer(group, manifest.seq)

    def _arrived(self, group: str, seq: Seq, place: str) -> None:
        with self._lock:
            self._whole[group, place] = max(seq, self._whole.get((group, place), seq))
        self._changed()
