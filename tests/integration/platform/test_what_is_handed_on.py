"""What a start with a node and the demo shows on the console, and hands on to what Spark runs."""

from __future__ import annotations

import json
from contextlib import suppress
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


def environments(processes: list[psutil.Process]) -> dict[str, str]:
    """Of those that still run, as the system shows it to the user's other programs, by id and command."""
    found = {}
    for process in processes:
        with suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            text = Path(f"/proc/{process.pid}/environ").read_text(errors="replace")
            if text:
                found[f"{process.pid} {' '.join(process.cmdline())}"] = text
    return found


def test_the_processes_of_spark_know_no_secret_and_the_console_no_noise(
    tmp_path: Path, redis_url: str
) -> None:
    data = tmp_path / "data"
    elsewhere = {"REDIS_URL": redis_url, "DATABASE_URL": f"sqlite:///{data}/{PASSWORD}.sqlite3"}
    with RunningFogline(data, nodes=("edge-a",), demo=True, **SECRETS, **elsewhere) as fogline:
        wait_until(lambda: written(fogline.bootstrap) > 20, "the demo's batches")
        node = psutil.Process(fogline.pid("edge-a"))
        (of_node,) = environments([node]).values()
        assert PASSWORD in of_node, "it was given them"
        handed_on = environments(node.children(recursive=True))
        assert len([one for one in handed_on if "/java " in one]) == 1, list(handed_on)
        assert len([one for one in handed_on if "pyspark" in one and "/java " not in one]) > 2, list(
            handed_on
        )
        for process, text in handed_on.items():
            assert "PATH=" in text, process
            assert PASSWORD not in text, process
            assert not any(f"{name}=" in text for name in (*SECRETS, *elsewhere)), process

        log = (data / "logs" / "edge-a.log").read_text()
        for noise in ("log4j", "NativeCodeLoader", "incubator"):
            assert noise in log
            assert noise not in fogline.output
        assert "| Starting Accounts, Web, Control, Node edge-a" in fogline.output
    assert PASSWORD not in "".join(path.read_text() for path in (data / "logs").glob("*.log"))
