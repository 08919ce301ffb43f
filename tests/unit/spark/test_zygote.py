"""The stand-in for a fork behaves like the Python process that Spark expects."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pytest

from pipeline_runtime.spark.session import WORKER_PYTHON, use_worker_python
from pipeline_runtime.spark.zygote import ENVIRONMENT, Zygote
from tests.waiting import wait_until

SUBJECT = """
import json, os, sys
print(json.dumps({
    "arguments": sys.argv[1:], "name": __name__, "pid": os.getpid(),
    "directory": os.getcwd(), "mine": os.environ.get("MINE"), "hash": hash("a"),
    "ready": "pyarrow" in sys.modules, "path": os.environ["PYTHONPATH"],
}), flush=True)
line = sys.stdin.readline()
print(line, end="", file=sys.stderr)
sys.exit(int(line))
"""


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    modules = tmp_path_factory.mktemp("modules")
    (modules / "subject.py").write_text(SUBJECT)
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as sockets:
        for name in (
            "PYSPARK_PYTHON",
            "FOGLINE_WORKER_PYTHON",
            "FOGLINE_WORKER_PATH",
            "FOGLINE_WORKER_START",
        ):
            patch.setenv(name, "")  # to have them as they were afterwards
        patch.setenv("PYTHONPATH", os.pathsep.join([str(modules), os.environ.get("PYTHONPATH", "")]))
        use_worker_python()
        zygote = Zygote(Path(sockets))
        patch.setenv(ENVIRONMENT, str(zygote.path))
        yield zygote
        zygote.close()


def start(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(WORKER_PYTHON), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MINE": "its own\udcff"},
    )


def said(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


def test_a_fork_is_given_all_that_a_process_is_given(zygote: Zygote, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print(hash('a'))"]
    expected = int(subprocess.check_output(command, env={**os.environ, "PYTHONHASHSEED": "0"}))
    processes = [start(tmp_path, "-m", "subject", "first", str(number)) for number in range(2)]
    for number, process in enumerate(processes):
        found = said(process)
        assert found["arguments"] == ["first", str(number)]
        assert (found["name"], found["ready"]) == ("__main__", True)
        assert found["directory"] == str(tmp_path)
        assert (found["mine"], found["path"]) == ("its own\udcff", os.environ["FOGLINE_WORKER_PATH"])
        assert found["pid"] != process.pid
        assert found["hash"] == expected
        assert process.communicate(f"{number + 3}\n") == ("", f"{number + 3}\n")
        assert process.returncode == number + 3


def test_a_signal_reaches_the_fork_and_its_end_is_passed_on(zygote: Zygote, tmp_path: Path) -> None:
    process = start(tmp_path, "-m", "subject")
    said(process)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == -signal.SIGTERM


def test_the_terminals_interrupt_is_left_to_the_node(zygote: Zygote, tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # inherited, as from Java
    try:
        process = start(tmp_path, "-m", "subject")
    finally:
        signal.signal(signal.SIGINT, before)
    fork = psutil.Process(said(process)["pid"])
    for interrupted in (process, fork):
        interrupted.send_signal(signal.SIGINT)
    process.communicate("5\n")
    assert process.returncode == 5


def test_who_kills_what_stands_for_the_fork_kills_the_fork(zygote: Zygote, tmp_path: Path) -> None:
    process = start(tmp_path, "-m", "subject")
    fork = psutil.Process(said(process)["pid"])
    process.kill()
    process.wait()
    wait_until(lambda: not fork.is_running(), "the fork to end")


def test_a_fork_does_not_outlive_its_zygote(tmp_path: Path, zygote: Zygote) -> None:
    with TemporaryDirectory() as sockets, pytest.MonkeyPatch.context() as patch:
        other = Zygote(Path(sockets))
        patch.setenv(ENVIRONMENT, str(other.path))
        process = start(tmp_path, "-m", "subject")
        fork = psutil.Process(said(process)["pid"])
        other.close()
        wait_until(lambda: not fork.is_running(), "the fork to end")
        process.communicate()
        assert process.returncode == 1


def test_where_no_zygote_is_it_is_the_process_itself(tmp_path: Path, zygote: Zygote) -> None:
    with TemporaryDirectory() as sockets, pytest.MonkeyPatch.context() as patch:
        gone = Zygote(Path(sockets))
        patch.setenv(ENVIRONMENT, str(gone.path))
        gone.close()
        process = start(tmp_path, "-m", "subject")
        assert said(process)["pid"] == process.pid
        process.communicate("0\n")
    assert start(tmp_path, "-c", "raise SystemExit(7)").wait() == 7
