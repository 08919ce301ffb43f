"""A new user's first work with a file, with a count of the clicks and the typed fields.

The task: of a CSV file with umlauts the average of each minute for each machine, an alarm when a value is
above 80 for 30 s, both on a wall, all of it on edge-b.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.afar import leave, look_from_afar
from tests.browser.axe import Axe
from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.browser.hands import Hands
from tests.running import RunningFogline

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

TITLE = "Fräserei"
CLICKS_MAX = 15
FIELDS_MAX = 8


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """Ten minutes of two machines, as a German program writes them. One is too hot after ten seconds."""
    lines = ["Zeit;Maschine;Temperatur [°C]"]
    begin = datetime(2026, 11, 28, 10, tzinfo=UTC)
    for second in range(0, 600, 5):
        at = f"{begin + timedelta(seconds=second):%d.%m.%Y %H:%M:%S}"
        lines += [f"{at};Fräse Süd;{61 + second % 7},5", f"{at};Presse;{85 if second >= 10 else 70},25"]
    path = tmp_path / "Messwerte.csv"
    path.write_bytes("\r\n".join([*lines, ""]).encode("cp1252"))
    return path


@pytest.fixture
def no_wall(fogline: RunningFogline) -> Iterator[None]:
    yield
    with fogline.client() as client:
        for wall in client.get("/api/v1/walls").json():
            client.delete(f"/api/v1/walls/{wall['id']}").raise_for_status()


@pytest.mark.usefixtures("no_wall")
def test_averages_and_an_alarm_of_a_file_are_on_a_wall_after_15_clicks_and_8_typed_fields(
    dashboard: Dashboard, measured: Path
) -> None:
    page, hands, axe = dashboard.page, Hands(), Axe(dashboard.page)
    page.goto("/")
    hands.click(page.get_by_role("navigation", name="Main").get_by_role("link", name="Pipelines"))
    hands.click(page.get_by_role("button", name="New pipeline").first)
    dialog = page.get_by_role("dialog", name="New pipeline")
    hands.type(dialog.get_by_label("Name"), TITLE, clicked=False)  # it has the focus
    hands.click(dialog.get_by_role("button", name="Create pipeline"))
    start = page.get_by_role("button", name="Start with a file")
    expect(start).to_be_visible()
    axe.look("an empty canvas")
    hands.upload(start, measured)
    hands.click(dashboard.inspector.get_by_role("button", name="What do you want of it?"))

    wish = page.get_by_role("dialog", name="What do you want of it?")
    axe.look("what is wanted of a file")
    expect(wish.get_by_label("Average of")).to_have_value("Temperatur")
    expect(wish.get_by_label("For each")).to_have_value("Maschine")
    expect(wish.get_by_label("In each")).to_have_value("60")
    hands.type(wish.get_by_label("Alarm when a reading is above, in °C"), "80")
    hands.type(wish.get_by_label("And stays above for, in seconds"), "30")
    hands.choose(wish.get_by_label("Runs on"), "edge-b")
    hands.click(wish.get_by_role("button", name="Draw it"))
    expect(wish).to_have_count(0)
    expect(dashboard.problems).to_contain_text("No problems")
    drawn = dashboard.toast.filter(has_text="It is drawn")
    expect(drawn.get_by_role("button", name="Open the wall")).to_be_visible()
    axe.look("what was drawn of a file")
    hands.click(drawn.get_by_role("button", name="Deploy"))
    hands.click(page.get_by_role("dialog", name=re.compile("^Deploy ")).get_by_role("button", name="Deploy"))
    dashboard.expect_status("window-aggregate", "running")
    expect(dashboard.card("hysteresis-alarm")).to_contain_text("edge-b")
    hands.click(page.get_by_role("button", name="Open the wall"))

    expect(page.get_by_role("heading", name=TITLE, level=1)).to_be_visible()
    chart = page.locator('.wall-tile[data-kind="chart"]')
    table = page.locator('.wall-tile[data-kind="table"]')
    alarm = table.get_by_role("row").filter(has_text="Presse")
    # the recording is played as fast as it was recorded
    expect(alarm.first).to_contain_text("raised", timeout=SLOW_MS)
    expect(chart).to_contain_text("Fräse Süd", timeout=SLOW_MS)
    axe.look("the wall of a file")
    # titles and the limit are those of the elements that run
    for name in ("Average Temperatur, each Maschine", "Temperatur too high"):
        expect(page.get_by_role("article", name=name)).to_be_visible()
    wall = re.sub(r".*/walls/([^/?]+).*", r"/api/v1/walls/\1/look", page.url)
    shown = dashboard.post(wall, {}).json()["tiles"]
    assert shown["chart-1"]["limits"] == {"low": None, "high": 80}
    look_from_afar(page)
    leave(page)
    from_the_alarm_to_its_readings(page, axe)
    axe.expect_nothing()
    assert hands.clicks <= CLICKS_MAX
    assert hands.fields <= FIELDS_MAX


def from_the_alarm_to_its_readings(page: Page, axe: Axe) -> None:
    page.goto("/alarms/")
    page.get_by_role("listitem").filter(has_text="Presse").locator(".alarm__message").first.click()
    came_from = page.get_by_role("button", name="Where its row came from")
    expect(came_from).to_be_visible()
    axe.look("an alarm")
    came_from.click()
    dialog = page.get_by_role("dialog", name="Where this row of Presse came from")
    readings = dialog.get_by_role("listitem").last
    # It was above the limit for 30 s, and each machine is read every 5 s.
    expect(readings.get_by_role("row").filter(has_text="85.25")).to_have_count(7)
    expect(readings).not_to_contain_text("Fräse Süd")
    axe.look("the readings of an alarm")
