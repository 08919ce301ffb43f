"""Notes and frames on the canvas: written, moved with what lies in them, undone, seen in Live."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.axe import Axe
from tests.browser.dashboard import Dashboard
from tests.browser.test_conditions import DOCUMENT
from tests.running import RunningFogline
from tests.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

NAME = "noted"


def test_notes_and_frames_are_kept_with_the_pipeline_and_change_nothing_that_runs(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page = dashboard.page
    axe = Axe(page)
    elements = [
        {**element, "ui": {"x": 320 * index, "y": 0}}
        for index, element in enumerate(DOCUMENT["spec"]["elements"])
    ]
    frame = {"id": "f", "kind": "frame", "text": "Hall", "colour": "blue", "x": -40, "y": -60}
    notes = [{**frame, "width": 300, "height": 200}]
    document = {**DOCUMENT, "metadata": {"name": NAME}, "spec": {"elements": elements, "notes": notes}}
    with fogline.client() as client:
        client.post("/api/v1/pipelines", json={"name": NAME, "document": document}).raise_for_status()

        def saved() -> dict[str, Any]:
            spec: dict[str, Any] = client.get(f"/api/v1/pipelines/{NAME}").json()["document"]["spec"]
            return spec

        page.goto(f"/pipelines/{NAME}")
        expect(page.get_by_label("Title of the frame")).to_have_value("Hall")

        # by keyboard: a note with its text and its colour
        page.keyboard.press("n")
        text = page.get_by_label("Text of the note")
        expect(text).to_be_focused()
        page.keyboard.type("Ask Ada <b>first</b>")
        note = page.get_by_role("group", name="note: Ask Ada")
        note.get_by_label("Colour").select_option("green")
        axe.look("a note and a frame")
        wait_until(
            lambda: [each["text"] for each in saved()["notes"]] == ["Hall", "Ask Ada <b>first</b>"], "it"
        )

        # what lies in the frame moves with it, and back by one undo
        move = page.get_by_role("button", name="Move the frame", exact=True)
        move.focus()
        page.keyboard.press("ArrowDown")
        wait_until(lambda: [each["ui"]["y"] for each in saved()["elements"]] == [16, 0], "the move")
        page.keyboard.press("Control+z")
        wait_until(lambda: [each["ui"]["y"] for each in saved()["elements"]] == [0, 0], "the undo")
        grip = move.bounding_box()
        assert grip is not None
        page.mouse.move(grip["x"] + 12, grip["y"] + 12)
        page.mouse.down()
        page.mouse.move(grip["x"] + 12, grip["y"] + 72, steps=5)
        page.mouse.up()
        wait_until(lambda: saved()["notes"][0]["y"] > -60 < saved()["elements"][0]["ui"]["y"], "the drag")

        # the map has both as soon as something is out of sight; a frame is copied with what lies in it
        drawn = page.locator(".react-flow__minimap .map-note")
        page.get_by_role("button", name="Zoom to fit").click()
        expect(drawn).to_have_count(0)
        for _ in range(4):
            page.get_by_role("button", name="Zoom in").click()
        expect(drawn).to_have_count(2)
        page.get_by_role("button", name="Zoom to fit").click()
        expect(drawn).to_have_count(0)
        dashboard.card(DOCUMENT["spec"]["elements"][1]["id"]).click()
        for keys in ("Control+a", "Control+c", "Control+v"):
            page.keyboard.press(keys)
        wait_until(lambda: [each["text"] for each in saved()["notes"]].count("Hall") == 2, "the copy")
        page.keyboard.press("Control+z")

        page.get_by_role("button", name="Live", exact=True).click()
        expect(page.get_by_label("Text of the note")).to_have_attribute("readonly", "")
        exported = client.get(f"/api/v1/pipelines/{NAME}/export").text
        assert "Ask Ada <b>first</b>" in exported
    axe.expect_nothing()
