"""Groups of several inputs, partitions and branches; elements behind the stateful one; topics outside."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from time import time
from typing import Any

import pytest

from tests.integration.runtime.documents import COLUMNS, by_key, events, lines, out, running_sums, sums
from tests.integration.runtime.engine import (
    Deployed,
    Element,
    Node,
    create_topic,
    produce,
    values,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

WITHIN_MS = 1000
START_MS = round(time() * 1000) - 3_600_000  # a topic of the user's may delete what is too old


def source(id: str, topic: str, partitions: int = 1) -> Element:
    params = {"topic": topic, "columns": COLUMNS, "key": "k", "partitions": partitions}
    return {"id": id, "type": "kafka-in", "params": params}


def pairs(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> Counter[tuple[str, int, int]]:
    """The oracle of the join."""
    return Counter(
        (a["k"], a["v"], b["v"])
        for a in left
        for b in right
        if a["k"] == b["k"] and abs(a["t"] - b["t"]) <= WITHIN_MS
    )


def test_a_join_with_branches_behind_it_over_several_partitions(kafka: str, node: Node) -> None:
    left_topic, right_topic, outside = create_topic(kafka, 3), create_topic(kafka), create_topic(kafka)
    elements = [
        source("left", left_topic, 3),
        source("right", right_topic),
        {
            "id": "both",
            "type": "join",
            "inputs": {"left": "left", "right": "right"},
            "params": {"left_key": "k", "right_key": "k", "within_s": WITHIN_MS / 1000, "delay_s": 60},
        },
        {"id": "even", "type": "filter", "inputs": {"in": "both"}, "params": {"condition": "v % 2 = 0"}},
        {"id": "out", "type": "kafka-out", "inputs": {"in": "even"}, "params": {"topic": outside}},
        {
            "id": "more",
            "type": "derive",
            "inputs": {"in": "both"},
            "params": {
                "columns": [
                    {"name": "sum", "expression": "v + right_v"},
                    {"name": "at", "expression": "_batch_time"},
                ]
            },
        },
        {"id": "file", "type": "csv-sink", "inputs": {"in": "more"}, "params": {"file": "out.csv"}},
    ]
    members = [element["id"] for element in elements]
    deployed = Deployed(kafka, elements, {"all": members})
    spec = deployed.specs["all"]
    assert spec.follow == "exact"
    owner = node.own(spec)
    path = node.replica_directory(spec) / "elements" / "file" / "out.csv"
    left: list[dict[str, Any]] = []
    right: list[dict[str, Any]] = []
    for wave in range(3):
        numbers = range(wave * 40, wave * 40 + 40)
        new_left = [{"k": f"k{n % 5}", "v": n, "t": START_MS + n * 150} for n in numbers]
        new_right = [{"k": f"k{n % 4}", "v": 1000 + n, "t": START_MS + n * 150 + 70} for n in numbers]
        left, right = left + new_left, right + new_right
        when = {"time_ms": lambda row: row["t"]}
        produce(kafka, left_topic, new_left, partition=lambda row: row["v"] % 3, **when)
        produce(kafka, right_topic, new_right, **when)
        count = pairs(left, right).total()
        wait_until(lambda count=count: path.exists() and len(lines(path)) >= count, f"{count} pairs")
    expected = pairs(left, right)
    rows = lines(path)
    assert Counter((row["k"], int(row["v"]), int(row["right_v"])) for row in rows) == expected
    wait_until(
        lambda: owner.growing.lengths(owner.status().seq) == {"elements/file/out.csv": path.stat().st_size},
        "to be known how much of the file is committed",
    )
    assert all(int(row["sum"]) == int(row["v"]) + int(row["right_v"]) for row in rows)
    times = {commit.boundary.batch_time_ms for commit in deployed.commits("all")}
    assert {round(datetime.fromisoformat(row["at"]).timestamp() * 1000) for row in rows} <= times
    even = Counter({pair: count for pair, count in expected.items() if pair[1] % 2 == 0})
    wait_until(lambda: len(values(kafka, outside)) >= even.total(), "the pairs outside")
    assert Counter((row["k"], row["v"], row["right_v"]) for row in values(kafka, outside)) == even


def test_both_branches_of_a_stateless_group_get_each_row_once(kafka: str, node: Node) -> None:
    topic = create_topic(kafka, 2)
    elements = [
        events(topic, partitions=2),
        {"id": "small", "type": "filter", "inputs": {"in": "events"}, "params": {"condition": "v < 50"}},
        {
            "id": "ratio",
            "type": "derive",
            "inputs": {"in": "events"},
            "params": {"columns": [{"name": "r", "expression": "100 / v"}]},
        },
        # It reads all three from outside the group, so all three leave it.
        *(
            {"id": f"file-{id}", "type": "csv-sink", "inputs": {"in": id}, "params": {}}
            for id in ("events", "small", "ratio")
        ),
    ]
    deployed = Deployed(kafka, elements, {"all": ["events", "small", "ratio"]})
    node.own(deployed.specs["all"])
    rows = [{"k": f"k{v % 2}", "v": v} for v in range(100)]
    produce(kafka, topic, rows, key=lambda row: row["k"], partition=lambda row: row["v"] % 2)
    wait_until(lambda: len(deployed.records("events")) >= 100, "all rows")
    assert by_key(deployed.records("events")) == by_key(rows)
    assert by_key(deployed.records("small")) == by_key(rows[:50])
    assert by_key(deployed.records("ratio")) == by_key(rows[1:])
    assert len(deployed.dead_letters("ratio")) == 1
    assert sum(commit.rows_in for commit in deployed.commits("all")) == 100


def test_a_keyed_state_of_many_keys_behind_merged_streams(kafka: str, node: Node) -> None:
    """More keys in a batch than are asked for at once, and names so long that fewer fit."""
    topic, other, outside = create_topic(kafka, 3), create_topic(kafka), create_topic(kafka)
    merge: Element = {"id": "merged", "type": "merge", "inputs": {"in1": "events", "in2": "others"}}
    elements = [source("events", topic, 3), source("others", other), merge, sums("merged"), out(outside)]
    deployed = Deployed(kafka, elements, {"all": [element["id"] for element in elements]})
    node.own(deployed.specs["all"])
    sent = [{"k": f"{n % 300}{'.' * (2000 if n % 2 else 0)}", "v": n} for n in range(600)]
    for begin in (0, 300):
        now = sent[begin : begin + 300]
        produce(kafka, topic, [row for row in now if row["v"] % 3], key=lambda row: row["k"])
        produce(kafka, other, [row for row in now if row["v"] % 3 == 0], key=lambda row: row["k"])
        wait_until(lambda end=begin + 300: len(values(kafka, outside)) == end, "a row for each")
    assert by_key(values(kafka, outside)) == running_sums(sent)
    deployed.assert_journal_lawful("all")
