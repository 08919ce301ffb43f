"""The words on the screen: titles and fields in plain words, urgent problems first, and one line for each act
of a user."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.dashboard import Dashboard
from tests.running import RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

DRAFT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": "in-words"},
    "spec": {
        "elements": [
            {"id": "generator", "type": "generator", "params": {"rate": 10}, "ui": {"x": 0, "y": 0}},
            {
                "id": "live-chart",
                "type": "live-chart",
                "title": "Power curve",
                "params": {"columns": ["value", "key"]},
                "inputs": {"in": "generator"},
                "ui": {"x": 300, "y": 0},
            },
            {
                "id": "count-window-aggregate",
                "type": "count-window-aggregate",
                "params": {"size": 0, "aggregates": [{"function": "avg", "column": "value"}]},
                "ui": {"x": 300, "y": 160},
            },
            {
                "id": "recording",
                "type": "csv-replay",
                "params": {"path": "upload:hu3dme4l6y", "rate": 10},
                "ui": {"x": 0, "y": 160},
            },
        ]
    },
}
# What is for machines: paths, references, names of types.
OF_MACHINES = re.compile(r"params|\[\d+\]|upload:|time_column|is string|integer")


def test_problems_have_titles_fields_and_types_in_words_and_what_is_for_engineers_is_folded_away(
    dashboard: Dashboard, fogline: RunningFogline, watched: str
) -> None:
    page = dashboard.page
    with fogline.client() as client:
        body = {"name": "in-words", "document": DRAFT}
        client.post("/api/v1/pipelines", json=body).raise_for_status()
    page.goto("/pipelines/in-words")
    dashboard.problems.get_by_role("button", name=re.compile("problems")).click()
    rows = dashboard.problems.get_by_role("listitem")
    expect(rows).to_have_count(4)
    told = {
        "Power curve": ("Column 2", '"key" is text, but a number is needed.'),
        "Rows in a window": ("Count window aggregate", "Has to be at least 1 (it is 0)."),
        "Reads from": ("Count window aggregate", "Nothing is connected."),
        "recording": ("File", "This uploaded file no longer exists"),
    }
    for row, words in told.items():
        for each in words:
            expect(rows.filter(has_text=row)).to_contain_text(each)
    expect(dashboard.problems).not_to_contain_text(OF_MACHINES)

    # the card says it to those who come by key
    faulty = dashboard.card("count-window-aggregate")
    expect(faulty).to_have_accessible_description(re.compile("Nothing is connected.*Press enter or space"))
    expect(dashboard.card("generator")).to_have_accessible_description(re.compile("^Press enter or space"))

    # from the list to the field, which says the same
    rows.filter(has_text="Rows in a window").get_by_role("button").click()
    expect(dashboard.field("Rows in a window")).to_be_focused()
    expect(dashboard.field("Rows in a window")).to_have_accessible_description(
        re.compile("Has to be at least 1")
    )
    expect(dashboard.inspector.get_by_label("Id", exact=True)).not_to_be_visible()

    # live: the counters of the protocol are under Details, and each says what it is
    page.goto(f"/pipelines/{watched}?mode=live&element=positive")
    panel = dashboard.live_panel
    expect(panel.get_by_role("heading", name="positive")).to_be_visible()
    epoch = panel.get_by_role("button", name="Epoch").first
    expect(epoch).not_to_be_visible()
    panel.locator("details").filter(has_text="Epoch").locator("summary").click()
    epoch.scroll_into_view_if_needed()

    def tip() -> str:
        # A panel that scrolls closes its tips, and it scrolls when live rows make it longer.
        epoch.blur()
        epoch.focus()
        return " ".join(page.get_by_role("tooltip").all_text_contents())

    wait_until(lambda: "Counts the owners" in tip(), "what an epoch is, at its word")


def test_the_overview_has_what_needs_attention_then_what_runs_then_drafts_and_the_audit_log_folds_saves(
    dashboard: Dashboard, fogline: RunningFogline, watched: str
) -> None:
    page = dashboard.page
    document = copy.deepcopy(DRAFT)
    document["metadata"]["name"] = "often-saved"
    path = "/api/v1/pipelines/often-saved"
    with fogline.client() as client:
        body = {"name": "often-saved", "document": document}
        client.post("/api/v1/pipelines", json=body).raise_for_status()
        for rate in range(11, 17):
            document["spec"]["elements"][0]["params"]["rate"] = rate
            etag = {"If-Match": f'"{rate - 10}"'}
            client.put(path, json={"document": document}, headers=etag).raise_for_status()

    page.goto("/")
    running, drafts = (page.get_by_role("region", name=name, exact=True) for name in ("Running", "Drafts"))
    tile = running.get_by_role("link", name=re.compile(f"^{watched}"))
    curve = tile.get_by_role(
        "img", name=re.compile(f"Rows that entered {watched} in the last 5 minutes: at most")
    )
    expect(curve.locator("path").first).to_be_attached()
    expect(drafts.get_by_role("link", name=re.compile("^often-saved"))).to_be_visible()
    attention = page.get_by_role("region", name="Needs attention")
    # tiles that are still to come move what is below them
    wait_until(lambda: above(attention, running), "what needs attention above what runs")
    wait_until(lambda: above(running, drafts), "what runs above the drafts")

    # six saves are one line; the filter is in the address
    page.goto("/events/?tab=audit")
    page.get_by_label("Pipeline", exact=True).select_option("often-saved")
    rows = page.get_by_role("tabpanel").get_by_role("row").filter(has_text="often-saved")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("changed the draft (6 saves)")
    expect(rows.last).to_contain_text("created it")
    expect(page).to_have_url(re.compile(r"tab=audit&pipeline=often-saved$"))
    page.get_by_label("Kind").select_option("Nodes")
    expect(page.get_by_text("Nothing matches the filter.")).to_be_visible()
    page.get_by_label("Kind").select_option("Pipelines")
    page.reload()
    expect(rows).to_have_count(2)
    page.get_by_label("Person").select_option("Fogline itself")
    expect(page.get_by_text("Nothing matches the filter.")).to_be_visible()


def above(upper: Locator, lower: Locator) -> bool:
    boxes = upper.bounding_box(), lower.bounding_box()
    if boxes[0] is None or boxes[1] is None:
        return False
    return boxes[0]["y"] < boxes[1]["y"]
