"""Takes snapshots: hard links of the newest committed batch's files, while the query runs on."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from pipeline_runtime.checkpoint import keyed_state, spark_state
from pipeline_runtime.checkpoint.errors import NothingCommitted, SnapshotFailed
from pipeline_runtime.checkpoint.growing import GrowingFiles
from pipeline_runtime.checkpoint.keyed_state import KeyedState, KeyedStateClosed
from pipeline_runtime.checkpoint.turns import short_turns
from pipeline_runtime.model.ids import Seq

_ATTEMPTS = 20


@dataclass(frozen=True)
class SnapshotFile:
    path: str  # relative to the replica directory, with "/"
    size: int  # bytes that belong to the checkpoint; the file may have grown since
    grows: bool = False  # the file only grows, so these bytes never change while the query runs


@dataclass(frozen=True)
class Snapshot:
    """Use it as a context manager, or call `close()`: the hard links keep the files' disk space."""

    directory: Path  # holds the hard links, in the layout of the replica directory
    batch: int | None  # Spark's batch id; None for a group with a keyed state, which has none
    seq: Seq
    ends: dict[str, Any]
    batch_time_ms: int | None
    files: tuple[SnapshotFile, ...]
    growing: GrowingFiles = field(default_factory=GrowingFiles)

    def close(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Vanished(Exception):
    """The snapshot must be tried again: Spark deleted a file between the listing and the link, the batch is
    no longer whole, or the query is just starting again."""


@short_turns()
def take_snapshot(replica_directory: Path, work: Path, growing: GrowingFiles | None = None) -> Snapshot:
    """Makes hard links to the newest committed batch's files, in a new directory under `work`.

    The query may run meanwhile, and does not wait. `work` must lie on the same file system. The steps are:

    1. Link the replica's own notes.
    2. Find N, the newest committed batch.
    3. Link the files of N, the state first.
    4. Look up the lengths that the files had at N's seq.

    If a file has vanished, Spark has committed a newer batch: then begin again with that batch. For a keyed
    state, a checkpoint of RocksDB takes the place of steps 2 and 3.

    `growing` belongs to the replica that runs there, or ran there last. Without it, the snapshot has every
    file with its present length. Raises NothingCommitted (no batch yet) or SnapshotFailed.
    """
    reason = ""
    for _ in range(_ATTEMPTS):
        target = work / f"snapshot-{uuid.uuid4().hex}"
        try:
            return _attempt(replica_directory, target, growing or GrowingFiles())
        except (_Vanished, FileNotFoundError) as error:
            shutil.rmtree(target, ignore_errors=True)
            reason = (
                _reason_of(error, target, replica_directory) if isinstance(error, OSError) else str(error)
            )
        except OSError as error:
            shutil.rmtree(target, ignore_errors=True)
            _failed(
                replica_directory,
                _reason_of(error, target, replica_directory),
                "Check the disk of this node.",
            )
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise
    _failed(replica_directory, f"files kept vanishing ({reason})", "Take the next checkpoint later.")


def _attempt(replica: Path, target: Path, growing: GrowingFiles) -> Snapshot:
    spark, is_keyed = replica / "spark", (replica / keyed_state.DIRECTORY).is_dir()
    if not is_keyed and _newest(replica) is None:
        raise _nothing_committed(replica)
    # 1. The notes (replica.json) come before the choice of the batch. If the notes are older than the state,
    # the replica only reads more of the journal. Notes that are newer than the state would be of no use.
    links = _Links(replica, target)
    links.add_tree(Path(), lambda path: (replica / path).is_dir())
    if is_keyed:
        return _keyed_attempt(links, growing)

    # 2. the newest committed batch
    # This must come before the commits are listed, because Spark may delete some of them meanwhile.
    committed = spark_state.batches(spark / "commits")
    newest = _newest(replica)
    if newest is None:  # the query is just starting again
        raise _Vanished("Spark's batches vanished")
    batch, end = newest
    # 3. its files, state first, since Spark purges state
    try:
        _link_state(links, spark, batch, committed)
    except ValueError as error:
        _unreadable(replica, error)
    for log in spark_state.LOGS:
        for each in (batch, batch - 1):
            if (spark / log / str(each)).exists():
                links.add(Path("spark", log, str(each)))
    apart = {"spark/state", *(f"spark/{log}" for log in spark_state.LOGS)}
    links.add_tree(Path(), lambda path: path.as_posix() in (apart | links.sizes.keys()))

    return _snapshot(links, growing, end, batch)


def _nothing_committed(replica: Path) -> NothingCommitted:
    return NothingCommitted(
        f"{replica.name} has not committed a batch yet.",
        "The replica is not affected.",
        "Take the checkpoint after its first batch.",
    )


def _keyed_attempt(links: _Links, growing: GrowingFiles) -> Snapshot:
    # 2. and 3.
    end = _link_keyed(links, growing.keyed)
    apart = {"spark", keyed_state.DIRECTORY}
    links.add_tree(Path(), lambda path: path.as_posix() in (apart | links.sizes.keys()))

    return _snapshot(links, growing, end, None)


def _snapshot(links: _Links, growing: GrowingFiles, end: dict[str, Any], batch: int | None) -> Snapshot:
    # 4. the lengths that this seq committed
    seq = Seq(end["seq"])
    return Snapshot(
        directory=links.target,
        batch=batch,
        seq=seq,
        ends=end["ends"],
        batch_time_ms=end["batch_time"],
        files=_sized(links.replica, links.sizes, growing.lengths(seq)),
        growing=growing,
    )


def _link_keyed(links: _Links, running: KeyedState | None) -> dict[str, Any]:
    """Links the keyed state, and returns its end. `running` is the state that the query has opened. If it is
    None or closed, this opens the state."""
    target = links.target / keyed_state.DIRECTORY
    links.target.mkdir(parents=True, exist_ok=True)
    try:
        if running is not None:
            try:
                return _linked(links, running, target)
            except KeyedStateClosed:
                pass  # its query has ended
        state = KeyedState(links.replica / keyed_state.DIRECTORY)
        try:
            return _linked(links, state, target)
        finally:
            state.close()
    except ValueError as error:
        _failed(
            links.replica,
            f"its state cannot be read ({error})",
            "Restore the group from its newest checkpoint.",
        )
    except OSError as error:
        raise _Vanished(f"the keyed state: {error}") from error


def _linked(links: _Links, state: KeyedState, target: Path) -> dict[str, Any]:
    end = state.link(target)
    if end is None:
        raise _nothing_committed(links.replica)
    for path in target.iterdir():
        links.sizes[f"{keyed_state.DIRECTORY}/{path.name}"] = path.stat().st_size
    return end


def _newest(replica: Path) -> tuple[int, dict[str, Any]] | None:
    try:
        return spark_state.newest_done(replica / "spark")
    except ValueError as error:
        _unreadable(replica, error)


def _unreadable(replica: Path, error: ValueError) -> NoReturn:
    _failed(replica, f"its log cannot be read ({error})", "Restore the group from its newest checkpoint.")


def _sized(replica: Path, sizes: dict[str, int], limits: Mapping[str, int]) -> tuple[SnapshotFile, ...]:
    for path, length in limits.items():
        if length and sizes.get(path, -1) < length:
            # Without the numbers, which change each time: the same error must be reported in the same words.
            found = "is shorter than what was committed" if path in sizes else "is not there any more"
            _failed(replica, f"{path} {found}", "Check who else writes that file, and the disk.")
    return tuple(
        SnapshotFile(path, min(size, limits.get(path, size)), path in limits or keyed_state.is_settled(path))
        for path, size in sorted(sizes.items())
    )


class _Links:
    """Hard links made so far."""

    def __init__(self, replica: Path, target: Path) -> None:
        self.replica = replica
        self.target = target
        self.sizes: dict[str, int] = {}  # path -> bytes when it was linked
        self._made: set[Path] = set()

    def add(self, path: Path) -> None:
        link = self.target / path
        if link.parent not in self._made:
            link.parent.mkdir(parents=True, exist_ok=True)
            self._made.add(link.parent)
        try:
            os.link(self.replica / path, link)
        except OSError as error:
            if error.errno == errno.ENOENT:
                raise _Vanished(f"{path} vanished") from error
            where = (
                "Put the work directory on the replica's file system."
                if error.errno == errno.EXDEV
                else "Check the disk of this node."
            )
            _failed(self.replica, f"{path} cannot be linked: {error.strerror}", where)
        self.sizes[path.as_posix()] = link.stat().st_size

    def add_tree(self, path: Path, skip: Callable[[Path], bool] = lambda _: False) -> None:
        for entry in os.scandir(self.replica / path):
            inner = path / entry.name
            if spark_state.is_temporary(entry.name) or skip(inner):
                continue
            if entry.is_dir(follow_symlinks=False):
                self.add_tree(inner, skip)
            elif entry.is_file(follow_symlinks=False):
                self.add(inner)


def _link_state(links: _Links, spark: Path, batch: int, committed: list[int]) -> None:
    state = spark / "state"
    if not state.is_dir():
        return
    version = batch + 1
    newest_ids = spark_state.state_ids(spark / "commits" / str(batch))
    confirmed = set(newest_ids)
    for earlier in committed:
        if earlier >= batch:
            break  # an attempt that was not committed
        try:
            confirmed |= spark_state.state_ids(spark / "commits" / str(earlier))
        except FileNotFoundError:
            continue  # purged meanwhile; with it, more files could have been left out
    found: set[str] = set()
    for directory in spark_state.store_directories(state):
        relative = directory.relative_to(links.replica)
        names = [name for name in os.listdir(directory) if spark_state.is_versioned(name)]
        needed = spark_state.needed_versions(names, version, frozenset(confirmed))
        found |= spark_state.version_ids(needed, version)
        for name in needed:
            links.add(relative / name)
        _link_ssts(links, relative, [name for name in needed if name.endswith(".zip")])
    if not newest_ids <= found:
        raise _Vanished(f"state version {version} is not whole")
    # The other files are written once. Versions and SST files that appeared since belong to later batches.
    links.add_tree(
        Path("spark", "state"), lambda path: path.name == "SSTs" or spark_state.is_versioned(path.name)
    )


def _link_ssts(links: _Links, store: Path, archives: list[str]) -> None:
    """Links the SST files that the linked archives of Spark's snapshots name. They are written before the
    archive is."""
    names: set[str] = set()
    for archive in archives:
        named = spark_state.sst_names(links.target / store / archive)
        if named is None:
            links.add_tree(store / "SSTs")
            return
        names |= named
    for name in sorted(names):
        if not (links.target / store / "SSTs" / name).exists():
            links.add(store / "SSTs" / name)


def _reason_of(error: OSError, target: Path, replica: Path) -> str:
    """Returns the reason, and the file's path in the replica directory. `target` has another name each time,
    but an error that comes again must be reported in the same words."""
    reason = error.strerror or str(error)
    if error.filename is None:
        return reason
    place = Path(os.fsdecode(error.filename))
    for root in (target, replica):
        if root in place.parents:
            place = place.relative_to(root)
    return f"{target.parent if place == target else place}: {reason}"


def _failed(replica: Path, what: str, next: str) -> NoReturn:
    raise SnapshotFailed(
        f"No checkpoint of {replica.name} was taken: {what}.",
        "The running query and older checkpoints are not affected.",
        next,
    )
