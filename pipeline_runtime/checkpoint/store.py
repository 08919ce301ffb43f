"""Turns a snapshot into chunks and a manifest, and a manifest into files."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pipeline_runtime.checkpoint import spark_state
from pipeline_runtime.checkpoint.chunks import CHUNK_BYTES, address
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.errors import CheckpointDamaged, CheckpointError, SnapshotFailed
from pipeline_runtime.checkpoint.manifest import FileEntry, Manifest
from pipeline_runtime.checkpoint.snapshot import Snapshot, SnapshotFile
from pipeline_runtime.checkpoint.turns import short_turns
from pipeline_runtime.disk import sync_directory
from pipeline_runtime.model.ids import Epoch

Fetch = Callable[[str], bytes]
"""sha256 -> raw bytes. May raise CheckpointDamaged or ChunkMissing."""

_NOT_AFFECTED = "Older checkpoints and the running query are not affected."


@short_turns()
def store(
    snapshot: Snapshot,
    database: StateDatabase,
    *,
    group: str,
    epoch: Epoch,
    version: str,
    node: str,
    now_ms: int | None = None,
) -> Manifest:
    """Puts a snapshot's files into the database, in the caller's thread. Writes only new chunks.

    It writes the chunks first, and then the manifest in one synced write. So a crash between the two leaves
    no checkpoint. From a file that only grows, it reads only the new bytes and up to 1 MiB before them. It
    does not close the snapshot.
    """
    with database.holding(group):
        before = _written_once(database, group)
        files: list[FileEntry] = []
        known: set[str] = set()
        bytes_new = 0
        for file in snapshot.files:
            entry = before.get((file.path, file.size))
            if entry is not None and not database.missing(group, entry.chunks):
                files.append(entry)
                continue
            shas = _settled(snapshot, file, database, group)
            for raw in _pieces(snapshot, file, len(shas) * CHUNK_BYTES):
                sha = address(raw)
                if sha not in known and database.missing(group, [sha]):
                    database.put_chunk(group, raw)
                    bytes_new += len(raw)
                known.add(sha)
                shas.append(sha)
            files.append(FileEntry(path=file.path, size=file.size, chunks=tuple(shas)))
        manifest = Manifest(
            group=group,
            seq=snapshot.seq,
            epoch=epoch,
            version=version,
            node=node,
            created_at_ms=int(time.time() * 1000) if now_ms is None else now_ms,
            ends=snapshot.ends,
            bytes_total=sum(file.size for file in snapshot.files),
            bytes_new=bytes_new,
            files=tuple(files),
        ).sealed()
        database.put_manifest(manifest)
    growing = {file.path for file in snapshot.files if file.grows}
    snapshot.growing.stored = {entry.path: entry for entry in files if entry.path in growing}
    return manifest


def _written_once(database: StateDatabase, group: str) -> dict[tuple[str, int], FileEntry]:
    """Returns the newest checkpoint's state files by (path, size). Their names are unique, so `store` does
    not read and hash them again (for 100 MB that would take 0.2 s of CPU every time)."""
    newest = database.manifests(group)[:1]
    return {
        (file.path, file.size): file
        for manifest in newest
        for file in manifest.files
        if spark_state.is_unique(file.path)
    }


def _settled(snapshot: Snapshot, file: SnapshotFile, database: StateDatabase, group: str) -> list[str]:
    """Returns the whole chunks at the beginning of a growing file that need not be read again.

    The last stored chunk is read again to find out whether the file is still the same: another file may have
    taken its place, or it may have been cut and rewritten.
    """
    former = snapshot.growing.stored.get(file.path)
    if not file.grows or former is None or not former.chunks or former.size > file.size:
        return []
    *settled, last = former.chunks
    start = len(settled) * CHUNK_BYTES
    with _opened(snapshot, file) as stream:
        stream.seek(start)
        same = address(stream.read(former.size - start)) == last
    # The earlier checkpoint may be deleted, with its chunks, or its chunks may have been damaged.
    return settled if same and not database.missing(group, settled) else []


def _pieces(snapshot: Snapshot, file: SnapshotFile, start: int) -> Iterator[bytes]:
    """Yields the pieces from `start` to `file.size`. Bytes after `file.size` belong to a later seq."""
    left = file.size - start
    with _opened(snapshot, file) as stream:
        stream.seek(start)
        while left:
            raw = stream.read(min(CHUNK_BYTES, left))
            if not raw:
                raise SnapshotFailed(
                    f"{file.path} became shorter while it was read.",
                    _NOT_AFFECTED,
                    "Take the next checkpoint; when this repeats, check who else writes that file.",
                )
            left -= len(raw)
            yield raw


@contextmanager
def _opened(snapshot: Snapshot, file: SnapshotFile) -> Iterator[BinaryIO]:
    """Opens a file of the snapshot. An error names the file by its path in the replica directory, because the
    snapshot's directory has another name each time."""
    try:
        with open(snapshot.directory / file.path, "rb") as stream:
            yield stream
    except OSError as error:
        raise SnapshotFailed(
            f"{file.path} cannot be read: {error.strerror or error}.",
            _NOT_AFFECTED,
            "Check the disk of this node.",
        ) from error


def read_file(manifest: Manifest, path: str, fetch: Fetch) -> bytes | None:
    """Returns the content of one small file of a checkpoint, or None if there is no such file. Raises the
    errors of `fetch`."""
    for file in manifest.files:
        if file.path == path:
            return b"".join(fetch(sha) for sha in file.chunks)
    return None


def materialize(manifest: Manifest, fetch: Fetch, directory: Path) -> None:
    """Writes a checkpoint's files into `directory`, which must not exist or be empty.

    It writes the files into a temporary directory, and verifies every chunk and size. Then it syncs that
    directory and renames it. So `directory` is whole or absent. Raises CheckpointDamaged, and the errors of
    `fetch`.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise CheckpointError(
            f"Checkpoint {manifest.seq} of {manifest.group} cannot be unpacked: {directory} is not empty.",
            "Nothing in that directory was changed.",
            "Use a new generation of the replica, or remove the directory.",
        )
    for left in directory.parent.glob(f".{directory.name}.*.tmp"):  # left by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    fresh = directory.with_name(f".{directory.name}.{uuid.uuid4().hex}.tmp")
    try:
        folders = {fresh}
        fresh.mkdir(parents=True)
        for file in manifest.files:
            target = fresh / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            folders.update(folder for folder in target.parents if folder.is_relative_to(fresh))
            _write(file, fetch, target)
        for folder in sorted(folders, reverse=True):
            sync_directory(folder)
        os.replace(fresh, directory)
        sync_directory(directory.parent)
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise CheckpointError(
            f"Checkpoint {manifest.seq} of {manifest.group} cannot be written to {directory}: "
            f"{error.strerror}.",
            "Nothing was changed; the checkpoint itself is whole.",
            "Free disk space on this node, then try again.",
        ) from error
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def _write(file: FileEntry, fetch: Fetch, target: Path) -> None:
    with open(target, "xb") as stream:
        size = 0
        for sha in file.chunks:
            raw = fetch(sha)
            if address(raw) != sha:
                raise _damaged(f"a chunk of {file.path} does not match its hash")
            stream.write(raw)
            size += len(raw)
        if size != file.size:
            raise _damaged(f"{file.path} has {size} bytes instead of {file.size}")
        stream.flush()
        os.fsync(stream.fileno())


def _damaged(what: str) -> CheckpointDamaged:
    return CheckpointDamaged(
        f"The checkpoint is damaged: {what}.",
        "Nothing was unpacked; other checkpoints are not affected.",
        "The next older checkpoint is used instead.",
    )
