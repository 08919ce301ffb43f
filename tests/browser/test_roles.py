"""A user without a right sees why, and cannot do the act by the REST API either."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.dashboard import Dashboard
from tests.running import RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

PASSWORD = "only-looking-at-it-7"
DOCUMENT = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": "for-viewers"},
    "spec": {
        "elements": [
            {"id": "numbers", "type": "generator", "params": {"rate": 5}, "node": "edge-a"},
            {"id": "file", "type": "csv-sink", "inputs": {"in": "numbers"}, "node": "edge-a"},
        ]
    },
}


@pytest.fixture
def deployed(fogline: RunningFogline) -> str:
    """A pipeline on edge-a, and an account `viewer`."""
    with fogline.client() as client:
        person = {"username": "viewer", "password": PASSWORD, "role": "viewer"}
        client.post("/api/v1/users", json=person).raise_for_status()
        client.post(
            "/api/v1/pipelines", json={"name": "for-viewers", "document": DOCUMENT}
        ).raise_for_status()
        path = "/api/v1/pipelines/for-viewers"
        client.post(f"{path}/deploy").raise_for_status()
        wait_until(lambda: client.get(path).json()["status"] == "running", "the deployment", 180)
    return "for-viewers"


def test_a_viewer_sees_everything_and_changes_nothing(
    deployed: str, open_dashboard: Callable[..., Dashboard]
) -> None:
    viewer = open_dashboard("viewer", PASSWORD)
    viewer.page.goto("/templates/machine-power")
    expect(viewer.page.get_by_role("heading", name="Element by element")).to_be_visible()
    for name in ("Deploy", "Make it mine"):
        button = viewer.page.get_by_role("button", name=name, exact=True)
        expect(button).to_be_disabled()
        expect(button).to_have_attribute("title", re.compile("Your role is viewer; this needs editor."))

    viewer.page.goto(f"/pipelines/{deployed}?mode=live")
    for name in ("Deploy", "Undeploy"):
        button = viewer.page.get_by_role("button", name=name, exact=True)
        expect(button).to_be_disabled()
        expect(button).to_have_attribute(
            "title", "Your role is viewer; this needs editor. An admin can change it."
        )

    viewer.select("numbers")
    expect(viewer.live_panel.get_by_text("rows/s").first).to_be_visible()
    for name in ("Migrate", "Restore", "Pause", "Checkpoint now"):
        button = viewer.live_panel.get_by_role("button", name=name)
        expect(button).to_have_attribute("aria-disabled", "true")
        viewer.hover(button)
        expect(viewer.page.get_by_role("tooltip")).to_contain_text(
            "Your role is viewer; this needs operator."
        )

    expect(viewer.live_panel.get_by_role("button", name="Say where its user is")).to_be_disabled()

    viewer.page.get_by_role("button", name="Edit", exact=True).click()
    palette = viewer.page.get_by_role("complementary", name="Elements")
    expect(palette.get_by_role("button", name="Generator")).to_be_disabled()
    viewer.hover(viewer.card("file").get_by_label(re.compile("^Input ")))
    expect(viewer.page.locator(".passing")).to_contain_text("Input of")

    # past the page: with the page's own session and token
    attempts = {
        "deploy": ({}, "editor"),
        "undeploy": ({}, "editor"),
        "elements/numbers/migrate": ({"target": "edge-b"}, "operator"),
    }
    for path, (body, role) in attempts.items():
        answer = viewer.post(f"/api/v1/pipelines/{deployed}/{path}", body)
        assert answer.status == 403, answer.text()
        assert f"that needs the role {role}, yours is viewer" in answer.json()["detail"]
    state = viewer.page.request.get(f"/api/v1/pipelines/{deployed}/elements/numbers").json()
    assert (state["node"], state["handover"]) == ("edge-a", None)
