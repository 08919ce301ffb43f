"""Walks the steps of docs/tutorial/from-a-csv-to-an-alarm.md in the real dashboard and takes its pictures."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, expect

from tests.browser.dashboard import Dashboard
from tests.pictures.demo import Open
from tests.running import PROJECT

PIPELINE = "cold-store"
RECORDING = PROJECT / "docs" / "tutorial" / "cold-store.csv"
_ALARM_MS = 150_000


def walk(open_window: Open, images: Path) -> None:
    """All steps, with their pictures: `tutorial-<name>.png`."""
    dashboard = open_window(viewport={"width": 1600, "height": 900})
    page, panel = dashboard.page, dashboard.live_panel

    def picture(name: str, of: Locator | None = None, height_max: float = 900) -> None:
        page.mouse.move(800, 700)
        box = (of or page.locator("body")).bounding_box()
        assert box is not None, f"{of} is not visible"
        box["height"] = min(box["height"], height_max)
        page.screenshot(path=images / f"tutorial-{name}.png", clip=box)

    draw(dashboard, picture)
    deploy(dashboard)
    dashboard.select("live-table")
    expect(panel.get_by_role("table")).to_contain_text("raised", timeout=_ALARM_MS)
    dashboard.select("live-chart")
    expect(panel.locator(".main-svg").first).to_be_visible()
    picture("live")
    dashboard.migrate("hysteresis-alarm", other_node(dashboard))
    expect(panel.locator(".handover--done")).to_be_visible(timeout=_ALARM_MS)
    picture("moved")
    dashboard.select("live-table")
    expect(panel.get_by_role("table")).to_contain_text("cleared", timeout=_ALARM_MS)
    picture("alarms", panel, height_max=280)


def draw(dashboard: Dashboard, picture: Callable[..., None] = lambda *_: None) -> None:
    """The steps up to the deployment; `picture(name, of)` is called where the page shows one."""
    inspector = dashboard.inspector
    dashboard.create_pipeline(PIPELINE)
    read_the_file(dashboard)
    picture("file", inspector)
    average(dashboard)
    picture("window", inspector)
    chart(dashboard)
    show_all(dashboard)
    dashboard.select("window-aggregate")
    alarm(dashboard)
    expect(inspector).not_to_contain_text("This is required.")
    picture("alarm", inspector)
    add(dashboard, "live table", "live-table")
    show_all(dashboard)
    expect(dashboard.problems).to_contain_text("No problems")
    expect(dashboard.page.get_by_text(re.compile("^draft saved"))).to_be_visible()
    picture("drawn")


def read_the_file(dashboard: Dashboard) -> None:
    dashboard.drag_from_palette("CSV replay", 60, 160)
    dashboard.upload(RECORDING)
    expect(dashboard.inspector).to_contain_text("The first 6 of 600 rows.")
    end = dashboard.inspector.get_by_role("radiogroup", name="When it ends")
    end.get_by_label("Repeat for ever").check()
    dashboard.inspector.get_by_label("File").first.scroll_into_view_if_needed()


def average(dashboard: Dashboard) -> None:
    add(dashboard, "window", "window-aggregate")
    dashboard.field("Length of a window, in seconds").fill("10")
    dashboard.add_average("temperature", "average")
    dashboard.open_more_parameters()
    dashboard.inspector.get_by_role("button", name="Add column").click()
    text_field(dashboard, "Column 1").fill("store")


def chart(dashboard: Dashboard) -> None:
    add(dashboard, "live chart", "live-chart")
    dashboard.inspector.get_by_role("button", name="Add column").click()
    text_field(dashboard, "Column 1").fill("average")
    dashboard.open_more_parameters()
    dashboard.field("A curve for each").fill("store")
    dashboard.field("Limit").fill("-15")


def alarm(dashboard: Dashboard) -> None:
    add(dashboard, "alarm", "hysteresis-alarm")
    dashboard.field("Column").fill("average")
    dashboard.field("Raise at").fill("-15")
    dashboard.field("Clear at").fill("-17")
    dashboard.field("For each").fill("store")


def deploy(dashboard: Dashboard) -> None:
    dashboard.deploy()
    dashboard.expect_status("hysteresis-alarm", "running")


def text_field(dashboard: Dashboard, label: str) -> Locator:
    """An entry of a list: the button that removes it has the same label."""
    return dashboard.inspector.locator("input").and_(dashboard.inspector.get_by_label(label, exact=True))


def add(dashboard: Dashboard, words: str, id: str) -> None:
    """By the search above the elements; the new one is connected with the selected one, and selected."""
    dashboard.page.get_by_label("Search elements").click()
    dashboard.page.keyboard.type(words)
    dashboard.press("Enter")
    expect(dashboard.card(id)).to_be_focused()


def show_all(dashboard: Dashboard) -> None:
    dashboard.page.get_by_role("button", name="Zoom to fit").click()


def other_node(dashboard: Dashboard) -> str:
    """A node on which the alarm does not run."""
    card = dashboard.card("hysteresis-alarm").inner_text()
    return next(node for node in ("edge-b", "edge-a", "cloud") if node not in card)
