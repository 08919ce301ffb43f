"""Sends new checkpoints to another place, in the background, until they have arrived."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from pipeline_runtime.checkpoint.client import ChunkClient
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.errors import (
    CheckpointDamaged,
    CheckpointError,
    CheckpointMissing,
    ChunkMissing,
)
from pipeline_runtime.checkpoint.transfer import BUNDLE_BYTES, push_checkpoint
from pipeline_runtime.model.ids import Epoch, Seq

_log = logging.getLogger(__name__)

Stored = Callable[[str, Seq, str], None]
"""Called with (group, seq, where) when this checkpoint is whole at `where`."""

_BACKOFF_S_FIRST = 0.5
_BACKOFF_S_MAX = 30.0


class TokenBucket:
    """Lets at most `bytes_per_s` through on average. Thread-safe.

    A take may be larger than the bucket. The next take then waits longer. So a take of any size is possible,
    however low the rate is.
    """

    def __init__(
        self,
        bytes_per_s: float | None,
        wait: Callable[[float], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate = bytes_per_s
        self._wait = wait
        self._clock = clock
        self._lock = threading.Lock()
        self._free_at_s = clock()

    def take(self, size: int) -> None:
        """Blocks until earlier takes are paid off. `size` is in bytes."""
        if not self._rate:
            return
        with self._lock:
            now = self._clock()
            start = max(self._free_at_s, now)
            self._free_at_s = start + size / self._rate
        if start > now:
            self._wait(start - now)


class Replicator:
    """One thread that sends each group's newest offered checkpoint. After an error it tries again, without an
    end and with longer and longer pauses. So the other side may be away for any time."""

    def __init__(
        self,
        database: StateDatabase,
        client: ChunkClient,
        stored: Stored,
        *,
        where: str = "central",
        bytes_per_s: int | None = None,
        bucket: TokenBucket | None = None,
    ) -> None:
        """`bucket` limits the rate of several replicators together. Without it, `bytes_per_s` limits the rate
        of this replicator alone."""
        self._database = database
        self._client = client
        self._stored = stored
        self._where = where
        self._closed = threading.Event()
        self._bucket = bucket or TokenBucket(bytes_per_s, self._closed.wait)
        self._bundle_bytes = min(BUNDLE_BYTES, bytes_per_s or BUNDLE_BYTES)
        self._pending: dict[str, Seq] = {}  # in the order of offers
        # group -> the arguments of the `void` that the other side has to carry out first
        self._voids: dict[str, tuple[Seq, Epoch]] = {}
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"replicate-{where}", daemon=True)
        self.error: CheckpointError | None = None  # why nothing arrives at the moment

    def start(self) -> None:
        self._thread.start()

    def offer(self, group: str, seq: Seq) -> None:
        """Takes note of a new checkpoint in the local database. Returns at once."""
        with self._changed:
            if seq >= self._pending.get(group, seq):
                self._pending[group] = seq
            self._changed.notify()

    def void(self, group: str, after: Seq, up_to: Epoch) -> None:
        """Has the other side void checkpoints that a rewind has undone, before the group's next checkpoint
        arrives there."""
        with self._changed:
            self._voids[group] = (after, up_to)

    def withdraw(self, group: str) -> None:
        """Forgets the offers of this group."""
        with self._changed:
            self._pending.pop(group, None)
            self._voids.pop(group, None)

    def close(self, timeout_s: float = 5.0) -> None:
        """Closes the client too, which ends a running transfer. It goes on after the next start."""
        self._closed.set()
        with self._changed:
            self._changed.notify()
        self._client.close()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        pause_s = _BACKOFF_S_FIRST
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._closed.is_set())
                if self._closed.is_set():
                    return
                group, seq = next(iter(self._pending.items()))
            try:
                self._push(group, seq)
                pause_s, self.error = _BACKOFF_S_FIRST, None
            except Exception as error:
                if self._closed.is_set():
                    return
                _log.warning("checkpoint %s of %s is not at %s: %s", seq, group, self._where, error)
                self.error = error if isinstance(error, CheckpointError) else None
                with self._changed:  # to the end of the queue, since others may succeed
                    if group in self._pending:
                        self._pending[group] = self._pending.pop(group)
                self._closed.wait(pause_s)
                pause_s = min(2 * pause_s, _BACKOFF_S_MAX)

    def _void(self, group: str) -> None:
        with self._changed:
            void = self._voids.get(group)
        if void is not None:
            self._client.void(group, *void)
            with self._changed:
                if self._voids.get(group) == void:
                    del self._voids[group]

    def _push(self, group: str, seq: Seq) -> None:
        try:
            manifest = self._database.manifest(group, seq)
            self._void(group)
            push_checkpoint(self._client, manifest, self._database, self._bucket.take, self._bundle_bytes)
        except (CheckpointMissing, ChunkMissing, CheckpointDamaged) as error:
            # Pruned or damaged here. There is nothing to retry, and a newer one will be offered.
            _log.warning("checkpoint %s of %s is not pushed to %s: %s", seq, group, self._where, error)
        else:
            self._stored(group, seq, self._where)
        with self._changed:
            if self._pending.get(group) == seq:
                del self._pending[group]
