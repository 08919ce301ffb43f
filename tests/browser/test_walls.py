"""A wall: made, arranged, and shown to somebody without an account."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from tests.browser.afar import leave, look_from_afar
from tests.browser.axe import Axe
from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.running import RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.full, pytest.mark.timeout(600)]

TITLE = "Hall 3"
PHONE = ViewportSize(width=390, height=844)
HOUSE: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": "house"},
    "spec": {
        "elements": [
            {
                "id": "meter",
                "type": "csv-replay",
                "params": {"path": "demo:household-power", "rate": 5000, "restamp": False},
                "node": "edge-a",
            }
        ]
    },
}
"""Twelve days of a house, with their own times, in a few seconds. Then nothing comes any more."""


@pytest.fixture
def no_wall(fogline: RunningFogline) -> Iterator[None]:
    yield
    with fogline.client() as client:
        for wall in client.get("/api/v1/walls").json():
            client.delete(f"/api/v1/walls/{wall['id']}").raise_for_status()


@pytest.fixture
def house(fogline: RunningFogline) -> None:
    with fogline.client() as client:
        client.post("/api/v1/pipelines", json={"name": "house", "document": HOUSE}).raise_for_status()
        client.post("/api/v1/pipelines/house/deploy").raise_for_status()
        rows = "/api/v1/pipelines/house/elements/meter"
        wait_until(lambda: client.get(rows).json()["rows_out_total"], "the rows of the house", 300)


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
    chart.get_by_role("button", name=re.compile("^Actions of ")).click()
    page.get_by_role("menuitem", name="Add a note").click()
    notes = page.get_by_role("dialog", name="Notes")
    notes.get_by_label("What happened").fill("A new tool")
    axe.look("a note on a chart")
    notes.get_by_role("button", name="Add the note").click()
    expect(notes).to_have_count(0)
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


def tile_dialog(page: Page, kind: str) -> Locator:
    page.get_by_role("button", name="Add a tile").first.click()
    dialog = page.get_by_role("dialog", name="Add a tile")
    dialog.get_by_role("button", name=kind, exact=True).click()
    return dialog


def hang(dialog: Locator) -> None:
    dialog.get_by_role("button", name="Add the tile").click()
    expect(dialog).to_have_count(0)


def add_of_house(page: Page, kind: str, *columns: str) -> Locator:
    """Fills in the dialog, which stays open."""
    dialog = tile_dialog(page, kind)
    dialog.get_by_label("Pipeline").select_option("house")
    for column in columns:
        dialog.get_by_role("button", name=re.compile(f"^{column}( |$)")).click()
    return dialog


def add_a_chart_with_all(page: Page) -> None:
    """A day of two columns, with an axis of its own for one, the day before of the other, and limits."""
    dialog = add_of_house(page, "Chart", "power", "voltage")
    dialog.get_by_label("Axis of voltage").select_option("right")
    dialog.get_by_label("Compare power with the day before").check()
    dialog.get_by_label("Time").select_option(label="Last 1 day")
    dialog.get_by_label("Mark below").fill("1")
    dialog.get_by_label("Mark above").fill("4")
    hang(dialog)


def hours_of(chart: Locator, curve: str) -> float:
    """How many hours the drawn points of a curve span."""
    hours: float = chart.locator(".js-plotly-plot").evaluate(
        """(plot, name) => {
          const { x } = plot.data.find((trace) => trace.name === name);
          return (x.at(-1) - x[0]) / 3_600_000;
        }""",
        curve,
    )
    return hours


def look_at_the_chart(chart: Locator) -> None:
    names = ("power", "power, the day before", "voltage")
    expect(chart.locator(".chart__key")).to_contain_text([*names], timeout=SLOW_MS)
    for name in names[:2]:
        wait_until(lambda name=name: hours_of(chart, name) > 23, f"a day of {name}")  # type: ignore[misc]
    expect(chart.locator(".y3tick").first).to_be_visible()  # the axis at the right
    # Beyond each limit it is shaded, and at each limit is a line.
    expect(chart.locator(".shapelayer path")).to_have_count(4)


def note_by_click(page: Page, chart: Locator) -> None:
    """A click while the wall is changed writes a note at that time."""
    box = chart.locator(".nsewdrag").first.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 3, box["y"] + box["height"] / 2
    page.mouse.move(x - 8, y)
    page.mouse.move(x, y, steps=4)
    expect(chart.locator(".hoverlayer .legend, .hoverlayer .hovertext").first).to_be_visible()
    page.mouse.click(x, y)
    notes = page.get_by_role("dialog", name="Notes")
    # It is a time of the recording.
    expect(notes.get_by_label("When")).to_have_value(re.compile("^20(0[6-9]|10)-"))
    notes.get_by_label("What happened").fill("Oven on")
    notes.get_by_role("button", name="Add the note").click()
    expect(notes).to_have_count(0)
    expect(chart.locator(".annotation-text")).to_have_text("Oven on")
    expect(chart.locator(".shapelayer path")).to_have_count(5)  # the note has a line through the chart
    chart.get_by_role("button", name=re.compile("^Actions of")).click()
    page.get_by_role("menuitem", name="Notes (1 note)").click()
    expect(notes.get_by_role("listitem")).to_contain_text(re.compile(r"Oven on.* by \w+"))
    notes.get_by_role("button", name="Close").click()
    expect(notes).to_have_count(0)


def look_at_what_is_old(table: Locator, figure: Locator) -> None:
    """A tile whose rows have stopped says so and turns pale; one whose rows come does not."""
    expect(table).to_have_attribute("data-aged", "true", timeout=SLOW_MS)
    expect(table.locator(".wall-age")).to_have_text(re.compile("^no row for \\d+ (s|min)"))
    expect(figure).to_have_attribute("data-aged", "false")
    cell = "element => getComputedStyle(element).color"
    pale = table.locator("tbody td.num").last.evaluate(cell)
    assert pale == table.locator(".wall-table").evaluate(cell)
    assert pale != figure.locator(".wall-figure__value").evaluate(cell)


def look_at_a_phone(page: Page) -> None:
    page.set_viewport_size(PHONE)
    expect(page.locator(".wall-grid__column .wall-tile")).to_have_count(5)
    expect(page.locator('.wall-tile[data-kind="chart"] .js-plotly-plot')).to_be_visible()
    wait_until(
        lambda: page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing beside a phone"
    )


@pytest.mark.usefixtures("no_wall", "watched", "house")
def test_a_wall_shows_notes_limits_the_day_before_and_what_is_old_and_is_read_from_afar(
    dashboard: Dashboard,
) -> None:
    page = dashboard.page
    axe = Axe(page)
    page.goto("/walls/?new=1")
    page.get_by_role("dialog", name="New wall").get_by_label("Name").fill("House")
    page.get_by_role("button", name="Make the wall").click()
    add_a_chart_with_all(page)
    add_tile(page, "Figure", "value")
    hang(add_of_house(page, "Table", "power", "voltage", "current", "kitchen", "laundry"))
    picture = tile_dialog(page, "Pipeline")
    picture.get_by_label("Pipeline").select_option("watched")
    hang(picture)
    text = tile_dialog(page, "Text")
    text.get_by_label("Text", exact=True).fill("Ring Ann: 4711")
    hang(text)

    tiles = {
        kind: page.locator(f'.wall-tile[data-kind="{kind}"]') for kind in ("chart", "figure", "table", "text")
    }
    expect(tiles["text"]).to_contain_text("Ring Ann: 4711")
    expect(page.get_by_role("img", name="The pipeline watched: 2 elements, 1 stream")).to_be_visible()
    look_at_the_chart(tiles["chart"])
    note_by_click(page, tiles["chart"])
    page.get_by_role("button", name="Done").click()
    look_at_what_is_old(tiles["table"], tiles["figure"])
    axe.look("a wall of all kinds")
    look_from_afar(page)
    axe.look("a wall on a whole screen")
    leave(page)
    look_at_a_phone(page)
    axe.look("a wall on a phone")
    axe.expect_nothing()
