"""Nothing lost, nothing twice, nothing out of order: on real Kafka and Spark, while nodes die."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from typing import Any

import httpx
import psutil
import pytest

from pipeline_runtime.journal.records import Claim, Commit, decode
from pipeline_runtime.model.ids import journal_topic, stream_topic
from tests.integration.pipelines.driving import (
    API,
    CommittedReader,
    Event,
    SteadyProducer,
    create_topic,
    deploy,
    element,
    hand_over,
    undeploy,
)
from tests.running import RunningFogline, wait_until

KEYS = 20
RECOVERY_S = 180.0


def keyed_event(n: int) -> Event:
    return f"k{n % KEYS}", {"sensor": f"k{n % KEYS}", "value": (n * 7919) % 1000}


def expected_statistics(events: list[Event]) -> dict[str, list[tuple[int, float, float]]]:
    """The oracle: per key, (count, minimum, maximum) after each of its events."""
    states: dict[str, tuple[int, float, float]] = {}
    outputs: dict[str, list[tuple[int, float, float]]] = defaultdict(list)
    for key, event in events:
        count, low, high = states.get(key, (0, float("inf"), float("-inf")))
        states[key] = (count + 1, min(low, event["value"]), max(high, event["value"]))
        outputs[key].append(states[key])
    return dict(outputs)


def statistics_document(name: str, topic: str) -> dict[str, Any]:
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": name},
        "spec": {
            "elements": [
                {
                    "id": "events",
                    "type": "kafka-in",
                    "params": {
                        "topic": topic,
                        "start": "earliest",
                        "key": "sensor",
                        "columns": [
                            {"name": "sensor", "type": "string"},
                            {"name": "value", "type": "number"},
                        ],
                    },
                    "node": "edge-b",
                },
                {
                    "id": "stats",
                    "type": "running-statistics",
                    "inputs": {"in": "events"},
                    "params": {"column": "value"},
                    "node": "edge-a",
                },
            ]
        },
    }


def assert_agrees_with_oracle(records: list[Any], events: list[Any]) -> None:
    seen: dict[str, list[tuple[int, float, float]]] = defaultdict(list)
    for _, value in records:
        seen[value["sensor"]].append((value["count"], value["minimum"], value["maximum"]))
    assert dict(seen) == expected_statistics(events)


def owner_again(client: httpx.Client, pipeline: str, above_seq: int, node: str) -> dict[str, Any]:
    def running() -> dict[str, Any] | None:
        found = element(client, pipeline, "stats")
        return found if found["node"] == node and found["seq"] > above_seq else None

    found: dict[str, Any] = wait_until(running, f"stats to commit on {node}", RECOVERY_S)
    return found


@pytest.mark.integration
@pytest.mark.timeout(900)
def test_the_output_is_the_oracles_through_three_kills_and_two_migrations(
    fogline: RunningFogline, client: httpx.Client
) -> None:
    topic = "exactly-once-in"
    create_topic(fogline.bootstrap, topic)
    deployment = deploy(client, statistics_document("exactly-once", topic))
    producer = SteadyProducer(fogline.bootstrap, topic, keyed_event, rate=200)
    producer.start()
    owner_again(client, "exactly-once", 5, "edge-a")

    kill_node(fogline, "edge-a")
    seq = owner_again(client, "exactly-once", element(client, "exactly-once", "stats")["seq"], "edge-a")[
        "seq"
    ]
    handover = hand_over(client, "exactly-once", "stats", "migrate", "edge-b")
    assert (handover["outcome"], handover["strategy"]) == ("done", "standby"), handover
    assert handover["gap_ms"] is not None
    seq = owner_again(client, "exactly-once", seq, "edge-b")["seq"]
    kill_node(fogline, "edge-b")
    seq = owner_again(client, "exactly-once", seq + 1, "edge-b")["seq"]
    handover = hand_over(client, "exactly-once", "stats", "migrate", "edge-a", "stop-and-copy")
    assert handover["outcome"] == "done", handover
    assert handover["bytes_copied"] > 0
    seq = owner_again(client, "exactly-once", seq, "edge-a")["seq"]
    kill_node(fogline, "edge-a")
    owner_again(client, "exactly-once", seq + 1, "edge-a")

    events = producer.finish(20_000)
    reader = CommittedReader(fogline.bootstrap, stream_topic(deployment, "stats"))
    records = reader.read(len(events), RECOVERY_S)
    assert_agrees_with_oracle(records, events)
    reader.close()
    undeploy(client, "exactly-once")


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_a_revived_owner_commits_nothing_and_says_why(fogline: RunningFogline, client: httpx.Client) -> None:
    topic = "zombie-in"
    create_topic(fogline.bootstrap, topic)
    deployment = deploy(client, statistics_document("zombie", topic))
    producer = SteadyProducer(fogline.bootstrap, topic, keyed_event, rate=100)
    producer.start()
    owner_again(client, "zombie", 5, "edge-a")

    frozen = freeze_node(fogline, "edge-a")
    try:
        wait_until(lambda: not node(client, "edge-a")["up"], "edge-a to be counted as silent", 60)
        handover = hand_over(client, "zombie", "stats", "restore", "edge-b")
        assert handover["outcome"] == "done", handover
        owner_again(client, "zombie", 6, "edge-b")
    finally:
        thaw(frozen)
    wait_until(lambda: node(client, "edge-a")["up"], "edge-a to report again", 60)
    wait_until(lambda: reports_fence(client), "edge-a to say that it was fenced", 60)

    events = producer.finish(5_000)
    reader = CommittedReader(fogline.bootstrap, stream_topic(deployment, "stats"))
    assert_agrees_with_oracle(reader.read(len(events), RECOVERY_S), events)
    reader.close()
    assert_no_commit_of_a_fenced_epoch(fogline.bootstrap, deployment)
    undeploy(client, "zombie")


def kill_node(fogline: RunningFogline, name: str) -> None:
    """SIGKILL of the node's process; the supervisor starts it again."""
    pid = fogline.pid(name)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not psutil.pid_exists(pid), f"{name} to be dead", 20)


def freeze_node(fogline: RunningFogline, name: str) -> list[psutil.Process]:
    root = psutil.Process(fogline.pid(name))
    frozen = [root, *root.children(recursive=True)]
    for process in frozen:
        process.suspend()
    return frozen


def thaw(frozen: list[psutil.Process]) -> None:
    for process in reversed(frozen):
        if process.is_running():
            process.resume()


def node(client: httpx.Client, name: str) -> dict[str, Any]:
    answer = client.get(f"{API}/nodes/{name}")
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()
    return data


def reports_fence(client: httpx.Client) -> bool:
    events = client.get(f"{API}/events", params={"limit": 100}).json()
    return any(event["node"] == "edge-a" and "fenced" in event["message"] for event in events)


def assert_no_commit_of_a_fenced_epoch(bootstrap: str, deployment: str) -> None:
    from kafka import KafkaConsumer, TopicPartition

    tp = TopicPartition(journal_topic(deployment, "stats"), 0)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
    consumer.assign([tp])
    consumer.seek_to_beginning(tp)
    end = consumer.end_offsets([tp])[tp]
    granted = 0
    while consumer.position(tp) < end:
        for record in consumer.poll(500).get(tp, []):
            entry = decode(record.value)
            if isinstance(entry, Claim):
                granted = entry.epoch
            elif isinstance(entry, Commit):
                assert entry.epoch == granted, f"seq {entry.seq} of epoch {entry.epoch} after {granted}"
    consumer.close()
    assert granted >= 2
