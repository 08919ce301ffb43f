"""A live chart of several curves: rows where a column is true are marked, and names hide what they name."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.axe import Axe
from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.running import RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

DOCUMENT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": "marked"},
    "spec": {
        "elements": [
            {
                "id": "numbers",
                "type": "generator",
                "params": {
                    "rate": 5,
                    "signals": [
                        {"name": "power", "unit": "kW", "period_s": 4, "low": -1},
                        {"name": "speed", "unit": "m/s", "shape": "walk"},
                    ],
                },
            },
            {
                "id": "judged",
                "type": "derive",
                "inputs": {"in": "numbers"},
                "params": {"columns": [{"name": "high", "expression": "power > 0"}]},
            },
            {
                "id": "chart",
                "type": "live-chart",
                "inputs": {"in": "judged"},
                "params": {"columns": ["power", "speed"], "marks": ["high"], "window_s": 60},
            },
        ],
        "groups": [{"id": "both", "elements": ["numbers", "judged"]}],
    },
}


def traces(plot: Locator) -> dict[str, int]:
    """How many rows Plotly has of each curve and of each kind of mark."""
    found = plot.evaluate(
        """(plot) => (plot.data ?? []).filter(({ name }) => name)
          .map(({ name, y }) => [name, y.filter(Number.isFinite).length])"""
    )
    return dict(found)


def expect_shown(plot: Locator, *names: str) -> None:
    wait_until(lambda: traces(plot).keys() == set(names), f"{names} and nothing else")


def test_rows_where_a_column_is_true_are_marked_and_a_click_on_a_name_hides_it(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page = dashboard.page
    with fogline.client() as client:
        client.post("/api/v1/pipelines", json={"name": "marked", "document": DOCUMENT}).raise_for_status()
        client.post("/api/v1/pipelines/marked/deploy").raise_for_status()
    page.goto("/pipelines/marked/elements/chart")
    plot = page.locator(".chart__plot")
    expect(plot.locator(".scatterlayer .trace").first).to_be_attached(timeout=SLOW_MS)
    rows = wait_until(lambda: (found := traces(plot)).get("high", 0) > 10 and found, "marks")
    assert rows.keys() == {"power", "speed", "high"}
    assert rows["power"] == rows["speed"] > rows["high"]

    # each name with its unit; hidden and shown again, and the others stay
    names = page.locator(".chart__legend").get_by_role("button")
    expect(names).to_have_text(["powerkW", "speedm/s", "▼high"])
    for hidden, left in (("speed", ("power", "high")), ("high", ("power",))):
        names.filter(has_text=hidden).click()
        expect(names.filter(has_text=hidden)).to_have_attribute("aria-pressed", "false")
        expect_shown(plot, *left)
    names.filter(has_text="speed").click()
    expect_shown(plot, "power", "speed")

    # in words too
    page.get_by_role("button", name="Table of power, speed").click()
    figures = page.get_by_role("region", name="Figures")
    expect(figures.get_by_role("columnheader")).to_have_text(["Time", "power (kW)", "speed (m/s)", "Events"])
    expect(figures.get_by_role("cell", name="high", exact=True).first).to_be_visible()


@pytest.mark.full
def test_a_click_on_a_mark_shows_the_rows_it_was_made_from_and_the_chart_hangs_on_a_wall_with_one_more(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page, panel, axe = dashboard.page, dashboard.live_panel, Axe(dashboard.page)
    apart = copy.deepcopy(DOCUMENT)
    apart["metadata"]["name"] = "marked-apart"
    del apart["spec"]["groups"]  # what runs as one keeps no rows between its elements
    with fogline.client() as client:
        client.post("/api/v1/pipelines", json={"name": "marked-apart", "document": apart}).raise_for_status()
        client.post("/api/v1/pipelines/marked-apart/deploy").raise_for_status()
    page.goto("/pipelines/marked-apart?mode=live&element=chart")
    plot = panel.locator(".chart__plot")
    expect(plot.locator(".scatterlayer .trace").first).to_be_attached(timeout=SLOW_MS)
    wait_until(lambda: traces(plot).get("high", 0) > 20, "marks")

    # a chart that is dragged over stands still
    area = plot.locator(".nsewdrag").bounding_box()
    assert area is not None
    for x, act in ((0.6, page.mouse.down), (0.97, page.mouse.up)):
        page.mouse.move(area["x"] + x * area["width"], area["y"] + 100, steps=8)
        act()
    expect(panel.get_by_role("button", name="Back to now")).to_be_visible()
    marks = plot.locator(".scatterlayer .trace").last.locator(".points path")
    expect(marks.nth(2)).to_be_visible()
    box = marks.nth(1).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2 - 3, box["y"] + box["height"] / 2)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=3)
    page.mouse.down()
    page.mouse.up()
    dialog = page.get_by_role("dialog", name="Where this row came from")
    row = dialog.get_by_role("region", name="Rows of judged").get_by_role("row").nth(1)
    expect(row).to_contain_text("true")
    expect(dialog.get_by_role("region", name="Rows of numbers").get_by_role("row")).to_have_count(2)
    axe.look("where a row came from")
    dialog.get_by_role("button", name="Close").click()

    try:
        panel.get_by_role("button", name="Add to a wall").click()
        axe.look("the walls on which a chart can hang")
        page.get_by_role("menuitem", name="A new wall, marked-apart").click()
        page.get_by_role("button", name="Open the wall").click()
        expect(page.get_by_role("heading", name="marked-apart", level=1)).to_be_visible()
        hung = page.locator('.wall-tile[data-kind="chart"]')
        expect(hung.locator(".js-plotly-plot")).to_be_visible()
        expect(hung).to_contain_text("power")
        axe.look("a chart that was hung there")
        axe.expect_nothing()
    finally:
        page.goto("/walls/")  # a page that shows the wall would ask for it, and be told that it is gone
        with fogline.client() as client:
            for wall in client.get("/api/v1/walls").json():
                client.delete(f"/api/v1/walls/{wall['id']}").raise_for_status()
