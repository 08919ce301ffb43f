"""The menus of an element, a stream and the empty canvas, by right click and by the menu key."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.axe import Axe
from tests.browser.dashboard import Dashboard
from tests.browser.test_conditions import DOCUMENT
from tests.running import RunningFogline

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

NAME = "menus"


def test_menus_open_at_what_they_are_about_and_do_what_they_say(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page = dashboard.page
    axe = Axe(page)
    document = {**DOCUMENT, "metadata": {"name": NAME}}
    with fogline.client() as client:
        client.post("/api/v1/pipelines", json={"name": NAME, "document": document}).raise_for_status()
    page.goto(f"/pipelines/{NAME}")
    menu = page.get_by_role("menu")
    stream = page.get_by_label("Stream from numbers to high")

    dashboard.card("high").click(button="right")
    expect(menu).to_have_accessible_name("Actions of the selection")
    axe.look("the menu of an element")
    menu.get_by_role("menuitem", name="Duplicate the selection").click()
    expect(menu).to_have_count(0)
    expect(page.locator(".react-flow__node-card")).to_have_count(3)

    # by keyboard: the menu of the card that has the focus, which has it again afterwards
    card = page.locator('.react-flow__node[data-id="high"]')
    card.focus()
    page.keyboard.press("Shift+F10")
    expect(menu).to_be_visible()
    page.keyboard.press("Escape")
    expect(menu).to_have_count(0)
    expect(card).to_be_focused()

    stream.dispatch_event("contextmenu", {"bubbles": True, "clientX": 600, "clientY": 300})
    expect(menu).to_have_accessible_name("Actions of the stream")
    menu.get_by_role("menuitem", name="Delete the stream").click()
    expect(stream).to_have_count(0)

    page.locator(".react-flow__pane").click(button="right", position={"x": 20, "y": 300})
    expect(menu).to_have_accessible_name("Actions of the canvas")
    menu.get_by_role("menuitem", name="Undo").click()
    expect(stream).to_have_count(1)
    axe.expect_nothing()
