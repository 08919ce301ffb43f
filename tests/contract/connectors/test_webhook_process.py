"""A webhook's promise: a row that it has answered with 202 is in Kafka or on the disk, whatever is killed."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from pipeline_runtime.connectors.config import ConnectorConfig, Order, name_of
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.peek import peek
from pipeline_runtime.operators.http import HttpIn
from tests.chosen import chosen
from tests.ports import free_ports
from tests.waiting import wait_until
from workers.node.connector_process import ConnectorProcess

pytestmark = pytest.mark.integration

TOKEN = "0123456789abcdef"
SENDERS = 4


class Senders:
    """Each sends one number after the other. `safe` has those that were answered with 202."""

    def __init__(self, port: int) -> None:
        self.safe: list[int] = []
        self.others: list[int] = []  # the statuses of other answers
        self._url = f"http://127.0.0.1:{port}/rows"
        self._next, self._lock = iter(range(10_000_000)), threading.Lock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(SENDERS)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(headers=headers, trust_env=False, timeout=60) as client:
            while not self._stop.is_set():
                with self._lock:
                    number = next(self._next)
                try:
                    status = client.post(self._url, json={"n": number}).status_code
                except httpx.HTTPError:  # it is not up, or was killed
                    self._stop.wait(0.05)
                    continue
                if status == 202:
                    self.safe.append(number)
                else:
                    self.others.append(status)


def config(kafka: str, port: int, spool: Path) -> ConnectorConfig:
    name = uuid4().hex[:8]
    columns = [{"name": "n", "type": "integer"}]
    params = {"connection": "w", "port": port, "address": "127.0.0.1", "path": "/rows", "columns": columns}
    return ConnectorConfig(
        kind="in",
        deployment=name,
        element="e",
        topic=f"fl.{name}.e.in",
        dead_letters=f"fl.{name}.e.dead",
        connector=HttpIn.connector,
        operator=name_of(HttpIn),
        params=params,
        connections={"connection": {"token": TOKEN}},
        kafka_bootstrap=kafka,
        spool=str(spool),
    )


class Webhook:
    """A webhook's process, which is started again and again, and those who send to it."""

    process: ConnectorProcess

    def __init__(self, config: ConnectorConfig, port: int) -> None:
        self._config = config
        self.senders = Senders(port)

    def __enter__(self) -> Webhook:
        return self

    def __exit__(self, *_: object) -> None:
        self.senders.end()
        self.process.kill()

    def start(self, **changed: Any) -> None:
        asked = self._config.model_copy(update=changed)
        self.process = ConnectorProcess(asked.model_dump_json(), lambda status, note: None, lambda: None)
        self.process.say(Order(do="run").model_dump_json())


@pytest.mark.parametrize("until_full", chosen([False, True], always=[False]))
def test_no_row_that_was_answered_with_202_is_lost_when_the_process_is_killed(
    kafka: str, tmp_path: Path, until_full: bool
) -> None:
    """First without Kafka, perhaps until the disk's buffer is full. Then with Kafka."""
    port, nobody = free_ports(2)
    asked = config(kafka, port, tmp_path / "spool")
    ensure_topics(KafkaSettings(kafka), [Topic(asked.topic), Topic(asked.dead_letters, "dead")])
    without = {"kafka_bootstrap": f"127.0.0.1:{nobody}", "spool_bytes_max": 20_000 if until_full else 1 << 24}
    with Webhook(asked, port) as webhook:
        webhook.start(**without)
        safe, others = webhook.senders.safe, webhook.senders.others
        wait_until(lambda: len(safe) > 20, "rows to go to the disk")
        if until_full:
            wait_until(lambda: others, "an answer that is not 202")
            assert set(others) == {503}
        webhook.process.kill()
        on_disk = len(safe)
        webhook.start()
        wait_until(lambda: len(safe) > on_disk + 200, "rows to flow into Kafka")
        webhook.process.kill()
        webhook.start()
        after = len(safe)
        wait_until(lambda: len(safe) > after, "the next process to take rows")
        webhook.senders.end()

        def missing() -> set[int]:
            there = peek(KafkaSettings(kafka), asked.topic, 100_000)
            return set(safe) - {json.loads(each.value)["n"] for each in there}

        wait_until(lambda: not missing(), lambda: f"{sorted(missing())} to be in Kafka", 30)
