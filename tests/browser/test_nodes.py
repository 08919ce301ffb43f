"""A node's page: what one says of it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.dashboard import Dashboard

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_where_a_node_stands_is_said_shown_and_taken_back(dashboard: Dashboard) -> None:
    page = dashboard.page
    page.goto("/nodes/edge-b")
    page.get_by_role("button", name="Set its site").click()
    dialog = page.get_by_role("dialog", name="Where is edge-b?")
    dialog.get_by_label("Site").fill("<hall>")
    expect(dialog.get_by_text("Start with a letter or digit")).to_be_visible()
    expect(dialog.get_by_role("button", name="Save site")).to_be_disabled()
    dialog.get_by_label("Site").fill("Data centre 1")
    dialog.get_by_label("Site").press("Enter")
    expect(dialog).to_have_count(0)
    shown = page.get_by_role("button", name="Site: Data centre 1")
    expect(shown).to_be_visible()
    page.goto("/")
    expect(page.get_by_role("link", name="edge-b").filter(has_text="Data centre 1")).to_be_visible()

    page.goto("/nodes/edge-b")
    shown.click()
    dialog.get_by_label("Site").fill("")
    dialog.get_by_role("button", name="Save site").click()
    expect(page.get_by_role("button", name="Set its site")).to_be_visible()
