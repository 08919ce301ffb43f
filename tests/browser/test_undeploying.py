"""A pipeline is undeployed while a system outside does not take its rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.plants import a_plant
from tests.running import RunningFogline
from tests.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

NAME = "to-a-plant"
PATH = f"/api/v1/pipelines/{NAME}"
DOCUMENT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": NAME},
    "spec": {
        "elements": [
            {"id": "numbers", "type": "generator", "params": {"rate": 5}, "node": "edge-a"},
            {
                "id": "out",
                "type": "http-out",
                "title": "To the plant",
                "params": {"connection": "shut-plant"},
                "inputs": {"in": "numbers"},
                "node": "edge-a",
            },
        ]
    },
}
ROWS = re.compile(r"[\d,]+ rows of To the plant \(.*503")


@pytest.fixture
def waits(fogline: RunningFogline) -> Iterator[None]:
    """A pipeline whose rows a plant outside does not take."""
    with a_plant() as plant, fogline.client() as client:
        plant.shut = True
        connection = {"name": "shut-plant", "kind": "http", "fields": plant.connection}
        client.post("/api/v1/connections", json=connection).raise_for_status()
        client.post("/api/v1/pipelines", json={"name": NAME, "document": DOCUMENT}).raise_for_status()
        client.post(f"{PATH}/deploy").raise_for_status()

        def reason() -> bool:
            plan = client.post(f"{PATH}/undeploy", json={"dry_run": True}).json()
            return any(each["rows"] > 1 and each["why"] for each in plan["undelivered"] or ())

        wait_until(reason, "rows that wait, with the reason", 180)
        yield


@pytest.mark.usefixtures("waits")
def test_undeploying_says_what_waits_and_does_not_wait_if_a_user_wants_so(dashboard: Dashboard) -> None:
    page = dashboard.page
    page.goto(f"/pipelines/{NAME}?mode=live")
    panel = page.get_by_role("region", name="What is under way")
    header = page.get_by_role("button", name="Undeploy", exact=True)

    header.click()
    dialog = page.get_by_role("dialog", name=f"Undeploy {NAME}?")
    expect(dialog.get_by_role("status")).to_contain_text(ROWS)
    dialog.get_by_role("button", name="Undeploy", exact=True).click()
    expect(panel).to_contain_text("Waits for To the plant to deliver", timeout=SLOW_MS)

    # the numbers change, so they are not read out each time
    expect(panel.get_by_role("status", name="Progress")).not_to_contain_text("to deliver")

    panel.get_by_role("button", name="Close").click()
    expect(panel).to_have_count(0)
    header.click()
    panel.get_by_role("button", name="Undeploy now").click()
    dialog = page.get_by_role("dialog", name=f"Undeploy now: {NAME}?")
    expect(dialog).to_contain_text(ROWS)
    dialog.get_by_role("button", name="Undeploy now").click()
    told = panel.get_by_role("status", name="Progress")
    expect(told).to_contain_text("Not delivered: ", timeout=SLOW_MS)
    expect(told).to_contain_text(ROWS)
    expect(panel).to_be_focused()
