"""A node for the handover tests: a real ReplicaHost and Replicas in a process of their own.

    python -m tests.handover.node_process <name> <directory> <bootstrap> spark|plain

Commands come as JSON lines on standard input. Answers and news leave as JSON lines on standard output. There
is no Celery, no Redis and no web, since only the runtime is measured and broken here. Chunks of checkpoints
are served and fetched as between real nodes. The last argument says what runs the queries: Spark, or
tests.handover.plain_engine.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn, get_args

from pipeline_runtime.checkpoint import access
from pipeline_runtime.checkpoint.client import ChunkClient
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.errors import CheckpointError
from pipeline_runtime.checkpoint.service import chunk_service, serve
from pipeline_runtime.checkpoint.snapshot import take_snapshot
from pipeline_runtime.checkpoint.store import store
from pipeline_runtime.checkpoint.transfer import fetch_from_any
from pipeline_runtime.handover import crash_points
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.desired import ClaimOrder, ReplicaStatus
from pipeline_runtime.model.ids import Epoch
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.host import ReplicaHost
from pipeline_runtime.replica.replica import Replica
from tests.directing import tell
from tests.handover.nodes import EngineName
from tests.handover.plain_engine import PlainEngine

CLUSTER_KEY = "handover-tests"
BEAT_S = 0.25
_STOP_S = 30.0
_GO_S = 30.0
# The part of a status that is reported at once. The rest may wait for the next beat.
_TOLD = ("role", "phase", "epoch", "order_id", "order_refused", "armed", "released", "error")


class Output:
    """Writes lines to the rig. Nothing else writes there: what Spark and Java print goes to standard
    error."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stream = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def say(self, **line: Any) -> None:
        with self._lock:
            self._stream.write(json.dumps({"at": monotonic(), **line}) + "\n")
            self._stream.flush()


class Faults:
    """One fault at a time, at the crash point that the rig has named."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._planned: tuple[str, str] | None = None
        self._go = threading.Event()
        crash_points.on_reached = self.reached

    def plan(self, point: str | None, fault: str) -> None:
        self._planned = (point, fault) if point else None

    def go_on(self) -> None:
        self._go.set()

    def reached(self, point: str) -> None:
        if self._planned is None or self._planned[0] != point:
            return
        (_, fault), self._planned = self._planned, None
        self._go.clear()
        self._output.say(reached=point, fault=fault)
        if fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            self._go.wait(_GO_S)  # the rig cuts the line, or kills the broker, and says so


class NodeProcess:
    def __init__(
        self, name: str, directory: Path, bootstrap: str, engine: EngineName, output: Output
    ) -> None:
        self._name = name
        self._directory = directory
        self._output = output
        self._faults = Faults(output)
        self._changed = threading.Event()
        directory.mkdir(parents=True, exist_ok=True)
        self._host = ReplicaHost(
            name,
            directory / "host",
            KafkaSettings(bootstrap),
            self._changed.set,
            _no_files,
            engine=PlainEngine() if engine == "plain" else None,
        )
        self._database = StateDatabase(directory / "database")
        self._service = serve(chunk_service(self._database, CLUSTER_KEY), "127.0.0.1", 0)
        self._replicas: dict[str, Replica] = {}
        self._periodic: dict[str, threading.Event] = {}

    def run(self, lines: Iterator[str]) -> None:
        self._host.start()
        threading.Thread(target=self._report, name="reports", daemon=True).start()
        self._output.say(ready=self._name, url=self._service.url, pid=os.getpid())
        for line in lines:
            command = json.loads(line)
            # Each in a thread of its own, since a fetch must not hold back an order.
            threading.Thread(target=self._carry_out, args=(command,), daemon=True).start()

    def _carry_out(self, command: dict[str, Any]) -> None:
        number, what = command.pop("number"), command.pop("do")
        try:
            answer = getattr(self, f"do_{what}")(**command)
            self._output.say(answer=number, value=answer)
        except BaseException as error:
            text = "".join(traceback.format_exception(error))
            self._output.say(answer=number, failed=f"{type(error).__name__}: {error}", traceback=text)

    def _report(self) -> None:
        """Reports news of the replicas, and at least a sign of life every BEAT_S."""
        told: dict[str, tuple[Any, ...]] = {}
        beat_at = 0.0
        while True:
            self._changed.wait(max(0.0, beat_at + BEAT_S - monotonic()))
            self._changed.clear()
            due = monotonic() >= beat_at + BEAT_S
            for group, replica in list(self._replicas.items()):
                status = replica.status()
                news = tuple(getattr(status, name) for name in _TOLD)
                if group in self._replicas and (due or told.get(group) != news):
                    told[group] = news
                    self._output.say(status=_plain(status))
            if due:
                beat_at = monotonic()
                self._output.say(beat=self._name)

    # --- commands

    def do_start(self, spec: dict[str, Any], generation: int) -> None:
        parsed = GroupSpec.model_validate(spec)
        replica = Replica(parsed, self._where(parsed.id, generation), self._host)
        self._replicas[parsed.id] = replica
        replica.start()

    def do_own(self, group: str, order: str, over: int) -> None:
        tell(self._replicas[group], order=ClaimOrder(id=order, over=Epoch(over)))

    def do_succeed(self, group: str, handover: str | None) -> None:
        tell(self._replicas[group], succeed=handover)

    def do_release(self, group: str, handover: str | None) -> None:
        tell(self._replicas[group], release=handover)

    def do_followed(self, group: str, followed: bool) -> None:
        tell(self._replicas[group], followed=followed)

    def do_paused(self, group: str, paused: bool) -> None:
        tell(self._replicas[group], paused_since_ms=0 if paused else None)

    def do_status(self, group: str) -> dict[str, Any]:
        return _plain(self._replicas[group].status())

    def do_stop(self, group: str) -> None:
        """Stops only the replica. Its directory stays."""
        replica = self._replicas.pop(group, None)
        if replica is not None:
            replica.stop(_STOP_S)

    def do_discard(self, group: str) -> None:
        """Deletes everything that this node has of a group that does not run here."""
        shutil.rmtree(self._directory / "replicas" / group, ignore_errors=True)
        self._database.drop_group(group)

    def do_fault(self, point: str | None, fault: str) -> None:
        self._faults.plan(point, fault)

    def do_go_on(self) -> None:
        self._faults.go_on()

    def do_checkpoint(self, group: str, generation: int) -> dict[str, Any]:
        begun = monotonic()
        replica = self._replicas.get(group)
        epoch = replica.status().epoch if replica else Epoch(0)
        version = replica.spec.version if replica else "1"
        growing = replica.growing if replica else None
        with take_snapshot(self._where(group, generation), self._directory / "work", growing) as taken:
            taken_at = monotonic()
            manifest = store(
                taken, self._database, group=group, epoch=epoch, version=version, node=self._name
            )
        return {
            "seq": manifest.seq,
            "bytes_total": manifest.bytes_total,
            "bytes_new": manifest.bytes_new,
            "snapshot_ms": (taken_at - begun) * 1000,
            "store_ms": (monotonic() - taken_at) * 1000,
        }

    def do_checkpoints_every(self, group: str, generation: int, seconds: float) -> None:
        """Takes a checkpoint again and again; 0 ends that."""
        running = self._periodic.pop(group, None)
        if running is not None:
            running.set()
        if seconds > 0:
            over = self._periodic[group] = threading.Event()
            threading.Thread(
                target=self._checkpoints, args=(group, generation, seconds, over), daemon=True
            ).start()

    def _checkpoints(self, group: str, generation: int, seconds: float, over: threading.Event) -> None:
        due = monotonic()
        while not over.wait(max(0.0, due - monotonic())):
            due += seconds
            try:
                self._output.say(checkpoint=self.do_checkpoint(group, generation))
            except CheckpointError as error:
                self._output.say(checkpoint_failed=str(error))

    def do_fetch(self, url: str, group: str, generation: int, seq: int | None) -> dict[str, Any]:
        """Fetches from another node's chunk service into a fresh directory of this node."""
        begun = monotonic()
        directory = self._where(group, generation)
        directory.parent.mkdir(parents=True, exist_ok=True)
        token = access.mint(CLUSTER_KEY, access.group_read(group), 2**31)
        client = ChunkClient(url, token)
        try:
            fetched = fetch_from_any([client], group, seq, directory, self._database)
        finally:
            client.close()
        return {
            "seq": fetched.manifest.seq,
            "bytes": fetched.bytes_fetched,
            "fetch_ms": (monotonic() - begun) * 1000,
        }

    def do_exit(self) -> None:
        for group in list(self._replicas):
            self.do_stop(group)
        self._host.close()
        self._service.close()
        self._database.close()

    def _where(self, group: str, generation: int) -> Path:
        return self._directory / "replicas" / group / f"g{generation}"


def _plain(status: ReplicaStatus) -> dict[str, Any]:
    return status.model_dump(mode="json", exclude={"elements"})


def _no_files(reference: str) -> NoReturn:
    raise FileNotFoundError(reference)


def main() -> None:
    name, directory, bootstrap, engine = sys.argv[1:]
    assert engine in get_args(EngineName), engine
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s.%(msecs)03d %(name)s %(message)s", datefmt="%T"
    )
    for name_of_other in ("kafka", "py4j", "httpx", "uvicorn"):
        logging.getLogger(name_of_other).setLevel(logging.ERROR)
    faulthandler.register(signal.SIGUSR1)  # prints where its threads are
    output = Output()
    lines = os.fdopen(os.dup(0), "r")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    NodeProcess(name, Path(directory), bootstrap, engine, output).run(lines)
    # Standard input has ended, so the rig is done or gone. Java ends when this process does.
    os._exit(0)


if __name__ == "__main__":
    main()
