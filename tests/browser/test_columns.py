"""The origin of a column, shown by mouse and keyboard: in the list of all columns, and at ports and
streams."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.axe import Axe
from tests.browser.dashboard import Dashboard
from tests.running import RunningFogline

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

NAME = "columns"


def element(id: str, type_: str, source: str | None = None, **params: Any) -> dict[str, Any]:
    inputs = {"inputs": {"in": source}} if source else {}
    return {"id": id, "type": type_, "params": params, **inputs}


DOCUMENT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": NAME},
    "spec": {
        "elements": [
            element("numbers", "generator", rate=5),
            element("names", "select", "numbers", columns=[{"column": "value", "as": "power"}]),
            element("high", "filter", "names", condition="power > 10"),
        ]
    },
}


def test_where_a_column_comes_from_is_found_and_leads_to_its_element(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page = dashboard.page
    axe = Axe(page)
    with fogline.client() as client:
        client.post("/api/v1/pipelines", json={"name": NAME, "document": DOCUMENT}).raise_for_status()
    page.goto(f"/pipelines/{NAME}")
    expect(dashboard.card("names")).to_be_visible()
    page.keyboard.press("k")
    panel = page.get_by_role("complementary", name="Columns")
    expect(panel.get_by_text("power")).to_be_visible()
    expect(panel.get_by_role("searchbox", name="Find a column")).to_be_focused()
    page.keyboard.type("POW")
    expect(panel.get_by_role("listitem")).to_have_text(
        ["namesrenamed from value", "highpassed on, used"], use_inner_text=False
    )
    axe.look("the columns of all elements")

    page.keyboard.press("Tab")  # the column
    page.keyboard.press("Tab")  # its first step
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Inspector").get_by_label("Title")).to_have_attribute(
        "placeholder", "names"
    )
    expect(panel).to_be_visible()
    panel.get_by_role("button", name="Close the columns").click()
    expect(page.get_by_role("button", name="Filter", exact=True)).to_be_visible()
    axe.expect_nothing()


def test_a_port_and_a_stream_say_which_columns_pass_and_what_does_not_fit(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    name = "passing"
    wrong = element("wrong", "filter", "names", condition="watts > 10")
    elements = [
        {**each, "ui": {"x": 320 * index, "y": 80}}
        for index, each in enumerate([*DOCUMENT["spec"]["elements"][:2], wrong])
    ]
    document = {**DOCUMENT, "metadata": {"name": name}, "spec": {"elements": elements}}
    with fogline.client() as client:
        client.post("/api/v1/pipelines", json={"name": name, "document": document}).raise_for_status()
    page = dashboard.page
    page.goto(f"/pipelines/{name}")
    stream = dashboard.canvas.get_by_label("Stream from names to wrong")
    expect(stream).to_have_accessible_description(re.compile("watts.*Columns: .*power \\(number"))
    expect(stream.locator(".stream--wrong")).to_have_count(1)
    output = dashboard.card("names").get_by_label("Output of names")
    hint = page.locator(".passing")
    output.hover()
    expect(hint).to_contain_text("Output of names")
    expect(hint.locator("td")).to_have_text(["power", "number", ""])
    page.keyboard.press("Escape")
    expect(hint).to_have_count(0)

    stream.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")  # as the keyboard gets there
    expect(stream).to_be_focused()
    expect(hint).to_contain_text("watts")

    dashboard.select("names")
    expect(output).to_have_accessible_description(re.compile("^Columns: .*power \\(number"))
