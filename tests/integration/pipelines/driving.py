"""Drives a running Fogline over REST, and its Kafka from outside, as a user's own programs would."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer
from tests.waiting import wait_until

API = "/api/v1"
START_S = 300.0  # a busy machine takes a minute for a first query, and a move may need two
LOOK_EVERY_S = 1.0  # what takes a minute need not be asked for four times a second
_BURST_S = 0.1  # a request for each event would cost producer and broker more than all the rest


def create_topic(bootstrap: str, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_topics([NewTopic(topic, 1, 1)])
        admin.wait_for_topics([topic])
    finally:
        admin.close()


Event = tuple[str, dict[str, Any]]
"""A record's key and value."""


class SteadyProducer:
    """Sends what `make(0)`, `make(1)`, ... give to a topic, at `rate` per second, until finished."""

    def __init__(self, bootstrap: str, topic: str, make: Callable[[int], Event], rate: float) -> None:
        self._bootstrap, self._topic, self._make, self._rate = bootstrap, topic, make, rate
        self._count_min: int | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.sent: list[Event] = []

    def start(self) -> None:
        self._thread.start()

    def finish(self, count_min: int) -> list[Event]:
        """Stop once at least `count_min` are sent; all that were sent."""
        self._count_min = count_min
        self._thread.join()
        return self.sent

    def _run(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self._bootstrap, linger_ms=5)
        begun = time.monotonic()
        while (count_min := self._count_min) is None or len(self.sent) < count_min:
            if count_min is None:
                time.sleep(_BURST_S)
            # What is still missing at the end is sent at once.
            due = count_min or int((time.monotonic() - begun) * self._rate)
            for index in range(len(self.sent), due):
                key, value = self._make(index)
                producer.send(self._topic, key=key.encode(), value=json.dumps(value).encode())
                self.sent.append((key, value))
        producer.flush()
        producer.close()


class CommittedReader:
    """All committed records of a topic so far; control records and commit markers are left out."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._tp = TopicPartition(topic, 0)
        self._consumer = open_consumer(KafkaSettings(bootstrap))
        self._consumer.assign([self._tp])
        self._consumer.seek_to_beginning(self._tp)
        self.records: list[tuple[str | None, dict[str, Any]]] = []

    def poll(self) -> list[tuple[str | None, dict[str, Any]]]:
        for record in self._consumer.poll(200).get(self._tp, []):
            if not record.headers:
                key = record.key.decode() if record.key is not None else None
                self.records.append((key, json.loads(record.value)))
        return self.records

    def read(self, count: int, timeout_s: float) -> list[tuple[str | None, dict[str, Any]]]:
        """Until there are `count`; AssertionError when there are not within `timeout_s`."""
        wait_until(lambda: len(self.poll()) >= count, f"{count} records of {self._tp.topic}", timeout_s)
        return self.records

    def topics(self) -> set[str]:
        """All that there are."""
        return set(self._consumer.topics())

    def close(self) -> None:
        self._consumer.close()


def upload(client: httpx.Client, name: str, content: bytes | str) -> str:
    """Upload a table that can be read in one way, and wait until it is imported; its reference."""
    answer = client.post(f"{API}/files", files={"file": (name, content, "text/csv")})
    assert answer.status_code == 201, answer.text
    found = settled_file(client, answer.json()["id"])
    assert found["state"] == "imported", found
    return str(found["reference"])


def settled_file(client: httpx.Client, id: str) -> dict[str, Any]:
    """Wait until a file is neither looked at nor imported; what is known of it."""

    def ended() -> dict[str, Any] | None:
        found: dict[str, Any] = client.get(f"{API}/files/{id}").raise_for_status().json()
        return None if found["state"] in ("looking", "importing") else found

    result: dict[str, Any] = wait_until(ended, "the file to be looked at or imported", START_S)
    return result


def deploy(client: httpx.Client, document: dict[str, Any]) -> str:
    """Create and deploy a pipeline and wait until all of it runs; the deployment's id."""
    name = document["metadata"]["name"]
    answer = client.post(f"{API}/pipelines", json={"document": document, "name": name})
    assert answer.status_code == 201, answer.text
    return deploy_draft(client, name)


def deploy_draft(client: httpx.Client, name: str) -> str:
    """As `deploy`, of a pipeline that is there."""
    operate(client, f"{API}/pipelines/{name}/deploy", "the deployment")
    deployment = client.get(f"{API}/pipelines/{name}").json()["deployment"]
    assert isinstance(deployment, str)
    return deployment


def undeploy(client: httpx.Client, name: str) -> None:
    operate(client, f"{API}/pipelines/{name}/undeploy", "the undeployment")


def operate(client: httpx.Client, path: str, what: str) -> None:
    """Order a deployment, upgrade or undeployment, and wait until it is done."""
    answer = client.post(path, json={})
    assert answer.status_code == 202, answer.text
    operation_id = answer.json()["id"]
    path = f"{API}/operations/{operation_id}"
    finished = wait_until(lambda: _ended(client, path), what, START_S, look_every_s=LOOK_EVERY_S)
    assert finished["status"] == "done", finished


def element(client: httpx.Client, pipeline: str, id: str) -> dict[str, Any]:
    answer = client.get(f"{API}/pipelines/{pipeline}/elements")
    assert answer.status_code == 200, answer.text
    return next(item for item in answer.json() if item["id"] == id)


def hand_over(
    client: httpx.Client, pipeline: str, id: str, action: str, target: str, strategy: str | None = None
) -> dict[str, Any]:
    """`action`: migrate or restore. Waits for its end; the handover."""
    ordered = order_handover(client, pipeline, id, action, target, strategy)
    return ended_handover(client, ordered, f"{action} of {id} to {target}")


def order_handover(
    client: httpx.Client, pipeline: str, id: str, action: str, target: str, strategy: str | None = None
) -> str:
    """Its id."""
    body = {"target": target} | ({"strategy": strategy} if strategy else {})
    answer = client.post(f"{API}/pipelines/{pipeline}/elements/{id}/{action}", json=body)
    assert answer.status_code == 202, answer.text
    handover_id = answer.json()["handover"]
    return str(handover_id if isinstance(handover_id, str) else handover_id["id"])


def ended_handover(client: httpx.Client, id: str, what: str) -> dict[str, Any]:
    path = f"{API}/handovers/{id}"
    finished: dict[str, Any] = wait_until(
        lambda: _ended(client, path), what, START_S, look_every_s=LOOK_EVERY_S
    )
    return finished


def _ended(client: httpx.Client, path: str) -> dict[str, Any] | None:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()
    return data if data.get("ended_at") else None
