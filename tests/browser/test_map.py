"""The map, with lines that nodes of this machine measure."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.axe import Axe
from tests.browser.dashboard import Dashboard
from tests.running import RunningFogline
from tests.waiting import PATIENCE_S

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
MEASURED = re.compile(r"^[\d.]+ ms[\d.]+ [KMG]B/s$")


def test_nodes_measure_the_lines_between_them_and_a_person_says_better(
    dashboard: Dashboard, open_dashboard: Callable[..., Dashboard], fogline: RunningFogline
) -> None:
    page = dashboard.page
    axe = Axe(page)
    page.goto("/map/")
    rows = page.get_by_role("group", name="Latency and rate from site to site").get_by_role("row")
    cell = rows.filter(has=page.get_by_role("rowheader", name="edge-a")).get_by_role("cell").nth(1)
    expect(cell).to_have_text(MEASURED, timeout=PATIENCE_S * 1000)
    graph = page.get_by_role("img", name="The sites and the lines between them")
    expect(graph).to_contain_text("ms")
    axe.look("the map")

    page.get_by_role("button", name="Set latencies").click()
    dialog = page.get_by_role("dialog", name="Set latencies between sites")
    file = {
        "name": "ms.csv",
        "mimeType": "text/csv",
        "buffer": b"edge-a,edge-b,yard\n0,40,1\n42,0,1\n1,1,0\n",
    }
    dialog.get_by_label("From a file").set_input_files(files=[file])  # type: ignore[list-item]
    dialog.get_by_role("button", name="Save latencies").click()
    expect(dialog).to_have_count(0)
    expect(cell).to_contain_text("40 ms given")
    expect(graph).to_contain_text("40 / 42 ms")
    expect(page.get_by_text("Figures were set for yard, but no node is there")).to_be_visible()
    axe.look("the map with given latencies")

    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    small = open_dashboard(*fogline.login(), **phone).page
    small.goto("/map/")
    expect(small.get_by_role("img", name="The sites and the lines between them")).to_contain_text(
        "40 / 42 ms"
    )
    beside = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert small.evaluate(beside) <= 0

    page.get_by_role("button", name="Set rates").click()
    rates = page.get_by_role("dialog", name="Set rates between sites")
    rates.get_by_label("Matrix").fill("edge-a,edge-b\n0,4\n0,0")
    rates.get_by_role("button", name="Save rates").click()
    expect(rates).to_have_count(0)
    expect(cell).to_contain_text("500 KB/s given")
    page.get_by_role("button", name="Change the rates").click()
    rates.get_by_role("button", name="Remove rates").click()
    expect(cell).not_to_contain_text("/s given")

    page.get_by_role("button", name="Change the latencies").click()
    axe.look("the dialog of a matrix")
    dialog.get_by_role("button", name="Remove latencies").click()
    expect(cell).to_have_text(MEASURED)
    page.goto("/events/?tab=audit&kind=map")
    expect(page.get_by_text("set the latencies between edge-a, edge-b and yard")).to_be_visible()
    axe.expect_nothing()
