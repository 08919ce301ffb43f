"""The Python processes that run a keyed element: they stay, and share its partitions."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import pytest

from pipeline_runtime.batch.tasks import ROWS_A_TASK, Tasks
from tests.integration.runtime.documents import by_key, events, out, running_sums, sums
from tests.integration.runtime.engine import (
    Deployed,
    Node,
    create_topic,
    produce,
    values,
    wait_for_status,
)
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_it_collects_no_garbage_among_what_it_has_imported(kafka: str, node: Node) -> None:
    """PySpark collects after each batch: what is frozen by then costs nothing."""
    topic, outside = create_topic(kafka), create_topic(kafka)
    elements = [
        events(topic),
        {"id": "frozen", "type": "frozen", "inputs": {"in": "events"}, "params": {}},
        out(outside, "frozen"),
    ]
    deployed = Deployed(kafka, elements, {"all": [element["id"] for element in elements]})
    node.own(deployed.specs["all"])
    frozen: list[int] = []
    for number in range(1, 4):
        produce(kafka, topic, [{"k": "a", "v": number}])
        wait_until(lambda number=number: len(values(kafka, outside)) == number, f"batch {number}")
        frozen = [row["v"] for row in values(kafka, outside)]
    assert min(frozen) > 10_000, frozen


PARTITIONS = 4


def partition_of(row: dict[str, Any]) -> int:
    return crc32(row["k"].encode()) % PARTITIONS


def test_large_batches_are_shared_by_tasks_each_of_which_has_its_partitions_keys(
    kafka: str, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until a key turns out to be in two partitions: then one task has them all, and nothing is lost."""
    planned: list[int] = []
    plan = Tasks.planned

    def noted(tasks: Tasks, token: int) -> list[dict[str, Any]]:
        made = plan(tasks, token)
        planned.append(len(made))
        return made

    monkeypatch.setattr(Tasks, "planned", noted)
    topic = create_topic(kafka, PARTITIONS)
    elements = [events(topic, partitions=PARTITIONS), sums()]
    deployed = Deployed(kafka, elements, {"all": ["events", "sums"]})
    rows = [{"k": f"k{n % 40}", "v": n % 11 - 1} for n in range(4 * ROWS_A_TASK)]
    produce(kafka, topic, rows, partition=partition_of)
    replica = node.own(deployed.specs["all"])
    wait_for_status(replica, lambda status: status.rows_in_total >= len(rows), "to process all")
    produce(kafka, topic, rows, partition=partition_of)
    wait_for_status(replica, lambda status: status.rows_in_total >= 2 * len(rows), "to process all again")
    assert planned == [1, 2]

    ones = [{"k": f"k{n % 40}", "v": 1} for n in range(4 * ROWS_A_TASK)]
    produce(kafka, topic, ones, partition=lambda row: partition_of(row) if row["k"] != "k0" else None)
    given = [*rows, *rows, *ones]
    wait_for_status(replica, lambda status: status.rows_in_total >= len(given), "to process those, too")
    assert planned == [1, 2, 1]
    # The results for a key in several partitions are known, but not their order.
    assert {key: sorted(found) for key, found in by_key(deployed.records("sums")).items()} == {
        key: sorted(found) for key, found in running_sums(given).items()
    }
    assert len(deployed.dead_letters("sums")) == sum(row["v"] < 0 for row in given)
    deployed.assert_journal_lawful("all")
