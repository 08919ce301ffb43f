"""The state of an element, key by key: looking at it, searching it, unfolding it, and reading it again."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.axe import Axe
from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.running import RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.full, pytest.mark.timeout(600)]

NAME = "keeps"
KEYS = 45


def element(id: str, type_: str, source: str | None = None, **params: Any) -> dict[str, Any]:
    inputs = {"inputs": {"in": source}} if source else {}
    return {"id": id, "type": type_, "params": params, "node": "edge-a", **inputs}


HOUR_S = 3600
AVERAGE = {"function": "avg", "column": "value", "as": "average"}
DOCUMENT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": NAME},
    "spec": {
        "elements": [
            element("numbers", "generator", rate=90, keys=KEYS),
            element("figures", "running-statistics", "numbers", column="value", key="key", every_s=HOUR_S),
            element(
                "hourly", "window-aggregate", "numbers", size_s=HOUR_S, keys=["key"], aggregates=[AVERAGE]
            ),
        ],
    },
}


@pytest.fixture
def keeps(fogline: RunningFogline) -> str:
    """The name of a pipeline of which two elements keep something of each of KEYS keys."""
    with fogline.client() as client:
        path = f"/api/v1/pipelines/{NAME}"
        client.post("/api/v1/pipelines", json={"name": NAME, "document": DOCUMENT}).raise_for_status()
        client.post(f"{path}/deploy").raise_for_status()

        def keys() -> list[int]:
            return [each["state_keys"] or 0 for each in client.get(f"{path}/elements").json()]

        # an hour may end meanwhile, and another window begin
        wait_until(lambda: keys()[0] == 0 and min(keys()[1:]) >= KEYS, "all keys", SLOW_MS / 1000)
    return NAME


def test_what_an_element_keeps_is_looked_at_key_by_key(keeps: str, dashboard: Dashboard) -> None:
    axe = Axe(dashboard.page)
    page, panel = dashboard.page, dashboard.live_panel
    page.goto(f"/pipelines/{keeps}?mode=live&element=figures")
    dashboard.open_tab("State")
    rows = panel.get_by_role("region", name="State").get_by_role("row")
    expect(panel.get_by_text(f"{KEYS} keys. Read")).to_be_visible()
    expect(rows).to_have_count(1 + 20)
    axe.look("what an element keeps")

    more = panel.get_by_role("button", name="Show more")
    more.click()
    expect(rows).to_have_count(1 + 40)
    more.press("Enter")
    expect(rows).to_have_count(1 + KEYS)
    expect(more).to_have_count(0)
    expect(panel.get_by_role("region", name="State")).to_be_focused()

    search = panel.get_by_label("Search keys")
    search.fill("sensor-4")
    expect(rows).to_have_count(1 + 6)
    dashboard.type_into(search, "sensor-44")
    expect(rows).to_have_count(1 + 1)
    folded = rows.nth(1).locator("summary")
    dashboard.tab_to(folded)
    dashboard.press("Enter")
    expect(rows.nth(1)).to_contain_text(re.compile(r"reports_at.*:00:00.* UTC"))
    axe.look("what it keeps of a key")
    before = kept(rows.nth(1))
    panel.get_by_role("button", name="Read again").click()
    wait_until(lambda: kept_anew(panel, rows.nth(1)) != before, "what is kept to have moved on")

    search.fill("nobody")
    expect(panel.get_by_text("No key matches “nobody”.")).to_be_visible()
    axe.look("a search that finds nothing")
    dashboard.select("numbers")
    expect(panel.get_by_role("tab", name="Records")).to_be_visible()
    expect(panel.get_by_role("tab", name="State")).to_have_count(0)
    axe.expect_nothing()


def test_windows_are_read_as_times_and_searched_by_the_values_of_their_keys(
    keeps: str, dashboard: Dashboard
) -> None:
    page = dashboard.page
    page.goto(f"/pipelines/{keeps}/elements/hourly?tab=state")
    rows = page.get_by_role("region", name="State").get_by_role("row")
    expect(rows.nth(1)).to_contain_text(re.compile(r"\d\d:00:00 to [-\d]+ \d\d:00:00 UTC, sensor-\d"))
    expect(rows.nth(1)).to_contain_text(re.compile(r'{"average":-?\d'))
    page.get_by_label("Search keys").fill("SENSOR-44")
    expect(page.get_by_role("cell", name=re.compile("UTC, sensor-44$")).first).to_be_visible()
    expect(page.get_by_role("cell", name=re.compile("UTC, sensor-1$"))).to_have_count(0)


def kept(row: Locator) -> Any:
    return json.loads(row.locator("summary").inner_text())


def kept_anew(panel: Locator, row: Locator) -> Any:
    panel.get_by_role("button", name="Read again").click()
    return kept(row)
