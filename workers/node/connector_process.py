"""One process of a connector: pipeline_runtime/connectors/__main__.py."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

import pipeline_runtime
from pipeline_runtime.model.connectors import ConnectorStatus
from pipeline_runtime.spark.environment import keep_what_workers_need

log = logging.getLogger(__name__)

LINE_BYTES_MAX = 1 << 20
_ROOT = Path(pipeline_runtime.__file__).parents[1]

Said = Callable[[ConnectorStatus, str], None]


class ConnectorProcess:
    def __init__(self, config: str, said: Said, ended: Callable[[], None]) -> None:
        """`said` is told each status, from a thread; `ended` is called when the process has ended."""
        self._said, self._ended = said, ended
        self._process = start("-m", "pipeline_runtime.connectors")
        threading.Thread(target=self._listen, name="connector reports", daemon=True).start()
        self.say(config)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def code(self) -> int | None:
        return self._process.poll()

    def say(self, line: str) -> None:
        """If it has ended, nothing happens."""
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):  # ValueError: it was killed, and its input is closed
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def wait(self, timeout_s: float) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stdout:
            while line := stdout.readline(LINE_BYTES_MAX):
                try:
                    said = json.loads(line)
                    self._said(ConnectorStatus.model_validate(said["status"]), said["note"])
                except (ValueError, KeyError, ValidationError):
                    log.warning("a connector's report cannot be read")
        self._process.wait()
        self._ended()


def start(*arguments: str) -> subprocess.Popen[bytes]:
    """Returns a Python process with the environment of this one, but no secret."""
    environment = dict(os.environ)
    keep_what_workers_need(environment)
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=_ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C in the node's terminal is the node's
    )
