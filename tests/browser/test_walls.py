"""A wall: made, arranged, and shown to somebody without an account."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.axe import Axe
from tests.browser.dashboard import Dashboard
from tests.running import RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.full, pytest.mark.timeout(600)]

TITLE = "Hall 3"


@pytest.fixture
def no_wall(fogline: RunningFogline) -> Iterator[None]:
    yield
    with fogline.client() as client:
        for wall in client.get("/api/v1/walls").json():
            client.delete(f"/api/v1/walls/{wall['id']}").raise_for_status()


def place_of(tile: Locator) -> tuple[float, float]:
    box = tile.bounding_box()
    assert box is not None
    return box["x"], box["y"]


def add_tile(page: Page, kind: str, *columns: str) -> None:
    page.get_by_role("button", name="Add a tile").first.click()
    dialog = page.get_by_role("dialog", name="Add a tile")
    dialog.get_by_role("button", name=kind, exact=True).click()
    dialog.get_by_label("Pipeline").select_option("watched")
    dialog.get_by_label("Rows of").select_option(label="positive")
    for column in columns:
        dialog.get_by_role("button", name=column, exact=True).click()
    dialog.get_by_role("button", name="Add the tile").click()
    expect(dialog).to_have_count(0)


def add_load(page: Page, figure: str, **of: str) -> None:
    """Fills in the dialog, which stays open."""
    page.get_by_role("button", name="Add a tile").first.click()
    dialog = page.get_by_role("dialog", name="Add a tile")
    dialog.get_by_role("button", name="Load", exact=True).click()
    dialog.get_by_label("Figure").select_option(label=figure)
    for label, choice in of.items():
        dialog.get_by_label(label).select_option(choice)


def arrange(page: Page, figure: Locator, chart: Locator) -> None:
    """The chart goes to the top by mouse; the figure one column to the right by keyboard."""
    before = place_of(chart)
    head = chart.locator(".wall-tile__head")
    x, y = place_of(head)
    page.mouse.move(x + 60, y + 10)
    page.mouse.down()
    page.mouse.move(x + 60, y - 100, steps=8)
    page.mouse.move(*[each + 10 for each in place_of(figure)], steps=8)
    page.mouse.up()
    expect(page.locator(".react-draggable-dragging")).to_have_count(0)
    wait_until(lambda: place_of(chart) != before, "the chart lies elsewhere", 30)
    page.get_by_role("group", name="Tile figure-1").focus()
    left = place_of(figure)[0]
    page.keyboard.press("ArrowRight")
    wait_until(lambda: place_of(figure)[0] > left, "the figure lies further right", 30)


def trace_a_row(page: Page) -> None:
    page.get_by_role("button", name="Where did the row of").first.click()
    dialog = page.get_by_role("dialog", name="Where this row came from")
    expect(dialog.get_by_role("heading", name="positive")).to_be_visible()
    expect(dialog.get_by_role("region", name="Rows of numbers").locator("tbody tr").first).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)


def made_link(page: Page) -> str:
    """Makes a link by the dialog, which stays open; returns its address."""
    page.get_by_role("button", name="Done").click()
    page.get_by_role("button", name="Share").click()
    dialog = page.get_by_role("dialog", name="Share this wall")
    dialog.get_by_label("Who or what it is for").fill("screen")
    dialog.get_by_role("button", name="Make a link").click()
    address = dialog.get_by_label("The link. Copy it now: it is shown this once.")
    expect(address).to_have_value(re.compile("/shared#fogline_wall_"))
    return address.input_value()


@pytest.mark.usefixtures("no_wall", "watched")
def test_a_wall_is_arranged_kept_and_shown_by_a_link_until_it_is_revoked(
    dashboard: Dashboard, chromium: Browser, fogline: RunningFogline
) -> None:
    page = dashboard.page
    axe = Axe(page)
    page.goto("/walls/?new=1")
    page.get_by_role("dialog", name="New wall").get_by_label("Name").fill(TITLE)
    page.get_by_role("button", name="Make the wall").click()
    add_tile(page, "Figure", "value")
    add_tile(page, "Chart", "value")

    figure = page.locator('.wall-tile[data-kind="figure"]')
    chart = page.locator('.wall-tile[data-kind="chart"]')
    expect(figure.locator(".wall-figure__value")).to_have_text(re.compile(r"^-?\d"))
    expect(chart.locator(".js-plotly-plot")).to_be_visible()
    add_tile(page, "Table", "n", "value")
    expect(page.locator(".wall-table tbody tr").first).to_be_visible()
    axe.look("a wall that is changed")
    arrange(page, figure, chart)
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    places = [place_of(figure), place_of(chart)]
    page.reload()
    expect(chart.locator(".js-plotly-plot")).to_be_visible()
    page.get_by_role("button", name="Change", exact=True).click()
    assert [place_of(figure), place_of(chart)] == places

    page.get_by_role("button", name="Done").click()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.partition("/walls/hall-3/")[2]))
    with page.expect_request(re.compile("/walls/hall-3/look$")):
        trace_a_row(page)
    axe.look("a wall")
    assert {each for each in asked if each} == {"look"}
    page.get_by_role("button", name="Change", exact=True).click()
    add_load(page, "Throughput of an element", Pipeline="watched", Element="positive")
    axe.look("the fields of a tile of load")
    page.get_by_role("button", name="Add the tile").click()
    add_load(page, "CPU of a node", Node="edge-a")
    page.get_by_role("button", name="Add the tile").click()

    link = made_link(page)
    axe.look("the links of a wall")
    guest = chromium.new_context(base_url=fogline.url).new_page()
    guest.goto(link)
    expect(guest.get_by_role("heading", name=TITLE)).to_be_visible()
    expect(guest.locator('.wall-tile[data-kind="chart"] .js-plotly-plot')).to_be_visible()
    for name in ("Throughput of positive", "CPU of edge-a"):
        expect(guest.get_by_role("article", name=name).locator(".js-plotly-plot")).to_be_visible()
    expect(guest.locator(".wall-table tbody tr").first).to_be_visible()
    for name in ("Change", "Where did the row of"):
        expect(guest.get_by_role("button", name=name)).to_have_count(0)
    page.get_by_role("button", name="Revoke").click()
    page.get_by_role("button", name="Revoke the link").click()
    expect(guest.get_by_role("heading", name="This link does not work any more")).to_be_visible()
    guest.context.close()
    axe.expect_nothing()
