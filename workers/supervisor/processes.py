"""The specification of a process that the supervisor runs, and the running process itself."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from workers.supervisor.tether import tethered

_READY_POLL_S = 0.2
_READ_S = 2.0
_LINE_BYTES_MAX = 8192


@dataclass(frozen=True)
class ProcessSpec:
    """One process. `command` is called after `prepare`. Both may raise, with a message for the user.

    `ready(started_at_s)` asks the process itself. It may block for a second or two, and never raises. Without
    it, a process counts as ready once it runs, and a `once` process when it has ended with code 0.
    """

    name: str
    command: Callable[[], Sequence[str]]
    title: str = ""
    prepare: Callable[[], None] | None = None
    ready: Callable[[float], bool] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    once: bool = False
    capture: Callable[[str], None] | None = None  # gets the standard output of a `once` process, unlogged
    essential: bool = True  # if it fails, the start is given up; otherwise it is tried again and again
    ready_timeout_s: float = 180.0
    stop_rank: int = 0  # lower ranks stop first, equal ranks together
    stop_timeout_s: float = 10.0

    @property
    def label(self) -> str:
        return self.title or self.name


class Child:
    """The process of a spec. A thread of its own prepares and asks it; the supervisor's thread starts it.

    NEW -> PREPARING -> PREPARED -> STARTING -> READY -> ENDED, and FAILED from any of the first four.
    """

    def __init__(self, spec: ProcessSpec, line: Callable[[str], None], cwd: str) -> None:
        self.spec = spec
        self.began_s = time.monotonic()
        self.fault: str | None = None
        self.ready_after_s: float | None = None
        self.code: int | None = None
        self.ready_told = False
        self.fault_told = False
        self._line = line
        self._cwd = cwd
        self._prepared = threading.Event()
        self._command: Sequence[str] = ()
        self._process: subprocess.Popen[bytes] | None = None
        self._captured: list[str] = []
        self._pumps: list[threading.Thread] = []
        threading.Thread(target=self._prepare, name=f"prepare-{spec.name}", daemon=True).start()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def running(self) -> bool:
        return self._process is not None and self.code is None

    @property
    def done(self) -> bool:
        """Whether it is ready, or as a `once` process has done its work."""
        return self.ready_after_s is not None

    def step(self) -> None:
        """Moves on without blocking.

        The supervisor's main thread calls it, the only one that forks: the kernel ties a child to the thread
        that started it.
        """
        if self._process is None:
            if self._prepared.is_set() and self.fault is None:
                self._start()
            return
        if self.code is None:
            self.code = self._process.poll()
            if self.code is not None:
                self._ended()

    def read_to_the_end(self) -> None:
        """Waits until what the ended process has printed is in the log.

        It does not wait for what else may hold the output open.
        """
        for pump in self._pumps:
            pump.join(_READ_S)

    def _prepare(self) -> None:
        try:
            if self.spec.prepare is not None:
                self.spec.prepare()
            self._command = self.spec.command()
        except Exception as error:  # the user has to see it, whatever it is
            self.fault = str(error) or repr(error)
        self._prepared.set()

    def _start(self) -> None:
        captures = self.spec.capture is not None
        try:
            self._process = subprocess.Popen(
                tethered(list(self._command)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if captures else subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self.spec.environment},
                cwd=self._cwd,
                process_group=0,
            )
        except OSError as error:
            self.fault = f"{self._command[0]} cannot be started: {error}"
            return
        assert self._process.stdout is not None
        self._pumped(self._process.stdout, self._captured.append if captures else self._line)
        if self._process.stderr is not None:
            self._pumped(self._process.stderr, self._line)
        if not self.spec.once:
            threading.Thread(target=self._ask, name=f"ask-{self.spec.name}", daemon=True).start()

    def _pumped(self, pipe: IO[bytes], sink: Callable[[str], None]) -> None:
        thread = threading.Thread(target=_pump, args=(pipe, sink), name=f"log-{self.spec.name}", daemon=True)
        thread.start()
        self._pumps.append(thread)

    def _ask(self) -> None:
        started_at_s = time.time()
        deadline = time.monotonic() + self.spec.ready_timeout_s
        while self.code is None and not self.done:
            why = ""
            try:
                ready = self.spec.ready is None or self.spec.ready(started_at_s)
            except Exception as error:  # without this thread, nobody would learn that it is ready
                ready, why = False, f": {error!r}"
            if ready:
                if self.code is None:
                    self.ready_after_s = time.monotonic() - self.began_s
                return
            if time.monotonic() > deadline and self.fault is None:
                # It is asked further, because it may still become ready.
                self.fault = f"is not ready after {self.spec.ready_timeout_s:.0f} s{why}"
            time.sleep(_READY_POLL_S)

    def _ended(self) -> None:
        if not self.spec.once:
            return
        if self.code != 0:
            self.fault = f"ended with code {self.code}"
            return
        self.read_to_the_end()
        if self.spec.capture is not None:
            self.spec.capture("\n".join(self._captured))
        self.ready_after_s = time.monotonic() - self.began_s

    # --- ending it ------------------------------------------------------------------------------
    def terminate(self) -> None:
        self._signal(signal.SIGTERM, group=False)

    def kill(self) -> None:
        """Kills its whole group, also when the process itself has ended and left others behind."""
        self._signal(signal.SIGKILL, group=True)

    def _signal(self, number: signal.Signals, *, group: bool) -> None:
        if self._process is None:
            return
        try:
            if group:
                os.killpg(self._process.pid, number)
            else:
                self._process.send_signal(number)
        except (ProcessLookupError, PermissionError):
            pass  # nothing of it is left


def _pump(pipe: IO[bytes], sink: Callable[[str], None]) -> None:
    with pipe:
        while line := pipe.readline(_LINE_BYTES_MAX):
            sink(line.decode(errors="replace").rstrip())
