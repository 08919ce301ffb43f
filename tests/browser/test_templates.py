"""The gallery of templates: one click runs one, one makes it somebody's own."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import Axe
from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.running import PROJECT, RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

# (template, its element that draws a chart, its element with the table of its alarms)
DEPLOYED = [
    ("power-recorder", "chart", "alert-table"),
    ("ecg-alarm", "rate", "alarm-table"),
    ("wind-turbine", "chart", "alarms"),
    ("base-load", "chart", "alarms"),
    ("additive-control", "chart", "alarms"),
    ("press-by-opcua", "chart", "alarms"),
    ("pump-by-modbus", "chart", "alarms"),
]
REPLACE = "Your source goes here"
ALARM_S = 240


def card_of(page: Page, name: str) -> Locator:
    """As one finds it: by the menu."""
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Templates").click()
    card = page.get_by_role("article").filter(has=page.locator(f'a[href="/templates/{name}"]'))
    expect(card.get_by_role("img", name=re.compile("^The pipeline .*: [0-9]+ elements"))).to_be_visible()
    return card


def open_template(page: Page, name: str) -> None:
    card_of(page, name).click()
    expect(page.get_by_role("heading", name="Element by element")).to_be_visible()


def drawn_points(chart: Locator) -> int:
    """How many figures Plotly has of the chart's curves."""
    return int(
        chart.evaluate(
            """(plot) => (plot.data ?? []).filter(({ yaxis }) => yaxis !== "y2")
              .reduce((sum, { y }) => sum + y.filter(Number.isFinite).length, 0)"""
        )
    )


@pytest.mark.parametrize(
    "deployed",
    [pytest.param(DEPLOYED[:1], id="one"), pytest.param(DEPLOYED[1:], id="others", marks=pytest.mark.full)],
)
@pytest.mark.timeout(900)
def test_templates_are_deployed_by_one_click_and_their_charts_and_alarms_come(
    deployed: list[tuple[str, str, str]], dashboard: Dashboard, fogline: RunningFogline
) -> None:
    """All at once: each takes a minute until its alarm."""
    page, panel = dashboard.page, dashboard.live_panel
    for name, *_ in deployed:
        card_of(page, name).get_by_role("button", name=re.compile("^Deploy ")).click()
        page.wait_for_url(f"**/pipelines/{name}?mode=live**", timeout=SLOW_MS)
        # how it goes is told here, though another page has ordered it
        expect(page.get_by_role("status", name="Progress")).to_be_visible()
        with fogline.client() as client:
            made = client.get(f"/api/v1/pipelines/{name}").json()
        assert (made["document"]["metadata"]["name"], made["deployed_version"]) == (name, 1)

    for name, chart, table in deployed:
        page.goto(f"/pipelines/{name}?mode=live&element={chart}")
        plot = panel.locator(".chart__plot")
        expect(plot.locator(".scatterlayer .trace").first).to_be_attached(timeout=SLOW_MS)
        wait_until(lambda at=plot: drawn_points(at) > 10, f"the chart of {name} to be drawn", ALARM_S)
        page.goto(f"/pipelines/{name}?mode=live&element={table}")
        rows = panel.get_by_role("region", name="Records").get_by_role("row")
        expect(rows.nth(1)).to_be_visible(timeout=ALARM_S * 1000)


def test_a_template_for_which_there_is_no_node_says_so_and_its_pipeline_is_kept(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page = dashboard.page
    open_template(page, "numbers-average")
    with fogline.client() as client:
        nodes = [f"/api/v1/nodes/{node['name']}" for node in client.get("/api/v1/nodes").json()]
        try:
            for node in nodes:
                client.post(f"{node}/cordon").raise_for_status()
            page.get_by_role("button", name="Deploy", exact=True).click()
            progress = page.get_by_role("status", name="Progress")
            expect(progress).to_contain_text("no node can take it (edge-a is cordoned")
        finally:
            for node in nodes:
                client.post(f"{node}/uncordon").raise_for_status()
        expect(dashboard.card("average")).to_be_visible()
        kept = client.get("/api/v1/pipelines/numbers-average").raise_for_status().json()
        assert (kept["status"], kept["elements"]) == ("failed", 3)
        client.delete("/api/v1/pipelines/numbers-average").raise_for_status()


@pytest.mark.full
def test_a_template_made_mine_says_where_my_source_goes_until_i_change_it(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page, inspector = dashboard.page, dashboard.inspector
    open_template(page, "numbers-average")
    page.get_by_role("button", name="Make it mine").click()
    page.wait_for_url("**/pipelines/numbers-average?element=numbers")
    note = inspector.get_by_role("note", name=REPLACE)
    badge = dashboard.card("numbers").get_by_text(REPLACE)
    for place in (note, badge):
        expect(place).to_be_visible()
    expect(dashboard.card("average").get_by_text(REPLACE)).to_have_count(0)

    # a file of one's own; all steps back, and it is the template's again
    dashboard.upload(PROJECT / "docs" / "tutorial" / "cold-store.csv")
    for place in (note, badge):
        expect(place).to_have_count(0)
    dashboard.select("numbers")
    dashboard.press(*["Control+z"] * 5)
    expect(badge).to_be_visible()

    # it may stay as it is; that is kept
    note.get_by_role("button", name="Keep it as it is").click()
    expect(badge).to_have_count(0)
    expect(page.get_by_role("status", name="Draft saved")).to_be_visible()
    with fogline.client() as client:
        (numbers, *_) = client.get("/api/v1/pipelines/numbers-average").json()["document"]["spec"]["elements"]
    assert (numbers["ui"], numbers["params"]["path"]) == ({"x": 0, "y": 0}, "demo:debs2012")

    # once more from the gallery: the next name that is free
    open_template(page, "numbers-average")
    page.get_by_role("button", name="Make it mine").click()
    page.wait_for_url("**/pipelines/numbers-average-2?element=numbers")
    expect(badge).to_be_visible()


@pytest.mark.full
def test_a_pipeline_is_saved_as_a_template_and_made_into_another_one(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page, axe = dashboard.page, Axe(dashboard.page)
    elements = [
        {"id": "numbers", "type": "generator", "params": {"rate": 1}},
        {
            "id": "positive",
            "type": "filter",
            "params": {"condition": "value > 0"},
            "inputs": {"in": "numbers"},
        },
    ]
    document = {"kind": "Pipeline", "metadata": {"name": "to-save"}, "spec": {"elements": elements}}
    with fogline.client() as client:
        client.post("/api/v1/pipelines", json={"document": document}).raise_for_status()
    page.goto("/pipelines/to-save")
    expect(dashboard.card("positive")).to_be_visible()
    page.get_by_role("button", name=re.compile("pipeline menu$")).click()
    page.get_by_role("menuitem", name="Save as template").click()
    dialog = page.get_by_role("dialog", name="Save as template")
    dialog.get_by_label("Title").fill("Only what is positive")
    dialog.get_by_label("What it does, on its card").fill("Leaves out what is negative.")
    dialog.get_by_label("What positive does").fill("Keeps *positive* numbers.")
    dialog.get_by_label("Its user sets positive for themselves").check()
    axe.look("saving a template")
    dialog.get_by_role("button", name="Save template").click()
    page.get_by_role("button", name="Open it").click()
    page.wait_for_url("**/templates/only-what-is-positive")
    expect(page.get_by_text("Keeps positive numbers.")).to_be_visible()
    expect(page.get_by_role("img", name="The pipeline Only what is positive: 2 elements")).to_be_visible()
    axe.look("a template that was saved")
    page.get_by_role("button", name="Make it mine").click()
    page.wait_for_url("**/pipelines/only-what-is-positive?element=positive")
    expect(page.get_by_role("note", name="Set this for yourself")).to_be_visible()
    page.goto("/templates/only-what-is-positive")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url("**/templates/")
    expect(page.get_by_role("heading", name="Only what is positive")).to_be_hidden()
