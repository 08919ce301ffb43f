"""Random edits of a draft in lanes and as drawn are kept, shown, undone and redone."""

from __future__ import annotations

import os
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.dashboard import Dashboard
from tests.browser.random_edits import Editor
from tests.chosen import examples
from tests.running import RunningFogline

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

EDITS = 100
LOOK_EVERY = 10
NAME = "edited-at-random"
DOCUMENT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": NAME},
    "spec": {
        "elements": [
            {"id": "numbers", "type": "generator", "params": {"rate": 1}, "ui": {"x": 0, "y": 0}},
            {
                "id": "high",
                "type": "filter",
                "params": {"condition": "value > 0"},
                "inputs": {"in": "numbers"},
                "ui": {"x": 320, "y": 0},
            },
            {
                "id": "higher",
                "type": "filter",
                "params": {"condition": "value > 1"},
                "inputs": {"in": "high"},
                "ui": {"x": 640, "y": 0},
            },
            {
                "id": "chart",
                "type": "live-chart",
                "params": {"columns": ["value"]},
                "inputs": {"in": "higher"},
                "ui": {"x": 960, "y": 0},
            },
        ]
    },
}


@pytest.mark.usefixtures("sites")
def test_random_edits_in_lanes_are_kept_undone_and_redone(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    seed = int(os.environ.get("SEED", "7"))
    with fogline.client() as client:
        client.post("/api/v1/pipelines", json={"name": NAME, "document": DOCUMENT}).raise_for_status()

        def saved() -> dict[str, Any]:
            document: dict[str, Any] = client.get(f"/api/v1/pipelines/{NAME}").json()["document"]
            return document

        dashboard.page.goto(f"/pipelines/{NAME}?arranged=lanes")
        expect(dashboard.lane("Any node at Yard")).to_be_visible()
        editor = Editor(dashboard, saved, seed)
        print(f"SEED={seed}")
        while len(editor.done) < examples(EDITS):
            looked = len(editor.done) // LOOK_EVERY
            editor.edit()
            if len(editor.done) // LOOK_EVERY > looked:
                editor.look()
        editor.look()

        for at in sorted(editor.documents, reverse=True):
            editor.go(at - editor.at)
            editor.look()
        assert editor.at == 0
        for at in sorted(editor.documents):
            editor.go(at - editor.at)
            editor.look()
