"""Runs one of the Java programs beside this file over a topic, and says how fast it was."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import psutil

from pipeline_runtime.spark.jars import java_executable
from tests.benchmarks.peers.jars import jars_of

_FOLDER = Path(__file__).parent
_SHARED = "Rows"
_TIMEOUT_S = 300
_LAST = "EVENTS_PER_S "


@dataclass(frozen=True)
class JavaPeer:
    """`java`: options of its JVM. `settings`: of the system, as name=value. `for_latency`: those that are
    different where latency counts."""

    name: str
    program: str
    java: Sequence[str]
    settings: Sequence[str]
    for_latency: Sequence[str]


# What each setting is for is said in docs/benchmarks.md.
STREAMS = JavaPeer(
    "streams",
    "StreamsPeer",
    java=("-Xmx1g", "-XX:+UseParallelGC"),
    settings=(
        "commit.interval.ms=100",
        "statestore.cache.max.bytes=67108864",
        "buffered.records.per.partition=20000",
        "consumer.max.poll.records=10000",
        "consumer.max.partition.fetch.bytes=8388608",
        "producer.batch.size=262144",
        "producer.linger.ms=100",
    ),
    for_latency=("commit.interval.ms=10", "poll.ms=1", "producer.linger.ms=0"),
)
FLINK = JavaPeer(
    "flink",
    "FlinkPeer",
    java=("-Xmx1g", "-XX:+UseParallelGC", "--add-opens=java.base/java.util=ALL-UNNAMED"),
    settings=(
        "execution.checkpointing.interval=100 ms",
        "state.backend.type=hashmap",
        "source.max.poll.records=10000",
        "source.max.partition.fetch.bytes=8388608",
        "sink.batch.size=262144",
        "sink.linger.ms=5",
    ),
    for_latency=(
        "execution.checkpointing.interval=25 ms",
        "execution.buffer-timeout.interval=1 ms",
        "sink.linger.ms=0",
    ),
)


@dataclass(frozen=True)
class JavaRun:
    """What it took from the end of the warm-up to the last event."""

    events_per_s: float
    cpu_s: float
    memory_mib: float  # at the last event


class PeerFailed(RuntimeError):
    """The program cannot be compiled, or did not get to its last event."""


class Running:
    """A program that runs. `warm` is set at the end of its warm-up, or when it has ended."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._log = log
        self._found: JavaRun | None = None
        self.warm = threading.Event()
        with log.open("w") as file:
            self.process = psutil.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True)
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()

    def _follow(self) -> None:
        """Reads what the program says, until it ends."""
        warm_cpu_s = 0.0
        for line in self.process.stdout:
            used = self.process.cpu_times()
            cpu_s = used.user + used.system
            if line.strip() == "WARM":
                warm_cpu_s = cpu_s
                self.warm.set()
            elif line.startswith(_LAST):
                memory = self.process.memory_full_info()
                rate = float(line.removeprefix(_LAST))
                self._found = JavaRun(rate, cpu_s - warm_cpu_s, memory.pss / 2**20)
        self.warm.set()

    def wait_until_warm(self) -> None:
        if not self.warm.wait(_TIMEOUT_S) or self.process.poll() is not None:
            self._fail()

    def result(self) -> JavaRun:
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
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@contextmanager
def running(
    peer: JavaPeer,
    bootstrap: str,
    topic: str,
    output: str,
    work: str,
    count: int,
    warm: int,
    *,
    threads: int = 1,
    for_latency: bool = False,
) -> Iterator[Running]:
    """Processes `count` events of `topic` into `output`. The first `warm` of them do not count. Raises
    PeerFailed, JarsUnavailable."""
    class_path = os.pathsep.join([*map(str, jars_of(peer.name)), str(_compiled(peer))])
    directory = Path(tempfile.mkdtemp(prefix="fogline-peer-"))
    command = [java_executable(), *peer.java, "-cp", class_path, peer.program, bootstrap, output]
    command += [str(directory), topic, output, work, str(count), str(warm), str(threads), *peer.settings]
    command += peer.for_latency if for_latency else ()
    program = None
    try:
        program = Running(command, directory / "log")
        yield program
    finally:
        if program is not None:
            program.end()
        shutil.rmtree(directory, ignore_errors=True)


def _compiled(peer: JavaPeer) -> Path:
    """Returns the directory of the program's classes, compiled where they are missing."""
    sources = [_FOLDER / f"{name}.java" for name in (_SHARED, peer.program)]
    jars = [str(jar) for jar in jars_of(peer.name)]
    text = b"\n".join(source.read_bytes() for source in sources)
    tag = hashlib.sha256(text + "\n".join(jars).encode()).hexdigest()[:12]
    target = Path("build/bench/peers", f"{peer.name}-{tag}").resolve()
    if not target.is_dir():
        compiler = Path(java_executable()).resolve().with_name("javac")
        if not compiler.is_file():
            raise PeerFailed(
                f"{compiler} is missing: the other systems' programs are compiled. Install a JDK (Debian:"
                " openjdk-17-jdk-headless)."
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as draft:
            subprocess.run(
                [str(compiler), "-nowarn", "-cp", os.pathsep.join(jars), "-d", draft, *map(str, sources)],
                check=True,
                timeout=_TIMEOUT_S,
            )
            shutil.copytree(draft, target)
    return target
