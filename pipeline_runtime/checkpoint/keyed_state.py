"""Keeps the states of a processor in a RocksDB of the replica's own. The database always stands at the end of
one batch.

    k<key>    what is kept for a key: bytes, as batch.kept makes them
    w         what is kept for the element as a whole: the key None
    n         how many keys there are
    b         how many bytes all of these keys and states have
    e         the batch at whose end all of them stand: `{"seq", "ends", "batch_time"}`; absent at first

The changes of a batch stay in memory until the batch's sink knows that the batch is committed. Then one write
stores the changes together with the batch's end. So whatever happens, the state stands at the end of a
committed batch, and the journal says what to follow from there. The write does not wait for the disk: after a
power cut, the state stands at an earlier batch.

The next batch may begin before that write (`seal`). It sees the changes of the batch before it. All others
see only what is committed.

A checkpoint of this state is RocksDB's own: RocksDB writes its memory to files, and makes hard links to files
that never change. It merges runs of changes with other runs of about the same size (universal compaction). So
it seldom rewrites a large state that changes little, and such a state is seldom stored again.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBCompactionStyle,
    DBCompressionType,
    Options,
    Rdict,
    RdictIter,
    WriteBatch,
)

from pipeline_runtime.checkpoint.spark_state import complete_end

log = logging.getLogger(__name__)

DIRECTORY = "keyed"
"""A name in the replica directory."""

_COUNT = b"n"
_BYTES = b"b"
_END = b"e"
_KEY = b"k"
_WHOLE = b"w"
# lies beside RocksDB's files and says how it was opened, which `_options` knows
_OF_ROCKSDICT = "rocksdict-config.json"
_DAMAGED = ("Corruption", "does not exist", "No such file")
PATIENCE_S, _RETRY_S = 2.0, 0.05
_BATCH_S = 0.1  # a running batch that takes longer is not waited for
_cache = Cache(64 << 20)  # shared by all groups of this process


class KeyedStateClosed(RuntimeError):
    """The query that it belongs to has ended."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a batch leaves of keys."""

    states: dict[str | None, bytes | None] = field(default_factory=dict)  # None deletes a key
    # Bytes of the states that these replace; -1 for none, None where the task does not know it.
    replaced: dict[str | None, int | None] = field(default_factory=dict)


class KeyedState:
    """Takes one batch at a time, and the next one while that is committed. Other threads may call link and
    look meanwhile, and close at any time. Raises ValueError if the files are damaged, and OSError if they
    cannot be used now."""

    def __init__(self, path: Path, *, read_only: bool = False, patience_s: float = 0.0) -> None:
        """With `read_only`, opens the state as it is now, even while it is open for writing. Tries for
        `patience_s` when another process may be about to close it."""
        self._path = path
        self._db: Rdict | None = _opened_once_free(path, patience_s, read_only=read_only)
        # It is not closed while one of these is held.
        self._batch, self._linking, self._looking = threading.Lock(), threading.Lock(), threading.Lock()
        self._pending = Changes()  # of the running batch
        self._sealed = Changes()  # of the one before it, until that is committed
        self._between_batches = threading.Event()
        self._between_batches.set()
        try:
            self.count = int(self._db.get(_COUNT) or 0)  # the number of keys
            self.bytes = int(self._db.get(_BYTES) or 0)  # of all keys and states; the files are larger
            self.end = _end_of(self._db)  # None until a batch is committed
        except BaseException:
            self.close()
            raise

    @staticmethod
    def create(path: Path, end: Mapping[str, Any] | None = None) -> None:
        """Creates a state without keys that stands at this end. It exists as a whole or not at all."""
        fresh = path.with_name(f".{path.name}.tmp")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        with closing(_opened(fresh, create=True)) as db:
            batch = WriteBatch(raw_mode=True)
            batch.put(_COUNT, b"0")
            batch.put(_BYTES, b"0")
            if end is not None:
                batch.put(_END, json.dumps(end).encode())
            db.write(batch)
            db.flush()
        os.replace(fresh, path)

    def close(self) -> None:
        """Closes the state, and never raises. Committed changes are in RocksDB's log, even if it cannot write
        something now."""
        with self._linking, self._batch, self._looking:
            db, self._db = self._db, None
            if db is None:
                return
            try:
                db.close()
            except Exception as error:  # rocksdict raises bare Exceptions; the disk may be full
                log.warning("%s: closing it: %s", self._path, error)

    # --- a batch

    def begin(self) -> None:
        """Begins a batch. Drops what an earlier batch has left that came to nothing."""
        self._between_batches.clear()
        self._pending = Changes()

    def get(self, keys: Sequence[str | None]) -> list[bytes | None]:
        """Returns what the batch before the running one left for each key, or None where it left nothing."""
        with self._batch, self._translating():
            before = self._sealed.states
            stored = iter(self._stored([key for key in keys if key not in before]))
            return [before[key] if key in before else next(stored) for key in keys]

    def _stored(self, keys: Sequence[str | None]) -> list[bytes | None]:
        found: Any = self._database().get([_place(key) for key in keys]) if keys else []
        return list(found)

    def between(self, first: str, end: str) -> list[tuple[str, bytes]]:
        """Returns the same for the keys from `first` to before `end`, in their order."""
        with self._batch, self._translating():
            changed = self._sealed_between(first, end)
            found = dict(self._items(first, end)) | changed
            items = sorted(found.items()) if changed else found.items()
            return [(key, data) for key, data in items if data is not None]

    def keys(self, first: str, end: str, most: int) -> list[str]:
        """Returns the first `most` keys from `first` to before `end`."""
        with self._batch, self._translating():
            changed = self._sealed_between(first, end)
            stored = (key for key, _ in self._cursors(first, end) if key not in changed)
            added: Iterable[str] = sorted(key for key, data in changed.items() if data is not None)
            return list(islice(merge(stored, added), most))

    def _sealed_between(self, first: str, end: str) -> dict[str, bytes | None]:
        states = self._sealed.states
        return {key: data for key, data in states.items() if key is not None and first <= key < end}

    def keep(
        self,
        keys: Sequence[str | None],
        states: Sequence[bytes | None],
        replaced: Sequence[int | None],
    ) -> None:
        """Keeps the states that the running batch leaves for these keys; None deletes a key. They count once
        the batch is committed. `replaced`: how many bytes the batch before it has left of each; -1 for
        none, None if that is not known."""
        self._pending.states.update(zip(keys, states, strict=True))
        self._pending.replaced.update(zip(keys, replaced, strict=True))

    def seal(self) -> None:
        """Says that the running batch keeps nothing more. The next batch may begin before this one is
        committed."""
        with self._batch:
            self._sealed, self._pending = self._pending, Changes()

    def commit(self, end: Mapping[str, Any]) -> None:
        """Stores the changes of the sealed batch, which is committed."""
        batch = WriteBatch(raw_mode=True)
        changes = self._sealed
        self._look_up_replaced(changes)
        count, size = self.count, self.bytes
        for key, before in changes.replaced.items():
            place, state = _place(key), changes.states[key]
            if before is not None and before >= 0:
                count -= key is not None
                size -= len(place) + before
            if state is None:
                batch.delete(place)
            else:
                batch.put(place, state)
                count += key is not None
                size += len(place) + len(state)
        batch.put(_COUNT, b"%d" % count)
        batch.put(_BYTES, b"%d" % size)
        batch.put(_END, json.dumps(end).encode())
        with self._batch, self._translating():
            self._database().write(batch)
            self.count, self.bytes, self.end = count, size, dict(end)
            self._sealed = Changes()
        self._between_batches.set()

    def _look_up_replaced(self, changes: Changes) -> None:
        unknown = [key for key, size in changes.replaced.items() if size is None]
        with self._batch, self._translating():
            stored = self._stored(unknown)
        for key, state in zip(unknown, stored, strict=True):
            changes.replaced[key] = -1 if state is None else len(state)

    # --- beside the batches

    def link(self, target: Path) -> dict[str, Any] | None:
        """Makes hard links of its files in `target`, which must not exist. Returns the end at which they
        stand. Batches may be committed meanwhile."""
        with self._linking, self._translating():
            db = self._database()
            # A flush lets other threads of this process go on, and a checkpoint does not. So most is flushed
            # before the checkpoint, which is taken at a moment when no batch has to wait.
            db.flush()
            self._between_batches.wait(_BATCH_S)
            db.flush()
            with self._batch:
                Checkpoint(db).create_checkpoint(str(target))
                end = self.end
        (target / _OF_ROCKSDICT).unlink(missing_ok=True)
        return end

    def look(
        self,
        first: str,
        prefix: str,
        matches: Callable[[str], bool],
        *,
        most: int,
        keys_max: int,
    ) -> tuple[list[tuple[str, bytes]], str | None]:
        """Looks through the keys from `first` on that begin with `prefix`. No batch waits for this.

        Returns at most `most` that `matches` accepts, each with what the newest committed batch left for it.
        Also returns the last key that was looked at, if there are more after it. Looks at
        no more than `keys_max`.
        """
        found: list[tuple[str, bytes]] = []
        with self._looking, self._translating():
            cursor, range_ = self._database().iter(), _place(prefix)
            try:
                cursor.seek(max(_place(first), range_))
                key = None
                while cursor.valid() and (place := cursor.key()).startswith(range_):
                    if key is not None and (len(found) == most or keys_max <= 0):
                        return found, key
                    key, keys_max = place[len(_KEY) :].decode(), keys_max - 1
                    if matches(key):
                        found.append((key, cursor.value()))
                    cursor.next()
                cursor.status()  # at a block that cannot be read the cursor just ends
                return found, None
            finally:
                del cursor

    def items(self) -> Iterator[tuple[str, bytes]]:
        """Yields each key with its state, in order."""
        return self._items()

    def _items(self, first: str = "", end: str | None = None) -> Iterator[tuple[str, bytes]]:
        return ((key, cursor.value()) for key, cursor in self._cursors(first, end))

    def _cursors(self, first: str, end: str | None) -> Iterator[tuple[str, RdictIter]]:
        """Yields each key in turn, with the one cursor, which stands at it."""
        cursor, bound = self._database().iter(), None if end is None else _place(end)
        try:
            cursor.seek(_place(first))
            while cursor.valid() and (found := cursor.key()).startswith(_KEY):
                if bound is not None and found >= bound:
                    return
                yield found[len(_KEY) :].decode(), cursor
                cursor.next()
            cursor.status()  # at a block that cannot be read the cursor just ends
        finally:
            del cursor

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except KeyedStateClosed:
            raise
        except Exception as error:  # rocksdict raises bare Exceptions
            raise _translated(error, self._path) from error

    def _database(self) -> Rdict:
        if self._db is None:
            raise KeyedStateClosed(f"{self._path} is closed")
        return self._db


def _place(key: str | None) -> bytes:
    return _WHOLE if key is None else _KEY + key.encode()


def read_end(path: Path) -> dict[str, Any] | None:
    """Returns where it stands now, even while it is open, or None if no batch was committed. Raises as
    KeyedState does."""
    state = KeyedState(path, read_only=True, patience_s=PATIENCE_S)
    state.close()
    return state.end


def is_settled(path: str) -> bool:
    """Returns whether this file, by its path in the replica directory, never changes in a run of its
    query."""
    return path.startswith(f"{DIRECTORY}/") and path.endswith(".sst")


def _end_of(db: Rdict) -> dict[str, Any] | None:
    text = db.get(_END)
    return None if text is None else complete_end(json.loads(text), "the keyed state's end")


def _opened_once_free(path: Path, patience_s: float, *, read_only: bool) -> Rdict:
    """Opens the database once no other process opens or closes it: meanwhile, files come and go."""
    until = monotonic() + patience_s
    while True:
        try:
            return _opened(path, read_only=read_only)
        except (OSError, ValueError):
            if monotonic() >= until:
                raise
            sleep(_RETRY_S)


def _opened(path: Path, *, read_only: bool = False, create: bool = False) -> Rdict:
    access = AccessType.read_only() if read_only else AccessType.read_write()
    options = _options(create)
    try:
        # Also under the family's name: an existing family would keep the options that it was created with.
        return Rdict(str(path), options, column_families={"default": options}, access_type=access)
    except Exception as error:  # rocksdict raises bare Exceptions
        raise _translated(error, path) from error


def _translated(error: Exception, path: Path) -> ValueError | OSError:
    reason = f"{path}: {error}"
    return ValueError(reason) if any(sign in reason for sign in _DAMAGED) else OSError(reason)


def _options(create: bool) -> Options:
    made = Options(raw_mode=True)
    made.create_if_missing(create)
    made.set_write_buffer_size(8 << 20)
    made.set_compaction_style(DBCompactionStyle.universal())
    made.set_level_zero_file_num_compaction_trigger(8)
    made.set_compression_type(DBCompressionType.lz4())
    made.set_keep_log_file_num(1)
    made.set_max_log_file_size(1 << 20)
    blocks = BlockBasedOptions()
    blocks.set_block_cache(_cache)
    blocks.set_bloom_filter(10, False)
    made.set_block_based_table_factory(blocks)
    return made
