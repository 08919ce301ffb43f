"""One node process: Spark, the agent, its chunk service, its commands and its heartbeat.

It starts in an order in which nothing waits for Redis:
1. the lock on the node's directory;
2. the chunk service, from which others fetch;
3. the agent, which begins with the desired state on disk;
4. commands and heartbeat, which try Redis again for ever;
5. the Spark session, for which the replicas wait.

It stops on SIGTERM or SIGINT. First it hands over what it owns (`leaving.py`), within FOGLINE_LEAVE_S. A
second signal ends that. Then it is gone within 10 s: it takes no more commands, replicas end after their
running batch, and it says `bye`. SIGKILL at any moment loses nothing: the next start is the same.

If Spark does not start, its Java process ends, or an error ends one of the threads, this process stops as
well, without `bye`. Its supervisor starts it again. If that does not help, the control side sees the silence
and restores its groups.
"""

from __future__ import annotations

import logging
import os
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM
from time import monotonic
from urllib.parse import urlsplit

from pipeline_runtime import __version__
from pipeline_runtime.checkpoint.errors import ServiceUnavailable
from pipeline_runtime.checkpoint.service import Server, chunk_service, serve
from pipeline_runtime.garbage import settle
from pipeline_runtime.kafka import gone_topics
from pipeline_runtime.kafka.gone_topics import GoneTopics
from pipeline_runtime.model.desired import NodeDesired, NodeReport
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.spark.session import java_process
from pipeline_runtime.wire.tasks import node_queue
from workers.lock import lock
from workers.messages import CommandReceiver, celery_app
from workers.node.agent import Agent
from workers.node.answers import Answers
from workers.node.asked_processes import AskedProcesses
from workers.node.checkpoints import NodeCheckpoints, token_minter
from workers.node.commands import register_commands
from workers.node.connection_tests import ConnectionTests
from workers.node.connectors import Connectors
from workers.node.cost import CostMeter
from workers.node.desired_store import DesiredStore
from workers.node.engine import EngineFactory, SparkEngine
from workers.node.files import NodeFiles
from workers.node.heartbeat import Heartbeat, new_run_id
from workers.node.identity import Identity
from workers.node.java_ends import JavaEnds
from workers.node.leaving import leave
from workers.node.links import LinkProbe
from workers.node.load import LoadMeter
from workers.node.output import CommittedFile, add_output_route, committed_output
from workers.node.previews import Previews
from workers.node.recent_log import RecentLog
from workers.node.registries import NodeRegistries
from workers.node.runtime import NodeRuntime, RunningReplica
from workers.node.samples import Samples
from workers.stopping import Stopping, failed_by_threads, set_by_signals, wait_for

log = logging.getLogger(__name__)

WATCH_S = 1.0
PORTS_TRIED = 100
# The exit codes of a Java process that somebody has asked to end.
_TOLD_TO_END = {sign for number in (SIGHUP, SIGINT, SIGTERM) for sign in (-number, 128 + number)}
STOP_S = 8.0
"""The part of the 10 s in which replicas may end their last batches."""


class SparkEnded(RuntimeError):
    """The Java process of the Spark session has ended, for instance because memory was short."""


class NodeProcess:
    def __init__(self, identity: Identity, engine: EngineFactory = SparkEngine) -> None:
        self.identity = identity
        identity.directory.mkdir(parents=True, exist_ok=True)
        self._lock_file = lock(identity.directory, "the node")  # 1.
        self._recent = RecentLog(_secrets(identity))
        logging.getLogger().addHandler(self._recent)
        self._run_id = new_run_id()
        self._stopping = Stopping()
        self._asked = threading.Event()  # to stop, by a first signal
        self._leaving_until_ms: int | None = None
        self._service: Server | None = None
        self._spark_up = threading.Event()
        self._load, self._cost = LoadMeter(identity.directory), CostMeter()
        self._checkpoints = NodeCheckpoints(
            identity.name,
            identity.directory,
            identity.central_url,
            identity.cluster_key,
            self._changed,
            kept=identity.kept,
            bytes_per_s=identity.bytes_per_s,
            reserve_bytes=identity.reserve_bytes,
        )
        self._files = NodeFiles(
            identity.directory / "files", identity.central_url, identity.cluster_key, identity.unused_bytes
        )
        registries = NodeRegistries(identity.cluster_key).among(lambda: self._agent.connections)
        self._engine = engine(identity, self._replica_changed, self._files.resolve, registries)
        self._links = LinkProbe(token_minter(identity.cluster_key), identity.kafka)
        runtime = NodeRuntime(
            directory=identity.directory,
            open_replica=self._open_replica,
            checkpoints=self._checkpoints,
            fetch_files=self._files.fetch,
            now_ms=lambda: int(time.time() * 1000),
            changed=self._changed,
            java_ends=JavaEnds(identity.directory / "java-ends.json", identity.name),
        )
        self._agent = Agent(
            identity.name,
            runtime,
            DesiredStore(identity.directory / "desired.json"),
            identity.checkpoint_s,
            identity.checkpoint_batches,
            self._directed,
        )
        self._connectors = Connectors(
            identity.kafka,
            identity.directory / "connectors",
            identity.cluster_key,
            self._agent.connected,
            self._changed,
        )
        self._gone_topics = GoneTopics(self._agent.topics_wanted)
        logging.getLogger(gone_topics.LOGGER).addFilter(self._gone_topics)
        self._heartbeat = Heartbeat(identity.redis_url, self._report, identity.heartbeat_s)
        app = celery_app(f"fogline-{identity.name}", identity.redis_url, node_queue(identity.name))
        answers = Answers(identity.redis_url)
        self._asked_processes = AskedProcesses()
        samples = Samples(identity.cluster_key, self._asked_processes)
        previewed = NodeRegistries(identity.cluster_key)
        self._previews = Previews(
            identity.kafka,
            self._files.paths,
            samples.arrived,
            lambda connections: previewed.among(lambda: connections),
            answers.give,
        )
        tests = ConnectionTests(identity.cluster_key, self._asked_processes, answers.give)
        register_commands(app, self._agent, answers, self._previews, self._recent, tests)
        self._commands = CommandReceiver(app, identity.name, threads=4)

    def run(self) -> int:
        """Runs until SIGTERM, SIGINT, or until a part ends that it needs. Returns the exit code."""
        set_by_signals(self._stopping, first=self._asked)
        failed_by_threads(self._stopping)
        self.start()
        wait_for(self._asked, self._stopping)
        self._leave()
        wait_for(self._stopping)
        self.close()
        return self._stopping.code

    def _leave(self) -> None:
        # Without Spark, nothing runs here yet that could be handed over.
        if self.identity.leave_s <= 0 or not self._spark_up.is_set() or not self._agent.to_hand_over():
            self._stopping.set()
            return
        self._leaving_until_ms = int((time.time() + self.identity.leave_s) * 1000)
        self._changed()
        # In a thread, so that a second signal is obeyed at once, also while Redis keeps it waiting.
        arguments = (self.identity.name, self.identity.leave_s, self._stopping, self._agent.to_hand_over)
        asks = (lambda: self._agent.is_stuck, self._heartbeat.control_is_there)
        threading.Thread(target=leave, args=(*arguments, *asks), name="leaving", daemon=True).start()

    def start(self) -> None:
        self._service = self._serve()  # 2.
        self._checkpoints.start()
        self._agent.start()  # 3.
        self._connectors.start()
        self._files.start(self._agent.files_in_use)
        self._links.start()
        self._heartbeat.start()  # 4.
        self._previews.start()
        self._commands.start()
        # 5. In a thread, so that a SIGTERM during these seconds is obeyed at once.
        threading.Thread(target=self._start_spark, name="spark start", daemon=True).start()
        log.info("node %s: chunk service at %s", self.identity.name, self.identity.url)

    def close(self) -> None:
        started = monotonic()
        self._stopping.set()
        log.info("node %s: stopping; replicas end after their running batch", self.identity.name)
        self._commands.stop(timeout_s=0.5)
        self._previews.close()
        self._asked_processes.close()
        connectors = threading.Thread(target=self._connectors.close, args=(STOP_S - 2.0,), daemon=True)
        connectors.start()
        self._agent.close(STOP_S - 1.0)
        connectors.join(max(0.1, STOP_S - 1.0 - (monotonic() - started)))
        self._heartbeat.close(bye=self._stopping.failure is None)
        if self._service is not None:
            self._service.close(timeout_s=0.5)
        self._links.close()
        self._files.close()
        self._checkpoints.close()
        if self._spark_up.is_set() and self._stopping.failure is None:
            closing = threading.Thread(target=self._engine.close, daemon=True)
            closing.start()
            closing.join(max(0.5, STOP_S - (monotonic() - started)))
        self._lock_file.close()
        log.info("node %s: stopped after %.1f s", self.identity.name, monotonic() - started)
        logging.getLogger().removeHandler(self._recent)
        logging.getLogger(gone_topics.LOGGER).removeFilter(self._gone_topics)

    def _start_spark(self) -> None:
        try:
            self._engine.start()
        except BaseException as error:
            log.critical("node %s: Spark did not start", self.identity.name, exc_info=True)
            self._spark_lost(error)
            return
        settle()
        self._spark_up.set()
        log.info("node %s: Spark is up", self.identity.name)
        self._changed()
        java = java_process()
        if java is not None:
            self._watch(java)

    def _watch(self, java: subprocess.Popen[bytes]) -> None:
        while not self._stopping.wait(WATCH_S):
            code = java.poll()
            if code is not None:
                self._spark_up.clear()
                error = SparkEnded(
                    f"Spark's Java process ended with code {code}. If that is -9, see whether memory was "
                    "short. What was committed is safe. The node stops, so that it is started again."
                )
                log.critical("node %s: %s", self.identity.name, error)
                if code in _TOLD_TO_END and self._asked.is_set():
                    # All processes of the node were told to stop. systemd does that, unless it has
                    # KillMode=mixed. Nothing runs here any more that could be handed over.
                    log.warning("node %s: Spark's Java was told to stop, too; it ends", self.identity.name)
                    self._stopping.set()
                elif not self._stopping.is_set() and code not in _TOLD_TO_END:
                    self._agent.java_ended()
                self._spark_lost(error)

    def _spark_lost(self, error: BaseException) -> None:
        # It has no effect while the node stops in order: a signal to the process group ends Java as well.
        self._stopping.fail(error)
        self._changed()

    def _serve(self) -> Server:
        app = chunk_service(self._checkpoints.database, self.identity.cluster_key)
        add_output_route(app, self.identity.cluster_key, self._committed_output)
        identity = self.identity
        try:
            return serve(app, identity.listen_host, identity.port)
        except ServiceUnavailable:
            if identity.port_fixed:
                raise
        for port in range(identity.port + 1, identity.port + PORTS_TRIED):
            # Tried by listening, so that two nodes that start at the same time get different ports.
            with suppress(ServiceUnavailable):
                server = serve(app, identity.listen_host, port)
                self.identity = identity.at_port(port)
                return server
        raise ServiceUnavailable(
            f"None of the ports {identity.port} to {identity.port + PORTS_TRIED - 1} is free for the node's"
            " checkpoint service.",
            "Nothing was started.",
            "Name a free one in FOGLINE_NODE_PORT.",
        )

    # -- what the agent acts through ---------------------------------------------------------------

    def _open_replica(self, spec: GroupSpec, directory: Path) -> RunningReplica:
        while not self._spark_up.wait(0.5):
            if self._stopping.is_set():
                raise RuntimeError("the node is stopping")
        return self._engine.open_replica(spec, directory)

    def _directed(self, desired: NodeDesired) -> None:
        self._checkpoints.direct(desired)
        self._links.direct(desired.peers)
        connectors = getattr(self, "_connectors", None)  # not there while the process is being made
        if connectors is not None:
            connectors.wake()

    def _committed_output(self, group: str, element: str) -> CommittedFile:
        return committed_output(self.identity.directory, self.identity.kafka, group, element)

    # -- reports -----------------------------------------------------------------------------------

    def _changed(self) -> None:
        heartbeat = getattr(self, "_heartbeat", None)  # not there while the process is being made
        if heartbeat is not None:
            heartbeat.changed()

    def _replica_changed(self) -> None:
        self._agent.wake()
        self._connectors.wake()
        self._changed()

    def _report(self, number: int) -> NodeReport:
        load = self._load.measure()
        return NodeReport(
            node=self.identity.name,
            run_id=self._run_id,
            number=number,
            at_ms=int(time.time() * 1000),
            version=__version__,
            url=self.identity.url,
            revision=self._agent.revision,
            cores=os.cpu_count() or 1,
            ready=self._spark_up.is_set() and not self._stopping.is_set(),
            load=load,
            replicas=self._connectors.with_connectors(
                self._cost.with_costs(self._load.cpu_time, self._agent.statuses())
            ),
            alerts=self._checkpoints.alerts(),
            leaving_until_ms=self._leaving_until_ms,
            links=self._links.links(),
            broker=self._links.broker(),
        )


def _secrets(identity: Identity) -> tuple[str, ...]:
    passwords = (urlsplit(identity.redis_url).password, identity.kafka.security.get("sasl_plain_password"))
    return (identity.cluster_key, *(str(password) for password in passwords if password))
