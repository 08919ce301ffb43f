"""The pictures of the demo pipeline: each view in light and dark, and an element dragged to another node."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.pictures.frames import Camera

PIPELINE = "machine-power"
ELEMENT = "variation"
HOME, AWAY = "edge-b", "cloud"
THEMES = ("light", "dark")
Open = Callable[..., Dashboard]


def views(open_window: Open, images: Path) -> None:
    """`<view>-light.png` and `<view>-dark.png`, after one handover that they can show."""
    dashboard = open_window()
    page = dashboard.page
    page.goto(f"/pipelines/{PIPELINE}?mode=live&element={ELEMENT}")
    flows(dashboard)
    dashboard.migrate(ELEMENT, AWAY)
    dashboard.expect_handover_done(AWAY)
    details = dashboard.live_panel.locator(".handover--done").get_by_role("link", name="Details")
    handover = details.get_attribute("href")
    dashboard.migrate(ELEMENT, HOME)
    dashboard.expect_handover_done(HOME)
    addresses = {
        "overview": "/",
        "editor": f"/pipelines/{PIPELINE}?mode=edit&element={ELEMENT}",
        "live": f"/pipelines/{PIPELINE}?mode=live&element={ELEMENT}",
        "element": f"/pipelines/{PIPELINE}/elements/{ELEMENT}",
        "handover": handover,
    }
    for theme in THEMES:
        page = open_window(color_scheme=theme).page
        for view, address in addresses.items():
            page.goto(str(address))
            settled(page)
            page.screenshot(path=images / f"{view}-{theme}.png")


def drag(open_window: Open, path: Path) -> None:
    """An element is dragged to another lane while it runs: from the grip to the pause that was measured."""
    dashboard = open_window(viewport={"width": 1440, "height": 810})
    page = dashboard.page
    page.goto(f"/pipelines/{PIPELINE}?mode=live&arranged=lanes")
    flows(dashboard)
    settled(page)
    card = dashboard.card(ELEMENT)
    camera = Camera(page)
    camera.hold(1500)
    camera.drag(card, dashboard.lane(AWAY))
    expect(page.get_by_role("region", name=re.compile("^Move "))).to_contain_text("Pause")
    camera.hold(2500)
    camera.drop()
    question = page.get_by_role("dialog", name=re.compile("^Move "))
    expect(question).to_be_visible()
    camera.hold(900)
    camera.click(question.get_by_role("button", name=f"Move to {AWAY}"))
    done = card.locator(".move-strip").filter(has_text=re.compile("Pause|No row waited longer"))
    camera.record(done.is_visible, seconds_max=60)
    page.wait_for_timeout(600)  # the card slides into its lane
    camera.hold(3500)
    camera.save(path)


def flows(dashboard: Dashboard) -> None:
    """Waits until the element runs and has rows coming in."""
    dashboard.expect_status(ELEMENT, "running")
    # a small card says "100/s", a large one "100 in/s"
    rate = re.compile(r"[1-9][\d.]*( in)?/s")
    expect(dashboard.card(ELEMENT)).to_contain_text(rate, timeout=SLOW_MS)


def settled(page: Page) -> None:
    """Waits until nothing is loading and the shell says that what it shows is live."""
    expect(page.locator("[data-shell=live]")).not_to_be_empty()
    expect(page.locator(".skeleton")).to_have_count(0)
    for chart in page.locator(".chart").all()[:2]:  # those below are drawn when somebody scrolls to them
        expect(chart.locator(".main-svg").first).to_be_visible()
    page.wait_for_load_state("networkidle")
