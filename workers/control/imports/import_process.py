"""One process that looks at a file or imports it, `python -m webapp.imports`, and the limits it has.

It reads bytes of strangers, so it gets no secrets, and what it takes in time, memory and disk is watched from
here. It ends by itself when its standard input ends, so none is left when control is killed.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

import webapp
from webapp.pipelines.schemas import FileTrouble

log = logging.getLogger(__name__)

LOOK_EACH_S = 0.5
END_S = 5.0  # from SIGTERM to SIGKILL
LINE_BYTES_MAX = 16 << 20
NICE = 10
COMMAND = (sys.executable, "-m", "webapp.imports")
_ROOT = Path(webapp.__file__).parents[1]
_ENVIRONMENT = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LANG", "LC_ALL", "TMPDIR", "MALLOC_ARENA_MAX", "HOME")


@dataclass(frozen=True)
class Limits:
    seconds: float  # from its beginning
    silent_s: float  # without any progress
    memory_bytes: int = 1 << 30  # of the process
    disk_reserve_bytes: int = 0  # that stay free where it writes


@dataclass(frozen=True)
class Failed:
    trouble: FileTrouble


class Unwanted(Exception):
    """Nobody wants the result any more."""


@dataclass(frozen=True)
class Progress:
    bytes_done: int = 0
    bytes_total: int = 0
    rows: int = 0


def run_import(
    arguments: Sequence[str],
    first_line: Any,
    directory: Path,
    limits: Limits,
    wanted: Callable[[Progress | None], bool],
) -> dict[str, Any] | Failed:
    """Runs `python -m webapp.imports` with these arguments. Returns its result, or why there is none.

    `wanted` is called about twice a second with the newest progress. When it says no, the process is killed
    and Unwanted is raised.
    """
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=_ROOT,
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C in control's terminal is control's
    )
    try:
        with suppress(psutil.Error, OSError):
            psutil.Process(process.pid).nice(NICE)
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):  # it has ended already: its output or its exit code says why
            process.stdin.write(json.dumps(first_line).encode() + b"\n")
            process.stdin.flush()
        said: queue.Queue[dict[str, Any] | None] = queue.Queue(maxsize=100)
        threading.Thread(target=_listen, args=(process.stdout, said), daemon=True).start()
        return _watched(process, said, directory, limits, wanted)
    finally:
        _end(process)


def _watched(
    process: subprocess.Popen[bytes],
    said: queue.Queue[dict[str, Any] | None],
    directory: Path,
    limits: Limits,
    wanted: Callable[[Progress | None], bool],
) -> dict[str, Any] | Failed:
    begun_s = heard_s = looked_s = time.monotonic()
    newest: Progress | None = None
    while True:
        with suppress(queue.Empty):
            message = said.get(timeout=max(0.0, looked_s + LOOK_EACH_S - time.monotonic()))
            if message is None:
                return _crashed(process)
            if "result" in message:
                result: dict[str, Any] = message["result"]
                return result
            if "error" in message:
                return Failed(_trouble(message["error"]))
            found = Progress(**message["progress"])
            if found != newest:
                newest, heard_s = found, time.monotonic()
        now_s = time.monotonic()
        if now_s < looked_s + LOOK_EACH_S:
            continue
        looked_s = now_s
        if not wanted(newest):
            raise Unwanted
        trouble = _over(process, directory, limits, now_s - begun_s, now_s - heard_s)
        if trouble is not None:
            return Failed(trouble)


def _over(
    process: subprocess.Popen[bytes], directory: Path, limits: Limits, runs_s: float, silent_s: float
) -> FileTrouble | None:
    """Returns which limit it is over."""
    if runs_s > limits.seconds:
        return {
            "what": f"It took more than {limits.seconds:,.0f} s and was stopped.",
            "where": None,
            "next": "Divide the file, and upload its parts.",
        }
    if silent_s > limits.silent_s:
        return {
            "what": f"It made no progress for {limits.silent_s:,.0f} s and was stopped.",
            "where": None,
            "next": "Try again. If it stops again, read the file in another way, or divide it.",
        }
    if _memory_bytes(process) > limits.memory_bytes:
        return {
            "what": f"It needed more than {limits.memory_bytes >> 20:,} MiB of memory and was stopped.",
            "where": None,
            "next": "Look whether its lines are those of a table. If they are, divide the file.",
        }
    if shutil.disk_usage(directory).free < limits.disk_reserve_bytes:
        return {
            "what": f"Less than {limits.disk_reserve_bytes // 1_000_000:,} MB of the disk were left.",
            "where": None,
            "next": "Free disk space, or delete files that nobody uses. Then import it again.",
        }
    return None


def _memory_bytes(process: subprocess.Popen[bytes]) -> int:
    try:
        return int(psutil.Process(process.pid).memory_info().rss)
    except psutil.Error:
        return 0


def _listen(stream: IO[bytes], said: queue.Queue[dict[str, Any] | None]) -> None:
    """Puts what the process says, and None at its end or when it says something else."""
    with suppress(ValueError, OSError):  # its output was closed, or is none of our messages
        while (line := stream.readline(LINE_BYTES_MAX)).endswith(b"\n"):
            message = json.loads(line)
            if not isinstance(message, dict) or not message.keys() & {"progress", "result", "error"}:
                break
            said.put(message)
    said.put(None)


def _crashed(process: subprocess.Popen[bytes]) -> Failed:
    try:
        code: int | str = process.wait(END_S)
    except subprocess.TimeoutExpired:
        code = "none"
    log.error("python -m webapp.imports ended without a result, exit code %s", code)
    return Failed(
        {
            "what": f"The process that reads it ended without a result ({_end_in_words(code)}).",
            "where": None,
            "next": "The uploaded file is kept. Try again. If it ends again, save the table as CSV in the "
            "program that it is from, and upload that. The log of the control process says more.",
        }
    )


def _end_in_words(code: int | str) -> str:
    """Returns "signal SIGABRT" if a library or the machine has ended it, or "exit code 7"."""
    if isinstance(code, int) and code < 0:
        with suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"


def _trouble(error: Any) -> FileTrouble:
    return {
        "what": str(error["what"]),
        "where": None if error.get("where") is None else str(error["where"]),
        "next": str(error["next"]),
    }


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(BrokenPipeError):
                stream.close()
    process.wait()
