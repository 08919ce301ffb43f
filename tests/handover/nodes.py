"""The rig's side of a node process: commands, news, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Literal

import psutil

from pipeline_runtime.model.desired import ReplicaStatus, Role
from pipeline_runtime.model.spec import GroupSpec

ROOT = Path(__file__).resolve().parents[2]
READY_S = 120.0
ANSWER_S = 90.0
PATIENCE_S = 150.0  # a busy machine takes a minute to start a first query
_DUMP_S = 1.0
EngineName = Literal["spark", "plain"]
_MODULE = "tests.handover.node_process"
_ENTRY_POINTS = "[fogline.operators]\nkeyed-sequence = tests.handover.copier:KeyedSequence\n"
_METADATA = "Metadata-Version: 2.1\nName: fogline-handover-tests\nVersion: 1\n"


class NodeGone(RuntimeError):
    """The node's process ended while a command waited for its answer."""


class CommandFailed(RuntimeError):
    """The node answered with an error."""


@dataclass(frozen=True)
class Reached:
    """The node stands at a crash point. It says what has to happen there."""

    point: str
    fault: str
    at: float


@dataclass
class News:
    """What the node has reported so far. Times are those of the machine's monotonic clock."""

    url: str = ""
    ready_at: float = 0.0
    statuses: dict[str, ReplicaStatus] = field(default_factory=dict)
    history: list[tuple[float, ReplicaStatus]] = field(default_factory=list)
    answers: dict[int, dict[str, Any]] = field(default_factory=dict)
    reached: list[Reached] = field(default_factory=list)
    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    checkpoint_failures: list[str] = field(default_factory=list)
    heard_at: float = 0.0


def install_operator(site: Path) -> None:
    """Installs the test's operator as a user's package, which node processes find by its entry point."""
    info = site / "fogline_handover_tests-1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(_METADATA)
    (info / "entry_points.txt").write_text(_ENTRY_POINTS)


class Node:
    """May be started again after it was killed. Its directory stays."""

    def __init__(self, name: str, directory: Path, bootstrap: str, site: Path, engine: EngineName) -> None:
        self.name = name
        self.directory = directory
        self._bootstrap = bootstrap
        self._site = site
        self._engine = engine
        self._process: subprocess.Popen[str] | None = None
        self._number = 0
        self._changed = threading.Condition()
        self.news = News()
        self.generations: dict[str, int] = {}
        self.frozen = False

    # --- its process

    def launch(self) -> None:
        """Returns at once; `wait_ready` waits."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.news = News()
        self.frozen = False
        path = os.pathsep.join([str(ROOT), str(self._site)])
        with (self.directory / "log.txt").open("a") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    _MODULE,
                    self.name,
                    str(self.directory),
                    self._bootstrap,
                    self._engine,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": path},
                text=True,
                start_new_session=True,
            )
        threading.Thread(target=self._listen, args=(self._process, self.news), daemon=True).start()

    def wait_ready(self) -> None:
        self.wait(lambda: bool(self.news.url), "to be ready", READY_S)

    @property
    def ready(self) -> bool:
        return self.serving and bool(self.news.url)

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def serving(self) -> bool:
        """Returns whether its process runs and is not frozen."""
        return self.alive and not self.frozen

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> float:
        """Sends SIGKILL to the Python process and returns when that was. Java then ends by itself. See
        `bury`."""
        assert self._process is not None
        self._process.kill()
        return monotonic()

    def bury(self) -> None:
        """Waits until nothing is left of a process that has ended or is about to."""
        process, self._process = self._process, None
        if process is None:
            return
        family = _session(process.pid)
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        _, alive = psutil.wait_procs(family, timeout=15)
        for one in alive:
            one.kill()
        psutil.wait_procs(alive, timeout=15)
        process.wait(15)

    def freeze(self) -> None:
        """Sends SIGSTOP to everything that it runs, as when a machine is suspended."""
        self.frozen = True
        _signal_all(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        _signal_all(self.pid, signal.SIGCONT)
        self.frozen = False

    def stopped_itself(self) -> bool:
        """Returns whether it stopped itself at a crash point; `thaw` wakes it up."""
        if self.alive and psutil.Process(self.pid).status() == psutil.STATUS_STOPPED:
            self.frozen = True
        return self.frozen

    def print_stacks(self) -> None:
        """Prints the stacks of all its threads, to find what waits in vain."""
        if not self.serving:
            return
        log = self.directory / "log.txt"
        before = log.stat().st_size
        os.kill(self.pid, signal.SIGUSR1)
        sleep(_DUMP_S)
        print(f"{self.name}:\n{log.read_bytes()[before:].decode(errors='replace')}")

    def close(self) -> None:
        """Ends it in order, or by force if that takes too long."""
        if self._process is None:
            return
        if self.frozen:
            self.thaw()
        with suppress(NodeGone, CommandFailed, TimeoutError):
            if self.alive:
                self.ask("exit", timeout_s=30)
        self.bury()

    # --- words

    def ask(self, what: str, *, timeout_s: float = ANSWER_S, **arguments: Any) -> Any:
        """Returns its answer. Raises NodeGone, CommandFailed or TimeoutError."""
        number = self.tell(what, **arguments)
        self.wait(lambda: number in self.news.answers, f"to answer {what}", timeout_s)
        answer = self.news.answers.pop(number)
        if "failed" in answer:
            raise CommandFailed(f"{self.name}, {what}: {answer['failed']}\n{answer['traceback']}")
        return answer["value"]

    def tell(self, what: str, **arguments: Any) -> int:
        """Sends a command without waiting for the answer. Returns the command's number."""
        process = self._process
        if process is None or process.stdin is None:
            raise NodeGone(f"{self.name} does not run")
        with self._changed:
            self._number += 1
            number = self._number
            try:
                process.stdin.write(json.dumps({"number": number, "do": what, **arguments}) + "\n")
                process.stdin.flush()
            except (BrokenPipeError, ValueError) as error:
                raise NodeGone(f"{self.name} has ended") from error
        return number

    def wait(self, condition: Callable[[], bool], what: str, timeout_s: float = PATIENCE_S) -> None:
        """Waits until the news make `condition` true."""
        deadline = monotonic() + timeout_s
        with self._changed:
            while not condition():
                if not self.alive:
                    raise NodeGone(f"{self.name} has ended while it was {what}; see {self.directory}/log.txt")
                if monotonic() > deadline:
                    known = {group: str(status) for group, status in self.news.statuses.items()}
                    raise TimeoutError(f"{self.name}: {what}, not within {timeout_s:.0f} s: {known}")
                self._changed.wait(0.2)

    def wait_status(
        self,
        spec: GroupSpec,
        condition: Callable[[ReplicaStatus], bool],
        what: str,
        timeout_s: float = PATIENCE_S,
    ) -> ReplicaStatus:
        """Returns the first status of the group for which `condition` holds."""

        def holds() -> bool:
            status = self.news.statuses.get(spec.id)
            return status is not None and condition(status)

        self.wait(holds, what, timeout_s)
        return self.news.statuses[spec.id]

    def status(self, spec: GroupSpec) -> ReplicaStatus | None:
        """Returns the newest status that it has reported."""
        return self.news.statuses.get(spec.id)

    def _listen(self, process: subprocess.Popen[str], news: News) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            said = json.loads(line)
            with self._changed:
                _note(news, said)
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    # --- replicas

    def start(self, spec: GroupSpec) -> None:
        """Starts a replica that follows, from what its directory holds."""
        self.news.statuses.pop(spec.id, None)
        self.ask("start", spec=spec.model_dump(mode="json"), generation=self.generation(spec))

    def stop(self, spec: GroupSpec) -> None:
        """Stops the replica, if there is one. Its directory stays."""
        self.ask("stop", group=spec.id)
        self.news.statuses.pop(spec.id, None)

    def generation(self, spec: GroupSpec) -> int:
        return self.generations.setdefault(spec.id, 1)

    def fetch(self, spec: GroupSpec, origin: Node, seq: int | None = None) -> dict[str, Any]:
        """Fetches a checkpoint of `origin` into a new generation of this node's directory."""
        self.generations[spec.id] = self.generation(spec) + 1
        answer: dict[str, Any] = self.ask(
            "fetch", url=origin.news.url, group=spec.id, generation=self.generation(spec), seq=seq
        )
        return answer

    def checkpoint(self, spec: GroupSpec) -> dict[str, Any]:
        answer: dict[str, Any] = self.ask("checkpoint", group=spec.id, generation=self.generation(spec))
        return answer

    def owns(self, spec: GroupSpec) -> bool:
        status = self.status(spec)
        return self.serving and status is not None and status.role is Role.OWNER

    def follows(self, spec: GroupSpec) -> bool:
        """Returns whether it is a standby that could take over."""
        status = self.status(spec)
        return self.serving and status is not None and status.role is Role.STANDBY


def _session(leader: int) -> list[psutil.Process]:
    """Returns all processes of the session that a node's process leads, even when that has ended itself."""
    found = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _signal_all(leader: int, signal_: signal.Signals) -> None:
    for process in _session(leader):
        with suppress(psutil.NoSuchProcess):  # Spark's workers come and go
            process.send_signal(signal_)


def _note(news: News, said: dict[str, Any]) -> None:
    at = said["at"]
    news.heard_at = at
    match said:
        case {"ready": _, "url": url}:
            news.url, news.ready_at = url, at
        case {"status": data}:
            status = ReplicaStatus.model_validate(data)
            old = news.statuses.get(status.group)
            news.statuses[status.group] = status
            if old is None or (old.role, old.phase, old.armed) != (status.role, status.phase, status.armed):
                news.history.append((at, status))
        case {"answer": number}:
            news.answers[number] = said
        case {"reached": point, "fault": fault}:
            news.reached.append(Reached(point, fault, at))
        case {"checkpoint": taken}:
            news.checkpoints.append({"at": at, **taken})
        case {"checkpoint_failed": message}:
            news.checkpoint_failures.append(message)
