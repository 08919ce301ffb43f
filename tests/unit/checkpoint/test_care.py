"""A database whose disk fills, or that is damaged, comes back; what was damaged is set aside."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pipeline_runtime.checkpoint.care import Caretaker, set_aside
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.errors import StateDatabaseUnavailable
from tests.unit.checkpoint.replicas import GROUP
from tests.unit.checkpoint.test_database import manifest
from tests.waiting import wait_until


@contextmanager
def cared_for(
    path: Path, reserve_bytes: int = 0, tend: Callable[[], None] = lambda: None
) -> Iterator[Caretaker]:
    caretaker = Caretaker(path, tend, lambda: None, every_s=3600, reserve_bytes=reserve_bytes)
    caretaker.start()
    try:
        yield caretaker
    finally:
        caretaker.close()


def damage_a_table(path: Path) -> None:
    """Flip bytes of every table's data blocks, whose checksum no longer agrees then."""
    tables = list(path.glob("*.sst"))
    assert tables
    for table in tables:
        content = bytearray(table.read_bytes())
        for position in range(0, min(200, len(content))):
            content[position] ^= 0xFF
        table.write_bytes(content)


def test_a_database_that_cannot_be_opened_is_set_aside_and_a_new_one_begun(tmp_path: Path) -> None:
    path = tmp_path / "db"
    StateDatabase(path).close()
    (path / "CURRENT").write_text("garbage")
    with cared_for(path) as caretaker:
        caretaker.database.put_chunk(GROUP, b"again")
        (alert,) = caretaker.alerts()
    (aside,) = tmp_path.glob("db.damaged-*")
    assert (aside / "CURRENT").read_text() == "garbage", "kept for whoever wants to look at it"
    assert aside.name in alert
    assert "Running elements are not affected" in alert


def test_a_file_where_the_database_must_be_is_set_aside_too(tmp_path: Path) -> None:
    (tmp_path / "db").write_text("a file")
    with cared_for(tmp_path / "db") as caretaker:
        caretaker.database.put_chunk(GROUP, b"again")
    assert len(list(tmp_path.glob("db.damaged-*"))) == 1


def test_damage_that_shows_while_it_runs_is_mended_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with StateDatabase(path) as database:
        database.put_chunk(GROUP, b"1")
        database.put_manifest(manifest(b"1"))
    StateDatabase(path).close()  # its log becomes tables
    damage_a_table(path)
    with cared_for(path) as caretaker:
        with suppress(StateDatabaseUnavailable):
            assert caretaker.database.manifests(GROUP) == "damaged: it raises"
        wait_until(lambda: list(tmp_path.glob("db.damaged-*")) and caretaker.database.failure is None)
        assert caretaker.database.manifests(GROUP) == ()
        caretaker.database.put_chunk(GROUP, b"1")
        caretaker.database.put_manifest(manifest(b"1"))
        assert len(caretaker.alerts()) == 1


def test_a_database_that_another_process_uses_is_left_alone(tmp_path: Path) -> None:
    with StateDatabase(tmp_path / "db") as database:
        program = (
            "import sys; from pathlib import Path\n"
            "from pipeline_runtime.checkpoint.care import Caretaker\n"
            "Caretaker(Path(sys.argv[1]), print, print, every_s=9)\n"
        )
        other = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "db")], capture_output=True, text=True, check=False
        )
        assert "in use by another process" in other.stderr
        database.put_chunk(GROUP, b"still mine")
    assert [path.name for path in tmp_path.iterdir()] == ["db"]


FULL_DISK = """
import os, resource, signal, sys, threading
from pathlib import Path
from pipeline_runtime.checkpoint.care import Caretaker
from pipeline_runtime.checkpoint.errors import StateDatabaseUnavailable

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
caretaker = Caretaker(Path(sys.argv[1]), lambda: None, lambda: None, every_s=3600)
database = caretaker.database
kept = database.put_chunk("g", b"before")
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
try:
    for _ in range(100):
        database.put_chunk("g", os.urandom(1 << 19))
except StateDatabaseUnavailable as error:
    assert error.reason == "full", error
    assert "full" in caretaker.alerts()[0]
else:
    raise AssertionError("it was not full")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert caretaker.mend()
assert caretaker.alerts() == ()
assert database.get_chunk("g", kept) == b"before"
database.put_chunk("g", b"after")
caretaker.close()
print("went on")
os._exit(0)
"""


def test_after_a_full_disk_it_goes_on_with_what_it_had(tmp_path: Path) -> None:
    """A limit on file size is what a full disk looks like that needs no file system of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "db")], capture_output=True, text=True, check=False
    )
    assert ran.stdout.strip() == "went on", ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["db"], "a full disk is no damage"


def test_checkpoints_stop_before_the_disk_is_full(tmp_path: Path) -> None:
    with cared_for(tmp_path / "db", reserve_bytes=1 << 60) as caretaker:
        with pytest.raises(StateDatabaseUnavailable, match="MB left") as caught:
            caretaker.database.put_chunk(GROUP, b"more")
        assert caught.value.reason == "low"
        assert caretaker.database.manifests(GROUP) == (), "reading goes on"
        assert caretaker.database.failure is None


def test_it_is_opened_again_although_nobody_can_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is told writes to a database of its own, typically on the same full disk."""
    monkeypatch.setattr("pipeline_runtime.checkpoint.care._PAUSE_S", 0.01)
    tries = []

    def tell() -> None:
        tries.append(caretaker.database.failure)
        raise OSError("database or disk is full")

    caretaker = Caretaker(tmp_path / "db", lambda: None, tell, every_s=3600)
    with monkeypatch.context() as disk:
        disk.setattr("pipeline_runtime.checkpoint.database.Rdict", _full)
        with pytest.raises(StateDatabaseUnavailable):
            caretaker.database.reopen()
        caretaker.start()
        wait_until(lambda: len(tries) > 2)
        with pytest.raises(StateDatabaseUnavailable):
            caretaker.database.manifests(GROUP)
    wait_until(lambda: caretaker.database.failure is None)
    caretaker.database.put_chunk(GROUP, b"goes on")
    caretaker.close()


class _full:
    """What Rdict does on a full disk."""

    def __init__(self, *_: object, **__: object) -> None:
        raise Exception("IO error: No space left on device")

    @staticmethod
    def list_cf(_: str) -> list[str]:
        return []


def test_two_databases_set_aside_in_one_second_get_two_names(tmp_path: Path) -> None:
    names = set()
    for _ in range(3):
        (tmp_path / "db").mkdir()
        names.add(set_aside(tmp_path / "db"))
    assert len(names) == 3
