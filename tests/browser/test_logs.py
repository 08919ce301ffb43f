"""A node's log: on its page, and at an element the lines about it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.axe import Axe
from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.running import RunningFogline
from tests.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.full, pytest.mark.timeout(600)]

NAME = "logged"
DOCUMENT = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": NAME},
    "spec": {"elements": [{"id": "numbers", "type": "generator", "params": {"rate": 5}, "node": "edge-b"}]},
}


def test_the_log_is_read_and_searched_on_a_nodes_page_and_at_an_element(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page = dashboard.page
    axe = Axe(page)
    with fogline.client() as client:
        client.post("/api/v1/pipelines", json={"name": NAME, "document": DOCUMENT}).raise_for_status()
        client.post(f"/api/v1/pipelines/{NAME}/deploy").raise_for_status()

    page.goto(f"/pipelines/{NAME}?mode=live&element=numbers")
    dashboard.expect_status("numbers", "running")
    dashboard.open_tab("Log")
    panel = dashboard.live_panel
    lines = panel.get_by_role("region", name="Log of edge-b").get_by_role("listitem")
    expect(lines.first).to_be_visible(timeout=SLOW_MS)
    axe.look("the log at an element")
    about = re.compile(r"\.numbers\b")
    texts = lines.all_inner_texts()
    assert texts
    assert [text for text in texts if not about.search(text)] == []

    # What the node has logged before, of other tests, may be long gone from its newest lines.
    [group] = {found[0] for text in texts if (found := re.search(r"[\w-]+\.numbers\b", text))}
    page.goto("/nodes/edge-b")
    log = page.get_by_role("region", name="Log of edge-b")
    expect(log.get_by_role("listitem").first).to_be_visible()
    axe.look("a node's page with its log")
    page.get_by_role("searchbox", name="Search the log").fill(group.upper())
    expect(log.get_by_role("listitem").filter(has_not_text=group)).to_have_count(0)
    expect(log.get_by_role("listitem").first).to_be_visible()
    page.get_by_label("Level").select_option("Errors only")
    expect(page.get_by_text("No line matches.")).to_be_visible()
    page.get_by_label("Level").select_option("All levels")
    # New lines come by themselves.
    with fogline.client() as client:
        client.post(f"/api/v1/pipelines/{NAME}/undeploy").raise_for_status()
    expect(log.get_by_role("listitem").filter(has_text="stopped").first).to_be_visible()
    # Scrolled up, the lines stay, until one follows again.
    log.evaluate("box => { box.style.maxHeight = '3em' }")
    wait_until(lambda: log.evaluate("box => box.scrollTop") > 0, "the newest line to be in sight")
    log.hover()
    page.mouse.wheel(0, -2000)
    follow = page.get_by_role("button", name="Follow again")
    expect(follow).to_have_attribute("aria-pressed", "true")
    follow.click()
    expect(page.get_by_role("button", name="Hold")).to_have_attribute("aria-pressed", "false")
    axe.expect_nothing()
