"""What a start with a node and the demo shows on the console, and hands on to what Spark runs."""

from __future__ import annotations

import json
from pathlib import Path

import psutil
import pytest
from kafka import KafkaConsumer, TopicPartition

from tests.running import RunningFogline
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

PASSWORD = "known-to-nobody"
SECRETS = {
    "FOGLINE_CLUSTER_KEY": f"{PASSWORD}-cluster-key-of-many-characters",
    "FOGLINE_SECRET_KEY": f"{PASSWORD}-secret-key-of-many-characters",
    "FOGLINE_METRICS_TOKEN": f"{PASSWORD}-metrics",
    "FOGLINE_TOKEN": f"{PASSWORD}-token",
    "FOGLINE_KAFKA_SECURITY": json.dumps({"security_protocol": "PLAINTEXT", "sasl_plain_password": PASSWORD}),
    "SOMEBODYS_PASSWORD": PASSWORD,
}


def written(bootstrap: str) -> int:
    """How many records are in all topics."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    try:
        parts = [
            TopicPartition(topic, number)
            for topic in consumer.topics()
            for number in consumer.partitions_for_topic(topic) or ()
        ]
        return sum(consumer.end_offsets(parts).values()) if parts else 0
    finally:
        consumer.close()


def environment(process: psutil.Process) -> str:
    """As the system shows it to the user's other programs."""
    return Path(f"/proc/{process.pid}/environ").read_text(errors="replace")


def test_the_processes_of_spark_know_no_secret_and_the_console_no_noise(
    tmp_path: Path, redis_url: str
) -> None:
    data = tmp_path / "data"
    elsewhere = {"REDIS_URL": redis_url, "DATABASE_URL": f"sqlite:///{data}/{PASSWORD}.sqlite3"}
    with RunningFogline(data, nodes=("edge-a",), demo=True, **SECRETS, **elsewhere) as fogline:
        wait_until(lambda: written(fogline.bootstrap) > 20, "the demo's batches")
        node = psutil.Process(fogline.pid("edge-a"))
        assert PASSWORD in environment(node), "it was given them"
        family = [one for one in node.children(recursive=True) if one.is_running()]
        java = [one for one in family if one.name() == "java"]
        python = [one for one in family if "pyspark" in " ".join(one.cmdline())]
        assert len(java) == 1, family
        assert len(python) > 2, family
        for process in family:
            found = environment(process)
            assert "PATH=" in found, process
            assert PASSWORD not in found, process
            assert not any(name in found for name in (*SECRETS, *elsewhere)), process

        log = (data / "logs" / "edge-a.log").read_text()
        for noise in ("log4j", "NativeCodeLoader", "incubator"):
            assert noise in log
            assert noise not in fogline.output
        assert "| Starting Accounts, Web, Control, Node edge-a" in fogline.output
    assert PASSWORD not in "".join(path.read_text() for path in (data / "logs").glob("*.log"))
