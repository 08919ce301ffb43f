"""The canvas without a pointer, and what it makes of names, places and steps of undo."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import pytest
from playwright.sync_api import FloatRect, Locator, expect

from tests.browser.dashboard import Dashboard
from tests.running import RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_ports_names_places_and_undo_by_keyboard(dashboard: Dashboard) -> None:
    dashboard.create_pipeline("by-keyboard")
    page = dashboard.page
    streams = dashboard.canvas.locator(".react-flow__edge")

    dashboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard map")
    expect(keys).to_contain_text("Rename the element")
    dashboard.press("Escape")

    # a second element is connected to the first where it fits: a source to nothing before it
    dashboard.add_by_keyboard("generator", "generator")
    dashboard.add_by_keyboard("filter", "filter")
    expect(streams).to_have_count(1)
    dashboard.add_by_keyboard("generator", "generator-2")
    expect(streams).to_have_count(1)

    # a name is written on the card, by F2 and by a double click
    dashboard.press("F2")
    expect(dashboard.canvas.get_by_role("textbox", name="Name of Generator 2")).to_be_focused()
    page.keyboard.type("Second source")
    dashboard.press("Enter")
    expect(dashboard.card("generator-2")).to_have_accessible_name("Second source, Generator")
    expect(dashboard.card("generator-2")).to_be_focused()
    dashboard.card("filter").dblclick()
    page.keyboard.type("Not this name")
    dashboard.press("Escape")
    expect(dashboard.card("filter")).to_have_accessible_name("Filter")

    # the selected card's ports follow it in the Tab order; a port asks what it is to be connected with
    dashboard.tab_to(dashboard.canvas.get_by_label("Input of Filter", exact=True), most=3)
    dashboard.press("Enter")
    choice = page.get_by_role("dialog", name="Connect the input of Filter")
    expect(choice.get_by_role("option", name="Generator already connected")).to_be_disabled()
    assert_within(choice, dashboard.canvas)
    page.keyboard.type("second")
    expect(choice.get_by_role("option", selected=True)).to_contain_text("replaces Generator")
    dashboard.press("Enter")
    expect(page.get_by_label("Stream from Second source to Filter")).to_have_count(1)
    expect(streams).to_have_count(1)
    expect(dashboard.card("filter")).to_be_focused()

    # copies lie beside the originals, over none of them
    dashboard.press("ControlOrMeta+a", "ControlOrMeta+c", "ControlOrMeta+v", "ControlOrMeta+v")
    expect(dashboard.canvas.locator(".react-flow__node-card")).to_have_count(9)
    cards = dashboard.canvas.locator(".react-flow__node-card")
    wait_until(lambda: not overlaps(boxes_of(cards)), "each card to have a place of its own")

    # what is selected is brought into one row
    dashboard.press("Alt+r")
    chosen = dashboard.canvas.locator(".react-flow__node-card.selected")
    expect(chosen).to_have_count(3)
    wait_until(lambda: len({round(box["y"]) for box in boxes_of(chosen)}) == 1, "one row")

    # the steps back are still there after a reload
    expect(page.get_by_role("status", name="Draft saved")).to_be_visible()
    page.reload()
    expect(dashboard.canvas.locator(".react-flow__node-card")).to_have_count(9)
    dashboard.press("ControlOrMeta+z", "ControlOrMeta+z", "ControlOrMeta+z")
    expect(dashboard.canvas.locator(".react-flow__node-card")).to_have_count(3)
    dashboard.press("ControlOrMeta+z")
    expect(page.get_by_label("Stream from Generator to Filter")).to_have_count(1)


def test_a_stream_dropped_at_the_canvas_edge_opens_its_list_within_the_canvas(dashboard: Dashboard) -> None:
    dashboard.create_pipeline("dropped-streams")
    dashboard.drag_from_palette("Generator", 300, 300)
    mouse = dashboard.page.mouse
    canvas = box_of(dashboard.canvas)
    corner = (canvas["x"] + canvas["width"] - 4, canvas["y"] + canvas["height"] - 4)
    for x, y in (corner, (corner[0], canvas["y"] + 4)):
        port = box_of(dashboard.canvas.get_by_label("Output of Generator", exact=True))
        mouse.move(port["x"] + port["width"] / 2, port["y"] + port["height"] / 2)
        mouse.down()
        mouse.move(x, y, steps=12)
        mouse.up()
        choice = dashboard.page.get_by_role("dialog", name="Add an element after Generator")
        expect(choice).to_be_visible()
        assert_within(choice, dashboard.canvas)
        dashboard.press("Escape")
        expect(choice).to_have_count(0)


TEXT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": "only-text"},
    "spec": {
        "elements": [
            {"id": "numbers", "type": "generator", "ui": {"x": 0, "y": 0}},
            {
                "id": "names",
                "type": "select",
                "title": "Names",
                "params": {"columns": [{"column": "key"}]},
                "inputs": {"in": "numbers"},
                "ui": {"x": 320, "y": 0},
            },
        ]
    },
}


def test_a_new_element_that_a_stream_does_not_fit_says_so_and_offers_what_mends_it(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page = dashboard.page
    with fogline.client() as client:
        body = {"name": "only-text", "document": TEXT}
        client.post("/api/v1/pipelines", json=body).raise_for_status()
    page.goto("/pipelines/only-text")
    expect(dashboard.problems).to_contain_text("No problems")
    streams = dashboard.canvas.locator(".react-flow__edge")
    why = "It needs a number, and the stream has only key (text)."

    # by key it is added, and told why it stands alone
    dashboard.select("names")
    dashboard.add_by_keyboard("live chart", "live-chart")
    expect(dashboard.toast).to_contain_text(why)
    expect(streams).to_have_count(1)
    dashboard.press("ControlOrMeta+z")
    expect(dashboard.card("live-chart")).to_have_count(0)

    # in the list of a port it is there, greyed; with a conversion between it can be taken
    dashboard.select("names")
    dashboard.canvas.get_by_label("Output of Names", exact=True).focus()
    dashboard.press("Enter")
    choice = page.get_by_role("dialog", name="Connect the output of Names")
    page.keyboard.type("live chart")
    expect(choice.get_by_role("option", name=f"Live chart {why}")).to_be_disabled()
    expect(choice.get_by_role("option", selected=True)).to_have_text("Live chartConvert key to a number")
    dashboard.press("Enter")
    expect(page.get_by_label("Stream from key as a number to Live chart")).to_have_count(1)
    expect(streams).to_have_count(3)
    dashboard.press("ControlOrMeta+z")
    expect(streams).to_have_count(1)


def test_the_palette_has_what_can_be_done_with_the_selected_element(
    dashboard: Dashboard, watched: str
) -> None:
    page = dashboard.page
    page.goto(f"/pipelines/{watched}?mode=live")
    option = dashboard.open_palette("migrate").get_by_role("option", name=re.compile("^Migrate "))
    expect(option).to_have_text("Migrate an elementSelect one element first.")
    expect(option).to_be_disabled()
    dashboard.press("Escape")

    # none of these is ordered: each asks first
    dashboard.expect_status("positive", "running")
    dashboard.tab_to(dashboard.card("positive"))
    dashboard.press("Enter")
    expect(dashboard.live_panel.get_by_role("button", name="Migrate")).to_be_focused()
    for words, dialog in (
        ("move", "Migrate positive"),
        ("restore", "Restore positive"),
        ("pause", "Pause positive"),
    ):
        dashboard.run_command(words, re.compile(f"^{dialog}"))
        asked = page.get_by_role("dialog", name=re.compile(f"^{dialog}"))
        expect(asked).to_be_visible()
        dashboard.press("Escape")
        expect(asked).to_have_count(0)


def test_four_elements_in_a_row_are_legible_when_all_are_in_view(dashboard: Dashboard) -> None:
    dashboard.create_pipeline("legible")
    for title, id in (
        ("generator", "generator"),
        ("filter", "filter"),
        ("derive", "derive"),
        ("csv file", "csv-sink"),
    ):
        dashboard.add_by_keyboard(title, id)

    def all_in_view() -> bool:
        dashboard.press("f")  # again, where it came while the last card was still being brought into view
        boxes = [box_of(dashboard.card(id)) for id in ("generator", "csv-sink")]
        return all(is_within(box, box_of(dashboard.canvas)) for box in boxes)

    wait_until(all_in_view, "the first and the last card to be in view")
    name = dashboard.card("filter").locator(".el-card__title")
    letters = name.evaluate(
        """title => parseFloat(getComputedStyle(title).fontSize)
            * title.getBoundingClientRect().width / title.offsetWidth"""
    )
    assert letters > 10.5, f"the names are {letters:.1f} px high"


def box_of(target: Locator) -> FloatRect:
    box = target.bounding_box()
    assert box is not None, f"{target} is not visible"
    return box


def boxes_of(targets: Locator) -> list[FloatRect]:
    """At one moment: the canvas may still be moving."""
    found: list[FloatRect] = targets.evaluate_all(
        """targets => targets.map(target => {
            const { x, y, width, height } = target.getBoundingClientRect();
            return { x, y, width, height };
        })"""
    )
    return found


def overlaps(boxes: list[FloatRect]) -> list[tuple[FloatRect, FloatRect]]:
    return [(a, b) for a, b in combinations(boxes, 2) if overlap(a, b)]


def overlap(a: FloatRect, b: FloatRect) -> bool:
    across = a["x"] < b["x"] + b["width"] and b["x"] < a["x"] + a["width"]
    down = a["y"] < b["y"] + b["height"] and b["y"] < a["y"] + a["height"]
    return across and down


def is_within(a: FloatRect, b: FloatRect) -> bool:
    return all(
        0 <= start <= room
        for start, room in (
            (a["x"] - b["x"], b["width"] - a["width"]),
            (a["y"] - b["y"], b["height"] - a["height"]),
        )
    )


def assert_within(inner: Locator, outer: Locator) -> None:
    a, b = box_of(inner), box_of(outer)
    assert is_within(a, b), (a, b)
