"""Structured Streaming with Spark's own Kafka connector: in batches, and in Real-time Mode."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.benchmarks.peers.program import Peer

_PROGRAM = Path(__file__).with_name("spark_program.py")


def _command() -> list[str]:
    return [sys.executable, str(_PROGRAM)]


_SINK = ("sink.kafka.batch.size=262144", "sink.kafka.compression.type=zstd", "sink.kafka.linger.ms=5")

# What each setting is for is said in docs/benchmarks.md.
SPARK = Peer(
    "spark",
    _command,
    settings=(
        "mode=batches",
        "passes=1",
        "source.maxOffsetsPerTrigger=100000",
        "source.kafka.max.poll.records=10000",
        "source.kafka.max.partition.fetch.bytes=8388608",
        *_SINK,
    ),
    for_latency=("passes=0", "sink.kafka.linger.ms=0"),
    exactly_once=False,
    stamps_outputs=False,
    cannot={"chain-in-one": "its chain is one query without topics between, as in `chain`"},
)
_NO_STATE_FROM_PYTHON = "it takes no state of a user's own from Python"
REALTIME = Peer(
    "realtime",
    _command,
    settings=("mode=realtime", "passes=1", "source.kafka.max.poll.records=5000", *_SINK),
    for_latency=("passes=0", "sink.kafka.linger.ms=0"),
    exactly_once=False,
    stamps_outputs=False,
    cannot={
        "windows": "it writes a row for each event, and none when a window ends",
        "sliding": "it writes a row for each event, and none when a window ends",
        "python": "it takes no Python",
        "partitions": "in two trials its last rows did not come; nobody looked into why",
        "chain": _NO_STATE_FROM_PYTHON,
        "chain-in-one": _NO_STATE_FROM_PYTHON,
    },
)
