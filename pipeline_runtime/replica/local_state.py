"""What a replica keeps on its node's disk.

    <directory>/spark/       Spark's checkpoint: offsets/N, then state, then commits/N for each batch
                             and, before commits/N, where it has ended: ends/N
    <directory>/elements/    files of its elements (sinks)
    <directory>/replica.json where to resume reading the journal
    <directory>/anew.json    where the state was begun anew, if it ever was: nothing of before is in it

A Spark batch counts only with `commits/N` and `ends/N`: one without was planned, and may have begun, but came
to nothing. What is left of it is dropped before every start: Spark would go on behind it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pipeline_runtime.checkpoint import spark_state
from pipeline_runtime.journal.records import Boundary
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.model.ids import Seq

_STATE_SCHEMA = re.compile(r'"file:[^"]*/state/(\d+/_stateSchema/)')
_ENDS_KEPT = 8  # Spark keeps some 4 batches


class LocalStateDamaged(RuntimeError):
    """The replica's directory holds something that Spark did not write, or that does not fit the journal;
    start from a checkpoint."""


@dataclass(frozen=True)
class JournalMark:
    """Where to go on reading the journal: `view` is the fold of all records before `offset`.

    Its seq is never ahead of the local state's, so no batch that is still to follow is skipped.
    """

    offset: int
    view: JournalView


def spark_directory(directory: Path) -> Path:
    return directory / "spark"


def last_committed(directory: Path) -> Boundary | None:
    """Where the newest batch that counts has ended; None: none does yet."""
    spark = spark_directory(directory)
    try:
        newest = spark_state.newest_done(spark)
        return Boundary.from_json(newest[1]) if newest is not None else None
    except (OSError, ValueError) as error:
        raise LocalStateDamaged(f"{spark}: {error}") from error


def note_end(directory: Path, batch: int, boundary: Boundary) -> None:
    """Of Spark's batch, before it is finished."""
    ends = spark_directory(directory) / "ends"
    ends.mkdir(exist_ok=True)
    replace_text(ends / str(batch), json.dumps(boundary.to_json()))
    (ends / str(batch - _ENDS_KEPT)).unlink(missing_ok=True)


def beginning(directory: Path) -> Boundary:
    """Where Spark's first batch begins: seq 0, or where the state was begun anew."""
    path = directory / "anew.json"
    try:
        return Boundary.from_json(json.loads(path.read_text()))
    except FileNotFoundError:
        return Boundary(Seq(0), {}, 0)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LocalStateDamaged(f"{path} cannot be read: {error}") from error


def begin_anew(directory: Path, at: Boundary) -> None:
    """Leave all state behind: the next batch is Spark's first, and begins `at` the local state's end.

    Once it is written down, batches up to `at` do not count any more; see `open_state`.
    """
    replace_text(directory / "anew.json", json.dumps(at.to_json()), durable=True)
    open_state(directory)


def open_state(directory: Path) -> Boundary:
    """Where the local state stands; what Spark keeps of batches that do not count is removed."""
    spark, former = spark_directory(directory), directory / ".former.tmp"
    spark.mkdir(parents=True, exist_ok=True)
    begins, newest = beginning(directory), last_committed(directory)
    if newest is None or newest.seq <= begins.seq:
        # What Spark may have begun would only bind the first batch. Half removed, it could not be read.
        shutil.rmtree(former, ignore_errors=True)
        os.rename(spark, former)
        newest = begins
    shutil.rmtree(former, ignore_errors=True)
    return newest


def drop_unfinished(directory: Path) -> list[int]:
    """Delete what is left of batches that came to nothing; returns their Spark batch ids."""
    spark = spark_directory(directory)
    newest = spark_state.newest_done(spark)
    last = newest[0] if newest is not None else -1
    # In this order: whatever a crash leaves does not count either.
    left = [(log, batch) for log in spark_state.LOGS for batch in spark_state.batches(spark / log)]
    unfinished = [(log, batch) for log, batch in left if batch > last]
    for log, batch in unfinished:
        (spark / log / str(batch)).unlink()
    return sorted({batch for _, batch in unfinished})


def relocate(directory: Path) -> None:
    """Make a state that came from another place readable here.

    Spark keeps the absolute paths of its state schemas in `state/<operator>/_metadata/v2/<batch>`, so
    a checkpoint that was moved still names the directory, and the machine, that it came from.
    """
    spark = spark_directory(directory).resolve()
    here = f'"file:{spark}/state/'
    for path in spark.glob("state/*/_metadata/v2/*"):
        if not path.name.isdigit():
            continue
        text = path.read_text()
        moved = _STATE_SCHEMA.sub(lambda found: here + found[1], text)
        if moved != text:
            # Hadoop would compare the old text's checksum.
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
            replace_text(path, moved)


def read_mark(directory: Path, local: Seq) -> JournalMark | None:
    """None: there is none that fits the local state; the journal is then read from its beginning."""
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
    """The file has its former content or the new one, and a snapshot leaves out what is not there yet.

    `durable`: also after a power cut.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    with open(temporary, "w") as file:
        file.write(text)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    os.replace(temporary, path)


def size_bytes(directory: Path) -> int:
    """Bytes of the state files."""
    total = 0
    for root, _, names in os.walk(spark_directory(directory) / "state"):
        for name in names:
            with suppress(FileNotFoundError):  # Spark cleans up while we look
                total += os.stat(os.path.join(root, name)).st_size
    return total
