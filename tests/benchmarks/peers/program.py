"""Runs the program of another system over a topic, and says how fast it was.

Every program gets the same arguments: bootstrap, name, directory, input topic, output topic, work, number of
events, number of them that are warm-up, threads, and settings as name=value. It prints "WARM n" when it has
processed n events, the first time that n is at least the warm-up, and "EVENTS_PER_S x" at the last event: the
rate since then.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import psutil

from tests.benchmarks.harness import cpu_s_of

_TIMEOUT_S = 300
_WARM, _LAST = "WARM ", "EVENTS_PER_S "


@dataclass(frozen=True)
class Peer:
    """`command`: makes its program ready, and returns what starts it. `settings`: of the system, as
    name=value. `for_latency`: those that are different where latency counts. `cannot`: works that it cannot
    do, and why."""

    name: str
    command: Callable[[], Sequence[str]]
    settings: Sequence[str]
    for_latency: Sequence[str]
    exactly_once: bool = True
    stamps_outputs: bool = True
    """Whether a row of its output has the time of its event. If not, the number of the event is looked at."""
    part_of_events: int = 1
    """It is given one in so many of the events: one that is much slower would take hours."""
    cannot: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """What a program is to do. The first `warm` of `count` events do not count."""

    bootstrap: str
    topic: str
    output: str
    work: str
    count: int
    warm: int
    threads: int = 1
    for_latency: bool = False


@dataclass(frozen=True)
class PeerRun:
    """What it took from the end of the warm-up to the last event."""

    events_per_s: float
    cpu_us_per_event: float
    memory_mib: float  # at the last event


class PeerFailed(RuntimeError):
    """The program cannot be made ready, or did not get to its last event."""


class Running:
    """A program that runs. `warm` is set at the end of its warm-up, or when it has ended."""

    def __init__(self, command: Sequence[str], log: Path, count: int) -> None:
        self._log = log
        self._count = count
        self._found: PeerRun | None = None
        self._seen: set[psutil.Process] = set()
        self.warm = threading.Event()
        with log.open("w") as file:
            self.process = psutil.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True)
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()

    def _processes(self) -> list[psutil.Process]:
        """The program and what it has started: Spark has a JVM and Python processes."""
        found = [self.process, *self.process.children(recursive=True)]
        self._seen.update(found)
        return found

    def _memory_mib(self) -> float:
        total = 0.0
        for process in self._processes():
            with suppress(psutil.NoSuchProcess):
                total += process.memory_full_info().pss / 2**20
        return total

    def _follow(self) -> None:
        """Reads what the program says, until it ends."""
        warm_cpu_s, warm_events = 0.0, 0
        for line in self.process.stdout:
            if line.startswith(_WARM):
                warm_cpu_s, warm_events = cpu_s_of(self._processes()), int(line.removeprefix(_WARM))
                self.warm.set()
            elif line.startswith(_LAST):
                cpu_s = cpu_s_of(self._processes()) - warm_cpu_s
                rate = float(line.removeprefix(_LAST))
                self._found = PeerRun(rate, cpu_s / (self._count - warm_events) * 1e6, self._memory_mib())
        self.warm.set()

    def wait_until_warm(self) -> None:
        if not self.warm.wait(_TIMEOUT_S) or self.process.poll() is not None:
            self._fail()

    def result(self) -> PeerRun:
        """Waits for its end. Raises PeerFailed if that comes before the last event, or not in time."""
        self._reader.join(_TIMEOUT_S)
        found = self._found
        if found is None or self._reader.is_alive():
            self._fail()
        self.process.wait(_TIMEOUT_S)
        return found

    def _fail(self) -> NoReturn:
        raise PeerFailed(f"{' '.join(self.process.args[-12:])}: {self._log.read_text()[-2000:]}")

    def end(self) -> None:
        with suppress(psutil.NoSuchProcess):
            self._processes()
        for process in self._seen:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(self._seen, timeout=_TIMEOUT_S)


@contextmanager
def running(peer: Peer, job: Job) -> Iterator[Running]:
    """Raises PeerFailed, JarsUnavailable."""
    directory = Path(tempfile.mkdtemp(prefix="fogline-peer-"))
    command = [*peer.command(), job.bootstrap, job.output, str(directory), job.topic, job.output, job.work]
    command += [str(job.count), str(job.warm), str(job.threads), *peer.settings]
    command += peer.for_latency if job.for_latency else ()
    program = None
    try:
        program = Running(command, directory / "log", job.count)
        yield program
    finally:
        if program is not None:
            program.end()
        shutil.rmtree(directory, ignore_errors=True)
