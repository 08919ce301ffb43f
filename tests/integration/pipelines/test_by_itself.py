"""Tests that a running Fogline restores a group from a hot standby by itself, and changes a running pipeline
in place.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from pipeline_runtime.model.ids import stream_topic
from tests.integration.pipelines.conftest import Steady
from tests.integration.pipelines.driving import (
    API,
    CommittedReader,
    create_topic,
    deploy,
    element,
    operate,
)
from tests.integration.pipelines.statistics import (
    RECOVERY_S,
    assert_agrees_with_oracle,
    freeze_node,
    keyed_event,
    node,
    owner_again,
    statistics_document,
    thaw,
)
from tests.running import RunningFogline
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(900)]

PIPELINE = "by-itself"
PATH = f"{API}/pipelines/{PIPELINE}"


def test_what_runs_is_changed_and_restored_without_a_hand_or_a_loss(tmp_path: Path, steady: Steady) -> None:
    nodes = ("edge-a", "edge-b")
    with (
        RunningFogline(tmp_path / "data", nodes, FOGLINE_SILENCE_S="12") as fogline,
        fogline.client() as client,
    ):
        topic = "by-itself-in"
        create_topic(fogline.bootstrap, topic)
        document = statistics_document(PIPELINE, topic)
        document["spec"]["elements"] += [LOW, TICKS, PASSED]
        deployment = deploy(client, document)
        producer = steady(fogline.bootstrap, topic, keyed_event, 100)
        seq = owner_again(client, PIPELINE, 5, "edge-a")["seq"]

        change(client, document)
        assert owner_again(client, PIPELINE, seq, "edge-a")["epoch"] == 2

        for through, told in (
            ("between", {"stats": FIRST_ROW.format("between"), "between": STOPS.format("stats")}),
            ("instead", {"stats": FIRST_ROW.format("instead"), "instead": STOPS.format("between")}),
            (None, {"stats": STOPS.format("instead")}),
        ):
            connect(client, document, through, told)
            seq = owner_again(client, PIPELINE, seq, "edge-a")["seq"]
            if through == "between":
                regroup(client, document, TOGETHER, "it now runs together with {}")
                seq = owner_again(client, PIPELINE, seq, "edge-a")["seq"]
                regroup(client, document, [], "it now runs by itself")
                seq = owner_again(client, PIPELINE, seq, "edge-a")["seq"]

        answer = client.post(f"{PATH}/elements/stats/standby", json={"node": "edge-b"})
        assert answer.status_code == 202, answer.text
        wait_until(lambda: follows(client, "edge-b"), "the standby on edge-b to follow", RECOVERY_S)
        frozen = freeze_node(fogline, "edge-a")
        try:
            handover = wait_until(lambda: restored(client), "the restoration to end", RECOVERY_S)
            assert (handover["outcome"], handover["strategy"]) == ("done", "hot-standby"), handover
            assert "after edge-a fell silent" in handover["message"]
            owner_again(client, PIPELINE, seq, "edge-b")
        finally:
            thaw(frozen)
        wait_until(lambda: node(client, "edge-a")["up"], "edge-a to report again")
        wait_until(lambda: follows(client, "edge-a"), "the former owner to follow", RECOVERY_S)

        events = producer.finish(5_000)
        reader = CommittedReader(fogline.bootstrap, stream_topic(deployment, "stats"))
        assert_agrees_with_oracle(reader.read(len(events), RECOVERY_S), events)
        assert_came(fogline.bootstrap, deployment, reader.records)
        assert_numbered(fogline.bootstrap, deployment)
        reader.close()
        assert element(client, PIPELINE, "events")["epoch"] == 1, "what was not changed went on untouched"


LOW = {"id": "low", "type": "filter", "inputs": {"in": "events"}, "params": {"condition": "value < 500"}}
HIGH = {"id": "high", "type": "filter", "inputs": {"in": "stats"}, "params": {"condition": "maximum >= 990"}}


def assert_came(bootstrap: str, deployment: str, statistics: list[Any]) -> None:
    """What came has read its input from the beginning, through upgrade and restoration of what it reads."""
    reader = CommittedReader(bootstrap, stream_topic(deployment, "high"))
    expected = [value for _, value in statistics if value["maximum"] >= 990]
    assert expected
    assert [value for _, value in reader.read(len(expected), RECOVERY_S)] == expected
    assert stream_topic(deployment, "low") not in reader.topics(), "what went has left no stream"
    reader.close()


TICKS = {"id": "ticks", "type": "generator", "params": {"rate": 20}}
PASSED = {"id": "passed", "type": "filter", "inputs": {"in": "ticks"}, "params": {"condition": "n >= 0"}}
TOGETHER = [
    {"id": "numbered", "elements": ["ticks", "passed"]},
    {"id": "together", "elements": ["events", "between"]},
]


def regroup(client: httpx.Client, document: dict[str, Any], groups: list[dict[str, Any]], told: str) -> None:
    """A source and what reads it, and a topic's reader and what lies between it and the statistics."""
    untouched = {id: element(client, PIPELINE, id)["epoch"] for id in ("stats", "high")}
    document["spec"]["groups"] = groups
    changes = {item["element"]: (item["change"], item["reason"]) for item in save(client, document)}
    assert [changes.pop(id) for id in untouched] == [("unchanged", None)] * 2
    others = {"events": "between", "between": "events", "ticks": "passed", "passed": "ticks"}
    assert changes == {
        id: ("upgraded", f"{told.format(other)}, and goes on where it stands") for id, other in others.items()
    }
    operate(client, f"{PATH}/deploy", "the regrouping")
    assert {id: element(client, PIPELINE, id)["epoch"] for id in untouched} == untouched
    of = {group: each["id"] for each in groups for group in each["elements"]}
    for id in others:
        found = element(client, PIPELINE, id)
        assert (found["group"], found["epoch"]) == (of.get(id, id), 1), (
            "another group, by the id that it shows"
        )


def assert_numbered(bootstrap: str, deployment: str) -> None:
    """A source has gone on in each group where it stood in the one before: each row is there, once."""
    reader = CommittedReader(bootstrap, stream_topic(deployment, "passed"))
    numbers = [value["n"] for _, value in reader.read(1_000, RECOVERY_S)]
    assert numbers == list(range(len(numbers)))
    reader.close()


FIRST_ROW = "it now reads {}, from its first row"
STOPS = "it now reads events, from the row at which {} stops"


def connect(
    client: httpx.Client, document: dict[str, Any], through: str | None, told: dict[str, str]
) -> None:
    """The statistics to the events, through an element that lets all rows pass: the oracle is the same."""
    passes = {"type": "filter", "inputs": {"in": "events"}, "params": {"condition": "value >= 0"}}
    elements = document["spec"]["elements"]
    elements[5:] = [{"id": through, **passes}] if through else []
    elements[1]["inputs"] = {"in": through or "events"}
    assert {item["element"]: item["reason"] for item in save(client, document) if item["reason"]} == told
    operate(client, f"{PATH}/deploy", "the change")


def save(client: httpx.Client, document: dict[str, Any]) -> list[dict[str, Any]]:
    """What deploying it would do to each element."""
    tag = client.get(PATH).headers["ETag"]
    saved = client.put(PATH, json={"document": document}, headers={"If-Match": tag})
    assert saved.status_code == 200, saved.text
    changes: list[dict[str, Any]] = client.post(f"{PATH}/deploy", json={"dry_run": True}).json()["changes"]
    return changes


def change(client: httpx.Client, document: dict[str, Any]) -> None:
    """One element goes and one comes; of a third a parameter that changes nothing of the output, so that the
    oracle stays the same."""
    document["spec"]["elements"][1]["params"]["reset"] = True
    document["spec"]["elements"][2] = HIGH
    assert {item["element"]: item["change"] for item in save(client, document)} == {
        "events": "unchanged",
        "stats": "upgraded",
        "high": "added",
        "low": "removed",
        "ticks": "unchanged",
        "passed": "unchanged",
    }
    operate(client, f"{PATH}/deploy", "the change")


def follows(client: httpx.Client, name: str) -> bool:
    replicas = element(client, PIPELINE, "stats")["replicas"]
    return any(
        replica["node"] == name and replica["role"] == "standby" and replica["phase"] == "following"
        for replica in replicas
    )


def restored(client: httpx.Client) -> dict[str, Any] | None:
    handovers: list[dict[str, Any]] = client.get(f"{API}/handovers").json()
    # What has no standby is restored as well, in any order with it.
    ended = (each for each in handovers if each["outcome"] is not None)
    return next((each for each in ended if each["element"] == "stats"), None)
