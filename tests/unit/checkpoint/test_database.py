from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import pytest
from rocksdict import Options, Rdict

from pipeline_runtime.checkpoint import chunks
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.errors import (
    CheckpointDamaged,
    CheckpointMissing,
    ChunksMissing,
    StateDatabaseUnavailable,
)
from pipeline_runtime.checkpoint.manifest import FileEntry, Manifest
from pipeline_runtime.checkpoint.retention import Retention
from pipeline_runtime.checkpoint.snapshot import take_snapshot
from pipeline_runtime.checkpoint.store import materialize, store
from pipeline_runtime.model.ids import Epoch, Seq
from tests.unit.checkpoint.replicas import GROUP, Checkpoint, FakeReplica
from tests.waiting import PATIENCE_S


def manifest(*raw: bytes, seq: int = 1, epoch: int = 1, group: str = GROUP) -> Manifest:
    files = tuple(
        FileEntry(path=f"f{index}", size=len(piece), chunks=(chunks.address(piece),))
        for index, piece in enumerate(raw)
    )
    return Manifest(
        group=group, seq=Seq(seq), epoch=Epoch(epoch), version="1", node="n", created_at_ms=0, ends={},
        bytes_total=sum(map(len, raw)), bytes_new=0, files=files,
    )  # fmt: skip


def test_a_manifest_is_refused_while_a_chunk_is_missing_and_nothing_changes(database: StateDatabase) -> None:
    database.put_chunk(GROUP, b"one")
    with pytest.raises(ChunksMissing) as refused:
        database.put_manifest(manifest(b"one", b"two"))
    assert refused.value.shas == (chunks.address(b"two"),)
    assert database.manifests(GROUP) == ()
    with pytest.raises(CheckpointMissing):
        database.manifest(GROUP, Seq(1))


def test_what_was_stored_is_there_after_a_restart(tmp_path: Path) -> None:
    with StateDatabase(tmp_path / "db") as database:
        database.put_chunk(GROUP, b"one")
        database.put_manifest(manifest(b"one"))
    with StateDatabase(tmp_path / "db") as database:
        assert database.groups() == (GROUP,)
        assert database.manifest(GROUP, Seq(1)).hash
        assert database.get_chunk(GROUP, chunks.address(b"one")) == b"one"


def test_a_process_killed_in_the_middle_of_a_put_leaves_no_half_checkpoint(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path\n"
        "from pipeline_runtime.checkpoint.database import StateDatabase\n"
        "database = StateDatabase(Path(sys.argv[1]))\n"
        "database.put_chunk('g', b'one')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "db")], check=False)
    with StateDatabase(tmp_path / "db") as database:
        assert database.manifests("g") == ()
        database.put_chunk("g", b"one")
        database.put_manifest(manifest(b"one", group="g"))


def test_a_database_that_another_process_owns_is_named_in_the_error(tmp_path: Path) -> None:
    with StateDatabase(tmp_path / "db") as database:
        program = (
            "import sys; from pathlib import Path\n"
            "from pipeline_runtime.checkpoint.database import StateDatabase\n"
            "StateDatabase(Path(sys.argv[1]))\n"
        )
        other = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "db")], capture_output=True, text=True, check=False
        )
        assert other.returncode != 0
        assert f"{tmp_path}/db is in use by another process" in other.stderr
        database.put_chunk(GROUP, b"still mine")


def test_a_damaged_database_says_what_is_safe_and_what_to_do(tmp_path: Path) -> None:
    StateDatabase(tmp_path / "db").close()
    (tmp_path / "db" / "CURRENT").write_text("garbage")
    with pytest.raises(StateDatabaseUnavailable) as error:
        StateDatabase(tmp_path / "db")
    assert str(tmp_path / "db") in error.value.message
    assert error.value.safe
    assert "put aside" in error.value.next


def test_a_full_disk_is_reported_as_such(tmp_path: Path) -> None:
    # A limit on file size is what a full disk looks like that needs no file system of its own.
    program = (
        "import os, resource, signal, sys; from pathlib import Path\n"
        "from pipeline_runtime.checkpoint.database import StateDatabase\n"
        "from pipeline_runtime.checkpoint.errors import StateDatabaseUnavailable\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "database = StateDatabase(Path(sys.argv[1]))\n"
        "database.put_chunk('g', b'before')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "try:\n"
        "    for _ in range(100): database.put_chunk('g', os.urandom(1 << 19))\n"
        "except StateDatabaseUnavailable as error: print(error.message); os._exit(3)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "db")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "is full" in done.stdout) == (3, True), done
    with StateDatabase(tmp_path / "db") as database:
        assert database.missing("g", [chunks.address(b"before")]) == ()


def test_a_closed_database_refuses_and_its_path_is_free(tmp_path: Path) -> None:
    database = StateDatabase(tmp_path / "db")
    database.put_chunk(GROUP, b"x")
    database.close()
    database.close()
    with pytest.raises(StateDatabaseUnavailable):
        database.put_chunk(GROUP, b"y")
    StateDatabase(tmp_path / "db").close()


def test_a_closed_database_never_says_that_there_is_nothing(tmp_path: Path) -> None:
    database = StateDatabase(tmp_path / "db")
    database.put_manifest(manifest())
    database.close()
    questions: list[Callable[[], object]] = [
        database.groups,
        lambda: database.manifests(GROUP),
        lambda: database.manifest(GROUP, Seq(1)),
        lambda: database.get_chunk(GROUP, chunks.address(b"one")),
        lambda: database.void(GROUP, Seq(0), Epoch(1)),
        lambda: database.prune(GROUP, ()),
        lambda: database.retain(GROUP, Retention(newest=1), now_ms=0),
    ]
    for question in questions:
        with pytest.raises(StateDatabaseUnavailable) as refused:
            question()
        assert refused.value.reason == "closed"
    assert database.failure is None, "to be closed is no fault"
    database.reopen()
    assert [found.seq for found in database.manifests(GROUP)] == [1]
    database.close()


def test_checkpoints_that_could_not_be_listed_once_are_listed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StateDatabase(tmp_path / "db") as database:
        database.put_manifest(manifest())

    def fails(*_: object) -> NoReturn:
        raise Exception("IO error: Too many open files")

    with StateDatabase(tmp_path / "db") as database:
        with monkeypatch.context() as patched:
            patched.setattr("pipeline_runtime.checkpoint.database.entries", fails)
            with pytest.raises(StateDatabaseUnavailable, match="Too many open files"):
                database.manifests(GROUP)
        assert [found.seq for found in database.manifests(GROUP)] == [1]


def test_groups_share_nothing_and_a_dropped_group_is_gone(database: StateDatabase) -> None:
    sha = database.put_chunk("a", b"x")
    assert database.missing("b", [sha]) == (sha,)
    database.drop_group("a")
    assert database.missing("a", [sha]) == (sha,)
    database.put_chunk("a", b"x")
    assert database.missing("a", [sha]) == ()


def test_a_name_that_is_no_group_or_hash_is_refused(database: StateDatabase) -> None:
    for name in ("", "../x", "a/b", "x" * 300, ".hidden"):
        with pytest.raises(ValueError):
            database.put_chunk(name, b"x")
    with pytest.raises(ValueError):
        database.missing(GROUP, ["zz"])


def test_an_older_epoch_never_replaces_a_newer_checkpoint_of_the_same_seq(database: StateDatabase) -> None:
    database.put_chunk(GROUP, b"new")
    database.put_chunk(GROUP, b"old")
    database.put_manifest(manifest(b"new", epoch=2))
    database.put_manifest(manifest(b"old", epoch=1))
    assert database.manifest(GROUP, Seq(1)).epoch == 2


def test_a_damaged_chunk_is_reported_then_counts_as_missing(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with StateDatabase(path) as database:
        sha = database.put_chunk(GROUP, b"precious")
    damage(path, sha)
    with StateDatabase(path) as database:
        with pytest.raises(CheckpointDamaged):
            database.get_chunk(GROUP, sha)
        assert database.missing(GROUP, [sha]) == (sha,)
        database.put_chunk(GROUP, b"precious")
        assert database.get_chunk(GROUP, sha) == b"precious"


def test_a_chunk_that_does_not_match_its_address_is_refused(database: StateDatabase) -> None:
    with pytest.raises(CheckpointDamaged):
        database.put_encoded(GROUP, chunks.address(b"a"), chunks.encode(b"b"))


def test_pruning_drops_what_only_dropped_checkpoints_used(
    replica: FakeReplica, checkpoint: Checkpoint, database: StateDatabase, tmp_path: Path
) -> None:
    replica.commit({"shared.sst": b"s" * 1000})
    replica.commit()
    first = checkpoint(database)
    replica.commit()
    second = checkpoint(database)
    pruned = database.prune(GROUP, {second.seq})
    assert pruned.manifests == (first.seq,)
    assert pruned.chunks == len(first.chunks - second.chunks) > 0
    assert database.manifests(GROUP) == (second,)
    assert database.missing(GROUP, first.chunks - second.chunks)
    materialize(second, lambda sha: database.get_chunk(GROUP, sha), tmp_path / "there")


def test_a_checkpoint_stored_after_the_decision_what_to_keep_stays(database: StateDatabase) -> None:
    for seq in (1, 2, 3):
        database.put_manifest(manifest(seq=seq))
    assert database.prune(GROUP, {Seq(2)}).manifests == (1,)
    assert [found.seq for found in database.manifests(GROUP)] == [3, 2]
    assert database.prune(GROUP, ()).manifests == (2, 3)


def test_chunks_of_an_upload_under_way_are_spared(tmp_path: Path) -> None:
    with StateDatabase(tmp_path / "db", grace_s=60) as database:
        sha = database.put_chunk(GROUP, b"one")
        assert database.prune(GROUP, ()).chunks == 0
        database.put_manifest(manifest(b"one"))
        assert database.get_chunk(GROUP, sha) == b"one"
    with StateDatabase(tmp_path / "db", grace_s=0) as database:
        with database.holding(GROUP):
            assert database.prune(GROUP, ()).chunks == 0
        assert database.prune(GROUP, ()).chunks == 1


def test_a_checkpoint_that_is_being_sent_keeps_its_chunks_alone(tmp_path: Path) -> None:
    with StateDatabase(tmp_path / "db", grace_s=0) as database:
        for raw in (b"sent", b"other"):
            database.put_chunk(GROUP, raw)
        database.put_manifest(manifest(b"sent", seq=1))
        database.put_manifest(manifest(b"other", seq=2))
        with database.pinning(database.manifest(GROUP, Seq(1))):
            assert database.prune(GROUP, ()).chunks == 1
            assert database.get_chunk(GROUP, chunks.address(b"sent")) == b"sent"
        assert database.prune(GROUP, ()).chunks == 1


def test_a_checkpoint_that_is_stored_beside_a_prune_is_whole(
    replica: FakeReplica, work: Path, database: StateDatabase, tmp_path: Path
) -> None:
    replica.commit({"shared.sst": b"s" * 5000})
    stop = threading.Event()
    failures: list[BaseException] = []

    def prune() -> None:
        try:
            while not stop.wait(0.001):
                database.retain(GROUP, Retention(newest=1, hours=0), now_ms=1 << 50)
        except BaseException as error:
            failures.append(error)

    pruner = threading.Thread(target=prune)
    pruner.start()
    try:
        for round_ in range(40):
            replica.commit()
            with take_snapshot(replica.directory, work) as taken:
                stored = store(taken, database, group=GROUP, epoch=Epoch(1), version="1", node="n")
            materialize(stored, lambda sha: database.get_chunk(GROUP, sha), tmp_path / f"there{round_}")
    finally:
        stop.set()
        pruner.join()
    assert not failures


def test_threads_may_share_a_database(database: StateDatabase) -> None:
    def work(index: int) -> None:
        for number in range(50):
            raw = b"%d-%d" % (index, number) * 100
            assert database.get_chunk(f"g{index % 2}", database.put_chunk(f"g{index % 2}", raw)) == raw

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index in range(4):
        wanted = [chunks.address(b"%d-%d" % (index, number) * 100) for number in range(50)]
        assert database.missing(f"g{index % 2}", wanted) == ()


@pytest.mark.parametrize("other", ["drop_group", "reopen"])
def test_a_group_may_be_pruned_while_it_is_dropped_and_the_database_opened_anew(
    database: StateDatabase, other: str
) -> None:
    disturb = {"drop_group": lambda: database.drop_group(GROUP), "reopen": database.reopen}[other]
    pruning = threading.Event()
    disturbed = threading.Event()
    failures: list[BaseException] = []

    def prune() -> None:
        try:
            while not disturbed.is_set():
                database.put_chunk(GROUP, b"one")
                with suppress(ChunksMissing):  # dropped in between
                    database.put_manifest(manifest(b"one"))
                database.retain(GROUP, Retention(newest=1, hours=0), now_ms=1 << 50)
                pruning.set()
        except BaseException as error:
            failures.append(error)

    def disturb_often() -> None:
        try:
            for _ in range(60):
                disturb()
        except BaseException as error:
            failures.append(error)
        finally:
            disturbed.set()

    # Daemons, so that a deadlock fails this test and does not keep all others from running.
    threads = [threading.Thread(target=work, daemon=True) for work in (prune, disturb_often)]
    threads[0].start()
    assert pruning.wait(PATIENCE_S)
    threads[1].start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not [thread for thread in threads if thread.is_alive()], "each waits for the other's lock"
    assert not failures
    assert database.failure is None
    database.put_chunk(GROUP, b"one")


def damage(path: Path, sha: str) -> None:
    """Overwrite a chunk behind the database's back."""
    raw = Rdict(str(path), Options(raw_mode=True))
    family = raw.get_column_family(f"g.{GROUP}")
    encoded = bytearray(family[b"c" + bytes.fromhex(sha)])
    encoded[-1] ^= 1
    family[b"c" + bytes.fromhex(sha)] = bytes(encoded)
    family.close()
    raw.close()


def test_a_checkpoint_that_lost_a_chunk_does_not_push_out_the_newest_whole_one(tmp_path: Path) -> None:
    with StateDatabase(tmp_path / "db", grace_s=0) as database:
        database.put_manifest(manifest(seq=1))
        shas = [database.put_chunk(GROUP, text) for text in (b"two", b"three")]
        database.put_manifest(manifest(b"two", seq=2))
        database.put_manifest(manifest(b"three", seq=3))
    for sha in shas:
        damage(tmp_path / "db", sha)
    with StateDatabase(tmp_path / "db", grace_s=0) as database:
        for sha in shas:
            with pytest.raises(CheckpointDamaged):
                database.get_chunk(GROUP, sha)
        database.retain(GROUP, Retention(newest=1, hours=0), now_ms=1 << 50)
        assert 1 in {found.seq for found in database.manifests(GROUP)}


def test_what_a_rewind_has_undone_goes_and_what_came_after_it_stays(database: StateDatabase) -> None:
    for seq, epoch in ((300, 1), (400, 1), (500, 1), (310, 2), (450, 2)):
        database.put_manifest(manifest(seq=seq, epoch=epoch))
    assert database.void(GROUP, Seq(300), Epoch(1)) == (400, 500)
    assert [found.seq for found in database.manifests(GROUP)] == [450, 310, 300]
    assert database.void(GROUP, Seq(300), Epoch(1)) == ()
    assert database.void("d1.nothing", Seq(0), Epoch(9)) == ()
