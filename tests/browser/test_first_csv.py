"""A first CSV file from upload to replay: Fogline looks at it, asks, and imports it once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.axe import Axe
from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.running import RunningFogline

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.full, pytest.mark.timeout(600)]

# 40 rows below a preamble and a row of units; the date can be read in two ways, and line 14 has "n/a"
LOGGER = Path(__file__).parent / "files" / "logger.csv"


def params(fogline: RunningFogline, pipeline: str, element: str) -> dict[str, Any]:
    """Returns the element's parameters in the saved draft."""
    with fogline.client() as client:
        draft = client.get(f"/api/v1/pipelines/{pipeline}").raise_for_status().json()["document"]
    found = [each for each in draft["spec"]["elements"] if each["id"] == element]
    return dict(found[0]["params"])


def test_a_first_csv_file_is_asked_about_imported_and_seen_on_the_form(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page, inspector = dashboard.page, dashboard.inspector
    axe = Axe(page)
    dashboard.create_pipeline("first-csv")
    dashboard.drag_from_palette("CSV replay", 140, 60)
    dashboard.choose_file(LOGGER)

    # what can be read in two ways is asked; the import waits for the answer
    dialog = page.get_by_role("dialog", name="Import logger.csv")
    start = dialog.get_by_role("button", name="Import", exact=True)
    expect(start).to_be_disabled()
    expect(dialog).to_contain_text("One question is open.")

    # each line as it lies, and what it is taken for; beside it, what is read of it
    lies = dialog.get_by_role("region", name="As it is in the file")
    for name in ("Line 1, before the table", "Line 3, names", "Line 4, units", "Line 5"):
        expect(lies.get_by_role("button", name=name, exact=True)).to_have_count(1)
    read = dialog.get_by_role("region", name="As it is read")
    flow = read.get_by_role("button", name=re.compile("^flow"))
    expect(flow).to_contain_text("number · m3/h")
    axe.look("the import dialog")

    # a column is renamed and another one left out, and back again
    flow.click()
    column = dialog.get_by_role("group", name="Column flow")
    column.get_by_label("Unit").fill("l/s")
    expect(flow).to_contain_text("number · l/s")
    read.get_by_role("button", name=re.compile("^serial")).click()
    dialog.get_by_role("button", name="Leave out").click()
    expect(read.get_by_role("button", name=re.compile("^serial"))).to_have_count(0)
    dialog.get_by_role("button", name="Undo").click()
    expect(read.get_by_role("button", name=re.compile("^serial"))).to_have_count(1)

    # the answer is seen in the rows; then the file is imported, and its report stays with it
    dialog.get_by_role("radio", name=re.compile("^Day, month, year")).check()
    expect(read.get_by_role("row").nth(5)).to_contain_text("2024-04-03 10:00:00")
    start.click()
    report = page.get_by_role("dialog", name="logger.csv", exact=True)
    expect(report).to_contain_text("40 rows, 5 columns. From 3 Apr 2024, 10:00:00 UTC")
    expect(report.get_by_role("row", name=re.compile("^power number · kW 39 1 0"))).to_have_count(1)
    axe.look("the report of an import")
    report.get_by_role("button", name="Done").click()

    # on the form: what was read, and the first rows; nothing is wrong
    dashboard.expect_uploaded(LOGGER)
    expect(inspector).to_contain_text("40 rows, 5 columns.")
    table = inspector.get_by_role("table")
    expect(table.get_by_role("columnheader")).to_contain_text(["time", "flow", "pressure", "power", "serial"])
    expect(table.get_by_role("row")).to_have_count(7)
    pace = inspector.get_by_role("radiogroup", name="Playback pace")
    expect(pace.get_by_role("radio", name="As recorded", exact=True)).to_be_checked()
    times = inspector.get_by_role("radiogroup", name="Which times do the rows get?")
    expect(times.get_by_label("Times of today")).to_be_checked()
    times.get_by_label("The times in the file").check()
    expect(times).to_contain_text("say when a row was recorded")
    times.get_by_label("Times of today").check()
    expect(dashboard.problems).to_contain_text("No problems")

    # its first rows, as a node makes them before anything is deployed
    inspector.get_by_role("tab", name="Preview").click()
    made = inspector.get_by_role("region", name=re.compile("^Rows of"))
    # a node's first preview has to load what it computes with
    expect(made.get_by_role("row")).to_have_count(21, timeout=SLOW_MS)
    expect(made.get_by_role("columnheader")).to_contain_text(["Time", "time", "flow", "pressure"])
    expect(inspector).to_contain_text("The first 20 of 40 rows.")
    axe.look("a preview")
    axe.expect_nothing()

    # text does not connect to a chart of numbers, and the way out is a button
    dashboard.drag_from_palette("Live chart", 520, 60)
    inspector.get_by_role("button", name="Add column").click()
    chosen = inspector.locator("input").and_(inspector.get_by_label("Column 1", exact=True))
    chosen.fill("serial")
    dashboard.draw_stream("csv-replay", "live-chart")
    refusal = dashboard.toast.filter(has_text="Not connected")
    expect(refusal).to_contain_text("serial is text, but that parameter needs a number.")
    refusal.get_by_role("button", name="Use flow instead").click()
    expect(dashboard.canvas.locator(".react-flow__edge")).to_have_count(1)
    expect(chosen).to_have_value("flow")
    expect(dashboard.problems).to_contain_text("No problems")

    # along the pipeline, each element shows the same tab
    preview = inspector.get_by_role("tab", name="Preview")
    preview.click()
    dashboard.select("csv-replay")
    expect(preview).to_have_attribute("aria-selected", "true")
    inspector.get_by_role("tab", name="Parameters").click()

    # the list of files says who uses it, and does not delete it without saying so
    page.get_by_role("status", name="Draft saved").wait_for()
    assert params(fogline, "first-csv", "csv-replay")["path"].startswith("upload:")
    dashboard.select("csv-replay")
    inspector.get_by_role("link", name="All files").click()
    row = page.get_by_role("row").filter(has_text="logger.csv")
    expect(row).to_contain_text("ready")
    expect(row.get_by_role("link", name="first-csv (draft)")).to_have_count(1)
    axe.look("the list of files")
    row.get_by_role("button", name="Actions for logger.csv").click()
    page.get_by_role("menuitem", name="Delete logger.csv").click()
    asked = page.get_by_role("dialog", name="Delete logger.csv?")
    expect(asked).to_contain_text("first-csv (draft)")
    asked.get_by_role("button", name="Cancel").click()
    expect(row).to_have_count(1)
    axe.expect_nothing()
    page.get_by_role("link", name="Back to first-csv").click()
    expect(inspector).to_contain_text("40 rows, 5 columns.")
