"""The pause that Fogline reports for a live migration, compared with the pause in its journal."""

from __future__ import annotations

from statistics import median
from typing import Any

import httpx
import pytest
from kafka import KafkaConsumer, TopicPartition

from pipeline_runtime.journal.records import Commit, decode
from pipeline_runtime.model.ids import journal_topic
from tests.integration.pipelines.driving import (
    deploy,
    element,
    ended_handover,
    order_handover,
)
from tests.integration.pipelines.statistics import RECOVERY_S
from tests.running import RunningFogline
from tests.waiting import wait_until

PIPELINE = "paused"
NEWEST = 20
"""The usual wait is the median over this many batches."""
ENOUGH = 8
"""With this many batches the usual wait can be told."""


def windows(id: str, size_s: int) -> dict[str, Any]:
    params = {"size_s": size_s, "aggregates": [{"function": "count", "as": "n"}]}
    return {
        "id": id,
        "type": "window-aggregate",
        "params": params,
        "inputs": {"in": "numbers"},
        "node": "edge-a",
    }


DOCUMENT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": PIPELINE},
    "spec": {
        "elements": [
            {"id": "numbers", "type": "generator", "params": {"rate": 10}, "node": "edge-b"},
            windows("second", 1),
            windows("minute", 60),
        ]
    },
}


class Commits:
    """A group's commits so far: when the broker took each, and how long its oldest row had waited."""

    def __init__(self, bootstrap: str, deployment: str, group: str) -> None:
        self._tp = TopicPartition(journal_topic(deployment, group), 0)
        self._consumer = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
        self._consumer.assign([self._tp])
        self._consumer.seek_to_beginning(self._tp)
        self._found: dict[int, int | None] = {}

    def waits(self) -> dict[int, int | None]:
        for record in self._consumer.poll(200).get(self._tp, []):
            entry = decode(record.value)
            if isinstance(entry, Commit):
                self._found[record.timestamp] = entry.wait_ms
        return self._found

    def close(self) -> None:
        self._consumer.close()


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_the_pause_of_a_move_is_what_its_journal_shows_however_seldom_it_writes(
    fogline: RunningFogline, client: httpx.Client
) -> None:
    deployment = deploy(client, DOCUMENT)
    groups = {id: Commits(fogline.bootstrap, deployment, id) for id in ("second", "minute")}
    for id, commits in groups.items():
        wait_until(
            lambda c=commits: len(c.waits()) >= ENOUGH,  # type: ignore[misc]
            f"batches of the {id}",
            RECOVERY_S,
        )
    # Both at once: it takes no longer than one.
    ordered = [order_handover(client, PIPELINE, id, "migrate", "edge-b") for id in groups]
    moved = [ended_handover(client, id, "a move to edge-b") for id in ordered]
    print(*(f"{each['element']}: {each['pause']}" for each in moved), sep="\n")
    assert [each["outcome"] for each in moved] == ["done", "done"], moved

    for id, handover in zip(groups, moved, strict=True):
        commits, measured, pause = groups[id], handover["measured"], handover["pause"]
        last_ms, first_ms = measured["last_commit_at_ms"], measured["first_commit_at_ms"]
        wait_until(lambda c=commits, at=first_ms: at in c.waits(), "the new owner's first commit")  # type: ignore[misc]
        waits = commits.waits()
        times = list(waits)
        assert times[times.index(last_ms) + 1] == first_ms
        before = [wait for at, wait in waits.items() if at <= last_ms and wait is not None][-NEWEST:]
        usual_ms, gap_ms = round(median(before)), first_ms - last_ms
        waited_ms = min(gap_ms, waits[first_ms] or 0)
        expected = {"gap_ms": gap_ms, "waited_ms": waited_ms, "usual_ms": usual_ms, "at_most": False}
        assert {name: pause[name] for name in expected} == expected
        assert pause["ms"] == max(0, waited_ms - usual_ms)
        assert element(client, PIPELINE, id)["node"] == "edge-b"
        commits.close()
