"""Files that only grow: a checkpoint reads what is new of them, and holds what was committed."""

from __future__ import annotations

import os
import tempfile
from itertools import count
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.checkpoint import store as storing
from pipeline_runtime.checkpoint.chunks import CHUNK_BYTES
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.growing import GrowingFiles
from pipeline_runtime.checkpoint.manifest import FileEntry, Manifest
from pipeline_runtime.checkpoint.snapshot import take_snapshot
from pipeline_runtime.checkpoint.store import materialize, read_file, store
from pipeline_runtime.model.ids import Epoch, Seq
from tests.chosen import examples
from tests.unit.checkpoint.replicas import GROUP, Checkpoint, FakeReplica

PATH = "elements/out/power.csv"
groups = count()


class Run:
    """One run of a replica with a file sink: a start cuts off what was not committed."""

    def __init__(self, replica: FakeReplica, committed: bytes = b"") -> None:
        self.replica = replica
        self.growing = GrowingFiles()
        self.committed = committed
        self.replica.put(PATH, committed)
        self._length = len(committed)

    @property
    def file(self) -> Path:
        return self.replica.directory / PATH

    def write(self, rows: bytes) -> None:
        with open(self.file, "ab") as file:
            file.write(rows)

    def commit(self, rows: bytes) -> None:
        self.write(rows)
        self.committed += rows
        self.growing.note(Seq(self.replica.batch + 2), {PATH: len(self.committed)})
        self.replica.commit()


def entry(manifest: Manifest) -> FileEntry:
    return next(file for file in manifest.files if file.path == PATH)


def stored(database: StateDatabase, manifest: Manifest) -> bytes | None:
    return read_file(manifest, PATH, lambda sha: database.get_chunk(manifest.group, sha))


@pytest.fixture
def run(replica: FakeReplica) -> Run:
    return Run(replica)


def test_what_was_stored_before_is_not_read_again(
    run: Run, checkpoint: Checkpoint, database: StateDatabase
) -> None:
    content = os.urandom(3 * CHUNK_BYTES + 5)
    run.commit(content)
    first = checkpoint(database, growing=run.growing)
    with open(run.file, "r+b") as file:
        file.write(b"?" * 2 * CHUNK_BYTES)  # so that reading it would show
    run.commit(b"one row more\r\n")
    second = checkpoint(database, growing=run.growing)
    assert entry(second).chunks[:3] == entry(first).chunks[:3]
    assert stored(database, second) == content + b"one row more\r\n"


@pytest.mark.parametrize("size", [CHUNK_BYTES, 2 * CHUNK_BYTES, 2 * CHUNK_BYTES + 1])
def test_a_file_that_another_took_the_place_of_is_read_whole(
    run: Run, checkpoint: Checkpoint, database: StateDatabase, size: int
) -> None:
    content = os.urandom(size)
    run.commit(content)
    checkpoint(database, growing=run.growing)
    # It is told by its last chunk, which may be of one byte: so no byte of it is as before.
    other = content.translate(bytes(range(255, -1, -1)))
    run.replica.put(PATH, other)
    run.commit(b"more")
    assert stored(database, checkpoint(database, growing=run.growing)) == other + b"more"


def test_a_file_that_shrank_and_grew_again_is_read_whole(
    run: Run, checkpoint: Checkpoint, database: StateDatabase
) -> None:
    run.commit(os.urandom(2 * CHUNK_BYTES + 100))
    checkpoint(database, growing=run.growing)
    os.truncate(run.file, CHUNK_BYTES // 2)
    run.write(os.urandom(2 * CHUNK_BYTES))
    run.commit(b"more")
    manifest = checkpoint(database, growing=run.growing)
    assert stored(database, manifest) == run.file.read_bytes()[: len(run.committed)]


def test_another_run_reads_it_whole(run: Run, checkpoint: Checkpoint, database: StateDatabase) -> None:
    run.commit(os.urandom(2 * CHUNK_BYTES))
    checkpoint(database, growing=run.growing)
    with open(run.file, "r+b") as file:
        file.write(b"other bytes, as of an operator that does not repeat itself")
    again = Run(run.replica, run.file.read_bytes())
    again.commit(b"more")
    assert stored(database, checkpoint(database, growing=again.growing)) == again.committed


def test_chunks_that_were_swept_or_damaged_are_stored_anew(
    run: Run, checkpoint: Checkpoint, database: StateDatabase, central: StateDatabase, tmp_path: Path
) -> None:
    run.commit(os.urandom(3 * CHUNK_BYTES))
    first = checkpoint(database, growing=run.growing)
    database.prune(GROUP, [])
    run.commit(b"more")
    second = checkpoint(database, growing=run.growing)
    assert stored(database, second) == run.committed
    assert second.bytes_new > 3 * CHUNK_BYTES

    lost = entry(first).chunks[0]
    database._groups[GROUP].family[b"c" + bytes.fromhex(lost)] = b"\0rubbish"
    with pytest.raises(Exception, match="damaged"):
        database.get_chunk(GROUP, lost)
    run.commit(b"and more")
    assert stored(database, checkpoint(database, growing=run.growing)) == run.committed
    # Another database, as after a damaged one was set aside.
    run.commit(b"and more")
    manifest = checkpoint(central, growing=run.growing)
    materialize(manifest, lambda sha: central.get_chunk(GROUP, sha), tmp_path / "there")
    assert (tmp_path / "there" / PATH).read_bytes() == run.committed


def test_of_a_seq_that_nothing_is_known_of_the_file_is_taken_as_it_is(
    run: Run, checkpoint: Checkpoint, database: StateDatabase
) -> None:
    run.commit(b"rows")
    run.write(b"not committed")
    assert stored(database, checkpoint(database, growing=GrowingFiles())) == b"rowsnot committed"
    manifest = checkpoint(database, growing=run.growing)
    assert stored(database, manifest) == b"rows"


def test_the_newest_seqs_are_known() -> None:
    growing = GrowingFiles()
    for seq in range(1000):
        growing.note(Seq(seq), {PATH: seq})
    assert [growing.lengths(Seq(seq)) for seq in (998, 999)] == [{PATH: 998}, {PATH: 999}]
    assert growing.lengths(Seq(0)) == {}


rows = st.builds(lambda byte, size: bytes([byte]) * size, st.integers(0, 255), st.integers(0, 40))
steps = st.lists(st.tuples(st.sampled_from(["commit", "write", "start", "prune"]), rows), max_size=15)


@settings(max_examples=examples(60))
@given(steps=steps)
def test_every_checkpoint_holds_what_was_committed(
    database: StateDatabase, steps: list[tuple[str, bytes]]
) -> None:
    group = f"g{next(groups)}"
    with tempfile.TemporaryDirectory() as root, patch.object(storing, "CHUNK_BYTES", 8):
        run = Run(FakeReplica(Path(root, "g1")))
        for step, rows in steps:
            if step == "write":
                run.write(rows)  # and the commit fails: only another run goes on from here
                run = Run(run.replica, run.committed)
                continue
            if step == "start":
                run = Run(run.replica, run.committed)
            if step == "prune":
                database.prune(group, [])
            run.commit(rows)
            run.write(b"uncommitted")
            with take_snapshot(run.replica.directory, Path(root), run.growing) as taken:
                manifest = store(taken, database, group=group, epoch=Epoch(1), version="1", node="n")
            assert stored(database, manifest) == run.committed
            os.truncate(run.file, len(run.committed))
