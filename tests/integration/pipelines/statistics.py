"""A pipeline of statistics per key with its oracle, and what is done to its nodes."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import httpx
import psutil

from tests.integration.pipelines.driving import API, LOOK_EVERY_S, Event, element, hand_over
from tests.running import RunningFogline
from tests.waiting import wait_until

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
        # Who has read its own disk, and does not own yet, has a seq as well.
        owns = found["node"] == node and found["status"] in ("running", "lagging")
        return found if owns and found["seq"] > above_seq else None

    found: dict[str, Any] = wait_until(
        running, f"stats to commit on {node}", RECOVERY_S, look_every_s=LOOK_EVERY_S
    )
    return found


def kill_node(fogline: RunningFogline, client: httpx.Client, pipeline: str, name: str) -> None:
    """SIGKILL of the process of the node on which stats runs; the supervisor starts it again. Over when that
    is noticed: until then its last reports come in, and stats seems to go on."""
    kill_process(fogline, name)

    def is_noticed() -> bool:
        return not element(client, pipeline, "stats")["actions"]["migrate"]["allowed"]

    wait_until(is_noticed, "the end of the node to be noticed", RECOVERY_S)


def kill_process(fogline: RunningFogline, name: str) -> None:
    pid = fogline.pid(name)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not psutil.pid_exists(pid), f"{name} to be dead")


def arrive_through_a_move_and_a_kill(
    fogline: RunningFogline,
    client: httpx.Client,
    pipeline: str,
    id: str,
    arrived: Callable[[], int],
    more: int,
) -> None:
    """Moves the element from edge-a to edge-b, and kills edge-b. Waits before, between and after until `more`
    rows than before have arrived."""

    def arrive(what: str) -> None:
        before = arrived()
        wait_until(lambda: arrived() > before + more, f"rows after {what}", RECOVERY_S)

    arrive("the start")
    assert element(client, pipeline, id)["node"] == "edge-a"
    assert hand_over(client, pipeline, id, "migrate", "edge-b")["outcome"] == "done"
    arrive("the move")
    kill_process(fogline, "edge-b")
    arrive("the kill")


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
