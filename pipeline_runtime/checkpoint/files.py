"""Uploaded files, found by their sha256: the central store, and each node's cache of it."""

from __future__ import annotations

import hashlib
import os
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from time import time
from typing import Protocol

from pipeline_runtime.checkpoint.errors import CheckpointDamaged, CheckpointError
from pipeline_runtime.checkpoint.manifest import SHA256

LEFT_BEHIND_S = 24 * 3600.0
_PIECE_BYTES = 1 << 20

Progress = Callable[[int, int], None]
"""(bytes_done, bytes_total). The total is 0 when it is unknown."""


class FileStore:
    """Immutable files under `directory`, named by their content. Several threads may put files at once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for left in directory.glob(".*.tmp"):  # left by a process that was killed, or in use by another one
            with suppress(FileNotFoundError):  # the other process has just finished
                if time() - left.stat().st_mtime > LEFT_BEHIND_S:
                    left.unlink()

    def put(self, stream: Iterable[bytes], expected: str | None = None) -> str:
        """Writes a stream and returns its sha256. Raises CheckpointDamaged when it is not `expected`."""
        with FileWriter(self) as writer:
            for piece in stream:
                writer.write(piece)
            return writer.commit(expected)

    def adopt(self, path: Path) -> tuple[str, int]:
        """Takes a file of the same disk in, which then is no longer at `path`. Returns its sha256 and its
        size in bytes."""
        digest = hashlib.sha256()
        try:
            with path.open("rb") as stream:
                while piece := stream.read(_PIECE_BYTES):
                    digest.update(piece)
                size = stream.tell()
                os.fsync(stream.fileno())
            sha = digest.hexdigest()
            target = self.place(sha)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, target)
        except OSError as error:
            raise _unwritable(self.directory, error) from error
        return sha, size

    def drop(self, named: Collection[str], unused_s: float, bytes_max: int = 0) -> list[str]:
        """Deletes files that are not named, the least recently used first, until those that are left of them
        have at most `bytes_max`. Returns the sha256s of what it deleted.

        What was put in or used within the last `unused_s` stays: it may be named only a moment later.
        """
        unnamed = []
        for path in self.directory.glob("??/*"):
            if path.name in named or not SHA256.fullmatch(path.name):
                continue
            with suppress(FileNotFoundError):
                found = path.stat()
                unnamed.append((found.st_mtime, path.name, found.st_size))
        left, dropped = sum(size for *_, size in unnamed), []
        for used_s, sha, size in sorted(unnamed):
            if left <= bytes_max or time() - used_s <= unused_s:
                break
            self.place(sha).unlink(missing_ok=True)
            left -= size
            dropped.append(sha)
        return dropped

    def path(self, sha: str) -> Path:
        """Returns the file's path. Raises FileNotFoundError."""
        path = self.place(sha)
        if not path.is_file():
            raise FileNotFoundError(f"There is no file {sha[:12]}… in {self.directory}.")
        return path

    def place(self, sha: str) -> Path:
        """Returns where the file is or will be. Raises ValueError when `sha` is not a sha256."""
        if not SHA256.fullmatch(sha):
            raise ValueError(f"{sha!r} is not a sha256")
        return self.directory / sha[:2] / sha

    def __contains__(self, sha: str) -> bool:
        return self.place(sha).is_file()


class FileWriter:
    """One file being written: `write`, then `commit`. Leaving the context without a commit drops it."""

    def __init__(self, store: FileStore) -> None:
        self._store = store
        self._hash = hashlib.sha256()
        store.directory.mkdir(parents=True, exist_ok=True)
        self._path = store.directory / f".{uuid.uuid4().hex}.tmp"
        self._stream = open(self._path, "xb")  # noqa: SIM115  closed by __exit__
        self.size = 0

    def write(self, piece: bytes) -> None:
        try:
            self._stream.write(piece)
        except OSError as error:
            raise _unwritable(self._store.directory, error) from error
        self._hash.update(piece)
        self.size += len(piece)

    def commit(self, expected: str | None = None) -> str:
        sha = self._hash.hexdigest()
        if expected is not None and sha != expected:
            raise CheckpointDamaged(
                f"The file that arrived has sha256 {sha[:12]}…, not {expected[:12]}….",
                "It was not kept.",
                "Send it again.",
            )
        try:
            self._stream.flush()
            os.fsync(self._stream.fileno())
            target = self._store.place(sha)
            target.parent.mkdir(exist_ok=True)
            os.replace(self._path, target)
        except OSError as error:
            raise _unwritable(self._store.directory, error) from error
        return sha

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._path.unlink(missing_ok=True)


class FileSource(Protocol):
    """Where a cache gets files: a ChunkClient."""

    def get_file(
        self, sha: str, write: Callable[[bytes], None], progress: Progress | None = None
    ) -> None: ...


class FileCache:
    """A node's copies of uploaded files. The first caller that needs a file fetches it, and only once."""

    def __init__(self, directory: Path, client: FileSource) -> None:
        self.store = FileStore(directory)
        self._client = client
        self._lock = threading.Lock()
        self._fetching: dict[str, threading.Lock] = {}

    def path(self, sha: str, progress: Progress | None = None) -> Path:
        """Returns the local file, fetched and verified if need be. Raises CheckpointError when it cannot be
        fetched."""
        with self._lock:
            if (kept := self._used(sha)) is not None:
                return kept
            lock = self._fetching.setdefault(sha, threading.Lock())
        with lock:
            if sha not in self.store:
                with FileWriter(self.store) as writer:
                    self._client.get_file(sha, writer.write, progress)
                    writer.commit(sha)
        return self.store.path(sha)

    def _used(self, sha: str) -> Path | None:
        path = self.store.place(sha)
        if not path.is_file():
            return None
        os.utime(path)
        return path

    def drop(self, named: Collection[str], unused_s: float, bytes_max: int) -> list[str]:
        """See FileStore.drop. What is named counts as used now, and so does what `path` has returned."""
        with self._lock:
            for sha in named:
                self._used(sha)
            return self.store.drop(named, unused_s, bytes_max)

    def resolver(self, files: Mapping[str, str], demo: Path | None = None) -> Callable[[str], Path]:
        """Returns a function that resolves a GroupSpec's file references: through `files` (reference ->
        sha256), or for `demo:<name>` in the directory `demo` of files that Fogline ships."""

        def resolve(reference: str) -> Path:
            if reference in files:
                return self.path(files[reference])
            kind, _, name = reference.partition(":")
            if kind == "demo" and demo is not None and name and Path(name).name == name:
                for candidate in (demo / name, *sorted(demo.glob(f"{name}.*"))):
                    if candidate.is_file():
                        return candidate
            raise FileNotFoundError(
                f"The file {reference!r} is not part of this deployment. Nothing was read. "
                "Upload it or choose another file, then deploy again."
            )

        return resolve


def _unwritable(directory: Path, error: OSError) -> CheckpointError:
    return CheckpointError(
        f"A file cannot be written to {directory}: {error.strerror}.",
        "What was stored before is not affected.",
        "Free disk space, then try again.",
    )
