"""Standbys, moves back, restorations and upgrades by mouse, each with the text that the dashboard shows
before."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.axe import Axe
from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.running import RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

NAME = "followed"
PATH = f"/api/v1/pipelines/{NAME}"
WINDOWS: dict[str, Any] = {"size_s": 1, "aggregates": [{"function": "count", "as": "n"}]}
DOCUMENT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": NAME},
    "spec": {
        "elements": [
            {"id": "numbers", "type": "generator", "params": {"rate": 10}, "node": "edge-a"},
            {
                "id": "keep",
                "type": "filter",
                "params": {"condition": "value > 0"},
                "inputs": {"in": "numbers"},
                "node": "edge-a",
            },
            {
                "id": "windows",
                "type": "window-aggregate",
                "title": "Per second",
                "params": WINDOWS,
                "inputs": {"in": "numbers"},
                "node": "edge-b",
            },
        ]
    },
}


@pytest.fixture
def deployed(fogline: RunningFogline) -> Iterator[httpx.Client]:
    """Signed in; the pipeline runs on edge-a, and rows have come to its end."""
    with fogline.client() as client:
        client.post("/api/v1/pipelines", json={"name": NAME, "document": DOCUMENT}).raise_for_status()
        client.post(f"{PATH}/deploy").raise_for_status()
        wait_until(
            lambda: client.get(f"{PATH}/elements/keep").json()["rows_out_total"], "the first rows", 180
        )
        yield client


@pytest.mark.full
def test_a_standby_is_kept_and_offered_and_the_element_moves_there_and_back(
    deployed: httpx.Client, dashboard: Dashboard
) -> None:
    page, panel, axe = dashboard.page, dashboard.live_panel, Axe(dashboard.page)
    page.goto(f"/pipelines/{NAME}?mode=live")
    dashboard.select("keep")
    dashboard.open_tab("Replicas")
    panel.get_by_role("button", name="Keep a standby").click()
    dialog = page.get_by_role("dialog", name="Keep a standby of keep")
    dialog.get_by_role("button", name="Keep a standby on edge-b").click()
    row = panel.get_by_role("row").filter(has_text="edge-b").filter(has_text="standby")
    expect(row).to_contain_text("following", timeout=SLOW_MS)

    # the standby is what a restoration begins with; a rewind says what it repeats
    panel.get_by_role("button", name="Restore", exact=True).click()
    dialog = page.get_by_role("dialog", name=re.compile("^(Restore|Rewind) keep$"))
    takes = dialog.get_by_role("region", name="What to expect")
    expect(takes).to_contain_text(re.compile("follows already and takes over.*(typical value|restor)"))
    expect(dialog.get_by_role("radio", name="The hot standby on edge-b")).to_be_checked()
    dialog.get_by_role("radio", name="Rewind: go back and emit again").check(timeout=SLOW_MS)
    expect(dialog.get_by_text(re.compile(r"^What it has written since .+ is written again"))).to_be_visible()
    dialog.get_by_role("button", name="Cancel").click()
    expect(panel.get_by_role("button", name="Restore", exact=True)).to_be_focused()

    dashboard.migrate("keep", "edge-b")
    expect(panel.get_by_role("button", name="Migrate", exact=True)).to_be_focused()
    dashboard.expect_handover_done("edge-b")
    panel.get_by_role("button", name="Move back").click()
    page.get_by_role("dialog").get_by_role("button", name="Move back to edge-a").click()
    dashboard.expect_handover_done("edge-a")
    handovers = deployed.get("/api/v1/handovers", params={"pipeline": NAME}).json()
    assert [(each["strategy"], each["outcome"]) for each in handovers] == [("standby", "done")] * 2
    page.goto(f"/handovers/{handovers[0]['id']}")
    expect(page.locator(".handover--done")).to_be_visible()
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    axe.look("the page of a handover that is done")
    axe.expect_nothing()


def test_a_changed_pipeline_is_deployed_after_it_was_said_what_happens(
    deployed: httpx.Client, dashboard: Dashboard
) -> None:
    page, axe = dashboard.page, Axe(dashboard.page)
    preview = page.get_by_role("dialog", name=f"Deploy changes of {NAME}?")
    high = {"id": "high", "title": "High", "type": "filter", "params": {"condition": "value > 0"}}
    high |= {"inputs": {"in": "keep"}, "node": "edge-b"}

    # what is grouped otherwise goes on, or says what it loses
    save(deployed, groups=[{"id": "front", "elements": ["numbers", "windows"]}])
    page.goto(f"/pipelines/{NAME}")
    dashboard.deploy_button.click()
    goes_on = preview.get_by_role("region", name="Starts again with its state")
    expect(goes_on).to_contain_text("it now runs together with Per second, and goes on where it stands")
    loses = preview.get_by_role("region", name="Cannot keep its state")
    expect(loses).to_contain_text("it now runs together with numbers")
    expect(loses).to_contain_text("Lost: the windows that are open now")
    axe.look("elements that are grouped otherwise")
    preview.get_by_role("button", name="Cancel").click()

    # what can is deployed when the user agrees: one element changes, one goes, one comes
    save(deployed, high, keep={"condition": "value > 1"})
    page.goto(f"/pipelines/{NAME}")
    dashboard.deploy_button.click()
    expect(preview.get_by_role("region", name="Starts again with its state")).to_contain_text("keep")
    comes = preview.get_by_role("region", name="Is added")
    expect(comes).to_contain_text(re.compile("High.*goes to edge-b: the draft names this node"))
    gone = preview.get_by_role("region", name="Is removed")
    expect(gone).to_contain_text(re.compile("Per second.*Lost: the windows that are open now"))
    expect(preview).to_contain_text("1 element keeps running unchanged.")
    axe.look("elements that come and go")
    axe.expect_nothing()
    preview.get_by_role("button", name="Deploy changes").click()
    expect(page.get_by_text(f"Changed {NAME}")).to_be_visible(timeout=SLOW_MS)
    expect(page.get_by_text("Added: High. Removed: Per second.")).to_be_visible(timeout=SLOW_MS)
    dashboard.expect_status("high", "running")
    expect(dashboard.card("windows")).to_have_count(0)
    wait_until(lambda: element(deployed, "high")["rows_out_total"], "rows of what came", 180)
    assert deployed.get(PATH).json()["deployed_version"] == 2
    assert element(deployed, "numbers")["epoch"] == 1


@pytest.mark.full
def test_a_change_that_cannot_keep_its_state_restarts_that_element_alone_when_its_loss_is_agreed_to(
    deployed: httpx.Client, dashboard: Dashboard
) -> None:
    page = dashboard.page
    wait_until(lambda: element(deployed, "windows")["rows_out_total"], "the first window", 180)
    before = {id: element(deployed, id) for id in ("numbers", "keep", "windows")}
    axe = Axe(page)
    page.goto(f"/pipelines/{NAME}")
    dashboard.select("windows")
    dashboard.inspector.get_by_label(re.compile("^(Length of|Rows in) a window")).fill("2")
    expect(page.get_by_role("status", name="Draft saved")).to_be_visible()
    dashboard.deploy_button.click()
    preview = page.get_by_role("dialog", name=f"Deploy changes of {NAME}?")
    restart = preview.get_by_role("region", name="Cannot keep its state")
    expect(restart).to_contain_text(re.compile("Per second.*Lost: the windows that are open now"))
    expect(preview).to_contain_text("2 elements keep running unchanged.")
    expect(preview.get_by_text("Tick the box to agree: Per second may lose the state")).to_be_visible()
    go = preview.get_by_role("button", name="Deploy changes")
    expect(go).to_be_disabled()
    axe.look("a change that cannot keep its state")
    axe.expect_nothing()
    restart.get_by_role("checkbox", name="Restart Per second without its state").check()
    go.click()
    told = page.get_by_text("Begun with a fresh state, as was agreed: Per second.")
    expect(told).to_be_visible(timeout=SLOW_MS)

    # the others have not been touched; its windows are of 2 s, and go on where the former ones ended
    dashboard.expect_status("windows", "running")
    wait_until(lambda: element(deployed, "windows")["rows_out_total"], "a window of 2 s", 180)
    after = {id: element(deployed, id) for id in before}
    assert after["windows"]["epoch"] > before["windows"]["epoch"]
    for id in ("numbers", "keep"):
        assert after[id]["epoch"] == before[id]["epoch"]


def element(client: httpx.Client, id: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"{PATH}/elements/{id}").raise_for_status().json()
    return found


def save(
    client: httpx.Client,
    instead: dict[str, Any] | None = None,
    groups: Sequence[dict[str, Any]] = (),
    **params: dict[str, Any],
) -> None:
    """The draft is the deployed document, but for its groups and the parameters of these elements;
    `instead`: in the place of the windows."""
    document = copy.deepcopy(DOCUMENT)
    document["spec"]["groups"] = [*groups]
    if groups:  # what runs as one is pinned to one node
        del document["spec"]["elements"][-1]["node"]
    if instead is not None:
        document["spec"]["elements"][-1] = instead
    for each in document["spec"]["elements"]:
        each["params"] = params.get(each["id"], each["params"])
    revision = client.get(PATH).json()["revision"]
    client.put(PATH, json={"document": document}, headers={"If-Match": f'"{revision}"'}).raise_for_status()
