"""Copies of a part of a pipeline at each site, made in the editor, run for real, and joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from pipeline_runtime.model.ids import stream_topic
from tests.browser.dashboard import Dashboard
from tests.integration.pipelines.driving import CommittedReader, deploy_draft, element
from tests.running import RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.full, pytest.mark.timeout(600)]

NAME = "at-each-site"
ENOUGH = 20
DOCUMENT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": NAME},
    "spec": {
        "elements": [
            {"id": "numbers", "type": "generator", "params": {"rate": 5, "key_prefix": "{site}-"}},
            {
                "id": "keep",
                "type": "filter",
                "params": {"condition": "value >= 0"},
                "inputs": {"in": "numbers"},
            },
            {"id": "total", "type": "filter", "params": {"condition": "n >= 0"}, "inputs": {"in": "keep"}},
        ],
        "groups": [{"id": "part", "elements": ["numbers", "keep"]}],
    },
}


@pytest.fixture
def client(fogline: RunningFogline, sites: None) -> Iterator[httpx.Client]:
    """Signed in; each node stands at a site of its own."""
    with fogline.client() as client:
        yield client


def test_a_part_is_copied_to_each_site_runs_there_and_all_of_it_is_joined(
    client: httpx.Client, dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page = dashboard.page
    client.post("/api/v1/pipelines", json={"name": NAME, "document": DOCUMENT}).raise_for_status()
    page.goto(f"/pipelines/{NAME}")
    dashboard.select("numbers")
    dashboard.card("keep").click(modifiers=["Shift"])
    page.keyboard.press("s")
    dialog = page.get_by_role("dialog", name="Copy 2 elements to each site")
    expect(dialog.get_by_role("checkbox", name="Hall 1")).to_be_checked()
    dialog.get_by_role("button", name="Copy").click()
    expect(dashboard.card("keep-yard")).to_contain_text("Yard")
    page.keyboard.press("Control+z")
    expect(dashboard.card("keep-yard")).to_have_count(0)
    page.keyboard.press("Control+y")
    expect(dashboard.card("keep-all")).to_contain_text("all sites")
    expect(dashboard.problems).to_contain_text("No problems")
    expect(page.get_by_role("status", name="Draft saved")).to_be_visible()

    deployment = deploy_draft(client, NAME)
    assert element(client, NAME, "keep")["node"] == "edge-a"
    assert element(client, NAME, "keep-yard")["node"] == "edge-b"
    with ExitStack() as ends:

        def reader(id: str) -> CommittedReader:
            found = CommittedReader(fogline.bootstrap, stream_topic(deployment, id))
            ends.callback(found.close)
            return found

        parts, joined = [reader("keep"), reader("keep-yard")], reader("total")
        for part in parts:
            part.read(ENOUGH, 180)
        for id in ("numbers", "numbers-yard"):
            client.post(f"/api/v1/pipelines/{NAME}/elements/{id}/pause").raise_for_status()

        def all_joined() -> bool:
            sent = Counter(str(record) for part in parts for record in part.poll())
            return sent == Counter(str(record) for record in joined.poll())

        wait_until(all_joined, "the rows of both sites, each once", 180)
        assert {key for key, _ in joined.records} == {"hall-1-0", "yard-0"}
