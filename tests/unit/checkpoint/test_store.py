from __future__ import annotations

import contextlib
import os
import tempfile
import time
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.checkpoint.chunks import CHUNK_BYTES, address, decode, encode
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.errors import CheckpointDamaged, CheckpointError
from pipeline_runtime.checkpoint.files import LEFT_BEHIND_S, FileStore
from pipeline_runtime.checkpoint.manifest import FileEntry, Manifest
from pipeline_runtime.checkpoint.snapshot import Snapshot, SnapshotFile
from pipeline_runtime.checkpoint.store import materialize, store
from pipeline_runtime.model.ids import Epoch, Seq
from tests.chosen import examples
from tests.unit.checkpoint.replicas import GROUP, Checkpoint, FakeReplica, tree

names = st.text("abcdefgh0123456789_-é ", min_size=1, max_size=12).filter(lambda name: name.strip())
# Sizes around the chunk's are what matters; content by repetition, so that chunks recur.
contents = st.builds(
    lambda piece, size: (piece * (size // len(piece) + 1))[:size],
    st.binary(min_size=1, max_size=64),
    st.sampled_from([0, 1, 100, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES]),
)


@settings(max_examples=examples(40))
@given(content=st.dictionaries(st.tuples(names, names), contents, max_size=5), cut_off=st.booleans())
def test_what_is_stored_is_what_is_materialized(
    database: StateDatabase, content: dict[tuple[str, str], bytes], cut_off: bool
) -> None:
    with tempfile.TemporaryDirectory() as root:
        origin, target = Path(root, "origin"), Path(root, "deep", "target")
        files = []
        expected = {}
        for (folder, name), raw in content.items():
            path = f"{folder}/{name}"
            (origin / folder).mkdir(parents=True, exist_ok=True)
            (origin / path).write_bytes(raw)
            size = len(raw) // 2 if cut_off else len(raw)
            files.append(SnapshotFile(path, size))
            expected[path] = raw[:size]
        taken = Snapshot(origin, 0, Seq(1), {"in-0": 1}, 1, tuple(files))
        stored = store(taken, database, group="g", epoch=Epoch(1), version="1", node="n")
        materialize(stored, lambda sha: database.get_chunk("g", sha), target)
        assert tree(target) == expected
        assert Manifest.from_bytes(stored.to_bytes()) == stored
        assert stored.bytes_total == sum(map(len, expected.values()))


@given(raw=st.binary(max_size=5000), position=st.integers(min_value=0), bit=st.integers(0, 7))
def test_a_chunk_with_one_flipped_bit_never_decodes_to_something_else(
    raw: bytes, position: int, bit: int
) -> None:
    encoded = bytearray(encode(raw))
    assert decode(address(raw), bytes(encoded)) == raw
    encoded[position % len(encoded)] ^= 1 << bit
    # A bit of the compressed form may not matter to the content; then nothing is damaged.
    with contextlib.suppress(CheckpointDamaged):
        assert decode(address(raw), bytes(encoded)) == raw


def test_a_second_checkpoint_stores_only_what_changed(
    replica: FakeReplica, checkpoint: Checkpoint, database: StateDatabase
) -> None:
    state = {f"{index}.sst": os.urandom(200_000) for index in range(99)}
    replica.commit(state)
    first = checkpoint(database)
    assert first.bytes_new > first.bytes_total * 0.999
    replica.commit({**state, "99.sst": os.urandom(200_000)})
    second = checkpoint(database)
    assert 200_000 < second.bytes_new < second.bytes_total * 0.015


def test_a_state_file_with_a_unique_name_is_read_once_and_again_when_its_chunks_are_lost(
    replica: FakeReplica, checkpoint: Checkpoint, database: StateDatabase
) -> None:
    content = os.urandom(2 * CHUNK_BYTES)
    name = f"000007-{uuid.uuid4()}.sst"
    replica.commit({name: content})
    first = checkpoint(database)
    path = replica.directory / "spark/state/0/0/SSTs" / name
    path.write_bytes(b"?" * len(content))  # so that reading it would show
    replica.commit()
    second = checkpoint(database)
    same = [file for file in second.files if file.path.endswith(name)]
    assert same == [file for file in first.files if file.path.endswith(name)]

    path.write_bytes(content)
    database._groups[GROUP].family[b"c" + bytes.fromhex(same[0].chunks[1])] = b"\0rubbish"
    with pytest.raises(CheckpointDamaged):
        database.get_chunk(GROUP, same[0].chunks[1])
    replica.commit()
    assert checkpoint(database).bytes_new > CHUNK_BYTES
    assert database.get_chunk(GROUP, same[0].chunks[1]) == content[CHUNK_BYTES:]


def test_a_file_that_grew_stores_its_new_end_alone(
    replica: FakeReplica, checkpoint: Checkpoint, database: StateDatabase
) -> None:
    content = os.urandom(5 * CHUNK_BYTES)
    replica.commit()
    replica.put("elements/out/power.csv", content)
    checkpoint(database)
    replica.commit()
    replica.put("elements/out/power.csv", content + b"one row more\n")
    assert checkpoint(database).bytes_new < 10_000


def test_a_manifest_that_was_changed_is_damaged(
    replica: FakeReplica, checkpoint: Checkpoint, database: StateDatabase
) -> None:
    replica.commit()
    raw = checkpoint(database).to_bytes()
    for bad in (raw.replace(b'"seq":1', b'"seq":2'), raw[:-5], b"", raw.replace(b"edge-a", b"edge-b")):
        with pytest.raises(CheckpointDamaged):
            Manifest.from_bytes(bad)


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "", "a\\b", "a\0b"])
def test_a_path_out_of_the_replica_directory_is_no_manifest(path: str) -> None:
    with pytest.raises(ValueError):
        FileEntry(path=path, size=0, chunks=())


def test_damage_leaves_the_target_absent_and_no_litter(
    replica: FakeReplica, checkpoint: Checkpoint, database: StateDatabase, tmp_path: Path
) -> None:
    replica.commit()
    stored = checkpoint(database)
    target = tmp_path / "there" / "g2"
    with pytest.raises(CheckpointDamaged):
        materialize(stored, lambda sha: b"other bytes", target)
    shorter = stored.model_copy(
        update={"files": (stored.files[0].model_copy(update={"size": 10**6}), *stored.files[1:])}
    )
    with pytest.raises(CheckpointDamaged, match="instead of 1000000"):
        materialize(shorter, lambda sha: database.get_chunk(GROUP, sha), target)
    assert list(target.parent.iterdir()) == []


def test_a_directory_with_content_is_never_overwritten(
    replica: FakeReplica, checkpoint: Checkpoint, database: StateDatabase, tmp_path: Path
) -> None:
    replica.commit()
    stored = checkpoint(database)
    (tmp_path / "there").mkdir()
    materialize(stored, lambda sha: database.get_chunk(GROUP, sha), tmp_path / "there")
    before = tree(tmp_path / "there")
    with pytest.raises(CheckpointError, match="is not empty"):
        materialize(stored, lambda sha: database.get_chunk(GROUP, sha), tmp_path / "there")
    assert tree(tmp_path / "there") == before


def test_a_target_that_cannot_be_written_is_named(
    replica: FakeReplica, checkpoint: Checkpoint, database: StateDatabase, tmp_path: Path
) -> None:
    replica.commit()
    stored = checkpoint(database)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CheckpointError, match="cannot be written"):
        materialize(stored, lambda sha: database.get_chunk(GROUP, sha), tmp_path / "file" / "there")


def test_what_a_killed_process_has_half_unpacked_goes(
    replica: FakeReplica, checkpoint: Checkpoint, database: StateDatabase, tmp_path: Path
) -> None:
    replica.commit({"a.sst": b"state"})
    stored = checkpoint(database)
    left, others = tmp_path / "..incoming-g2.0abc.tmp", tmp_path / "..incoming-g3.0abc.tmp"
    for directory in (left, others):
        directory.mkdir()
        (directory / "half").write_bytes(b"x")
    materialize(stored, lambda sha: database.get_chunk(GROUP, sha), tmp_path / ".incoming-g2")
    assert not left.exists()
    assert others.exists(), "another group's may be under way"


def test_files_that_a_killed_process_has_begun_go_after_a_day(tmp_path: Path) -> None:
    old, young = tmp_path / ".old.tmp", tmp_path / ".young.tmp"
    for path in (old, young):
        path.write_bytes(b"x")
    long_ago = time.time() - LEFT_BEHIND_S - 60
    os.utime(old, (long_ago, long_ago))
    FileStore(tmp_path)
    assert not old.exists()
    assert young.exists(), "it may be under way"
