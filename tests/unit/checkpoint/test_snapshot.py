from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from pipeline_runtime.checkpoint.errors import NothingCommitted, SnapshotFailed
from pipeline_runtime.checkpoint.growing import GrowingFiles
from pipeline_runtime.checkpoint.snapshot import take_snapshot
from pipeline_runtime.checkpoint.store import materialize, store
from pipeline_runtime.model.ids import Epoch, Seq
from tests.unit.checkpoint.replicas import FakeReplica, StateDatabase, tree


def test_a_replica_without_a_committed_batch_has_no_snapshot(replica: FakeReplica, work: Path) -> None:
    replica.plan()
    with pytest.raises(NothingCommitted):
        take_snapshot(replica.directory, work)
    assert not list(work.glob("*"))


def test_a_replica_directory_that_is_not_there_has_no_snapshot(tmp_path: Path) -> None:
    with pytest.raises(NothingCommitted):
        take_snapshot(tmp_path / "nowhere", tmp_path / "work")


@pytest.mark.parametrize("log", ["ends", "commits"])
def test_a_log_that_cannot_be_read_is_reported_as_such(replica: FakeReplica, work: Path, log: str) -> None:
    replica.commit()
    replica.put(f"spark/{log}/0", b"v1\n{}}\n{}}")
    with pytest.raises(SnapshotFailed, match="its log cannot be read"):
        take_snapshot(replica.directory, work)
    assert not list(work.glob("*"))


def test_a_snapshot_is_of_the_newest_committed_batch_and_leaves_the_running_one_out(
    replica: FakeReplica, work: Path
) -> None:
    for _ in range(4):
        replica.commit()
    replica.plan()
    with take_snapshot(replica.directory, work) as taken:
        paths = {file.path for file in taken.files}
        assert (taken.batch, taken.seq, taken.ends, taken.batch_time_ms) == (3, 4, {"in-0": 40}, 4000)
        assert {path for path in paths if path.startswith("spark/offsets")} == {
            "spark/offsets/2",
            "spark/offsets/3",
        }
        assert {path for path in paths if path.startswith("spark/commits")} == {
            "spark/commits/2",
            "spark/commits/3",
        }
        assert {path for path in paths if path.startswith("spark/ends")} == {"spark/ends/2", "spark/ends/3"}
        assert "spark/state/0/0/5_id5.changelog" not in paths
        assert {"spark/metadata", "spark/sources/0/0", "replica.json"} <= paths
        assert set(tree(taken.directory)) == paths
    assert not list(work.glob("*"))


def test_a_batch_that_spark_has_finished_without_rows_being_granted_is_left_out(
    replica: FakeReplica, work: Path
) -> None:
    replica.finish(replica.plan())
    with pytest.raises(NothingCommitted):
        take_snapshot(replica.directory, work)
    for _ in range(2):
        replica.commit()
    replica.finish(replica.plan())
    with take_snapshot(replica.directory, work) as taken:
        assert (taken.batch, taken.seq) == (1, 2)
        paths = {file.path for file in taken.files}
        assert not {path for path in paths if path.endswith("/2")}
        assert "spark/state/0/0/3_id3.changelog" not in paths


def test_a_snapshot_links_and_never_copies(replica: FakeReplica, work: Path) -> None:
    replica.commit({"a.sst": b"x" * 1000})
    with take_snapshot(replica.directory, work) as taken:
        for file in taken.files:
            assert (taken.directory / file.path).stat().st_ino == (
                replica.directory / file.path
            ).stat().st_ino


def test_hidden_and_temporary_files_are_left_out(replica: FakeReplica, work: Path) -> None:
    replica.commit()
    for path in ("elements/out/.hidden", "elements/out/x.csv.tmp", "spark/offsets/.0.crc"):
        replica.put(path, b"x")
    with take_snapshot(replica.directory, work) as taken:
        assert not [file.path for file in taken.files if "/." in file.path or file.path.endswith(".tmp")]


def test_state_older_than_a_committed_snapshot_is_left_out(replica: FakeReplica, work: Path) -> None:
    replica.commit({"old.sst": b"1"})
    replica.commit()
    replica.commit({"new.sst": b"2"})
    replica.commit()
    with take_snapshot(replica.directory, work) as taken:
        state = {file.path.rpartition("/")[2] for file in taken.files if "/state/0/0/" in file.path}
    assert state == {"3_id3.changelog", "3_id3.zip", "4_id4.changelog", "new.sst"}


def test_a_snapshot_that_no_commit_names_does_not_displace_older_state(
    replica: FakeReplica, work: Path
) -> None:
    replica.commit({"base.sst": b"1"})
    replica.commit()
    replica.snapshot(2, "interrupted", {"orphan.sst": b"2"})
    replica.commit()
    with take_snapshot(replica.directory, work) as taken:
        names = {Path(file.path).name for file in taken.files}
    assert {"1_id1.zip", "base.sst", "2_id2.changelog", "3_id3.changelog"} <= names


def test_a_snapshot_whose_state_is_not_whole_fails_and_leaves_nothing(
    replica: FakeReplica, work: Path
) -> None:
    replica.commit()
    (replica.directory / "spark/state/0/0/1_id1.changelog").unlink()
    with pytest.raises(SnapshotFailed, match="not whole"):
        take_snapshot(replica.directory, work)
    assert not list(work.glob("*"))


def test_a_snapshot_while_batches_commit_and_files_are_purged_is_whole_or_refused(
    replica: FakeReplica, work: Path
) -> None:
    replica.commit({"0.sst": b"0"})
    stop = threading.Event()
    whole, pause_s = 0, 0.003

    def run() -> None:
        while not stop.wait(pause_s):
            batch = replica.batch + 1
            replica.commit({f"{batch}.sst": b"s"} if batch % 3 == 0 else None)
            state = replica.directory / "spark/state/0/0"
            old = batch - 6 - batch % 3
            for version in range(max(old - 2, 0), old):
                for path in (*state.glob(f"{version}_*"), state / f"SSTs/{version - 1}.sst"):
                    path.unlink(missing_ok=True)
                for log in ("offsets", "commits"):
                    (replica.directory / f"spark/{log}/{version - 1}").unlink(missing_ok=True)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        for _ in range(60):
            try:
                taken = take_snapshot(replica.directory, work)
            except SnapshotFailed:
                pause_s *= 2  # whatever the machine: some are refused, and some are not
                continue
            pause_s /= 2
            with taken:
                whole += 1
                paths = {file.path for file in taken.files}
                assert taken.seq == taken.batch + 1
                version = taken.batch + 1
                assert f"spark/state/0/0/{version}_id{version}.changelog" in paths
                snapshots = [int(Path(path).name.split("_")[0]) for path in paths if path.endswith(".zip")]
                for needed in range(max(snapshots, default=1), version + 1):
                    assert f"spark/state/0/0/{needed}_id{needed}.changelog" in paths
                if snapshots:
                    assert f"spark/state/0/0/SSTs/{max(snapshots) - 1}.sst" in paths
    finally:
        stop.set()
        thread.join()
    assert whole > 10


def test_of_a_file_that_goes_on_growing_only_the_committed_length_is_kept(
    replica: FakeReplica, work: Path, database: StateDatabase, tmp_path: Path
) -> None:
    replica.commit()
    replica.put("elements/out/power.csv", b"a,b\n1,2\nuncommit")
    growing = GrowingFiles()
    growing.note(Seq(1), {"elements/out/power.csv": 8})
    growing.note(Seq(2), {"elements/out/power.csv": 16})  # committed, but Spark has not finished it
    with take_snapshot(replica.directory, work, growing) as taken:
        with open(replica.directory / "elements/out/power.csv", "ab") as sink:
            sink.write(b"ted\n")
        manifest = store(taken, database, group="g", epoch=Epoch(1), version="1", node="n")
    materialize(manifest, lambda sha: database.get_chunk("g", sha), tmp_path / "there")
    assert (tmp_path / "there/elements/out/power.csv").read_bytes() == b"a,b\n1,2\n"


def test_a_file_shorter_than_what_was_committed_is_no_checkpoint(replica: FakeReplica, work: Path) -> None:
    replica.commit()
    replica.put("elements/out/power.csv", b"short")
    growing = GrowingFiles()
    growing.note(Seq(1), {"elements/out/power.csv": 100})
    with pytest.raises(SnapshotFailed, match=r"power\.csv is shorter than what was committed"):
        take_snapshot(replica.directory, work, growing)
    growing.note(Seq(1), {"elements/out/other.csv": 1})
    with pytest.raises(SnapshotFailed, match=r"other\.csv is not there"):
        take_snapshot(replica.directory, work, growing)


@pytest.mark.parametrize(
    ("under", "named"), [("elements/out", "elements/out"), ("", "{work}")], ids=["a file's", "its own"]
)
def test_a_directory_that_cannot_be_made_is_told_in_the_same_words_each_time(
    replica: FakeReplica, work: Path, monkeypatch: pytest.MonkeyPatch, under: str, named: str
) -> None:
    replica.commit()
    replica.put("elements/out/power.csv", b"a")
    make = Path.mkdir

    def full(path: Path, *args: object, **more: object) -> None:
        if path.relative_to(work).parts[1:] == Path(under).parts:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        make(path, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", full)
    told = set()
    for _ in range(2):
        with pytest.raises(SnapshotFailed) as failed:
            take_snapshot(replica.directory, work)
        told.add(failed.value.message)
    assert told == {f"No checkpoint of g1 was taken: {named.format(work=work)}: No space left on device."}


def test_a_snapshot_survives_the_purge_of_the_files_it_holds(replica: FakeReplica, work: Path) -> None:
    replica.commit({"a.sst": b"alive"})
    with take_snapshot(replica.directory, work) as taken:
        (replica.directory / "spark/state/0/0/SSTs/a.sst").unlink()
        assert (taken.directory / "spark/state/0/0/SSTs/a.sst").read_bytes() == b"alive"
