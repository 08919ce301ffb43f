"""A topic is trimmed while the node of its reader is frozen and killed. The dashboard shows it, and one click
continues."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from playwright.sync_api import expect

from pipeline_runtime.model.ids import stream_topic
from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.integration.pipelines.driving import CommittedReader, create_topic, deploy, element
from tests.running import RunningFogline
from tests.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.full, pytest.mark.timeout(600)]

NAME = "trimmed-topics"
START_S = 180
GAPS = {"passes": "skip", "asks": "stop"}
READ_BEFORE, DELETED_TO, SENT = 1000, 1500, 2000
LEFT = [*range(READ_BEFORE), *range(DELETED_TO, SENT)]


def document() -> dict[str, Any]:
    columns = [{"name": "n", "type": "integer"}]
    elements = [
        {
            "id": id,
            "type": "kafka-in",
            "node": "edge-a",
            "params": {"topic": f"{NAME}-{id}", "columns": columns, "gap": gap},
        }
        for id, gap in GAPS.items()
    ]
    spec = {"elements": elements}
    return {"apiVersion": "fogline/v1", "kind": "Pipeline", "metadata": {"name": NAME}, "spec": spec}


@pytest.fixture
def client(fogline: RunningFogline) -> Iterator[httpx.Client]:
    with fogline.client() as signed_in:
        yield signed_in


class Topics:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        for id in GAPS:
            create_topic(bootstrap, f"{NAME}-{id}")
        self._readers: dict[str, CommittedReader] = {}

    def fill(self, begin: int, end: int) -> None:
        producer = KafkaProducer(bootstrap_servers=self.bootstrap)
        for n in range(begin, end):
            for id in GAPS:
                producer.send(f"{NAME}-{id}", json.dumps({"n": n}).encode())
        producer.close()

    def trim(self, to: int) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        admin.delete_records({TopicPartition(f"{NAME}-{id}", 0): to for id in GAPS})
        admin.close()

    def has_put_out(self, deployment: str, id: str, numbers: list[int]) -> None:
        reader = self._readers.setdefault(id, CommittedReader(self.bootstrap, stream_topic(deployment, id)))

        def read() -> list[int]:
            return [row["n"] for _, row in reader.poll()]

        wait_until(lambda: read() == numbers, lambda: f"{id}: {len(read())} of {len(numbers)} rows", START_S)

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()


@pytest.fixture
def topics(fogline: RunningFogline) -> Iterator[Topics]:
    made = Topics(fogline.bootstrap)
    yield made
    made.close()


def test_what_retention_deleted_while_a_node_was_frozen_is_said_and_a_click_goes_on_behind_it(
    client: httpx.Client, topics: Topics, fogline: RunningFogline, dashboard: Dashboard
) -> None:
    topics.fill(0, READ_BEFORE)
    deployment = deploy(client, document())
    for id in GAPS:
        topics.has_put_out(deployment, id, [*range(READ_BEFORE)])
    node = fogline.pid("edge-a")
    os.kill(node, signal.SIGSTOP)  # it reads nothing of what comes now
    topics.fill(READ_BEFORE, SENT)
    topics.trim(DELETED_TO)
    os.kill(node, signal.SIGKILL)

    topics.has_put_out(deployment, "passes", LEFT)
    passes = wait_until(
        lambda: found if (found := element(client, NAME, "passes"))["left_out_total"] else None, "the count"
    )
    assert (passes["left_out_total"], passes["error"]) == (DELETED_TO - READ_BEFORE, None)

    page, panel = dashboard.page, dashboard.live_panel
    page.goto(f"/pipelines/{NAME}?mode=live&element=asks")
    note = panel.get_by_role("alert")
    expect(note).to_contain_text("has deleted records before they were read", timeout=SLOW_MS)
    expect(note).to_contain_text(f"begins at offset {DELETED_TO}, but {READ_BEFORE} is next")
    expect(note).to_contain_text("500 records of trimmed-topics-asks at most are left out for good")
    expect(dashboard.card("asks").locator(".status")).not_to_have_text("running")
    lag = panel.locator(".figure").filter(has_text="Lag").locator(".figure__value")
    expect(lag).to_contain_text(str(SENT - DELETED_TO), timeout=SLOW_MS)
    if shots := os.environ.get("SHOTS"):
        for scheme in ("light", "dark"):
            for width in (1440, 700):
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                page.set_viewport_size({"width": width, "height": 900})
                page.screenshot(path=f"{shots}/asks-{scheme}-{width}.png")
        page.set_viewport_size({"width": 1440, "height": 900})
    topics.has_put_out(deployment, "asks", [*range(READ_BEFORE)])
    note.get_by_role("button", name="Behind the gap").click()
    expect(dashboard.toast).to_contain_text("asks continues")
    expect(note).to_have_count(0, timeout=SLOW_MS)
    dashboard.expect_status("asks", "running")
    topics.has_put_out(deployment, "asks", LEFT)

    page.goto(f"/events?pipeline={NAME}")
    said = page.get_by_text(re.compile("passes.* has deleted records before they were read"))
    expect(said.first).to_be_visible()
