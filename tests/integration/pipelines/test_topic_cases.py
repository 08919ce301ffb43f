"""Topics and records that were reported as read wrong or not at all, through the product, on two nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from time import time
from typing import Any

import httpx
import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewPartitions, NewTopic

from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.topics import TopicLook
from pipeline_runtime.model.ids import stream_topic
from tests.integration.pipelines.driving import (
    API,
    START_S,
    CommittedReader,
    create_topic,
    deploy,
    element,
    hand_over,
    operate,
)
from tests.running import RunningFogline
from tests.waiting import PATIENCE_S, wait_until

PIPELINE = "topic-cases"
PATH = f"{API}/pipelines/{PIPELINE}"
INTEGER = [{"name": "n", "type": "integer"}]
TRIMMED_TO = 48
FIELDS = [
    {"name": "temperature", "type": "number"},
    {"name": "pressure", "type": "number"},
    {"name": "id", "from": "_id"},
    {"name": "value", "type": "number", "from": "_value"},
    {"name": "T", "type": "number"},
    {"name": "seconds", "type": "integer", "from": "t"},
]
MEASURED = [{"name": "v", "type": "number"}, {"name": "machine", "from": "$.of.name"}]
FOREIGN = {
    b'\xef\xbb\xbf{"T": 1}': "begins with a byte order mark (UTF-8)",
    b"\0\0\0\0\x2a\x02\x06abc": "a schema registry's prefix (schema 42)",
    b'[{"T": 1}]': "it is an array. If its entries are the rows, write $ as the array of rows",
    b"": "the record is empty",
}


def source(id: str, columns: list[dict[str, Any]], **params: Any) -> dict[str, Any]:
    params = {"topic": f"cases-{id}", "columns": columns, **params}
    return {"id": id, "type": "kafka-in", "node": "edge-a", "params": params}


def behind(id: str, before: str, type: str, node: str = "edge-a", **params: Any) -> dict[str, Any]:
    return {"id": id, "type": type, "inputs": {"in": before}, "node": node, "params": params}


def document(rate: int = 20) -> dict[str, Any]:
    counted = [{"function": "count", "as": "n"}]
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": PIPELINE},
        "spec": {
            "elements": [
                source("again", INTEGER),
                behind("once", "again", "deduplicate", within_s=86_400),
                source("grown", INTEGER, partitions=1),
                source("trimmed", INTEGER),
                source("large", [*INTEGER, {"name": "picture"}]),
                behind("small", "large", "filter", node="edge-b", condition="n >= 0"),
                source("ahead", INTEGER),
                behind("counted", "ahead", "window-aggregate", size_s=10, aggregates=counted),
                source("fields", FIELDS),
                behind("silent", "fields", "silence-alarm", for_s=3),
                source("several", MEASURED, rows="values", time={"from": "at"}),
                {"id": "plant", "type": "generator", "node": "edge-b", "params": {"rate": rate}},
            ],
            "groups": [
                {"id": "again-once", "elements": ["again", "once"]},
                {"id": "ahead-counted", "elements": ["ahead", "counted"]},
            ],
        },
    }


class Outside:
    """What others do with the topics, and what is read of them."""

    def __init__(self, fogline: RunningFogline) -> None:
        self.bootstrap = fogline.bootstrap
        self.admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        self.deployment = ""
        self._readers: dict[str, CommittedReader] = {}

    def create(self, *ids: str) -> None:
        for id in ids:
            create_topic(self.bootstrap, f"cases-{id}")

    def send(self, id: str, *values: Any, at_ms: tuple[int, ...] = (), partition: int | None = None) -> None:
        producer = KafkaProducer(bootstrap_servers=self.bootstrap, max_request_size=8 * 1024 * 1024)
        for number, value in enumerate(values):
            data = value if isinstance(value, bytes | None) else json.dumps(value).encode()
            times = {"timestamp_ms": at_ms[number]} if at_ms else {}
            key = b"tombstone" if value is None else None
            producer.send(f"cases-{id}", data, key, partition=partition, **times).get(30)
        producer.close()

    def numbers(self, id: str, *numbers: int, partition: int | None = None) -> None:
        self.send(id, *({"n": n} for n in numbers), partition=partition)

    def create_again(self, id: str) -> None:
        topic = f"cases-{id}"
        self.admin.delete_topics([topic])
        look = TopicLook(KafkaSettings(self.bootstrap))
        wait_until(lambda: look.ask([topic])[topic] is None, f"{topic} to be deleted")
        look.close()
        self.admin.create_topics([NewTopic(topic, 1, 1)])
        self.admin.wait_for_topics([topic])

    def rows(self, id: str) -> list[dict[str, Any]]:
        if id not in self._readers:
            self._readers[id] = CommittedReader(self.bootstrap, stream_topic(self.deployment, id))
        return [value for _, value in self._readers[id].poll()]

    def wait_for(self, id: str, *numbers: int) -> None:
        def came() -> bool:
            return [row["n"] for row in self.rows(id)] == list(numbers)

        wait_until(came, lambda: f"{id} to put out {numbers}: {self.rows(id)}", PATIENCE_S)

    def close(self) -> None:
        self.admin.close()
        for reader in self._readers.values():
            reader.close()


@pytest.fixture
def outside(fogline: RunningFogline) -> Iterator[Outside]:
    outside = Outside(fogline)
    yield outside
    outside.close()


@pytest.mark.integration
@pytest.mark.timeout(900)
def test_what_becomes_of_topics_is_said_and_one_click_goes_on(client: httpx.Client, outside: Outside) -> None:
    outside.create("again", "grown", "trimmed", "large", "ahead", "fields", "several")
    outside.numbers("again", 0, 1)
    outside.numbers("grown", 0)
    outside.numbers("trimmed", 0, 1)
    outside.deployment = deploy(client, document())
    outside.wait_for("once", 0, 1)
    outside.wait_for("grown", 0)
    outside.wait_for("trimmed", 0, 1)

    one_record_stops_nothing(client, outside)
    several_rows_and_records_of_others(client, outside)
    a_topic_is_created_again(client, outside)
    a_topic_gets_a_partition(client, outside)
    trimmed = a_topic_is_trimmed(client, outside)
    columns_and_rate_are_changed(client, outside)
    for id, then, rows in (
        ("once", "again", (0, 1, 10, 11, 12, 13, 14)),
        ("grown", "grown", (0, 1, 2, 14)),
        ("trimmed", "trimmed", (*trimmed, 14)),
    ):
        handover = hand_over(client, PIPELINE, id, "migrate", "edge-b")
        assert handover["outcome"] == "done", handover
        outside.numbers(then, 14)
        outside.wait_for(id, *rows)


def one_record_stops_nothing(client: httpx.Client, outside: Outside) -> None:
    """K4, K7, K8, K10 and W3."""
    pictures = ["s", "x" * 5 * 1024 * 1024, "s"]
    outside.send("large", *({"n": n, "picture": picture} for n, picture in enumerate(pictures)))
    now_ms = int(time()) // 10 * 10_000
    times = (now_ms, now_ms + 50 * 60_000, now_ms + 1_000, now_ms + 10_000)
    outside.send("ahead", *({"n": n} for n in range(4)), at_ms=times)
    outside.send(
        "fields", b'{"temperature": NaN, "pressure": 1013.2}', b'{"_id":"a1","_value":1,"T":20,"t":0}'
    )

    outside.wait_for("small", 0, 2)
    [reason] = reasons(client, "large")
    assert "4,194,304" in reason
    wait_until(
        lambda: [row["n"] for row in outside.rows("counted")] == [2], "the window to count 2", PATIENCE_S
    )
    [reason] = reasons(client, "ahead")
    assert "more than 900 s after its arrival" in reason
    nothing = dict.fromkeys(column["name"] for column in FIELDS)
    read = [
        {**nothing, "pressure": 1013.2},
        {**nothing, "id": "a1", "value": 1.0, "T": 20.0, "seconds": 0},
    ]
    wait_until(lambda: outside.rows("fields") == read, lambda: f"{outside.rows('fields')}", PATIENCE_S)
    wait_until(lambda: outside.rows("silent"), "the alarm that nothing comes", PATIENCE_S)
    assert outside.rows("silent")[0]["alarm"] == "raised"


def several_rows_and_records_of_others(client: httpx.Client, outside: Outside) -> None:
    """K5, K6, K9 and K11."""
    times = ("2026-03-01T06:00:00+01:00", "2026-03-01T05:00:01Z", "yesterday")
    rows = [{"at": at, "v": v} for at, v in zip(times, (1, 2.5, 3), strict=True)]
    outside.send("several", {"of": {"name": "Presse 1"}, "values": rows}, {"values": "none"})
    read = [{"v": 1.0, "machine": "Presse 1"}, {"v": 2.5, "machine": "Presse 1"}]
    wait_until(lambda: outside.rows("several") == read, lambda: f"{outside.rows('several')}", PATIENCE_S)
    peeked = client.get(f"{PATH}/streams/several/peek").raise_for_status().json()["records"]
    read_at = [datetime.fromisoformat(each["at"]) for each in peeked]
    assert read_at == [datetime(2026, 3, 1, 5, 0, second, tzinfo=UTC) for second in (0, 1)]
    assert ["yesterday" in reason for reason in reasons(client, "several")] == [True, False]

    outside.send("fields", *FOREIGN, None, {"T": 2})
    wait_until(lambda: outside.rows("fields")[2:], "the row behind what others wrote", PATIENCE_S)
    said = reasons(client, "fields")
    for expected, reason in zip([*FOREIGN.values(), "the record is a tombstone"], said, strict=True):
        assert expected in reason


def reasons(client: httpx.Client, id: str) -> list[str]:
    """Why its dead letters are ones, the oldest first."""
    letters = client.get(f"{PATH}/streams/{id}/dead-letters").raise_for_status().json()["records"]
    return [str(each["value"]["reason"]) for each in letters]


def a_topic_is_created_again(client: httpx.Client, outside: Outside) -> None:
    """K1."""
    outside.create_again("again")
    outside.numbers("again", 10, 11, 12)
    way = stands(client, "once", "topic-recreated")
    # It may have looked before the new records were written.
    assert re.search(r"\b[0-3] records? waits?\b", way["cost"]), way["cost"]
    assert [row["n"] for row in outside.rows("once")] == [0, 1]
    go_on(client, "once", way)
    outside.numbers("again", 13)
    outside.wait_for("once", 0, 1, 10, 11, 12, 13)


def a_topic_gets_a_partition(client: httpx.Client, outside: Outside) -> None:
    """K2."""
    outside.admin.create_partitions({"cases-grown": NewPartitions(2)})
    outside.numbers("grown", 1, partition=1)
    way = stands(client, "grown", "topic-partitions-differ")
    go_on(client, "grown", way)
    outside.wait_for("grown", 0, 1)
    outside.numbers("grown", 2, partition=0)
    outside.wait_for("grown", 0, 1, 2)


def a_topic_is_trimmed(client: httpx.Client, outside: Outside) -> tuple[int, ...]:
    """K3. Returns what it has put out."""
    client.post(f"{PATH}/elements/trimmed/pause").raise_for_status()
    wait_until(lambda: element(client, PIPELINE, "trimmed")["status"] == "paused", "it to pause", PATIENCE_S)
    # More than a node reads ahead: some of them are gone before anybody has read them.
    outside.send("trimmed", *({"n": n, "more": "x" * 2**19} for n in range(2, TRIMMED_TO + 1)))
    outside.admin.delete_records({TopicPartition("cases-trimmed", 0): TRIMMED_TO})
    client.post(f"{PATH}/elements/trimmed/resume").raise_for_status()

    def numbers() -> list[int]:
        return [row["n"] for row in outside.rows("trimmed")]

    wait_until(lambda: TRIMMED_TO in numbers(), "it to go on", PATIENCE_S)
    read = numbers()
    assert read == [*range(len(read) - 1), TRIMMED_TO], "only what follows what was read ahead is missing"
    counted = wait_until(
        lambda: element(client, PIPELINE, "trimmed")["left_out_total"], "what was left out", PATIENCE_S
    )
    assert counted == TRIMMED_TO + 1 - len(read)
    said = client.get(f"{API}/events", params={"pipeline": PIPELINE}).raise_for_status().json()
    assert f"At most {counted} records are left out" in json.dumps(said)
    return tuple(read)


def columns_and_rate_are_changed(client: httpx.Client, outside: Outside) -> None:
    """K12."""
    changed = document(rate=50)
    fields = next(each for each in changed["spec"]["elements"] if each["id"] == "fields")
    fields["params"]["columns"] = [*FIELDS, {"name": "more"}]
    tag = client.get(PATH).headers["ETag"]
    client.put(PATH, json={"document": changed}, headers={"If-Match": tag}).raise_for_status()
    before = len(outside.rows("plant"))
    operate(client, f"{PATH}/deploy", "the added column")
    outside.send("fields", {"T": 1, "more": "new"})
    wait_until(lambda: len(outside.rows("fields")) == 4, lambda: f"{outside.rows('fields')}", PATIENCE_S)
    assert outside.rows("fields")[-1]["more"] == "new"
    wait_until(lambda: len(outside.rows("plant")) > before + 200, "the generator to go on", PATIENCE_S)
    numbers = [row["n"] for row in outside.rows("plant")]
    assert numbers == list(range(len(numbers))), "it has gone on where it stood"


def stands(client: httpx.Client, id: str, code: str) -> dict[str, Any]:
    """Waits until the element says why it stands. Returns its one way on."""

    def said() -> dict[str, Any] | None:
        found = element(client, PIPELINE, id)
        return found if found["error"] and found["error"]["code"] == code else None

    found = wait_until(said, lambda: f"{id} to stand: {element(client, PIPELINE, id)}", PATIENCE_S)
    assert found["status"] not in ("running", "lagging"), found["status"]
    [way] = found["error"]["ways"]
    return dict(way)


def go_on(client: httpx.Client, id: str, way: dict[str, Any]) -> None:
    client.post(f"{PATH}/elements/{id}/go-on", json={"way": way["id"]}).raise_for_status()
    wait_until(lambda: element(client, PIPELINE, id)["error"] is None, f"{id} to go on", START_S)


@pytest.mark.integration
def test_a_fast_stream_is_drawn_whole(client: httpx.Client) -> None:
    """V1. So many rows at a time lie in the topic as columns."""
    sine = {"name": "s", "low": 0, "high": 1, "period_s": 2}
    plant = {"id": "plant", "type": "generator", "params": {"rate": 1000, "signals": [sine]}}
    chart = {"id": "chart", "type": "live-chart", "inputs": {"in": "plant"}, "params": {"columns": ["s"]}}
    fast = {**document(), "metadata": {"name": "v1-fast"}, "spec": {"elements": [plant, chart]}}
    deploy(client, fast)
    path, asked = f"{API}/pipelines/v1-fast/streams/plant/curve", {"columns": "s", "window_ms": 4_000}

    def curve() -> dict[str, Any]:
        found: dict[str, Any] = client.get(path, params=asked).raise_for_status().json()
        return found

    found = wait_until(lambda: read if (read := curve())["rows"] > 4_000 else None, "4 s of rows", PATIENCE_S)
    assert found["left_out"] == 0
    shown = [(datetime.fromisoformat(each["at"]), each["value"]) for each in found["records"]]
    (first_at, first), (last_at, last) = shown[0], shown[-1]
    assert found["rows"] == last["n"] - first["n"] + 1 == (last_at - first_at) / timedelta(milliseconds=1) + 1
    for at, row in shown:
        assert at - first_at == timedelta(milliseconds=row["n"] - first["n"])
    assert {round(row["s"], 3) for _, row in shown} >= {0.0, 1.0}, "both peaks are drawn"


WHAT_IS_SAID = {
    "E1": (
        [
            {"id": "house", "type": "csv-replay", "params": {"path": "demo:household-power", "rate": 20}},
            behind("sel", "house", "select", columns=[{"column": "voltage", "as": "u"}, {"column": "power"}]),
            behind("f", "sel", "filter", condition="voltage > 230"),
        ],
        "u > 230",
    ),
    "W1": (
        [
            {"id": "plant", "type": "generator", "params": {"rate": 10, "signals": [{"name": "t"}]}},
            behind(
                "mean",
                "plant",
                "window-aggregate",
                size_s=86_400,
                slide_s=1,
                aggregates=[{"function": "avg", "column": "t", "as": "mean"}],
            ),
        ],
        "86,400 windows are open at once",
    ),
}


@pytest.mark.integration
@pytest.mark.parametrize("case", list(WHAT_IS_SAID))
def test_what_would_go_wrong_is_said_before_it_runs(client: httpx.Client, case: str) -> None:
    elements, text = WHAT_IS_SAID[case]
    name = f"said-{case.lower()}"
    draft = {**document(), "metadata": {"name": name}, "spec": {"elements": elements}}
    client.post(f"{API}/pipelines", json={"document": draft, "name": name}).raise_for_status()
    refused = client.post(f"{API}/pipelines/{name}/deploy", json={})
    assert refused.status_code == 422
    [fault] = refused.json()["faults"]
    offered = [each["value"] for each in fault["instead"]]
    assert text in offered or text in fault["message"], fault
