"""Kafka Streams and Flink: the Java programs beside this file."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pipeline_runtime.spark.jars import java_executable
from tests.benchmarks.peers.jars import jars_of
from tests.benchmarks.peers.program import Peer, PeerFailed

_FOLDER = Path(__file__).parent
_SHARED = "Rows"
_TIMEOUT_S = 300


def java_command(system: str, program: str, options: Sequence[str] = ()) -> list[str]:
    """Returns what starts `program`, a class beside this file, with the libraries of `system`. Raises
    PeerFailed, JarsUnavailable."""
    class_path = os.pathsep.join([*map(str, jars_of(system)), str(_compiled(system, program))])
    return [java_executable(), *options, "-cp", class_path, program]


def _compiled(system: str, program: str) -> Path:
    """Returns the directory of the program's classes, compiled where they are missing."""
    sources = [_FOLDER / f"{name}.java" for name in (_SHARED, program)]
    jars = [str(jar) for jar in jars_of(system)]
    text = b"\n".join(source.read_bytes() for source in sources)
    tag = hashlib.sha256(text + "\n".join(jars).encode()).hexdigest()[:12]
    target = Path("build/bench/peers", f"{system}-{tag}").resolve()
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


# What each setting is for is said in docs/benchmarks.md.
STREAMS = Peer(
    "streams",
    partial(java_command, "streams", "StreamsPeer", ("-Xmx1g", "-XX:+UseParallelGC")),
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
FLINK = Peer(
    "flink",
    partial(
        java_command,
        "flink",
        "FlinkPeer",
        ("-Xmx1g", "-XX:+UseParallelGC", "--add-opens=java.base/java.util=ALL-UNNAMED"),
    ),
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
