"""The live view of running elements: old figures look old, charts hold still, and the drawer has room."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import Axe
from tests.browser.dashboard import Dashboard
from tests.handover.proxy import Proxies, Proxy
from tests.running import RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ELEMENT = "positive"


@pytest.fixture
def line(fogline: RunningFogline) -> Iterator[Proxy]:
    """Between the browser and the dashboard's server; what it holds back is as if the network were gone."""
    proxies = Proxies(("browser",), (fogline.port,))
    yield proxies.lines["browser"]
    proxies.close()


def test_where_the_user_of_a_source_is_is_said_shown_and_taken_back(
    watched: str, dashboard: Dashboard
) -> None:
    page, panel = dashboard.page, dashboard.live_panel
    page.goto(f"/pipelines/{watched}?mode=live&element=numbers")
    panel.get_by_role("button", name="Say where its user is").click()
    dialog = page.get_by_role("dialog", name="Where is the user of numbers?")
    dialog.get_by_label("Site").fill("<hall>")
    expect(dialog.get_by_role("button", name="Save place")).to_be_disabled()
    dialog.get_by_label("Site").fill("edge-b")
    dialog.get_by_role("button", name="Save place").click()
    expect(dialog).to_have_count(0)
    expect(panel.get_by_text(re.compile(r"Its user is at edge-b since .*\d\d:\d\d\."))).to_be_visible()

    panel.get_by_role("button", name="Change where its user is").click()
    dialog.get_by_label("Site").fill("")
    dialog.get_by_role("button", name="Save place").click()
    expect(panel.get_by_role("button", name="Say where its user is")).to_be_visible()


def test_one_click_leads_from_a_row_to_the_row_it_was_made_from(watched: str, dashboard: Dashboard) -> None:
    page, panel = dashboard.page, dashboard.live_panel
    page.goto(f"/pipelines/{watched}?mode=live&element={ELEMENT}")
    panel.get_by_role("tab", name="Records").click()
    row = panel.get_by_role("row").nth(1)
    expect(row).to_be_visible()
    # rows that are asked for already would replace those that are held
    peek = re.compile("/peek")
    page.route(peek, lambda route: None)
    with page.expect_request(peek):
        pass
    with page.expect_event("requestfailed", lambda request: bool(peek.search(request.url))):
        panel.get_by_role("button", name="Hold").click()
    page.unroute(peek)
    number = row.get_by_role("cell").nth(2).inner_text()
    row.get_by_role("button", name=re.compile("Where did the row of .* come from")).click()
    dialog = page.get_by_role("dialog", name="Where this row came from")
    expect(dialog.get_by_text("1 row, from which positive made the rows above.")).to_be_visible()
    came_from = dialog.get_by_role("region", name="Rows of numbers").get_by_role("row")
    expect(came_from).to_have_count(2)  # with the head
    expect(came_from.nth(1)).to_contain_text(number)
    expect(dialog.get_by_text("numbers made the rows.")).to_be_visible()
    came_from.nth(1).get_by_role("button", name=re.compile("Open the row")).click()
    expect(dialog.get_by_role("region", name="The row")).to_contain_text("partition 0")
    came_from.nth(1).get_by_role("button", name=re.compile("Where did the row")).click()
    dialog.get_by_role("button", name="Back to the row before").click()
    expect(dialog.get_by_text("1 row, from which positive made the rows above.")).to_be_visible()


def test_a_stream_opens_as_a_queue_which_is_searched_and_shows_one_row_whole(
    watched: str, dashboard: Dashboard
) -> None:
    page, axe = dashboard.page, Axe(dashboard.page)
    page.goto(f"/pipelines/{watched}?mode=live")
    stream = page.get_by_label("Stream from numbers to positive")
    expect(stream).to_have_accessible_description(re.compile("^Columns: .*value \\(number"))
    stream.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")  # as the keyboard gets there
    expect(page.locator(".passing td")).to_contain_text(["key", "n", "value"])
    page.keyboard.press("Enter")
    page.get_by_text("3 columns", exact=True).click()
    expect(dashboard.live_panel.get_by_role("row", name="value number", exact=True)).to_be_visible()
    rows = page.get_by_role("region", name="Rows of the stream").locator("tbody tr")
    expect(rows.first).to_be_visible()
    expect(page.get_by_text(re.compile("^Its reader has ")).first).to_be_visible()

    # a search by key and by text, and one row of what it finds
    cells = rows.last.get_by_role("cell")
    number, key = cells.nth(2).inner_text(), cells.last.inner_text()
    by_key = page.get_by_role("searchbox", name="Key")
    by_key.fill("no such key")
    expect(page.get_by_text("There are no such rows.")).to_be_visible()
    by_key.fill(key)
    page.get_by_role("searchbox", name="Text in the row").fill(number.replace(",", ""))
    expect(page.get_by_text(re.compile(r"^\d+ rows? of the newest "))).to_be_visible()
    found = rows.filter(has=page.get_by_role("cell", name=number, exact=True)).first
    found.get_by_role("button", name=re.compile("Open the row")).click()
    whole = page.get_by_role("region", name="The row")
    expect(whole).to_contain_text(number)
    expect(whole).to_contain_text("partition 0, offset ")
    axe.look("a row of a stream's queue")
    page.get_by_role("button", name="Show the queue").click()
    expect(page.get_by_text(re.compile("^Its reader has ")).first).to_be_visible()
    axe.expect_nothing()


def test_without_contact_nobody_takes_old_figures_for_new_ones(
    watched: str, line: Proxy, dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page = dashboard.page
    # a session is the host's, whatever the port
    page.goto(f"http://127.0.0.1:{line.port}/pipelines/{watched}?mode=live&element={ELEMENT}")
    bar = page.locator(".contact-bar")
    status = dashboard.card(ELEMENT).locator(".status")
    throughput = dashboard.live_panel.get_by_role("img", name="Throughput, rows/s")
    places = [dashboard.card(ELEMENT), dashboard.live_panel.get_by_role("heading"), throughput, status]
    dashboard.expect_status(ELEMENT, "running")
    expect(throughput.locator(".main-svg").first).to_be_visible()
    expect(bar).to_be_hidden()
    green, before = colour(status), at_rest(page, places)

    line.cut()
    expect(bar).to_contain_text(
        re.compile(r"No contact for \d+ s; the figures are from \d\d:\d\d:\d\d\."), timeout=60_000
    )
    grey = page.evaluate("""() => {
      const probe = document.body.appendChild(document.createElement("i"));
      probe.style.color = "var(--stopped)";
      const { color } = getComputedStyle(probe);
      probe.remove();
      return color;
    }""")
    assert green != grey
    assert colour(status) == grey
    assert colour(dashboard.live_panel.locator(".figure__value").first) == grey
    assert [box(place) for place in places] == before, "nothing moves when the bar comes"

    # what happens meanwhile is there with the snapshot
    with fogline.client() as client:
        client.post("/api/v1/pipelines", json={"name": "made-meanwhile"}).raise_for_status()
        line.heal()
        expect(bar).to_be_hidden(timeout=60_000)
        assert colour(status) == green
        page.keyboard.press("Control+k")
        page.get_by_role("combobox").fill("made-meanwhile")
        expect(page.get_by_role("option", name=re.compile("made-meanwhile"))).to_be_visible()
        client.delete("/api/v1/pipelines/made-meanwhile").raise_for_status()


@pytest.mark.full
def test_a_chart_holds_what_it_was_dragged_to_and_all_charts_show_the_same(
    watched: str, dashboard: Dashboard, fogline: RunningFogline, tmp_path: Path
) -> None:
    page, panel = dashboard.page, dashboard.live_panel
    page.goto(f"/pipelines/{watched}?mode=live&element={ELEMENT}")
    throughput = panel.get_by_role("img", name="Throughput, rows/s")
    back = panel.get_by_role("button", name="Back to now")
    expect(throughput.locator(".main-svg").first).to_be_visible()
    expect(back).to_be_hidden()

    drag(page, throughput, 0.4, 0.8)
    expect(back).to_be_visible()
    held = wait_until(lambda: common_range(page), "one range in all charts")
    with fogline.client() as client:
        history = f"/api/v1/pipelines/{watched}/elements/{ELEMENT}/history"
        newest = points(client, history)[-1]["t"]
        wait_until(lambda: points(client, history)[-1]["t"] > newest + 6000, "6 s of new points")
    expect(page.locator(":root")).to_have_attribute("data-contact", "live")
    assert set(ranges(page)) == {held}
    expect(page.locator(".plotly-notifier")).to_have_count(0)

    # by a link somebody else sees the same
    page.reload()
    wait_until(lambda: set(ranges(page)) == {held}, "the range of the address")

    back.click()
    expect(back).to_be_hidden()
    wait_until(lambda: min(ranges(page))[1] > held[1], "the charts to go up to now")
    # what goes with the press passes its focus on, or keeps it
    expect(panel.get_by_role("button", name="5 min", exact=True)).to_be_focused()
    panel.get_by_role("button", name="Earlier").click()
    expect(back).to_be_visible()
    later = panel.get_by_role("button", name="Later")
    later.focus()
    dashboard.press("Enter", "Enter")
    expect(back).to_be_hidden()
    expect(later).to_be_focused()
    expect(later).to_have_attribute("aria-disabled", "true")
    panel.get_by_role("button", name="Closer").focus()
    dashboard.press("Enter")
    wait_until(lambda: width_s(page) == 150, "half of the time in all charts")
    back.click()

    # what happened is marked, and in the file beside the table
    panel.get_by_role("button", name="1 h").click()
    legend = panel.locator(".mark-legend")
    for mark in ("deployment", "checkpoint"):
        expect(legend).to_contain_text(mark)
    panel.get_by_role("button", name="Table of Throughput").click()
    expect(panel.get_by_role("region", name="Figures").get_by_role("row").nth(3)).to_be_visible()
    with page.expect_download() as download:
        panel.get_by_role("button", name="CSV of Throughput").click()
    assert download.value.suggested_filename == f"{watched}-{ELEMENT}-throughput.csv"
    download.value.save_as(tmp_path / "throughput.csv")
    head, *rows = (tmp_path / "throughput.csv").read_text().splitlines()
    assert head == "time,in (rows/s),out (rows/s),events"
    batch = panel.get_by_role("figure").filter(has=page.get_by_role("button", name="Table of Batch"))
    for line in ("p50", "p95"):
        expect(batch.locator(".chart__legend")).to_contain_text(line)
    assert len(rows) > 3
    assert any(f"{watched} version" in row for row in rows), "the deployment"


@pytest.mark.full
def test_the_drawer_is_made_wider_by_mouse_and_keyboard_and_opens_as_a_page(
    watched: str, dashboard: Dashboard
) -> None:
    page, panel = dashboard.page, dashboard.live_panel
    page.goto(f"/pipelines/{watched}?mode=live&element={ELEMENT}")
    edge = page.get_by_role("separator", name="Width of the live state")
    first = box(panel)["width"]

    x, y = round(box(edge)["x"]) + 4, 500
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 150, y, steps=6)
    page.mouse.up()
    wait_until(lambda: abs(box(panel)["width"] - first - 150) < 2, "the drawer to be 150 px wider")
    wider = box(panel)["width"]
    edge.focus()
    page.keyboard.press("ArrowLeft")
    expect(edge).to_have_attribute("aria-valuenow", str(round(wider + 16)))
    page.reload()
    expect(edge).to_have_attribute("aria-valuenow", str(round(wider + 16)))
    assert abs(box(panel)["width"] - wider - 16) < 1
    edge.focus()
    page.keyboard.press("Home")
    wait_until(lambda: box(panel)["width"] == first, "the drawer to be as wide as at first")

    panel.get_by_role("link", name="Open as a page").click()
    expect(page).to_have_url(re.compile(f"/pipelines/{watched}/elements/{ELEMENT}$"))
    table = page.get_by_role("table").filter(has_text="Latency")
    for name in ("p50", "p95", "p99"):
        expect(table.get_by_role("columnheader", name=name)).to_be_visible()
    latency = table.get_by_role("row", name=re.compile("^Latency"))
    expect(latency).to_have_text(re.compile(r"Latency([\d.]+ m?s){3}$"))
    chart = page.get_by_role("img", name="Latency, ms")
    chart.scroll_into_view_if_needed()  # charts are drawn where they can be seen
    expect(chart.locator(".main-svg").first).to_be_visible()
    cost = page.get_by_role("region", name="CPU for each latency target")
    expect(cost).to_contain_text(re.compile(r"At a target of 1 s: about .*cores.*An estimate"))
    expect(cost.get_by_role("img", name=re.compile(r"^Estimated: [\d.]+ cores at 5 ms, "))).to_be_visible()
    page.get_by_role("tab", name="Records").click()
    page.reload()
    records = page.get_by_role("region", name="Records")
    expect(records.get_by_role("row").nth(2)).to_be_visible()
    assert box(records)["width"] > 1000
    page.get_by_role("button", name="Migrate").click()
    page.get_by_role("dialog", name=f"Migrate {ELEMENT}").get_by_role("button", name="Cancel").click()
    for words in ("restore", "pause"):
        dashboard.run_command(words, re.compile(f"^{words.capitalize()} {ELEMENT}"))
        asked = page.get_by_role("dialog", name=re.compile(f"^{words.capitalize()} {ELEMENT}"))
        asked.get_by_role("button", name="Cancel").click()
        expect(asked).to_have_count(0)
    page.get_by_role("link", name="Show on the canvas").click()
    expect(panel.get_by_role("heading", name=ELEMENT)).to_be_visible()


def box(place: Locator) -> dict[str, float]:
    found = place.bounding_box()
    assert found is not None, f"{place} is not visible"
    return dict(found)


def at_rest(page: Page, places: list[Locator]) -> list[dict[str, float]]:
    """Where they are once nothing that loads moves them any more."""
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    last = [box(place) for place in places]

    def unmoved() -> bool:
        nonlocal last
        page.evaluate("""async () => {
          await document.fonts.ready;
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        }""")
        before, last = last, [box(place) for place in places]
        return last == before

    wait_until(unmoved, lambda: f"{places} to stay where they are: {last}")
    return last


def colour(place: Locator) -> str:
    return str(place.evaluate("(element) => getComputedStyle(element).color"))


def drag(page: Page, chart: Locator, start: float, end: float) -> None:
    """Over a part of its plot, from 0 to 1."""
    plot = box(chart.locator(".nsewdrag"))
    y = plot["y"] + plot["height"] / 2
    page.mouse.move(plot["x"] + plot["width"] * start, y)
    page.mouse.down()
    page.mouse.move(plot["x"] + plot["width"] * end, y, steps=8)
    page.mouse.up()


def ranges(page: Page) -> list[tuple[float, float]]:
    """Returns the time range of each chart as Plotly draws it, in ms since the epoch."""
    found = page.evaluate("""() => [...document.querySelectorAll(".js-plotly-plot")].map((plot) =>
      plot._fullLayout.xaxis.range.map((time) => Date.parse(String(time).replace(" ", "T"))))""")
    return [(start, end) for start, end in found]


def common_range(page: Page) -> tuple[float, float] | None:
    """Returns the range of all charts, or None if they differ."""
    found = set(ranges(page))
    return found.pop() if len(found) == 1 else None


def width_s(page: Page) -> int | None:
    span = common_range(page)
    return None if span is None else round((span[1] - span[0]) / 1000)


def points(client: Any, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(path).raise_for_status().json()["points"]
    return found
