"""Runs one of the Java programs beside this file over a topic, and says how fast it was."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from pipeline_runtime.spark.jars import java_executable
from tests.benchmarks.peers.jars import jars_of

_FOLDER = Path(__file__).parent
_TIMEOUT_S = 300
_LAST = "EVENTS_PER_S "


@dataclass(frozen=True)
class JavaPeer:
    """`heap`: of its JVM. `options`: of Java. `more`: arguments behind those that all programs take."""

    name: str
    program: str
    heap: str
    options: Sequence[str] = ()
    more: Sequence[str] = ()


STREAMS = JavaPeer("streams", "StreamsThroughput", "512m")
FLINK = JavaPeer(
    "flink",
    "FlinkThroughput",
    "1g",
    options=("--add-opens=java.base/java.util=ALL-UNNAMED",),
    more=("100",),  # ms between checkpoints
)


@dataclass(frozen=True)
class JavaRun:
    """What it took from the end of the warm-up to the last event."""

    events_per_s: float
    cpu_s: float
    memory_mib: float  # at the last event


class PeerFailed(RuntimeError):
    """The program cannot be compiled, or did not get to its last event."""


def run(peer: JavaPeer, bootstrap: str, topic: str, output: str, work: str, count: int, warm: int) -> JavaRun:
    """Processes `count` events of `topic` into `output`. The first `warm` of them do not count. Raises
    PeerFailed, JarsUnavailable."""
    class_path = os.pathsep.join([*map(str, jars_of(peer.name)), str(_compiled(peer))])
    directory = tempfile.mkdtemp(prefix="fogline-peer-")
    command = [java_executable(), f"-Xmx{peer.heap}", "-XX:+UseSerialGC", *peer.options, "-cp", class_path]
    command += [peer.program, bootstrap, output, directory, topic, output, work, str(count), str(warm)]
    try:
        with tempfile.TemporaryFile("w+") as log:
            process = psutil.Popen([*command, *peer.more], stdout=subprocess.PIPE, stderr=log, text=True)
            try:
                found = _followed(process)
                process.wait(_TIMEOUT_S)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            log.seek(0)
            if found is None:
                raise PeerFailed(f"{peer.program} {work}: {log.read()[-2000:]}")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return found


def _followed(process: psutil.Popen) -> JavaRun | None:
    """Reads what the program says. Returns None if it ends before its last event."""
    warm_cpu_s = 0.0
    for line in process.stdout:
        used = process.cpu_times()
        cpu_s = used.user + used.system
        if line.strip() == "WARM":
            warm_cpu_s = cpu_s
        elif line.startswith(_LAST):
            memory = process.memory_full_info()
            return JavaRun(float(line.removeprefix(_LAST)), cpu_s - warm_cpu_s, memory.pss / 2**20)
    return None


def _compiled(peer: JavaPeer) -> Path:
    """Returns the directory of the program's classes, compiled where they are missing."""
    source = _FOLDER / f"{peer.program}.java"
    jars = [str(jar) for jar in jars_of(peer.name)]
    tag = hashlib.sha256(source.read_bytes() + "\n".join(jars).encode()).hexdigest()[:12]
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
                [str(compiler), "-nowarn", "-cp", os.pathsep.join(jars), "-d", draft, str(source)],
                check=True,
                timeout=_TIMEOUT_S,
            )
            shutil.copytree(draft, target)
    return target
