"""Starts stand-in nodes in a moment: forks of one process that has imported all that a node needs.

    tests --"start" over stdin--> zygote --fork--> node (a process of its own, with nothing running in it yet)

Only a process with a single thread may fork so; the zygote says so itself, and refuses otherwise.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.integration.workers.stand_in_node import run
from tests.waiting import PATIENCE_S
from workers.supervisor.tether import tethered

PROJECT = Path(__file__).resolve().parents[3]
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Else numpy and pyarrow start threads when they are imported."""
_PR_SET_PDEATHSIG = 1


class ForkedNode:
    """A child of the zygote, used like a `subprocess.Popen`."""

    def __init__(self, zygote: Zygote, pid: int) -> None:
        self._zygote = zygote
        self.pid = pid  # nobody else's until it is reaped in `wait`
        self._code: int | None = None

    def send_signal(self, number: int) -> None:
        if self._code is None:
            os.kill(self.pid, number)

    def is_stopped(self) -> bool:
        """By SIGSTOP, with all its threads."""
        stats = [path.read_text() for path in Path(f"/proc/{self.pid}/task").glob("*/stat")]
        return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)

    def wait(self, timeout_s: float = PATIENCE_S) -> int:
        """Its exit code; -n: it was ended by signal n. TimeoutError: it runs still."""
        if self._code is None:
            descriptor = os.pidfd_open(self.pid)
            try:
                if not select.select([descriptor], [], [], timeout_s)[0]:
                    raise TimeoutError(f"the node's process {self.pid} still runs after {timeout_s:.0f} s")
            finally:
                os.close(descriptor)
            self._code = self._zygote.ask({"reap": self.pid})
        return self._code


class Zygote:
    """The process, as the tests see it. Not for two threads at once."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            tethered([sys.executable, "-m", "tests.integration.workers.zygote"]),
            cwd=PROJECT,
            env={**os.environ, **ONE_THREAD},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, identity: dict[str, Any], ledger: Path, log: Path) -> ForkedNode:
        return ForkedNode(self, self.ask({"start": [identity, str(ledger)], "log": str(log)}))

    def ask(self, request: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the zygote has ended: see its traceback"
        return int(answer)

    def close(self) -> None:
        """What it has forked ends with it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)


def main() -> None:
    gc.freeze()  # so that a node's own collections do not copy these pages
    for line in sys.stdin:
        request = json.loads(line)
        if "reap" in request:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["reap"], 0)[1])
        else:
            answer = _forked(request)
        print(answer, flush=True)


def _forked(request: dict[str, Any]) -> int:
    threads = [Path(f"/proc/self/task/{id}/comm").read_text().strip() for id in os.listdir("/proc/self/task")]
    assert len(threads) == 1, f"a process with threads must not be forked: {threads}"
    zygote = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        for descriptor, path, flags in (
            (0, os.devnull, os.O_RDONLY),
            (1, request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND),
            (2, request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        ):
            opened = os.open(path, flags, 0o600)
            os.dup2(opened, descriptor)
            os.close(opened)
        if os.getppid() == zygote:
            identity, ledger = request["start"]
            code = run(identity, Path(ledger))
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # not waiting for threads


if __name__ == "__main__":
    main()
