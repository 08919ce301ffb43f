"""Keeps the states of a processor in a RocksDB. Each replica has its own.

The database always has the state at the end of one batch:

    k<key>    the state of a key: bytes that batch.kept makes
    w         the state of the element as a whole: the key None
    n         the number of keys
    b         the number of bytes of all keys and states together
    e         the end of that batch: `{"seq", "ends", "batch_time"}`; absent at first

The changes of a batch stay in memory until the batch's sink knows that the batch is committed. Then one write
stores the changes together with the batch's end. So the database has the state at the end of a committed
batch at any time, and the journal has the batches that come after it. The write does not wait for the disk.
So after a power cut, the database has the state of an earlier batch.

The next batch may begin before that write (`seal`). The next batch sees the changes of the batch before it.
All other readers see only committed changes.

RocksDB itself makes a checkpoint of this state: it writes its memory to files, and makes hard links to files
that never change. It merges runs of changes with other runs of about the same size (universal compaction). So
it seldom rewrites a large state that changes little, and a checkpoint seldom stores such a state again.
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
# A file beside RocksDB's files that repeats the options with which it was opened. `_options` has them, too.
_OF_ROCKSDICT = "rocksdict-config.json"
_DAMAGED = ("Corruption", "does not exist", "No such file")
PATIENCE_S, _RETRY_S = 2.0, 0.05
_BATCH_S = 0.1  # a checkpoint waits at most so long for the end of a running batch
_cache = Cache(64 << 20)  # shared by all groups of this process


class KeyedStateClosed(RuntimeError):
    """The state was closed, because its query has ended."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The states that a batch changes, by key."""

    states: dict[str | None, bytes | None] = field(default_factory=dict)  # None deletes a key
    # The size in bytes of each replaced state: -1 if there was none, None if the task does not know it.
    replaced: dict[str | None, int | None] = field(default_factory=dict)


class KeyedState:
    """The states of one processor, on the disk and in memory.

    One batch at a time may change it. The next batch may begin while the batch before it is being committed.
    Other threads may call `link` and `look` meanwhile, and `close` at any time. Methods raise ValueError if
    the files are damaged, and OSError if they cannot be used now.
    """

    def __init__(self, path: Path, *, read_only: bool = False, patience_s: float = 0.0) -> None:
        """Opens the state. With `read_only`, this works even while the state is open for writing. Tries again
        for `patience_s` if another process is about to close the state."""
        self._path = path
        self._db: Rdict | None = _opened_once_free(path, patience_s, read_only=read_only)
        # `close` waits until none of these locks is held.
        self._batch, self._linking, self._looking = threading.Lock(), threading.Lock(), threading.Lock()
        self._pending = Changes()  # the changes of the running batch
        self._sealed = Changes()  # the changes of the batch before it, until that batch is committed
        self._between_batches = threading.Event()
        self._between_batches.set()
        try:
            self.count = int(self._db.get(_COUNT) or 0)  # the number of keys
            self.bytes = int(self._db.get(_BYTES) or 0)  # the size of all keys and states; files are larger
            self.end = _end_of(self._db)  # None until a batch is committed
        except BaseException:
            self.close()
            raise

    @staticmethod
    def create(path: Path, end: Mapping[str, Any] | None = None) -> None:
        """Creates a state without keys that stands at `end`. After a crash, the directory is whole or
        absent."""
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
        """Closes the state, and never raises. Committed changes are already in RocksDB's log, even if the
        disk refuses a write now."""
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
        """Begins a batch. Drops the changes of an earlier batch that was not committed."""
        self._between_batches.clear()
        self._pending = Changes()

    def get(self, keys: Sequence[str | None]) -> list[bytes | None]:
        """Returns the state of each key after the batch before the running one. It is None for a key without
        a state."""
        with self._batch, self._translating():
            before = self._sealed.states
            stored = iter(self._stored([key for key in keys if key not in before]))
            return [before[key] if key in before else next(stored) for key in keys]

    def _stored(self, keys: Sequence[str | None]) -> list[bytes | None]:
        found: Any = self._database().get([_place(key) for key in keys]) if keys else []
        return list(found)

    def between(self, first: str, end: str) -> list[tuple[str, bytes]]:
        """Returns the keys from `first` to before `end`, in their order, each with the state that `get`
        would return."""
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
        """Takes the states that the running batch gives these keys. None deletes a key. `commit` makes the
        states final. `replaced`: the size in bytes of the state that each one replaces; -1 if there was
        none, None if the size is not known."""
        self._pending.states.update(zip(keys, states, strict=True))
        self._pending.replaced.update(zip(keys, replaced, strict=True))

    def seal(self) -> None:
        """Ends the changes of the running batch. The next batch may begin before this one is committed."""
        with self._batch:
            self._sealed, self._pending = self._pending, Changes()

    def commit(self, end: Mapping[str, Any]) -> None:
        """Stores the changes of the sealed batch, because the journal has its COMMIT."""
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
        """Makes hard links to the state's files in `target`, which must not exist. Returns the end of the
        batch that the files have. Batches may be committed meanwhile."""
        with self._linking, self._translating():
            db = self._database()
            # Other threads of this process can work during a flush, but not during a checkpoint. So the first
            # flush writes most of the data. The checkpoint then comes at a moment when no batch has to wait.
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
        """Looks through the keys that begin with `prefix`, from `first` on. No batch waits for this.

        Returns at most `most` keys that `matches` accepts, each with its newest committed state. Looks at
        `keys_max` keys at most. Also returns the last key that it looked at, or None if no key comes after
        that one.
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
        """Yields each key, together with the cursor. The cursor is the same each time, and stands at the
        key."""
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
    """Returns the end at which the state stands, even while the state is open. Returns None if no batch was
    committed. Raises the errors of KeyedState."""
    state = KeyedState(path, read_only=True, patience_s=PATIENCE_S)
    state.close()
    return state.end


def is_settled(path: str) -> bool:
    """Returns whether a file never changes during a run of the query. `path`: relative to the replica
    directory."""
    return path.startswith(f"{DIRECTORY}/") and path.endswith(".sst")


def _end_of(db: Rdict) -> dict[str, Any] | None:
    text = db.get(_END)
    return None if text is None else complete_end(json.loads(text), "the keyed state's end")


def _opened_once_free(path: Path, patience_s: float, *, read_only: bool) -> Rdict:
    """Opens the database. Tries again while another process opens or closes it, because RocksDB then creates
    and removes files."""
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
