"""Asks processes of their own about connections: pipeline_runtime/connectors/questions.py."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from time import monotonic
from typing import Any, Literal

from pipeline_runtime.connectors.questions import UNASKED_S
from pipeline_runtime.model.simulated import SIMULATED
from pipeline_runtime.operators.connections import kinds
from workers.node.connector_process import start

_FRESH_S = UNASKED_S - 10
"""A process that has had no question for longer may be about to end."""


class AskedProcesses:
    """While somebody asks, a process that has loaded the libraries waits for the next question: loading them
    takes longer than most answers. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards both
        self._waiting: tuple[float, subprocess.Popen[bytes]] | None = None  # and since when
        self._is_closed = False

    def get_ready(self) -> None:
        """Starts a process that waits for the next question, if none waits."""
        with self._lock:
            if not self._is_closed and not self._is_fresh():
                self._drop()
                self._waiting = monotonic(), _started(_modules())

    def answer(self, question: Literal["probe", "sample"], asked: Any, timeout_s: float) -> bytes:
        """Returns the answer as JSON, or nothing if the process cannot answer. Raises
        subprocess.TimeoutExpired."""
        line = json.dumps({question: asked}).encode() + b"\n"
        try:
            waiting = self._taken()
            if waiting is not None and (said := _answer_of(waiting, line, timeout_s)):
                self._keep(waiting)
                return said
            # None has waited, or the one that has waited ended just before. A process that loads only what
            # this question needs answers sooner than one that loads everything.
            other = _started(())
            said = _answer_of(other, line, timeout_s)
            _end(other)
            return said
        finally:
            with suppress(OSError):  # without memory the next question starts its own
                self.get_ready()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._drop()

    def _taken(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if not self._is_fresh() or self._waiting is None:
                return None
            (_, process), self._waiting = self._waiting, None
            return process

    def _keep(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            if self._is_closed:
                _end(process)
            else:
                self._drop()  # two were asked at once, and this one has loaded everything
                self._waiting = monotonic(), process

    def _is_fresh(self) -> bool:
        if self._waiting is None:
            return False
        started_s, process = self._waiting
        return process.poll() is None and monotonic() - started_s < _FRESH_S

    def _drop(self) -> None:
        if self._waiting is not None:
            _end(self._waiting[1])
            self._waiting = None


@cache
def _modules() -> Sequence[str]:
    """Returns what knows the protocols of all kinds of connections, and has the simulated machines."""
    probes = [kind.probe for kind in kinds().values()]
    return sorted({each.partition(":")[0] for each in (*probes, *(one.server for one in SIMULATED.values()))})


def _started(modules: Sequence[str]) -> subprocess.Popen[bytes]:
    return start("-m", "pipeline_runtime.connectors.questions", *modules)


def _answer_of(process: subprocess.Popen[bytes], line: bytes, timeout_s: float) -> bytes:
    """Returns its answer, or nothing if the process has ended. Without an answer it is ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.write(line)
        process.stdin.flush()
    answers = select.poll()
    answers.register(process.stdout, select.POLLIN)
    said, late_s = b"", monotonic() + timeout_s
    while not said.endswith(b"\n"):
        is_late = not answers.poll(1000 * max(0.0, late_s - monotonic()))
        more = b"" if is_late else os.read(process.stdout.fileno(), 1 << 16)
        if not more:
            _end(process)
            if is_late:
                raise subprocess.TimeoutExpired(process.args, timeout_s)
            return b""
        said += more
    return said.rstrip()


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)  # with the fork that answers
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
