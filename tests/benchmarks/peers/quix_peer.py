"""Quix Streams, exactly once, in an environment of its own."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.peers.environment import environment
from tests.benchmarks.peers.program import Peer


def _command() -> list[str]:
    return [str(environment("quix") / "python"), str(Path(__file__).with_name("quix_program.py"))]


# What each setting is for is said in docs/benchmarks.md.
QUIX = Peer(
    "quix",
    _command,
    settings=(
        "commit_interval=0.1",
        "consumer.fetch.min.bytes=1",
        "consumer.queued.min.messages=100000",
        "consumer.max.partition.fetch.bytes=8388608",
        "producer.linger.ms=100",
        "producer.batch.size=262144",
        "producer.batch.num.messages=100000",
    ),
    for_latency=("commit_interval=0.01", "poll_timeout=0.005", "producer.linger.ms=0"),
    part_of_events=5,
    cannot={
        "chain-in-one": "its chain is one process without topics between, as in `chain`",
        "partitions": "its process has one thread",
    },
)
