"""Sends the processes' output to rotated files in FOGLINE_DATA/logs, and a little of it to the terminal.

The terminal shows what the supervisor says. Of other processes it shows only what they log as a warning or
worse and, when one has failed, the end of its output. Nobody has to act on the other lines of Java and Spark.
"""

from __future__ import annotations

import logging
import os
import queue
import re
import sys
import threading
from collections import deque
from datetime import datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

_FILE_BYTES_MAX = 10 << 20
_FILES_KEPT = 3
_QUEUE_LINES_MAX = 5000
_OWN_COLOUR = "1;37"
_COLOURS = ("36", "32", "33", "35", "34", "96", "92", "93", "95", "94")
OWN_NAME = "fogline"
_LINES_EXPLAINED = 12
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ")  # as our processes and Kafka write it
_LOGGED = re.compile(
    _TIME.pattern + r"(?P<level>[A-Z]+) (?:[a-z0-9-]+ )?(?P<logger>[\w.$-]+): (?P<message>.*)"
)
_UVICORNS = re.compile(r"(?:ERROR|CRITICAL): ")  # not Java's "WARNING: ...", which has no time either
_OURS = ("pipeline_runtime.", "workers.", "webapp.")
_FAULTS = ("ERROR", "CRITICAL", "FATAL")
# Kafka's client logs each failed attempt. Its callers say once what follows from that.
_SAID_BY_CALLERS = ("kafka.",)


class Console:
    """Takes lines from any thread. It never blocks a thread, and never raises there.

    A terminal that is stopped (Ctrl-S) or gone must not stop the pipelines. Lines that it does not take are
    dropped there, and counted. The files have all lines.
    """

    def __init__(self, directory: Path, names: tuple[str, ...], stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._colours = self._stream.isatty() and "NO_COLOR" not in os.environ
        self._names = (OWN_NAME, *names)
        self._width = max(map(len, self._names))
        self._lines: queue.Queue[str | None] = queue.Queue(_QUEUE_LINES_MAX)
        self._dropped = 0
        self._directory = directory
        self._last: dict[str, deque[str]] = {name: deque(maxlen=_LINES_EXPLAINED) for name in self._names}
        directory.mkdir(parents=True, exist_ok=True)
        self._files = {name: _file(directory / f"{name}.log") for name in self._names}
        self._writer = threading.Thread(target=self._write, name="console", daemon=True)
        self._writer.start()

    def say(self, message: str) -> None:
        """Writes lines of the supervisor itself."""
        for line in message.splitlines() or [""]:
            self._files[OWN_NAME].handle(_record(line))
            self._show(OWN_NAME, line)

    def line(self, name: str, text: str) -> None:
        """Takes a line that the process `name` printed."""
        self._files[name].handle(_record(text))
        self._last[name].append(text)
        told = _told(text)
        if told is not None:
            self._show(name, told)

    def explain(self, name: str) -> None:
        """Shows what a failed process printed last, and where all of its output is."""
        last, self._last[name] = self._last[name], deque(maxlen=_LINES_EXPLAINED)
        for text in last:
            self._show(name, _TIME.sub("", text, count=1))
        self._show(name, f"(all that it printed: {self._directory / name}.log)")

    def secret(self, text: str) -> None:
        """Shows a text on the terminal alone. No file gets it."""
        self._show(OWN_NAME, text)

    def close(self, timeout_s: float = 2.0) -> None:
        try:
            self._lines.put(None, timeout=timeout_s)
        except queue.Full:
            return  # the terminal takes nothing any more
        self._writer.join(timeout_s)
        for file in self._files.values():
            file.close()

    def _show(self, name: str, text: str) -> None:
        try:
            self._lines.put_nowait(f"{self._prefix(name)} {text}\n")
        except queue.Full:
            self._dropped += 1

    def _prefix(self, name: str) -> str:
        now = datetime.now().astimezone().strftime("%H:%M:%S")
        label = name.ljust(self._width)
        if not self._colours:
            return f"{now} {label} |"
        index = self._names.index(name)
        colour = _COLOURS[(index - 1) % len(_COLOURS)] if index else _OWN_COLOUR
        return f"\x1b[2m{now}\x1b[0m \x1b[{colour}m{label} |\x1b[0m"

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                if self._dropped:
                    dropped, self._dropped = self._dropped, 0
                    self._stream.write(f"... {dropped} lines were not shown here; the log files have them\n")
                self._stream.write(line)
                if self._lines.empty():
                    self._stream.flush()
            except (OSError, ValueError):
                continue  # nobody reads any more, but the files go on


def _told(text: str) -> str | None:
    """Returns what the terminal shows of a line that a process printed, or None for nothing."""
    logged = _LOGGED.match(text)
    if logged is None:
        return text if _UVICORNS.match(text) else None
    level, logger, message = logged.group("level", "logger", "message")
    if level == "WARNING":
        meant = logger.startswith(_OURS)
    else:
        meant = level in _FAULTS and not logger.startswith(_SAID_BY_CALLERS)
    return f"{level} {logger}: {message}" if meant else None


class _OneTime(logging.Formatter):
    """Keeps a line as it is if the line says when it was written."""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        return text if _TIME.match(text) else super().format(record)


def _file(path: Path) -> RotatingFileHandler:
    handler = RotatingFileHandler(path, maxBytes=_FILE_BYTES_MAX, backupCount=_FILES_KEPT, encoding="utf-8")
    handler.setFormatter(_OneTime("%(asctime)s %(message)s"))
    # A full disk must not write a traceback per line onto the terminal.
    handler.handleError = lambda record: None  # type: ignore[method-assign]
    return handler


def _record(text: str) -> logging.LogRecord:
    return logging.LogRecord("fogline", logging.INFO, "", 0, text, None, None)
