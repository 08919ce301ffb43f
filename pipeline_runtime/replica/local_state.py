"""Stores what a replica keeps on its node's disk.

    <directory>/spark/       Spark's checkpoint. For each batch N it has offsets/N, then the state, then
                             ends/N (where the batch has ended), then commits/N
    <directory>/keyed/       for a group whose state the replica keeps: the state of its processor, if it has
                             one, and where the newest batch has ended. What Spark writes down is then of no
                             use once its query has ended
    <directory>/elements/    the files of its elements (sinks)
    <directory>/replica.json where to resume reading the journal
    <directory>/fresh.json   where the state was last begun fresh; nothing from before is in it

Without `keyed/`, a batch of Spark's counts only if it has `commits/N` and `ends/N`. A batch without them was
planned, and may have begun, but came to nothing. Every start first deletes what is left of such a batch,
because Spark would otherwise go on after it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pipeline_runtime.checkpoint import keyed_state, spark_state
from pipeline_runtime.checkpoint.keyed_state import KeyedState
from pipeline_runtime.journal.records import Boundary
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.model.ids import Seq

_STATE_SCHEMA = re.compile(r'"file:[^"]*/state/(\d+/_stateSchema/)')
_ENDS_KEPT = 8  # Spark keeps some 4 batches


class LocalStateDamaged(RuntimeError):
    """A file in the replica's directory cannot be read, or does not fit the journal. The replica has to start
    from a checkpoint."""


@dataclass(frozen=True)
class JournalMark:
    """Where to go on reading the journal: `view` is the fold of all records before `offset`.

    The view is never ahead of the local state, so no batch that is still to be followed is skipped.
    """

    offset: int
    view: JournalView


def spark_directory(directory: Path) -> Path:
    return directory / "spark"


def keyed_path(directory: Path) -> Path:
    return directory / keyed_state.DIRECTORY


def last_committed(directory: Path) -> Boundary | None:
    """Returns the end of the newest final batch, or None if there is none yet."""
    keyed, spark = keyed_path(directory), spark_directory(directory)
    if keyed.is_dir():
        try:
            end = keyed_state.read_end(keyed)
            return Boundary.from_json(end) if end is not None else None
        except ValueError as error:
            raise LocalStateDamaged(str(error)) from error
    try:
        newest = spark_state.newest_done(spark)
        return Boundary.from_json(newest[1]) if newest is not None else None
    except (OSError, ValueError) as error:
        raise LocalStateDamaged(f"{spark}: {error}") from error


class BatchState(Protocol):
    """The files that a batch leaves in the replica's directory, apart from the sinks' files."""

    def begin(self) -> None:
        """Begins a batch. Drops the files of an earlier batch that was not committed."""
        ...

    def processed(self) -> None:
        """Notes that the batch changes no more. The next batch may begin before this one is committed."""
        ...

    def commit(self, number: int, boundary: Boundary) -> None:
        """Notes that the batch is committed, and ends at `boundary`. `number` is the engine's number. Raises
        LocalStateDamaged."""
        ...


class KeptBySpark:
    """Implements BatchState: Spark keeps the state, and `ends/N` says where its batch N has ended."""

    def __init__(self, directory: Path) -> None:
        self._spark, self._keyed = spark_directory(directory), keyed_path(directory)
        self._ends = self._spark / "ends"

    def begin(self) -> None:
        """Does little, because Spark itself drops the files of a batch that was not committed.

        The replica may have kept the state under an earlier definition of the group, one without DataFrames.
        That state is removed once a batch of Spark is final, because it would hide how far the group has
        come.
        """
        if self._keyed.is_dir() and spark_state.newest_done(self._spark) is not None:
            _remove(self._keyed)

    def processed(self) -> None:
        """Spark begins no batch before the last one is done."""

    def commit(self, number: int, boundary: Boundary) -> None:
        """Must be called before Spark finishes its batch."""
        self._ends.mkdir(exist_ok=True)
        replace_text(self._ends / str(number), json.dumps(boundary.to_json()))
        (self._ends / str(number - _ENDS_KEPT)).unlink(missing_ok=True)


class KeptByReplica:
    """Implements BatchState: the state and where it stands are in `keyed/`."""

    def __init__(self, keyed: KeyedState) -> None:
        self._keyed = keyed

    def begin(self) -> None:
        self._keyed.begin()

    def processed(self) -> None:
        self._keyed.seal()

    def commit(self, number: int, boundary: Boundary) -> None:
        try:
            self._keyed.commit(boundary.to_json())
        except ValueError as error:
            raise LocalStateDamaged(str(error)) from error


def open_keyed(directory: Path, local: Boundary, *, stateful: bool) -> KeyedState:
    """Returns the state that the replica itself keeps, at `local`. Creates it if there is none yet.

    A group without a processor (not `stateful`) keeps only its position. It may have no `keyed/` although it
    has run, if Spark planned its batches under an earlier definition. Raises LocalStateDamaged if the files
    cannot be read, or if the state of a processor is missing.
    """
    path = keyed_path(directory)
    try:
        if path.is_dir():
            return KeyedState(path, patience_s=keyed_state.PATIENCE_S)
        if local.seq <= beginning(directory).seq:
            KeyedState.create(path)
        elif stateful:
            raise LocalStateDamaged(
                f"{path} is missing, although the element has run up to batch {local.seq}"
            )
        else:
            KeyedState.create(path, local.to_json())
            open_state(directory)  # Spark's files are of no use any more
        return KeyedState(path)
    except ValueError as error:
        raise LocalStateDamaged(str(error)) from error


def beginning(directory: Path) -> Boundary:
    """Returns where the first batch of the present state begins: at seq 0, or where the state last began
    fresh."""
    path = directory / "fresh.json"
    try:
        return Boundary.from_json(json.loads(path.read_text()))
    except FileNotFoundError:
        return Boundary(Seq(0), {}, 0)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LocalStateDamaged(f"{path} cannot be read: {error}") from error


def begin_fresh(directory: Path, at: Boundary) -> None:
    """Leaves all state behind. The next batch is the first of a fresh state, and begins `at` the end of the
    old one.

    As soon as this is written to the disk, batches up to `at` no longer count; see `open_state`.
    """
    replace_text(directory / "fresh.json", json.dumps(at.to_json()), durable=True)
    open_state(directory)


def open_state(directory: Path) -> Boundary:
    """Returns where the local state stands. Removes the files of batches that are not final."""
    spark, keyed = spark_directory(directory), keyed_path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    begins, newest = beginning(directory), last_committed(directory)
    if newest is None or newest.seq <= begins.seq:
        # The files of a first batch that is not final would only bind the next attempt.
        _remove(keyed)
        _remove(spark)
        newest = begins
    elif keyed.is_dir():
        _remove(spark)
    shutil.rmtree(_former(spark), ignore_errors=True)
    shutil.rmtree(_former(keyed), ignore_errors=True)
    return newest


def _remove(path: Path) -> None:
    """Removes the directory in one step, because a directory that is half removed cannot be read."""
    if path.is_dir():
        shutil.rmtree(_former(path), ignore_errors=True)
        os.rename(path, _former(path))


def _former(path: Path) -> Path:
    return path.with_name(f".{path.name}.former.tmp")


def drop_unfinished(directory: Path) -> list[int]:
    """Deletes the files of batches that were dropped. Returns Spark's numbers of these batches."""
    spark = spark_directory(directory)
    newest = spark_state.newest_done(spark)
    last = newest[0] if newest is not None else -1
    # This follows the order of the logs, so that files that a crash leaves in between do not count either.
    left = [(log, batch) for log in spark_state.LOGS for batch in spark_state.batches(spark / log)]
    unfinished = [(log, batch) for log, batch in left if batch > last]
    for log, batch in unfinished:
        (spark / log / str(batch)).unlink()
    return sorted({batch for _, batch in unfinished})


def relocate(directory: Path) -> None:
    """Makes a state that came from another place readable here.

    Spark keeps the absolute paths of its state schemas in `state/<operator>/_metadata/v2/<batch>`. So a
    checkpoint that was moved still names the directory, and the machine, from which it came.
    """
    spark = spark_directory(directory).resolve()
    here = f'"file:{spark}/state/'
    for path in spark.glob("state/*/_metadata/v2/*"):
        if not path.name.isdigit():
            continue
        text = path.read_text()
        moved = _STATE_SCHEMA.sub(lambda found: here + found[1], text)
        if moved != text:
            # Otherwise Hadoop would compare the checksum of the old text.
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
            replace_text(path, moved)


def read_mark(directory: Path, local: Seq) -> JournalMark | None:
    """Returns the mark, or None if no mark fits the local state: then the journal is read from its
    beginning."""
    try:
        data = json.loads((directory / "replica.json").read_text())
        mark = JournalMark(data["journal_offset"], JournalView.from_json(data["view"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return mark if mark.view.last_seq <= local else None


def write_mark(directory: Path, mark: JournalMark) -> None:
    text = json.dumps({"journal_offset": mark.offset, "view": mark.view.to_json()})
    replace_text(directory / "replica.json", text)


def replace_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Replaces the file's content. The file always has either the old content or the new one, and a snapshot
    leaves out a file that is not there yet. With `durable`, this also holds after a power cut."""
    temporary = path.with_name(f".{path.name}.tmp")
    with open(temporary, "w") as file:
        file.write(text)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    os.replace(temporary, path)


def size_bytes(directory: Path) -> int:
    """Returns the size of the files of a state that Spark keeps, in bytes."""
    total = 0
    for root, _, names in os.walk(spark_directory(directory) / "state"):
        for name in names:
            with suppress(FileNotFoundError):  # Spark has just deleted the file
                total += os.stat(os.path.join(root, name)).st_size
    return total
