"""A condition is built of rows, by keyboard as well, and its expression below them follows, both ways."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.axe import Axe
from tests.browser.dashboard import Dashboard
from tests.running import RunningFogline
from tests.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

NAME = "conditions"
DOCUMENT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": NAME},
    "spec": {
        "elements": [
            {"id": "numbers", "type": "generator", "params": {"rate": 10}},
            {
                "id": "high",
                "type": "filter",
                "params": {"condition": "value > 10"},
                "inputs": {"in": "numbers"},
            },
        ]
    },
}


def test_a_condition_is_built_of_rows_and_written_as_an_expression(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page = dashboard.page
    axe = Axe(page)
    with fogline.client() as client:
        client.post("/api/v1/pipelines", json={"name": NAME, "document": DOCUMENT}).raise_for_status()
        page.goto(f"/pipelines/{NAME}")
        dashboard.select("high")
        text = dashboard.field("Condition")
        value = dashboard.field("Value of row 1")
        # a list to choose from, as soon as the columns are known
        expect(dashboard.inspector.get_by_role("combobox", name="Column of row 1")).to_have_value("value")
        value.fill("12.5")
        expect(text).to_have_value("value > 12.5")

        # by keyboard: Enter adds a row, and the expression waits until that lacks nothing
        value.press("Enter")
        expect(dashboard.field("Column of row 2")).to_be_focused()
        expect(text).to_have_value("value > 12.5")
        # a row that lacks something is there again after a look at another element
        dashboard.select("numbers")
        dashboard.select("high")
        expect(dashboard.inspector).to_contain_text("Type a text.")
        dashboard.field("Column of row 2").select_option("key")
        dashboard.field("Comparison of row 2").select_option("is one of")
        dashboard.field("Value of row 2").fill("it's")
        expect(text).to_have_value("value > 12.5 and key in ('it''s')")
        dashboard.field("Rows are joined by").select_option("or")
        expect(text).to_have_value("value > 12.5 or key in ('it''s')")
        page.get_by_role("button", name="Add group").click()
        dashboard.field("Column of row 3").select_option("n")
        dashboard.field("Comparison of row 3").select_option("is above (>)")
        dashboard.field("Value of row 3").fill("5")
        written = "(value > 12.5 or key in ('it''s')) and n > 5"
        expect(text).to_have_value(written)
        axe.look("a condition of two groups")

        # the other way, and what rows cannot show
        text.fill("n % 2 = 0")
        expect(dashboard.inspector).to_contain_text("This cannot be shown as rows: it computes with %.")
        dashboard.field("Condition").blur()
        expect(dashboard.field("Column of row 1")).to_have_count(0)
        text.fill("n not between 1 and 3")
        expect(dashboard.field("Value 2 of row 1")).to_have_value("3")
        page.get_by_role("button", name="Remove row 1").click()
        expect(text).to_have_value("")
        text.fill(written)

        def saved() -> bool:
            drawn = client.get(f"/api/v1/pipelines/{NAME}").json()["document"]
            return drawn["spec"]["elements"][1]["params"]["condition"] == written

        wait_until(saved, "the draft has the condition")
    axe.expect_nothing()
