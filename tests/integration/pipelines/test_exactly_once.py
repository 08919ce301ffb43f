"""Nothing lost, nothing twice, nothing out of order: on real Kafka and Spark, while nodes die."""

from __future__ import annotations

import httpx
import pytest

from pipeline_runtime.journal.records import Claim, Commit, decode
from pipeline_runtime.model.ids import journal_topic, stream_topic
from tests.integration.pipelines.conftest import Steady
from tests.integration.pipelines.driving import (
    CommittedReader,
    create_topic,
    deploy,
    element,
    hand_over,
)
from tests.integration.pipelines.statistics import (
    RECOVERY_S,
    assert_agrees_with_oracle,
    freeze_node,
    keyed_event,
    kill_node,
    node,
    owner_again,
    statistics_document,
    thaw,
)
from tests.running import RunningFogline
from tests.waiting import wait_until


@pytest.mark.integration
@pytest.mark.timeout(900)
def test_the_output_is_the_oracles_through_two_kills_and_two_migrations(
    fogline: RunningFogline, client: httpx.Client, steady: Steady
) -> None:
    topic = "exactly-once-in"
    create_topic(fogline.bootstrap, topic)
    deployment = deploy(client, statistics_document("exactly-once", topic))
    producer = steady(fogline.bootstrap, topic, keyed_event, 100)
    owner_again(client, "exactly-once", 5, "edge-a")

    kill_node(fogline, client, "exactly-once", "edge-a")
    seq = owner_again(client, "exactly-once", element(client, "exactly-once", "stats")["seq"], "edge-a")[
        "seq"
    ]
    handover = hand_over(client, "exactly-once", "stats", "migrate", "edge-b")
    assert (handover["outcome"], handover["strategy"]) == ("done", "standby"), handover
    seq = owner_again(client, "exactly-once", seq, "edge-b")["seq"]
    kill_node(fogline, client, "exactly-once", "edge-b")
    seq = owner_again(client, "exactly-once", seq + 1, "edge-b")["seq"]
    handover = hand_over(client, "exactly-once", "stats", "migrate", "edge-a", "stop-and-copy")
    assert handover["outcome"] == "done", handover
    owner_again(client, "exactly-once", seq, "edge-a")

    events = producer.finish(5_000)
    reader = CommittedReader(fogline.bootstrap, stream_topic(deployment, "stats"))
    records = reader.read(len(events), RECOVERY_S)
    assert_agrees_with_oracle(records, events)
    reader.close()


@pytest.mark.integration
@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_revived_owner_commits_nothing_and_gives_way(
    fogline: RunningFogline, client: httpx.Client, steady: Steady
) -> None:
    """Whether it finds out by itself, and says so (integration/runtime/test_takeover), or is told to stop
    before it does is chance."""
    topic = "zombie-in"
    create_topic(fogline.bootstrap, topic)
    deployment = deploy(client, statistics_document("zombie", topic))
    producer = steady(fogline.bootstrap, topic, keyed_event, 100)
    owner_again(client, "zombie", 5, "edge-a")

    frozen = freeze_node(fogline, "edge-a")
    try:
        wait_until(lambda: not node(client, "edge-a")["up"], "edge-a to be counted as silent")
        handover = hand_over(client, "zombie", "stats", "restore", "edge-b")
        assert handover["outcome"] == "done", handover
        owner_again(client, "zombie", 6, "edge-b")
    finally:
        thaw(frozen)
    wait_until(lambda: node(client, "edge-a")["up"], "edge-a to report again")
    wait_until(lambda: owners(client) == ["edge-b"], "edge-a to own no more")

    events = producer.finish(5_000)
    reader = CommittedReader(fogline.bootstrap, stream_topic(deployment, "stats"))
    assert_agrees_with_oracle(reader.read(len(events), RECOVERY_S), events)
    reader.close()
    assert_no_commit_of_a_fenced_epoch(fogline.bootstrap, deployment)


def owners(client: httpx.Client) -> list[str]:
    replicas = element(client, "zombie", "stats")["replicas"]
    return [replica["node"] for replica in replicas if replica["role"] == "owner"]


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
