"""The StateDatabase: checkpoints of many groups in one RocksDB, with a column family for each group.

Keys within a group's column family:

    i<sha>   index of chunks: 4 bytes, size of the encoded chunk (so that a sweep reads no chunk)
    c<sha>   the encoded chunk
    m<seq>   the manifest (seq as 8 bytes, big-endian)

A put stores a checkpoint: first its chunks, then its manifest. A sweep deletes chunks that no checkpoint
needs. Three rules make a sweep safe while a put runs, in this process or over HTTP:

1. `put_manifest` holds the group's lock. It checks that all chunks are there, and writes the manifest in one
   synced write. So after a crash, the checkpoint is there as a whole, or not at all (then a sweep deletes its
   chunks later).
2. A sweep holds the same lock. It spares three kinds of chunks: those that a manifest names, those that a
   caller has put or asked for in the last `grace_s`, and those of a checkpoint that is `pinning` (to be
   sent). In a group that is `holding` (to be stored into), it spares all chunks.
3. If a caller takes longer than `grace_s`, it gets ChunksMissing for its manifest, and sends the missing
   chunks again.

Order of locks: first the database's `_lock`, then a group's lock. `drop_group` and `reopen` take both. So
code that holds a group's lock must not look up a group.
"""

from __future__ import annotations

import logging
import shutil
import struct
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from rocksdict import Rdict, WriteBatch

from pipeline_runtime.checkpoint import chunks as chunk
from pipeline_runtime.checkpoint.errors import (
    CheckpointDamaged,
    CheckpointMissing,
    ChunkMissing,
    ChunksMissing,
    StateDatabaseUnavailable,
    database_closed,
    database_low,
    database_unavailable,
)
from pipeline_runtime.checkpoint.manifest import GROUP, Manifest
from pipeline_runtime.checkpoint.retention import Retention, retained
from pipeline_runtime.checkpoint.rocks import (
    SEQ,
    absent,
    chunk_key,
    closing,
    entries,
    index_key,
    manifest_key,
    options,
    synced,
)
from pipeline_runtime.model.ids import Epoch, Seq

_log = logging.getLogger(__name__)

GRACE_S = 600.0
_FAMILY = "g."  # keeps groups' names apart from RocksDB's own family `default`
_SIZE = struct.Struct(">I")
# Deleted chunks keep their disk space until RocksDB compacts. At the pace of checkpoints it may take days
# until it does so by itself.
_COMPACT_BYTES = 64 << 20
_FREE_EVERY_S = 1.0


@dataclass(frozen=True)
class Pruned:
    manifests: tuple[Seq, ...] = ()  # that were dropped
    chunks: int = 0  # that were dropped


@dataclass
class _Group:
    """One group's column family, and what this process knows about it."""

    family: Any  # Rdict; None when it is closed or dropped
    lock: threading.RLock = field(default_factory=threading.RLock)
    touched: dict[str, float] = field(default_factory=dict)  # sha -> monotonic seconds
    holders: int = 0
    pinned: list[frozenset[str]] = field(default_factory=list)
    manifests: dict[Seq, Manifest] | None = None  # None until they are read
    garbage_bytes: int = 0  # deleted since the last compaction


class StateDatabase:
    """Thread-safe. One process at a time owns a path; all others speak HTTP to it.

    Every method raises StateDatabaseUnavailable if the disk is full, or the database is damaged or closed. So
    `()` always means that there is nothing. After an error other than a close, `failed` is set and `failure`
    has the newest error, until `reopen`: see care.Caretaker.
    """

    def __init__(
        self, path: Path, grace_s: float = GRACE_S, *, reserve_bytes: int = 0, shut: bool = False
    ) -> None:
        """Opens the database, unless it is `shut`: then `reopen` opens it later. `reserve_bytes` is free disk
        space that chunks must leave."""
        self.path = path
        self.grace_s = grace_s
        self.reserve_bytes = reserve_bytes
        self.failure: StateDatabaseUnavailable | None = None
        self.failed = threading.Event()
        self._lock = threading.RLock()
        self._groups: dict[str, _Group] = {}
        self._db: Rdict | None = None
        self._free_bytes, self._free_at_s = 0, float("-inf")
        if not shut:
            self.reopen()

    def reopen(self) -> None:
        """Closes what is open, opens what lies at the path now, and forgets earlier failures."""
        with self._lock:
            self.close()
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                names = Rdict.list_cf(str(self.path)) if (self.path / "CURRENT").exists() else []
                families = {name: options() for name in names if name != "default"}
                db = Rdict(str(self.path), options(), column_families=families or None)
                self._groups = {
                    name.removeprefix(_FAMILY): _Group(db.get_column_family(name)) for name in families
                }
            except Exception as error:  # rocksdict raises bare Exceptions
                raise self._failing(error) from error
            self._db = db
            self.failure = None
            self.failed.clear()

    # chunks

    def put_chunk(self, group: str, raw: bytes) -> str:
        """Stores raw bytes (at most CHUNK_BYTES) and returns their address. Writes nothing if the chunk is
        here already."""
        sha = chunk.address(raw)
        if self.missing(group, [sha]):
            self._write_chunk(group, sha, chunk.encode(raw))
        return sha

    def put_encoded(self, group: str, sha: str, encoded: bytes) -> None:
        """Stores a chunk in its encoded form. Raises CheckpointDamaged when it does not match its address."""
        chunk.decode(sha, encoded)
        self._write_chunk(group, sha, encoded)

    def get_chunk(self, group: str, sha: str) -> bytes:
        """Returns the raw bytes, verified. Raises ChunkMissing or CheckpointDamaged."""
        return self._read(group, sha)[1]

    def get_encoded(self, group: str, sha: str) -> bytes:
        """Returns a chunk in its encoded form, verified. Raises ChunkMissing or CheckpointDamaged."""
        return self._read(group, sha)[0]

    def _read(self, group: str, sha: str) -> tuple[bytes, bytes]:
        """Returns (encoded, raw). Forgets a damaged chunk: from then on it is missing, and the next
        checkpoint that needs it stores it again."""
        state = self._find(group)
        family = state.family if state is not None else None
        if state is not None and family is None:
            return self._read(group, sha)  # closed or dropped since it was found
        with self._guard():
            try:
                encoded = family.get(chunk_key(sha)) if family is not None else None
            except Exception as error:
                if "Corruption" not in str(error):
                    raise
                encoded = b""  # a block that fails RocksDB's own checksum; decoding reports it
        if encoded is None:
            raise ChunkMissing(
                f"Chunk {sha[:12]}… of {group} is not in {self.path.name}.",
                "Other checkpoints are not affected.",
                "Take another checkpoint: this one may have been pruned.",
            )
        try:
            return encoded, chunk.decode(sha, encoded)
        except CheckpointDamaged as error:
            _log.warning("%s in %s: %s", group, self.path, error)
            with self._locked(group) as found:
                if found is not None:
                    found[0].family.delete(index_key(sha))
                    found[0].family.delete(chunk_key(sha))
            raise

    def missing(self, group: str, shas: Iterable[str]) -> tuple[str, ...]:
        """Returns those of `shas` that are not here. Sweeps spare the others for `grace_s`."""
        wanted = list(dict.fromkeys(shas))
        with self._locked_or_new(group) as (state, _):
            lacking = absent(state.family, wanted)
            now = time.monotonic()
            state.touched.update((sha, now) for sha in wanted if sha not in lacking)
        return tuple(sha for sha in wanted if sha in lacking)

    def _write_chunk(self, group: str, sha: str, encoded: bytes) -> None:
        self._leave_the_reserve()
        batch = WriteBatch(raw_mode=True)
        with self._locked_or_new(group) as (state, db):
            family = db.get_column_family_handle(_FAMILY + group)
            batch.put(chunk_key(sha), encoded, family)
            batch.put(index_key(sha), _SIZE.pack(len(encoded)), family)
            # Not synced: the manifest's synced write comes later in the same log.
            db.write(batch)
            state.touched[sha] = time.monotonic()

    # manifests

    def put_manifest(self, manifest: Manifest) -> None:
        """Stores a manifest, which makes the checkpoint exist. Raises ChunksMissing, and then changes
        nothing.

        Replaces a checkpoint of the same seq if that one's epoch is earlier, and keeps it if its epoch is
        later.
        """
        manifest = manifest.sealed()
        with self._locked_or_new(manifest.group) as (state, db):
            known = self._manifests(state)
            before = known.get(manifest.seq)
            if before is not None and before.epoch > manifest.epoch:
                return
            lacking = absent(state.family, manifest.chunks)
            if lacking:
                raise ChunksMissing(sorted(lacking))
            batch = WriteBatch(raw_mode=True)
            batch.put(
                manifest_key(manifest.seq),
                manifest.to_bytes(),
                db.get_column_family_handle(_FAMILY + manifest.group),
            )
            db.write(batch, synced())
            known[manifest.seq] = manifest

    def manifest(self, group: str, seq: Seq) -> Manifest:
        """Returns the manifest of a checkpoint. Sweeps spare its chunks for `grace_s`, because the caller
        will read them. Raises CheckpointMissing."""
        with self._locked(group) as found:
            if found is not None:
                state, _ = found
                manifest = self._manifests(state).get(seq)
                if manifest is not None:
                    now = time.monotonic()
                    state.touched.update((sha, now) for sha in manifest.chunks)
                    return manifest
        raise CheckpointMissing(
            f"There is no checkpoint {seq} of {group} in {self.path.name}.",
            "Nothing was changed.",
            "Choose one of the listed checkpoints.",
        )

    def manifests(self, group: str) -> tuple[Manifest, ...]:
        """Returns the group's checkpoints, newest (highest seq) first. Unreadable ones are left out."""
        with self._locked(group) as found:
            if found is None:
                return ()
            return _newest_first(self._manifests(found[0]))

    def groups(self) -> tuple[str, ...]:
        with self._lock, self._guard():
            return tuple(sorted(self._groups))

    def _manifests(self, state: _Group) -> dict[Seq, Manifest]:
        if state.manifests is None:
            known: dict[Seq, Manifest] = {}
            for key, raw in entries(state.family, b"m"):
                try:
                    known[Seq(SEQ.unpack(key[1:])[0])] = Manifest.from_bytes(raw)
                except CheckpointDamaged as error:
                    _log.warning("dropping it from %s: %s", self.path, error)
                    state.family.delete(key)  # nothing that it names can be trusted
            state.manifests = known  # only now, since a partial result would look like everything
        return state.manifests

    # pruning

    def prune(self, group: str, keep: Collection[Seq]) -> Pruned:
        """Drops the checkpoints whose seq is not in `keep`, then the chunks that no checkpoint needs.

        Keeps a checkpoint that is newer than all of `keep`: it was stored after the caller had looked. Drops
        all checkpoints if `keep` is empty.
        """
        with self._locked(group) as found:
            return self._prune(found[0], group, found[1], keep) if found else Pruned()

    def _prune(self, state: _Group, group: str, db: Rdict, keep: Collection[Seq]) -> Pruned:
        """The caller holds the group's lock."""
        known = self._manifests(state)
        newest = max(keep) if keep else max(known, default=Seq(0))
        dropped = tuple(sorted(seq for seq in known if seq not in keep and seq <= newest))
        self._drop_manifests(known, group, db, dropped)
        return Pruned(dropped, 0 if state.holders else self._sweep(state, group, db))

    def _drop_manifests(
        self, known: dict[Seq, Manifest], group: str, db: Rdict, seqs: Collection[Seq]
    ) -> None:
        """`known`: the group's manifests. The caller holds the group's lock."""
        if not seqs:
            return
        family = db.get_column_family_handle(_FAMILY + group)
        batch = WriteBatch(raw_mode=True)
        for seq in seqs:
            batch.delete(manifest_key(seq), family)
        db.write(batch, synced())
        for seq in seqs:
            del known[seq]

    def void(self, group: str, after: Seq, up_to: Epoch) -> tuple[Seq, ...]:
        """Drops the checkpoints of batches that a rewind has undone: those after the seq `after` that an
        owner of an epoch up to `up_to` took. Returns their seqs. A second call drops nothing."""
        with self._locked(group) as found:
            if found is None:
                return ()
            state, db = found
            known = self._manifests(state)
            undone = tuple(seq for seq in sorted(known) if seq > after and known[seq].epoch <= up_to)
            self._drop_manifests(known, group, db, undone)
        return undone

    def retain(self, group: str, policy: Retention, now_ms: int) -> Pruned:
        """Prunes by number and age. Counts only whole checkpoints, so the newest whole one always stays."""
        # Under one lock, so that nothing is stored between the look and the prune.
        with self._locked(group) as found:
            if found is None:
                return Pruned()
            state, db = found
            newest_first = _newest_first(self._manifests(state))
            whole = [manifest for manifest in newest_first if not absent(state.family, manifest.chunks)]
            if not whole:
                return Pruned()
            return self._prune(state, group, db, retained(whole, now_ms, policy))

    def _sweep(self, state: _Group, group: str, db: Rdict) -> int:
        """Returns how many chunks it has dropped."""
        now = time.monotonic()
        state.touched = {sha: at for sha, at in state.touched.items() if now - at < self.grace_s}
        needed = set(state.touched).union(*state.pinned)
        for manifest in self._manifests(state).values():
            needed |= manifest.chunks
        family = db.get_column_family_handle(_FAMILY + group)
        batch = WriteBatch(raw_mode=True)
        count = freed = live = 0
        for key, value in entries(state.family, b"i"):
            size = _SIZE.unpack(value)[0]
            if (sha := key[1:].hex()) in needed:
                live += size
                continue
            batch.delete(key, family)
            batch.delete(chunk_key(sha), family)
            count, freed = count + 1, freed + size
        if count:
            db.write(batch)
        state.garbage_bytes += freed
        if state.garbage_bytes > max(_COMPACT_BYTES, live):
            state.family.compact_range(None, None)
            state.garbage_bytes = 0
        return count

    @contextmanager
    def holding(self, group: str) -> Iterator[None]:
        """Keeps all chunks of the group from being swept until the context ends."""
        with self._locked_or_new(group) as (state, _):
            state.holders += 1
        try:
            yield
        finally:
            with state.lock:
                state.holders -= 1

    @contextmanager
    def pinning(self, manifest: Manifest) -> Iterator[None]:
        """Keeps the chunks of this checkpoint until the context ends, even if the checkpoint is pruned. Suits
        work that may take long, because sweeps go on for other chunks."""
        chunks = manifest.chunks
        with self._locked_or_new(manifest.group) as (state, _):
            state.pinned.append(chunks)
        try:
            yield
        finally:
            with state.lock:
                state.pinned.remove(chunks)

    def drop_group(self, group: str) -> None:
        """Forgets all of a group's checkpoints."""
        with self._lock, self._guard() as db:
            state = self._groups.pop(group, None)
            if state is not None:
                with state.lock:
                    db.drop_column_family(_FAMILY + group)
                    state.family = None  # a thread that found it before looks again

    # the database itself

    def close(self) -> None:
        """Closes the database, so that another process may open the path. A second call does nothing."""
        with self._lock:
            db, self._db = self._db, None
            groups, self._groups = self._groups, {}
        if db is None:
            return
        for state in groups.values():
            with state.lock, closing(self.path):  # waits for threads that still work on it
                family, state.family = state.family, None
                family.close()
            del family  # a family that did not close is freed with its last reference
        with closing(self.path):
            db.close()

    def __enter__(self) -> StateDatabase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _locked(self, group: str) -> Iterator[tuple[_Group, Rdict] | None]:
        """Yields the group and the database, with the group's lock held, or None if there is no such
        group."""
        while (state := self._find(group)) is not None:
            with state.lock:
                if state.family is None:
                    continue  # closed or dropped since it was found
                with self._guard() as db:
                    yield state, db
                return
        yield None

    @contextmanager
    def _locked_or_new(self, group: str) -> Iterator[tuple[_Group, Rdict]]:
        """Yields the group and the database, with the group's lock held. Creates a missing group."""
        while True:
            state = self._group(group)
            with state.lock:
                if state.family is None:
                    continue
                with self._guard() as db:
                    yield state, db
                return

    def _find(self, group: str) -> _Group | None:
        """Returns the group, or None if there is none. The caller must not hold a group's lock. Raises
        StateDatabaseUnavailable if the database is closed."""
        with self._lock, self._guard():
            return self._groups.get(group)

    def _group(self, group: str) -> _Group:
        """Returns the group. Creates it if there is none. The caller must not hold a group's lock."""
        if not GROUP.fullmatch(group):
            raise ValueError(f"{group!r} is not a group id")
        with self._lock:
            state = self._groups.get(group)
            if state is None:
                with self._guard() as db:
                    state = _Group(db.create_column_family(_FAMILY + group, options()))
                self._groups[group] = state
            return state

    @contextmanager
    def _guard(self) -> Iterator[Rdict]:
        """Turns rocksdict's bare Exceptions into StateDatabaseUnavailable. Errors of this package pass."""
        db = self._db
        if db is None:
            raise database_closed(self.path)
        try:
            yield db
        except Exception as error:
            if self._db is not db:
                raise database_closed(self.path) from None  # it was closed or opened again meanwhile
            if type(error) is Exception or type(error).__module__.startswith("rocksdict"):
                raise self._failing(error) from error
            raise

    def _failing(self, error: Exception) -> StateDatabaseUnavailable:
        # Not the error that is raised, since the frames of its traceback would keep the database open.
        self.failure = database_unavailable(self.path, error)
        self.failed.set()
        return database_unavailable(self.path, error)

    def _leave_the_reserve(self) -> None:
        """Raises StateDatabaseUnavailable if the disk has less free space than the reserve. So checkpoints
        stop first when a disk fills, and running groups can still write their state."""
        if not self.reserve_bytes:
            return
        if time.monotonic() - self._free_at_s > _FREE_EVERY_S:
            self._free_bytes = shutil.disk_usage(self.path).free
            self._free_at_s = time.monotonic()
        if self._free_bytes < self.reserve_bytes:
            raise database_low(self.path, self.reserve_bytes)


def _newest_first(known: dict[Seq, Manifest]) -> tuple[Manifest, ...]:
    return tuple(known[seq] for seq in sorted(known, reverse=True))
