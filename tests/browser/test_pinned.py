"""Rows are pinned to an element of a draft, expected, and checked before it is deployed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tests.browser.axe import Axe
from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.running import RunningFogline

pytestmark = [pytest.mark.browser, pytest.mark.full, pytest.mark.timeout(600)]

NAME = "pinned"
DOCUMENT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": NAME},
    "spec": {
        "elements": [
            {"id": "numbers", "type": "generator", "params": {"rate": 10}, "node": "edge-a"},
            {
                "id": "doubled",
                "type": "derive",
                "params": {"columns": [{"name": "double", "expression": "n * 2"}]},
                "inputs": {"in": "numbers"},
                "node": "edge-a",
            },
        ]
    },
}


def test_what_an_element_makes_of_pinned_rows_is_checked_before_a_deployment(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page, axe = dashboard.page, Axe(dashboard.page)
    with fogline.client() as client:
        client.post("/api/v1/pipelines", json={"name": NAME, "document": DOCUMENT}).raise_for_status()
        page.goto(f"/pipelines/{NAME}")
        dashboard.card("doubled").click()
        page.get_by_role("tab", name="Preview").click()
        page.get_by_label("Node of the preview").select_option("edge-b")
        # a node's first preview has to load what it computes with
        page.get_by_role("button", name="Pin these rows").click(timeout=SLOW_MS)
        expect(page.get_by_text("Nothing is expected of them yet.")).to_be_visible()
        page.get_by_role("button", name="Expect these rows").click()
        expect(page.get_by_text("The rows are as expected.")).to_be_visible()
        axe.look("pinned rows")

        page.get_by_role("button", name="Deploy", exact=True).click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_text("The output for the pinned rows is as expected.")).to_be_visible()
        dialog.get_by_role("button", name="Cancel").click()

        draft = client.get(f"/api/v1/pipelines/{NAME}").json()["document"]
        draft["spec"]["elements"][1]["params"]["columns"][0]["expression"] = "n * 3"
        tag = client.get(f"/api/v1/pipelines/{NAME}").headers["ETag"]
        path = f"/api/v1/pipelines/{NAME}"
        client.put(path, json={"document": draft}, headers={"If-Match": tag}).raise_for_status()
        page.goto(f"/pipelines/{NAME}")
        # it is ordered while the check runs, and waits for the answer
        held: list[Route] = []
        page.route(re.compile("/check-expected$"), lambda route: held.append(route))
        page.get_by_role("button", name="Deploy", exact=True).click()
        dialog.get_by_role("button", name="Deploy", exact=True).click()
        expect(dialog.get_by_role("button", name="Deploy without waiting")).to_be_visible()
        axe.look("a deployment that waits for the check")
        held[0].continue_()
        expect(dialog.get_by_text("Row 2: double is 3, expected 2.")).to_be_visible()
        axe.look("rows that differ before a deployment")
        expect(dialog.get_by_role("button", name="Deploy anyway")).to_be_visible()
        assert client.get(path).json()["status"] == "draft"
        dialog.get_by_role("button", name="Cancel").click()
        axe.expect_nothing()
