"""Laws of the supervisor, with real processes: the real guard and supervision over a table of tiny ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).resolve().parents[3]

# Writes its process ids, is ready, and sleeps; "stubborn" ignores SIGTERM; a "family" has a child of its own
# in a process group of its own, as a Spark worker has.
_READY = "import pathlib; pathlib.Path('{name}.ready').write_text('')\n"
_PID = "import os, signal, time; open('{name}.pids', 'a').write(str(os.getpid()) + '\\n')\n"
_SLEEP = "time.sleep(600)\n"
_NOTES_STOP = (
    "def stop(*_):\n  time.sleep(0.1)\n  open('stops', 'a').write('{name}\\n')\n  os._exit(0)\n"
    "signal.signal(signal.SIGTERM, stop)\n"
)
_STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
_FAMILY = (
    "if os.fork() == 0:\n  os.setpgid(0, 0)\n  signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "  open('{name}.pids', 'a').write(str(os.getpid()) + '\\n')\n  time.sleep(600)\n"
)


def process(name: str, *parts: str, **more: Any) -> dict[str, Any]:
    body = _PID + "".join(parts) + _READY + _SLEEP
    return {"name": name, "code": body.replace("{name}", name), **more}


class Supervised:
    """A running supervisor over `table` in `directory`."""

    def __init__(self, directory: Path, table: list[list[dict[str, Any]]]) -> None:
        self.directory = directory
        (directory / "table.json").write_text(json.dumps(table))
        self._output = (directory / "output").open("w+")
        self.guard = psutil.Popen(
            [sys.executable, str(Path(__file__).with_name("supervised.py")), str(directory)],
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def output(self) -> str:
        return (self.directory / "output").read_text()

    def pids(self, name: str) -> list[int]:
        path = self.directory / f"{name}.pids"
        return [int(line) for line in path.read_text().splitlines()] if path.exists() else []

    def started(self) -> None:
        wait_until(lambda: "all started" in self.output or self.guard.poll() is not None, "the start")
        assert self.guard.poll() is None, self.output

    def supervisor(self) -> psutil.Process:
        (child,) = self.guard.children()
        return child

    def all_gone(self) -> bool:
        ids = [int(pid) for path in self.directory.glob("*.pids") for pid in path.read_text().split()]
        return not any(_alive(pid) for pid in ids)

    def close(self) -> None:
        self._output.close()
        for path in self.directory.glob("*.pids"):
            for pid in path.read_text().split():
                if _alive(int(pid)):
                    os.kill(int(pid), signal.SIGKILL)
        # Twice: the second one kills at once. What obeys neither has failed its own test.
        for number in (signal.SIGTERM, signal.SIGTERM):
            if self.guard.poll() is None:
                self.guard.send_signal(number)
        self.guard.wait(PATIENCE_S)


def _alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


Start = Callable[[list[list[dict[str, Any]]]], Supervised]


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Start]:
    begun: list[Supervised] = []

    def start(table: list[list[dict[str, Any]]]) -> Supervised:
        begun.append(Supervised(tmp_path, table))
        return begun[-1]

    yield start
    for one in begun:
        one.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_everything_in_order(supervised: Start, number: signal.Signals) -> None:
    run = supervised(
        [
            [process("kafka", _NOTES_STOP, rank=2), process("web", _NOTES_STOP, rank=1)],
            [process("edge-a", _NOTES_STOP, rank=0)],
        ]
    )
    run.started()
    run.guard.send_signal(number)
    assert run.guard.wait(PATIENCE_S) == 0
    assert (run.directory / "stops").read_text().split() == ["edge-a", "web", "kafka"]
    assert run.all_gone()


def test_a_process_that_cannot_be_asked_yet_is_asked_again(tmp_path: Path, supervised: Start) -> None:
    odd = (  # Whole, or not there: an empty one is ready.
        "import pathlib; pathlib.Path('report').write_text('no report')\n"
        "os.replace('report', '{name}.ready')\n"
        "while not os.path.exists('go'): time.sleep(0.02)\n"
    )
    running = supervised([[process("odd", odd)]])
    wait_until((tmp_path / "odd.asked").exists, "the question that fails")
    (tmp_path / "go").touch()
    running.started()


def test_what_ignores_sigterm_is_killed_with_all_that_it_started(supervised: Start) -> None:
    run = supervised([[process("stubborn", _STUBBORN, _FAMILY, stop_timeout_s=0.5)]])
    run.started()
    wait_until(lambda: len(run.pids("stubborn")) == 2, "the family")
    run.guard.terminate()
    assert run.guard.wait(PATIENCE_S) == 0
    assert run.all_gone(), run.output
    assert "killed" in run.output


def test_a_second_signal_kills_at_once(supervised: Start) -> None:
    run = supervised([[process("stubborn", _STUBBORN, stop_timeout_s=600)]])
    run.started()
    run.guard.send_signal(signal.SIGINT)
    wait_until(lambda: "Stopping" in run.output, "the stop")
    run.guard.send_signal(signal.SIGINT)
    assert run.guard.wait(PATIENCE_S) == 0
    assert run.all_gone()


def test_a_killed_supervisor_leaves_nothing_behind(supervised: Start) -> None:
    run = supervised([[process("edge-a", _FAMILY), process("web", _STUBBORN)]])
    run.started()
    wait_until(lambda: len(run.pids("edge-a")) == 2, "the family")
    run.supervisor().kill()
    assert run.guard.wait(PATIENCE_S) == 128 + signal.SIGKILL
    assert run.all_gone()


def test_a_killed_guard_leaves_nothing_behind(supervised: Start) -> None:
    run = supervised([[process("edge-a", _FAMILY), process("web", _NOTES_STOP)]])
    run.started()
    supervisor = run.supervisor()
    run.guard.kill()
    wait_until(lambda: not _alive(supervisor.pid), "the supervisor's end")
    assert run.all_gone()
    assert (run.directory / "stops").read_text().split() == ["web"], "it was asked, not killed"


def test_a_killed_pair_leaves_nothing_of_what_obeys_behind(supervised: Start) -> None:
    run = supervised([[process("web", _NOTES_STOP)]])
    run.started()
    supervisor = run.supervisor()
    run.guard.suspend()  # so that it cannot do its work before it is killed as well
    supervisor.kill()
    run.guard.kill()
    wait_until(run.all_gone, "the tethered child's end")


def test_a_crashed_process_is_started_again(supervised: Start) -> None:
    run = supervised([[process("web")]])
    run.started()
    os.kill(run.pids("web")[0], signal.SIGKILL)
    wait_until(lambda: len(run.pids("web")) == 2, "the restart")
    assert "web ended with signal SIGKILL; starting it again in 0.5 s" in run.output
    run.guard.terminate()
    assert run.guard.wait(PATIENCE_S) == 0
    assert run.all_gone()


def test_what_a_crashed_process_left_in_its_group_is_ended_before_the_restart(supervised: Start) -> None:
    family = _FAMILY.replace("  os.setpgid(0, 0)\n", "")
    run = supervised([[process("edge-a", family)]])
    run.started()
    first, orphan = wait_until(lambda: p if len(p := run.pids("edge-a")) == 2 else None, "the family")
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: len(run.pids("edge-a")) >= 3, "the restart")
    assert not _alive(orphan)


def test_an_essential_process_that_never_comes_up_gives_up_the_start(supervised: Start) -> None:
    run = supervised(
        [[process("kafka", rank=1)], [{"name": "web", "code": "print('no such table'); exit(3)"}]]
    )
    assert run.guard.wait(PATIENCE_S) == 1
    assert "no such table" in run.output
    assert "The start is given up" in run.output
    assert run.all_gone()


def test_a_node_that_never_comes_up_leaves_the_others_usable(supervised: Start) -> None:
    broken = {"name": "edge-a", "code": "exit('no disk')", "essential": False}
    run = supervised([[broken, process("edge-b")]])
    run.started()
    assert "edge-a ended 3 times" in run.output


def test_a_failed_step_gives_up_the_start_and_says_why(supervised: Start) -> None:
    run = supervised([[process("kafka")], [{"name": "migrate", "code": "exit('no database')", "once": True}]])
    assert run.guard.wait(PATIENCE_S) == 1
    assert "no database" in run.output
    assert "migrate: ended with code 1" in run.output
    assert run.all_gone()


def test_a_second_copy_in_the_same_directory_is_refused(supervised: Start) -> None:
    run = supervised([[process("web")]])
    run.started()
    second = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("supervised.py")), str(run.directory)],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert second.returncode == 1
    assert f"process {run.guard.pid}" in second.stdout
    assert _alive(run.pids("web")[0])


NOISE = """WARNING: Using incubator modules: jdk.incubator.vector
26/11/23 00:48:13 WARN NativeCodeLoader: Unable to load native-hadoop library
2026-11-23 00:48:13,100 INFO workers.node.process: Spark is up
Traceback (most recent call last):
  File "pyspark/daemon.py", line 95, in worker
BrokenPipeError: [Errno 32] Broken pipe
2026-11-23 00:48:13,200 WARNING edge-a kafka.net.selector: a task ran for 0.157s
2026-11-23 00:48:13,300 ERROR control kafka.conn: no connection to 127.0.0.1:9092
"""
TOLD = """2026-11-23 00:48:14,000 WARNING edge-a workers.node.heartbeat: Redis is away
2026-11-23 00:48:15,000 ERROR SocketServer: the disk is full
ERROR:    Exception in ASGI application
"""


def test_files_have_all_that_a_process_prints_and_the_console_what_its_user_needs(supervised: Start) -> None:
    text = NOISE + TOLD
    run = supervised([[process("web", f"print({text!r}, flush=True)\n"), process("edge-a")]])
    run.started()
    wait_until(lambda: "ASGI" in run.output, "the last line")
    shown = [line.partition(" ")[2] for line in run.output.splitlines() if " web     | " in line]
    assert shown == [
        "web     | WARNING workers.node.heartbeat: Redis is away",
        "web     | ERROR SocketServer: the disk is full",
        "web     | ERROR:    Exception in ASGI application",
    ]
    kept = (run.directory / "logs" / "web.log").read_text().splitlines()
    assert [line for line in text.splitlines() if line[:4] == "2026"] == [
        line for line in kept if line.startswith("2026-11-23 00:48:1")
    ]
    for line in text.splitlines():
        assert any(one.endswith(line) for one in kept), line
    assert "Broken" not in (run.directory / "logs" / "edge-a.log").read_text()


def test_what_is_started_and_how_long_it_took_is_told(supervised: Start) -> None:
    run = supervised([[process("kafka"), process("redis")], [process("web")]])
    run.started()
    told = [
        line.partition("| ")[2].rpartition(" ready ")[0] or line.partition("| ")[2]
        for line in run.output.splitlines()
    ]
    assert sorted(told[:3]) == ["Starting kafka, redis", "kafka", "redis"]
    assert told[3:] == ["Starting web", "web", "all started"]
    assert run.output.count(" s\n") == 3


def test_a_process_that_ends_shows_what_it_printed_last(supervised: Start) -> None:
    crashed = "import sys\nfor n in range(40): print('line', n)\nsys.exit('no memory')"
    run = supervised([[{"name": "edge-a", "code": crashed, "essential": False}, process("web")]])
    run.started()
    assert "edge-a  | line 39" in run.output
    assert "edge-a  | no memory" in run.output
    assert "line 9\n" not in run.output
    assert str(run.directory / "logs" / "edge-a.log") in run.output
