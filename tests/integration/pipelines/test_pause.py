"""The pause that a live migration is said to have cost, against what its journal shows from outside."""

from __future__ import annotations

from itertools import pairwise
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
    hand_over,
    order_handover,
)
from tests.integration.pipelines.statistics import RECOVERY_S
from tests.running import RunningFogline
from tests.waiting import wait_until

PIPELINE = "paused"
NEWEST = 21
"""The usual interval is the median over this many outputs."""
ENOUGH = 5
"""With this many outputs the interval can be told."""


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
    """A group's commits so far: when the broker took each, and whether it has an output."""

    def __init__(self, bootstrap: str, deployment: str, group: str) -> None:
        self._tp = TopicPartition(journal_topic(deployment, group), 0)
        self._consumer = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
        self._consumer.assign([self._tp])
        self._consumer.seek_to_beginning(self._tp)
        self._found: list[tuple[int, bool]] = []

    def times(self, *, outputs: bool = False) -> list[int]:
        for record in self._consumer.poll(200).get(self._tp, []):
            entry = decode(record.value)
            if isinstance(entry, Commit):
                self._found.append((record.timestamp, entry.rows_out > 0))
        return [at_ms for at_ms, has_output in self._found if has_output or not outputs]

    def close(self) -> None:
        self._consumer.close()


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_what_is_usual_for_a_window_is_no_pause_of_its_move(
    fogline: RunningFogline, client: httpx.Client
) -> None:
    deployment = deploy(client, DOCUMENT)
    second, minute = (Commits(fogline.bootstrap, deployment, id) for id in ("second", "minute"))
    wait_until(lambda: len(second.times(outputs=True)) >= ENOUGH, "windows of a second", RECOVERY_S)
    wait_until(lambda: len(minute.times()) >= ENOUGH, "batches of the minute", RECOVERY_S)

    # Both at once: it takes no longer than one.
    ordered = [order_handover(client, PIPELINE, id, "migrate", "edge-b") for id in ("second", "minute")]
    moved = [ended_handover(client, id, "a move to edge-b") for id in ordered]
    print(*(f"{each['element']}: {each['pause']}, gap {each['gap_ms']}" for each in moved), sep="\n")
    assert [each["outcome"] for each in moved] == ["done", "done"], moved

    of_second, of_minute = moved
    # On a slow machine the first output may come after the time in which it is waited for.
    while of_second["gap_ms"] is None:
        back = {"edge-a": "edge-b", "edge-b": "edge-a"}[of_second["target"]]
        of_second = hand_over(client, PIPELINE, "second", "migrate", back)
        assert of_second["outcome"] == "done", of_second
    outputs = read_behind(second, of_second["measured"]["first_output_at_ms"], outputs=True)
    assert of_second["pause"]["by"] == "outputs"
    assert of_second["pause"]["between_ms"] == of_second["gap_ms"]
    assert_is_what_the_journal_shows(of_second["pause"], of_second["measured"]["last_output_at_ms"], outputs)
    assert of_second["pause"]["ms"] < of_second["gap_ms"], "what is usual for it counts as a pause"

    commits = read_behind(minute, of_minute["measured"]["first_commit_at_ms"])
    assert of_minute["pause"]["by"] == "commits"
    assert_is_what_the_journal_shows(of_minute["pause"], of_minute["measured"]["last_commit_at_ms"], commits)
    assert element(client, PIPELINE, "minute")["node"] == "edge-b"
    second.close()
    minute.close()


def read_behind(commits: Commits, at_ms: int, *, outputs: bool = False) -> list[int]:
    """All up to that time, which is one of them, and perhaps some more."""
    wait_until(lambda: at_ms in commits.times(outputs=outputs), "the new owner's first in the journal")
    return commits.times(outputs=outputs)


def assert_is_what_the_journal_shows(pause: dict[str, Any], last_ms: int, times: list[int]) -> None:
    """`times`: of what the pause was measured by; `last_ms`: the old owner's last of them."""
    last = times.index(last_ms)
    before = times[: last + 1][-NEWEST:]
    usual_ms = round(median(later - earlier for earlier, later in pairwise(before)))
    between_ms = times[last + 1] - last_ms
    expected = {"between_ms": between_ms, "usual_ms": usual_ms, "ms": max(0, between_ms - usual_ms)}
    assert {name: pause[name] for name in expected} == expected
