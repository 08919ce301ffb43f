"""Runs one of the Java programs beside this file over a topic, and says how fast it was."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline_runtime.spark.jars import java_executable
from tests.benchmarks.peers.jars import jars_of

_FOLDER = Path(__file__).parent
_TIMEOUT_S = 300
_KIB = 1024


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
    events_per_s: float  # between the warm-up and the last event
    cpu_s: float  # from the start of the JVM to its end
    memory_mib: float  # the most that it had


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
        with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as log:
            process = subprocess.Popen([*command, *peer.more], stdout=said, stderr=log)
            _, _, used = os.wait4(process.pid, 0)
            said.seek(0)
            log.seek(0)
            found = re.search(r"EVENTS_PER_S ([\d.E]+)", said.read())
            if found is None:
                raise PeerFailed(f"{peer.program} {work}: {log.read()[-2000:]}")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return JavaRun(float(found[1]), used.ru_utime + used.ru_stime, used.ru_maxrss / _KIB)


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
