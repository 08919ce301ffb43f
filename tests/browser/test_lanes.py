"""Dragging on the canvas arranged by node: what is pinned in Edit, and what several moves would cost."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.axe import Axe
from tests.browser.dashboard import Dashboard, middle
from tests.running import RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

NAME = "lanes-of-a-draft"
DOCUMENT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": NAME},
    "spec": {
        "elements": [
            {"id": "numbers", "type": "generator", "params": {"rate": 1}},
            {
                "id": "positive",
                "type": "filter",
                "params": {"condition": "value > 0"},
                "inputs": {"in": "numbers"},
            },
            {
                "id": "chart",
                "type": "live-chart",
                "params": {"columns": ["value"]},
                "inputs": {"in": "positive"},
            },
        ]
    },
}


def test_a_drop_on_a_lane_of_a_draft_pins_what_runs_and_undo_takes_it_back(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page = dashboard.page
    with fogline.client() as client:
        client.post("/api/v1/pipelines", json={"name": NAME, "document": DOCUMENT}).raise_for_status()

        def pins() -> dict[str, str | None]:
            elements = client.get(f"/api/v1/pipelines/{NAME}").json()["document"]["spec"]["elements"]
            return {each["id"]: each.get("node") for each in elements}

        def saved(**nodes: str) -> None:
            nowhere = {"numbers": None, "positive": None, "chart": None}
            wait_until(lambda: pins() == {**nowhere, **nodes}, f"the pins {nodes}")

        page.goto(f"/pipelines/{NAME}?arranged=lanes")
        expect(dashboard.lane("edge-b")).to_be_visible()
        dashboard.drag_to_lane("positive", "edge-b")
        page.mouse.up()
        saved(positive="edge-b")

        # a drag that is given up changes nothing: the next step of undo is that of the drop
        dashboard.drag_to_lane("positive", "edge-a")
        dashboard.press("Escape")
        page.mouse.up()
        dashboard.press("ControlOrMeta+z")
        saved()

        # all that is selected comes along, except for the chart, which no node runs
        dashboard.press("ControlOrMeta+a")
        expect(dashboard.canvas.locator(".react-flow__node-card.selected")).to_have_count(3)
        dashboard.drag_to_lane("numbers", "edge-a")
        page.mouse.up()
        saved(numbers="edge-a", positive="edge-a")
        expect(dashboard.lane("In the dashboard")).to_be_visible()
        dashboard.press("ControlOrMeta+z")
        saved()

        # as drawn again, a card that is dragged over where a lane was is moved, and pinned nowhere
        x, y = middle(dashboard.lane("edge-b"))
        page.get_by_role("button", name="As drawn").click()
        expect(dashboard.canvas.locator(".lane-box")).to_have_count(0)
        card = dashboard.card("numbers")
        before = card.get_attribute("style")

        def moved() -> bool:  # the view may still be on its way
            page.mouse.move(*middle(card))
            page.mouse.down()
            page.mouse.move(x, y, steps=12)
            page.mouse.up()
            return card.get_attribute("style") != before

        wait_until(moved, "the card to be moved")
        expect(page.get_by_role("status", name="Draft saved")).to_be_visible()
        saved()


def test_while_a_selection_hangs_over_a_lane_it_says_what_all_of_it_costs_and_escape_moves_nothing(
    watched: str, dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page, axe = dashboard.page, Axe(dashboard.page)
    page.goto(f"/pipelines/{watched}?mode=live&arranged=lanes")
    dashboard.card("numbers").click()
    dashboard.card("positive").click(modifiers=["Shift"])
    dashboard.drag_to_lane("numbers", "edge-b")
    hanging = page.get_by_role("region", name="Move 2 elements to edge-b")
    costs = re.compile(
        r"1\. numbers getting ready .*2\. positive getting ready .*"
        r"Copied in all.*(Lineedge-a to edge-b, |standbys follow there).*CPU of edge-b.*CPU of edge-a"
    )
    expect(hanging).to_contain_text(costs)
    axe.look("what several moves cost")
    dashboard.press("Escape")
    page.mouse.up()
    expect(hanging).to_have_count(0)
    expect(page.get_by_role("dialog")).to_have_count(0)
    with fogline.client() as client:
        moves = client.get(f"/api/v1/pipelines/{watched}/moves").json()
        assert [each for each in moves if each["state"] in ("waits", "moving")] == []
    axe.expect_nothing()
