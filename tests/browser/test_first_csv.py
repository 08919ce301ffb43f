"""A first CSV file: seen before it is played, its time chosen by looking, text refused for numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.dashboard import Dashboard
from tests.running import RunningFogline

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

# 40 rows, times in two columns; line 8 lacks cells, line 14 has "n/a" among numbers
MACHINES = Path(__file__).parent / "files" / "machines.csv"


def params(fogline: RunningFogline, pipeline: str, element: str) -> dict[str, Any]:
    """Returns the element's parameters in the saved draft."""
    with fogline.client() as client:
        draft = client.get(f"/api/v1/pipelines/{pipeline}").raise_for_status().json()["document"]
    found = [each for each in draft["spec"]["elements"] if each["id"] == element]
    return dict(found[0]["params"])


def test_a_first_csv_file_is_understood_by_looking_at_it(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page, inspector = dashboard.page, dashboard.inspector
    dashboard.create_pipeline("first-csv")
    dashboard.drag_from_palette("CSV replay", 140, 60)
    dashboard.upload(MACHINES)

    # its rows, what their columns are, and what cannot be read
    table = inspector.get_by_role("table")
    expect(table.get_by_role("columnheader")).to_contain_text(
        [re.compile("^measured ?text"), re.compile("^stored ?time"), "machine", re.compile("number"), "power"]
    )
    expect(table.get_by_role("row")).to_have_count(7)
    expect(inspector).to_contain_text("The first 6 rows of 40.")
    expect(inspector).to_contain_text("1 of 40 rows cannot be read and goes to the dead letters.")
    expect(inspector.get_by_role("listitem")).to_contain_text("Line 8: has 2 cells instead of 5.")

    # the time was found, with its format and zone; pace and end are asked in words, and nothing is wrong
    expect(inspector.get_by_label("Time: measured")).to_be_checked()
    expect(inspector).to_contain_text("The time of the first row is 1 Feb 2024, 10:00:00 UTC")
    expect(inspector).to_contain_text("It names no time zone, so it is read as UTC.")
    expect(inspector).to_contain_text("read as day.month.year hour:minute:second.")
    pace = inspector.get_by_role("radiogroup", name="Playback pace")
    expect(pace.get_by_label("As recorded")).to_be_checked()
    end = inspector.get_by_role("radiogroup", name="When it ends")
    expect(end.get_by_label("Stop", exact=True)).to_be_checked()
    expect(dashboard.problems).to_contain_text("No problems")

    # another time column, and none
    inspector.get_by_label("Time: stored").check()
    expect(inspector).to_contain_text("stored is the time of a row, read as ISO 8601.")
    inspector.get_by_label("No time column").check()
    expect(inspector).to_contain_text("Each row gets the time at which it is played")
    expect(dashboard.field("Rate")).to_have_value("10")
    expect(pace.get_by_label("As recorded")).to_be_disabled()
    dashboard.field("Rate").fill("25")
    end.get_by_label("Repeat for ever").check()
    expect(dashboard.problems).to_contain_text("No problems")
    page.get_by_role("status", name="Draft saved").wait_for()
    read = {"delimiter": ";", "header": True, "rate": 25, "loops": 0}
    saved = params(fogline, "first-csv", "csv-replay")
    assert {name: saved.get(name) for name in (*read, "time_column")} == {**read, "time_column": None}

    # a column that one value makes text does not connect to a chart of numbers ...
    dashboard.drag_from_palette("Live chart", 520, 60)
    inspector.get_by_role("button", name="Add column").click()
    column = inspector.locator("input").and_(inspector.get_by_label("Column 1", exact=True))
    column.fill("power")
    dashboard.draw_stream("csv-replay", "live-chart")
    refusal = dashboard.toast.filter(has_text="Not connected")
    expect(refusal).to_contain_text("power is text, but that parameter needs a number.")
    streams = dashboard.canvas.locator(".react-flow__edge")
    expect(streams).to_have_count(0)
    # ... and the two ways out are buttons: another column, or an element that converts
    refusal.get_by_role("button", name="Use temperature instead").click()
    expect(streams).to_have_count(1)
    expect(column).to_have_value("temperature")
    page.keyboard.press("Control+z")
    expect(streams).to_have_count(0)
    expect(column).to_have_value("power")
    dashboard.draw_stream("csv-replay", "live-chart")
    refusal.get_by_role("button", name="Convert power to a number").click()
    expect(streams).to_have_count(2)
    expect(dashboard.card("derive")).to_contain_text("power as a number")
    expect(dashboard.problems).to_contain_text("No problems")

    # told at the field too, where a text column is chosen later; and the file itself can be read otherwise
    column.fill("machine")
    inspector.get_by_role("button", name="Use temperature instead").click()
    expect(dashboard.problems).to_contain_text("No problems")
    dashboard.select("csv-replay")
    inspector.get_by_role("button", name="Read power as a number").click()
    expect(inspector.get_by_role("listitem").last).to_contain_text("Line 14: ")
    expect(table.get_by_role("columnheader").last).to_contain_text(re.compile("power ?number"))
    expect(dashboard.problems).to_contain_text("No problems")
