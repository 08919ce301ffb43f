"""Rows that cannot be read or computed go to the dead letters. All other rows are processed once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kafka import KafkaProducer

from pipeline_runtime.kafka.unpacking import BATCH_BYTES_MAX
from tests.chosen import chosen
from tests.integration.runtime.documents import by_key, events, running_sums, sums
from tests.integration.runtime.engine import (
    Deployed,
    Node,
    create_topic,
    owning,
    produce,
)
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.integration

MALFORMED: list[tuple[bytes | None, str]] = [
    (b"no json", "not a JSON object"),
    (b'{"k":"a","v":"x"}', 'is the text "x", but a whole number is needed'),
    (b"", "empty"),
    (None, "tombstone"),
    (b'{"k":"a","v":1}{"k":"a","v":2}', "more than one JSON value"),
    (b'{"k":"a","v":1.5}', "decimals, but a whole number is needed"),
    (b'{"k":', "not a JSON object"),
    (b'{"k":"\xff","v":1}', "not UTF-8"),
    (b"x" * 300_000, "not a JSON object"),
]
RATIO = {
    "id": "ratio",
    "type": "derive",
    "inputs": {"in": "events"},
    "params": {"columns": [{"name": "r", "expression": "100 / v"}]},
}


def mixed(first: int) -> list[Any]:
    """60 rows, every sixth of them 0, every tenth negative, with all that is malformed in between."""
    rows: list[Any] = []
    for n in range(first, first + 60):
        rows.append({"k": f"k{n % 3}", "v": 0 if n % 6 == 0 else -n if n % 10 == 3 else n})
        if n - first < len(MALFORMED):
            rows.append(MALFORMED[n - first][0])
    return rows


@pytest.mark.parametrize("grouped", chosen([True, False], [False]), ids=["one group", "three groups"])
def test_bad_rows_are_dead_letters_with_the_reason_and_all_others_are_processed_once(
    kafka: str, node: Node, grouped: bool
) -> None:
    topic = create_topic(kafka)
    groups = {"all": ["events", "ratio", "sums"]} if grouped else {}
    deployed = Deployed(kafka, [events(topic), RATIO, sums("ratio")], groups)
    replicas = deployed.run(node)
    last = replicas["all" if grouped else "sums"]
    sent = mixed(0)
    produce(kafka, topic, sent)
    assert_processed(deployed, replicas, sent)

    # A restart repeats nothing of it.
    node.stop_all()
    replicas = {group: node.own(spec, over=1) for group, spec in deployed.specs.items()}
    for replica in replicas.values():
        assert owning(replica).epoch == 2
    more = mixed(100)
    produce(kafka, topic, more)
    assert_processed(deployed, replicas, sent + more)
    assert last.status().error is None


def assert_processed(deployed: Deployed, replicas: dict[str, Any], sent: list[Any]) -> None:
    rows = [item for item in sent if isinstance(item, dict)]
    good = [row for row in rows if row["v"] != 0]
    expected = running_sums(good)
    zeros = [row for row in rows if row["v"] == 0]
    negative = [row for row in rows if row["v"] < 0]
    malformed = [item for item in sent if not isinstance(item, dict)]

    def total(field: str) -> int:
        return sum(getattr(commit, field) for group in deployed.specs for commit in deployed.commits(group))

    bad = len(zeros) + len(negative) + len(malformed)
    wait_until(
        lambda: by_key(deployed.records("sums")) == expected,
        lambda: f"{by_key(deployed.records('sums'))} to be {expected}",
    )
    wait_until(lambda: total("dead_letters") == bad, f"{bad} dead letters")

    letters = deployed.dead_letters("events")
    found = sorted((letter["raw"], letter["reason"]) for letter in letters)
    wanted = sorted((raw or b"").decode(errors="replace") for raw in malformed)
    assert [raw[:1000] for raw, _ in found] == [raw[:1000] for raw in wanted]
    reasons: dict[str, list[str]] = {}  # an empty record and one without a value are quoted alike
    for raw, reason in MALFORMED:
        reasons.setdefault((raw or b"").decode(errors="replace")[:1000], []).append(reason)
    for quoted, reason in found:
        assert any(each in reason for each in reasons[quoted[:1000]]), reason
    assert all(letter["element"] == "events" for letter in letters)

    computed = deployed.dead_letters("ratio")
    assert [json.loads(letter["raw"])["v"] for letter in computed] == [0] * len(zeros)
    assert all('"r"' in letter["reason"] for letter in computed)
    refused = deployed.dead_letters("sums")
    assert sorted(json.loads(letter["raw"])["v"] for letter in refused) == sorted(r["v"] for r in negative)
    assert all("is negative" in letter["reason"] for letter in refused)
    assert {letter["key"] for letter in refused} <= {row["k"] for row in negative}
    assert all(letter["time_ms"] > 0 for letter in (*letters, *computed, *refused))

    shown = sum(replica.status().dead_letters_total for replica in replicas.values())
    assert shown == bad, "a replica tells the totals of all owners"
    # Every record of the user's topic is counted as read, by the group that reads it.
    reading = "all" if "all" in deployed.specs else "events"
    assert sum(commit.rows_in for commit in deployed.commits(reading)) == len(sent)


def test_few_bytes_that_unpack_to_very_many_are_a_dead_letter_that_says_where_it_lies(
    kafka: str, node: Node
) -> None:
    topic = create_topic(kafka)
    deployed = Deployed(kafka, [events(topic), sums()], {"all": ["events", "sums"]})
    replica = node.own(deployed.specs["all"])
    owning(replica)
    size = BATCH_BYTES_MAX + 1_000_000
    for place, compression in enumerate(("gzip", "snappy", "lz4", "zstd")):
        producer = KafkaProducer(
            bootstrap_servers=kafka, compression_type=compression, max_request_size=2 * size
        )
        producer.send(topic, value=b'{"k":"k","v":%d}' % place, key=b"k").get(PATIENCE_S)
        if compression != "snappy":  # which makes it no smaller than the broker takes
            producer.send(topic, value=bytes(size), key=b"k").get(PATIENCE_S)
        producer.close()
    wait_until(lambda: deployed.records("sums")[-1:] == [{"k": "k", "v": 6}], "all rows")
    wait_until(lambda: len(deployed.dead_letters("events")) == 3, "the dead letters")
    reasons = [letter["reason"] for letter in deployed.dead_letters("events")]
    for offset, reason in zip((1, 4, 6), reasons, strict=True):
        assert f"{topic}, partition 0, offset {offset}: not read" in reason
    assert replica.status().error is None
