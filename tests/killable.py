"""A server for the tests, as a process that can be killed, hung and started again."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Self

from tests.ports import free_ports
from tests.waiting import wait_until


def keep(journal: str, number: int) -> None:
    """Adds a line to a file. The line stays there if the process is killed."""
    with open(journal, "a") as file:
        file.write(f"{number}\n")


def kept(journal: Path) -> Counter[int]:
    """Returns how often each number was kept."""
    return Counter(map(int, journal.read_text().split())) if journal.exists() else Counter()


class Killable:
    """A process that serves a port. A subclass says by `_spawn` how it starts."""

    def __init__(self, what: str) -> None:
        """`what`: what it is, in words."""
        [self.port] = free_ports(1)
        self._what = what
        self._process: subprocess.Popen[bytes] | None = None

    def _spawn(self) -> subprocess.Popen[bytes]:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        self._process = self._spawn()
        try:
            wait_until(self._answers, f"{self._what} to listen")
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()

    def hang(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"{self._what} has ended"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class KillableServer(Killable):
    """A module of the tests: python -m MODULE PORT ARGUMENTS."""

    def __init__(self, what: str, module: str, *arguments: str) -> None:
        super().__init__(what)
        self._module, self._arguments = module, arguments

    def _spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", self._module, str(self.port), *self._arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
