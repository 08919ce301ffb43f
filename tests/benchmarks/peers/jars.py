"""The libraries of the other systems, fetched and checked as Kafka's own are.

python -m tests.benchmarks.peers.jars lock      rewrites jars.lock, after a change of the versions below
"""

from __future__ import annotations

import sys
from pathlib import Path

from pipeline_runtime.spark.jars import locked_jars, write_lock

_JSON, _LOG = "com.fasterxml.jackson.core:jackson-databind:2.17.2", "org.slf4j:slf4j-simple:1.7.36"
_FLINK = "2.2.1"
_SPARK = "4.2.0"  # the connector of 4.3.0 cannot be had everywhere; this one works on PySpark 4.3
_WANTED = {
    "streams": ("org.apache.kafka:kafka-streams:4.1.2", _JSON, _LOG),
    "flink": (
        *(
            f"org.apache.flink:{name}:{_FLINK}"
            for name in (
                "flink-streaming-java",
                "flink-clients",
                "flink-runtime",
                "flink-connector-base",
                "flink-statebackend-rocksdb",
            )
        ),
        "org.apache.flink:flink-connector-kafka:5.0.0-2.2",
        _JSON,
        _LOG,
    ),
    # PySpark has the rest of what the connector needs.
    "spark": (
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{_SPARK}",
        f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{_SPARK}",
        "org.apache.kafka:kafka-clients:3.9.2",
        "org.apache.commons:commons-pool2:2.13.1",
    ),
}
_WITH_ALL_THEY_NEED = ("streams", "flink")
_LOCK_FILE = Path(__file__).with_name("jars.lock")


def jars_of(system: str) -> tuple[Path, ...]:
    """Returns the class path of "streams" or "flink", or the connector of "spark". Raises JarsUnavailable."""
    return locked_jars(system, _LOCK_FILE)


if __name__ == "__main__" and sys.argv[1:] == ["lock"]:
    write_lock(_LOCK_FILE, _WANTED, _WITH_ALL_THEY_NEED)
