"""Control looks at files and imports them by processes that may hang, crash or take too much."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from pipeline_runtime.checkpoint.files import FileStore
from pipeline_runtime.model.spec import GroupSpec
from tests.waiting import wait_until
from webapp.imports.detect import Head, preview
from webapp.imports.reading import ColumnReading, ColumnReport, Detection, Reading, Report
from webapp.pipelines.models import DataFile
from webapp.placements.models import GroupPlacement
from workers.control.context import ControlContext
from workers.control.imports import import_process, keeper as keeper_module
from workers.control.imports.import_process import Failed, Limits, Progress, Unwanted, run_import
from workers.control.imports.keeper import ImportKeeper

READING = Reading(columns=(ColumnReading(source=0, name="n", type="integer"),))
REPORT = Report(rows=2, dead=0, columns=(ColumnReport(name="n", read=2, missing=0, unreadable=0),))
FACTS = {"columns": [{"name": "n", "type": "integer", "unit": None}], "time": False, "rows": 2}
LOOK = {"detection": Detection(reading=READING).model_dump(mode="json"), "head": {"lines": ["n"]}}
LIMITS = Limits(seconds=600, silent_s=600)

# Stands in for `python -m webapp.imports`: what it does is in the file that it is given.
STAND_IN = """
import json, os, sys, threading, time
given = sys.argv[sys.argv.index("--path") + 1]
first = json.loads(sys.stdin.readline())
def gone():
    sys.stdin.read()
    os._exit(3)
threading.Thread(target=gone, daemon=True).start()
def say(**message):
    print(json.dumps(message), flush=True)
exec(open(given).read())
"""
LOOKS = f"say(result={LOOK!r})\n"
IMPORTS = f"""
if sys.argv[1] == "look":
    {LOOKS}
else:
    assert first["columns"][0]["name"] == "n"
    say(progress=dict(bytes_done=1, bytes_total=2, rows=1))
    open(sys.argv[sys.argv.index("--out") + 1], "w").write("a table")
    say(result=dict(report={REPORT.model_dump(mode="json")!r}, facts={FACTS!r}))
"""
HANGS = "say(progress=dict(bytes_done=1, bytes_total=2, rows=1))\ntime.sleep(3600)\n"


@pytest.fixture(autouse=True)
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN)
    monkeypatch.setattr(import_process, "COMMAND", (sys.executable, str(script)))
    monkeypatch.setattr(import_process, "LOOK_EACH_S", 0.05)


@pytest.fixture
def keeper(context: ControlContext, tmp_path: Path) -> ImportKeeper:
    """A keeper whose threads do not run: tests take each step."""
    made = ImportKeeper(context, tmp_path / "store")
    (tmp_path / "store" / "imports").mkdir(parents=True)
    return made


@pytest.fixture
def store(keeper: ImportKeeper, tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "store" / "files")


def a_file(store: FileStore, does: str, state: str = "looking", **values: Any) -> DataFile:
    sha256 = store.put([does.encode()])
    if state == "importing":
        values = {
            "reading": READING.model_dump(mode="json"),
            "detection": LOOK["detection"],
            **values,
        }
    return DataFile.objects.create(name="n.csv", sha256=sha256, size=4, state=state, **values)


def now(file: DataFile) -> DataFile:
    return DataFile.objects.get(pk=file.pk)


def run(tmp_path: Path, does: str, limits: Limits = LIMITS, wanted: Any = lambda _: True) -> Any:
    path = tmp_path / "given"
    path.write_text(does)
    return run_import(["look", "--path", str(path)], {}, tmp_path, limits, wanted)


# --- the process --------------------------------------------------------------------------------
def test_what_it_says_is_the_result_and_what_it_cannot_do_is_said(tmp_path: Path) -> None:
    assert run(tmp_path, "say(result=dict(a=1))") == {"a": 1}
    error = {"what": "It is empty.", "where": "line 1", "next": "Upload another."}
    assert run(tmp_path, f"say(error={error!r})") == Failed(error)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("does", "ended"),
    [
        ("os._exit(7)", "exit code 7"),
        ("os.abort()", "signal SIGABRT"),
        ("print('no JSON', flush=True)", "exit code"),
        ("print('[1]', flush=True)", "exit code"),
        ("say(other=1)", "exit code"),
    ],
)
def test_a_process_without_a_result_is_a_failure_in_words(tmp_path: Path, does: str, ended: str) -> None:
    found = run(tmp_path, does)
    assert isinstance(found, Failed)
    assert f"ended without a result ({ended}" in found.trouble["what"]
    assert "The uploaded file is kept" in found.trouble["next"]


@pytest.mark.parametrize(
    ("does", "limits", "words"),
    [
        (HANGS, Limits(seconds=0.5, silent_s=600), "It took more than"),
        (HANGS, Limits(seconds=600, silent_s=0.3), "no progress"),
        ("x = b'x' * (200 << 20)\n" + HANGS, Limits(600, 600, memory_bytes=100 << 20), "memory"),
        (HANGS, Limits(600, 600, disk_reserve_bytes=1 << 60), "of the disk were left"),
    ],
)
def test_what_takes_too_much_is_stopped_and_says_why(
    tmp_path: Path, does: str, limits: Limits, words: str
) -> None:
    before = children()
    found = run(tmp_path, does, limits)
    assert words in found.trouble["what"]
    assert children() == before


def test_a_process_that_nobody_waits_for_is_killed_and_no_other(tmp_path: Path) -> None:
    before = children()
    seen: list[Progress | None] = []

    def wanted(progress: Progress | None) -> bool:
        seen.append(progress)
        return progress is None

    with pytest.raises(Unwanted):
        run(tmp_path, "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_DFL)\n" + HANGS, wanted=wanted)
    assert seen[-1] == Progress(1, 2, 1)
    assert children() == before


def test_it_gets_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOGLINE_CLUSTER_KEY", "secret")
    monkeypatch.setenv("DATABASE_URL", "postgres://user:secret@host/name")
    found = run(tmp_path, "say(result=dict(os.environ))")
    assert not [name for name, value in found.items() if "secret" in value or name.startswith("FOGLINE")]


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


# --- the steps ----------------------------------------------------------------------------------
def test_a_file_is_looked_at_and_imported(keeper: ImportKeeper, store: FileStore) -> None:
    file = a_file(store, IMPORTS)
    assert not keeper.step("importing")
    assert keeper.step("looking")
    assert (now(file).state, now(file).sample) == ("importing", {"lines": ["n"]})
    assert keeper.step("importing")
    file = now(file)
    assert (file.state, file.facts, file.table_size, file.rows_done) == ("imported", FACTS, 7, 2)
    assert store.path(file.table_sha256).read_text() == "a table"
    assert not keeper.step("looking")
    assert not keeper.step("importing")
    assert list((store.directory.parent / "imports").iterdir()) == []


@pytest.mark.parametrize("state", ["looking", "importing"])
@pytest.mark.parametrize("does", ["say(result=dict(nothing=1))", "os._exit(1)", "say(progress=dict(n=1))"])
def test_a_step_that_fails_says_so_and_is_not_repeated(
    keeper: ImportKeeper, store: FileStore, state: str, does: str
) -> None:
    file = a_file(store, does, state)
    assert keeper.step(state)
    assert now(file).state == "failed"
    assert now(file).error["next"]
    assert not keeper.step(state)


def test_a_file_whose_bytes_are_gone_says_so(keeper: ImportKeeper, store: FileStore) -> None:
    file = a_file(store, IMPORTS)
    store.path(file.sha256).unlink()
    assert keeper.step("looking")
    assert "not in the central store" in now(file).error["what"]


def test_what_is_cancelled_meanwhile_ends_its_process(keeper: ImportKeeper, store: FileStore) -> None:
    file = a_file(store, HANGS, "importing")
    stepping = threading.Thread(target=keeper.step, args=("importing",))
    before = children()
    stepping.start()
    wait_until(lambda: now(file).rows_done == 1, "its progress to be noted")
    DataFile.objects.filter(pk=file.pk).update(state="cancelled", order=2)
    stepping.join(60)
    assert not stepping.is_alive()
    assert children() == before
    assert now(file).state == "cancelled"


def test_imports_wait_for_each_other_and_one_that_is_cancelled_lets_the_next_begin(
    keeper: ImportKeeper, store: FileStore
) -> None:
    first, second = a_file(store, HANGS, "importing"), a_file(store, IMPORTS, "importing")
    looked = a_file(store, LOOKS)
    stepping = threading.Thread(target=keeper.step, args=("importing",))
    stepping.start()
    wait_until(lambda: now(first).rows_done == 1, "its progress to be noted")
    # A look does not wait for a long import, but another import does.
    assert keeper.step("looking")
    assert now(looked).state == "importing"
    DataFile.objects.filter(pk=looked.pk).delete()
    assert (now(second).state, now(second).rows_done) == ("importing", 0)
    DataFile.objects.filter(pk=first.pk).update(state="cancelled", order=2)
    stepping.join(60)
    assert keeper.step("importing")
    assert [now(file).state for file in (first, second)] == ["cancelled", "imported"]


def test_the_process_gives_way_to_everything_else(tmp_path: Path) -> None:
    does = "import time\nwhile os.nice(0) < 10: time.sleep(0.01)\nsay(result=dict(nice=os.nice(0)))"
    assert run(tmp_path, does) == {"nice": import_process.NICE}


def test_an_import_that_was_ordered_again_meanwhile_is_begun_again(
    keeper: ImportKeeper, store: FileStore
) -> None:
    file = a_file(store, HANGS, "importing")
    stepping = threading.Thread(target=keeper.step, args=("importing",))
    stepping.start()
    wait_until(lambda: now(file).rows_done == 1, "its progress to be noted")
    other = store.put([IMPORTS.encode()])
    DataFile.objects.filter(pk=file.pk).update(order=2, rows_done=0, sha256=other)
    stepping.join(60)
    assert keeper.step("importing")
    assert now(file).state == "imported"


def test_what_control_left_begun_goes_on_at_its_next_start(
    context: ControlContext, keeper: ImportKeeper, store: FileStore, tmp_path: Path
) -> None:
    left = store.directory.parent / "imports" / "half"
    left.mkdir()
    file = a_file(store, HANGS, "importing")
    first = threading.Thread(target=keeper.step, args=("importing",))
    first.start()
    wait_until(lambda: now(file).rows_done == 1, "its progress to be noted")
    context.closing.set()
    context.files.notify()
    first.join(60)
    assert now(file).state == "importing"
    other = store.put([IMPORTS.encode()])
    DataFile.objects.filter(pk=file.pk).update(sha256=other)
    context.closing.clear()
    second = ImportKeeper(context, tmp_path / "store")
    second.start()
    wait_until(lambda: now(file).state == "imported", "the file to be imported")
    assert not left.exists()
    context.closing.set()
    context.files.notify()
    second.join(10)


def test_a_process_whose_control_was_killed_ends_by_itself(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_text("open(given + '.pid', 'w').write(str(os.getpid()))\n" + HANGS)
    code = f"""
from pathlib import Path
from workers.control.imports import import_process as p
p.COMMAND = {import_process.COMMAND!r}
limits = p.Limits(600, 600)
p.run_import(["look", "--path", {str(given)!r}], {{}}, Path({str(tmp_path)!r}), limits, lambda _: True)
"""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "webapp.config.settings"}
    control = psutil.Popen([sys.executable, "-c", code], env=environment)
    pid_file = tmp_path / "given.pid"
    wait_until(lambda: pid_file.exists() and bool(pid_file.read_text()), "the process to begin")
    control.kill()
    control.wait()
    wait_until(lambda: not psutil.pid_exists(int(pid_file.read_text())), "the process to end")


# --- what nothing names -------------------------------------------------------------------------
def test_only_bytes_that_nothing_names_are_deleted(
    keeper: ImportKeeper,
    store: FileStore,
    deployed: Callable[..., GroupPlacement],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original, table, read, left, unused = (store.put([name]) for name in (b"o", b"t", b"r", b"l", b"u"))
    DataFile.objects.create(name="n", sha256=original, table_sha256=table, size=1, state="imported")
    placement = deployed("power", "edge-a")
    spec = GroupSpec.model_validate(placement.spec)
    placement.spec = spec.model_copy(update={"files": {"upload:a": read}}).model_dump(mode="json")
    placement.save()
    halted = spec.model_copy(update={"files": {"upload:b": left}}).model_dump(mode="json")
    placement.deployment.left_over = {"power": {"spec": halted, "starts": {}, "node": "edge-a"}}
    placement.deployment.save()
    assert keeper.clean() == []  # it was only just put in
    monkeypatch.setattr(keeper_module, "UNUSED_S", -1.0)
    assert keeper.clean() == [unused]
    assert unused not in store
    assert all(sha in store for sha in (original, table, read, left))
    placement.deployment.status = "undeployed"
    placement.deployment.save()
    assert set(keeper.clean()) == {read, left}


# --- the real process ---------------------------------------------------------------------------
def test_the_real_process_looks_at_a_file_and_imports_it(
    keeper: ImportKeeper, store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_process, "COMMAND", (sys.executable, "-m", "webapp.imports"))
    text = "time;name;power\n2024-05-01T00:00:00Z;a;1,5\n2024-05-01T00:00:01Z;b;2,5\n"
    sha256 = store.put([text.encode()])
    file = DataFile.objects.create(name="--out", sha256=sha256, size=len(text))
    assert keeper.step("looking")
    assert now(file).state == "importing", now(file).error
    assert keeper.step("importing")
    file = now(file)
    assert file.state == "imported", file.error
    assert (file.facts["rows"], file.facts["time"]) == (2, True)
    table = pq.ParquetFile(store.path(file.table_sha256)).read()
    assert table.column("power").to_pylist() == [1.5, 2.5]
    head = Head.model_validate(file.sample)
    shown = preview(head, Reading.model_validate(file.reading))
    assert [row.values[1:] for row in shown.rows] == [("a", 1.5), ("b", 2.5)]


def test_the_real_process_says_what_is_no_table(
    keeper: ImportKeeper, store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_process, "COMMAND", (sys.executable, "-m", "webapp.imports"))
    sha256 = store.put([b"\x89PNG\r\n\x1a\n\0\0\0\0" * 10])
    file = DataFile.objects.create(name="n.png", sha256=sha256, size=120)
    assert keeper.step("looking")
    assert now(file).state == "failed"
    assert now(file).error["what"]
    assert now(file).error["next"]
