"""Moves of running elements: the forecast before, the figures after, and the change of the draft."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.axe import Axe
from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.running import RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ABOUT = re.compile(r"^(about|less than) [0-9.]+ (s|min)$")
PAUSE = re.compile(r"^((at most )?[0-9.]+ m?s|none)$")
STARTING = "starts-late"
PRIMARY = re.compile("button--primary")
HERE = re.compile(
    r"Placed on edge-a when it was deployed: the draft names this node\. .* ago|Moved here from edge-b"
)
EXPECTED = re.compile(
    r"(Getting ready takes|which takes longest for .* \() ?up to about .* output pauses for (up to|less) "
)


@pytest.mark.full
def test_a_move_says_before_what_it_takes_and_after_what_it_took_and_the_draft_follows(
    watched: str, dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page, panel = dashboard.page, dashboard.live_panel
    page.goto(f"/pipelines/{watched}?mode=live")
    dashboard.select("positive")
    panel.get_by_text("Why is it here?").click()
    expect(panel).to_contain_text(HERE)
    panel.get_by_role("button", name="Migrate").click()
    dialog = page.get_by_role("dialog", name="Migrate positive")
    dialog.get_by_role("radio", name="edge-b", exact=True).check()
    announced = dialog.get_by_role("region", name="What to expect")
    ready, pause = announced.locator("dd b").nth(0), announced.locator("dd b").nth(1)
    expect(ready).to_have_text(ABOUT)
    expect(pause).to_have_text(ABOUT)
    expect(announced).to_contain_text(re.compile("typical value|From the last"))
    expect(announced).to_contain_text(re.compile("CPU of edge-b.*now"))
    expect(announced).to_contain_text("Copied first")
    dialog.get_by_role("radio", name="Stop and copy").check()
    expect(ready).to_have_text("nothing to prepare")
    dialog.get_by_role("radio", name=re.compile("^Live")).check()
    dialog.get_by_role("button", name="Migrate to edge-b").click()
    dashboard.expect_handover_done("edge-b")

    # why it is where it is now
    expect(panel).to_contain_text(f"Moved here from edge-a by {fogline.login()[0]}.")
    expect(panel.get_by_role("table", name="Other nodes for positive")).to_contain_text("edge-a")

    # what it took, and from what that is computed
    card = panel.get_by_role("region", name="Live migration of positive")
    took = card.locator("dt", has_text="Pause").locator("+ dd > span")
    expect(took).to_have_text(PAUSE)
    dashboard.hover(took)
    expect(page.get_by_role("tooltip")).to_contain_text("From the last batch that edge-a wrote")
    expect(card).to_contain_text("The draft pinned it to edge-a; it now pins it to edge-b.")

    # the draft says so, and nothing is left to deploy
    expect(page.get_by_text("differs from deployed")).to_have_count(0)
    expect(dashboard.deploy_button).not_to_have_class(PRIMARY)
    page.get_by_role("button", name="Edit", exact=True).click()
    expect(dashboard.card("positive")).to_contain_text("edge-b")
    expect(dashboard.card("numbers")).to_contain_text("edge-a")

    # the way back, with what that takes
    page.get_by_role("button", name="Live", exact=True).click()
    panel.get_by_role("button", name="Move back").click()
    question = page.get_by_role("dialog", name="Move positive back to edge-a?")
    expect(question).to_contain_text(re.compile(r"Getting ready takes .*; then output pauses for "))
    question.get_by_role("button", name="Move back to edge-a").click()
    dashboard.expect_handover_done("edge-a")
    page.get_by_role("button", name="Edit", exact=True).click()
    expect(dashboard.card("positive")).to_contain_text("edge-a")
    with fogline.client() as client:
        # a pin that means another place is shown, and is nothing to deploy
        pin(client, watched, "edge-b")
        page.get_by_role("button", name="positive runs elsewhere").click()
        way_home = page.get_by_role("dialog", name="positive runs elsewhere")
        expect(way_home).to_contain_text("The draft pins it to edge-b")
        way_home.get_by_role("button", name="Leave it there").click()
        expect(dashboard.deploy_button).not_to_have_class(PRIMARY)

        # one button brings all of them home, and the pins stay
        pin(client, watched, "edge-b", "numbers")
        page.get_by_role("button", name="2 run elsewhere").click()
        way_home = page.get_by_role("dialog", name="2 run elsewhere")
        way_home.get_by_role("button", name="Bring all 2 back").click()
        expect(way_home).to_have_count(0)
        path = f"/api/v1/pipelines/{watched}"
        wait_until(lambda: nodes_of(client, watched) == {"edge-b"}, "both at home", 180)
        assert {item["node"] for item in client.get(path).json()["document"]["spec"]["elements"]} == {
            "edge-b"
        }
        expect(page.get_by_role("button", name="2 run elsewhere")).to_have_count(0)
        move_both_in_lanes(dashboard, "edge-a")
        wait_until(lambda: nodes_of(client, watched) == {"edge-a"}, "both where they were", 180)
        moves = client.get(f"{path}/moves").json()
        assert [each["state"] for each in moves] == ["done", "done"]
        # the pins followed
        document = client.get(path).json()["document"]
        assert {item["node"] for item in document["spec"]["elements"]} == {"edge-a"}
        audit = client.get("/api/v1/audit", params={"limit": 50}).json()
    followed = [line["detail"]["to"] for line in audit if line["action"] == "pipeline.follow_move"]
    assert followed[:4] == ["edge-a", "edge-a", "edge-a", "edge-b"]


def move_both_in_lanes(dashboard: Dashboard, target: str) -> None:
    """One after another, which goes on without the page, and is shown to whoever opens it."""
    page, queue = dashboard.page, dashboard.page.get_by_role("region", name="Moves in their order")
    axe = Axe(page)
    page.reload()  # the next page has it
    page.get_by_role("button", name="Live", exact=True).click()
    dashboard.arrange_in_lanes()
    dashboard.card("numbers").click()
    dashboard.card("positive").click(modifiers=["Shift"])
    dashboard.drag_to_lane("positive", target)
    page.mouse.up()
    question = page.get_by_role("dialog", name=f"Move 2 elements to {target}")
    axe.look("a question about two moves")
    question.get_by_role("button", name=f"Move to {target}").click()
    # a screen reader hears each place
    told = page.get_by_role("status", name="Places in the queue")
    expect(told).to_have_text(f"positive to {target}: 2nd of 2, waits for numbers.")
    expect(queue.get_by_role("listitem")).to_have_text(
        [re.compile(f"^numbers to {target}: "), re.compile(f"^positive to {target}: ")]
    )
    page.reload()
    expect(queue.get_by_role("listitem")).to_have_count(2)
    axe.look("the list of queued moves")
    expect(queue.get_by_role("listitem").filter(has_text="done. Pause: ")).to_have_count(2, timeout=SLOW_MS)
    expect(told).to_be_empty()
    axe.expect_nothing()
    queue.get_by_role("button", name="Close the list of moves").click()
    expect(queue).to_have_count(0)


def nodes_of(client: httpx.Client, pipeline: str) -> set[str]:
    """Where its elements run, once none of them moves any more."""
    elements = client.get(f"/api/v1/pipelines/{pipeline}/elements").json()
    return set() if any(each["handover"] for each in elements) else {each["node"] for each in elements}


def pin(client: httpx.Client, pipeline: str, node: str, id: str = "positive") -> None:
    """In the draft: the element belongs there."""
    path = f"/api/v1/pipelines/{pipeline}"
    found = client.get(path).json()
    element = next(item for item in found["document"]["spec"]["elements"] if item["id"] == id)
    element["node"] = node
    match = {"If-Match": f'"{found["revision"]}"'}
    client.put(path, json={"document": found["document"]}, headers=match).raise_for_status()


@pytest.fixture
def starting(fogline: RunningFogline) -> Iterator[Callable[[], None]]:
    """Deploys an element on edge-b, which has hardly begun to start there: it can leave only when it runs."""
    path, element = f"/api/v1/pipelines/{STARTING}", {"id": "late", "type": "generator", "node": "edge-b"}
    document = {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": STARTING},
        "spec": {"elements": [{**element, "params": {"rate": 1}}]},
    }
    with fogline.client() as client:

        def deploy() -> None:
            client.post(f"{path}/deploy").raise_for_status()
            wait_until(lambda: client.get(f"{path}/elements/late").json()["node"] == "edge-b", "its place")

        client.post("/api/v1/pipelines", json={"name": STARTING, "document": document}).raise_for_status()
        yield deploy


@pytest.mark.full
def test_a_drain_says_how_far_it_is_and_no_element_is_stopped_and_running_at_once(
    watched: str, dashboard: Dashboard, fogline: RunningFogline, starting: Callable[[], None]
) -> None:
    page, api = dashboard.page, f"/api/v1/pipelines/{watched}/elements/positive"
    with fogline.client() as client:

        def moved_to(node: str) -> bool:
            element = client.get(api).json()
            return element["node"] == node and element["status"] == "running"

        client.post(f"{api}/migrate", json={"target": "edge-b"}).raise_for_status()
        wait_until(lambda: moved_to("edge-b"), "it runs on edge-b", 180)
        try:
            page.goto("/nodes/edge-b")
            row = (
                page.get_by_role("region", name="Elements here")
                .get_by_role("row")
                .filter(has_text="positive")
            )
            expect(row).to_contain_text("owner")
            after = (
                page.get_by_role("region", name="If it fails").get_by_role("row").filter(has_text="positive")
            )
            expect(after).to_contain_text("edge-a")
            expect(after).to_contain_text("its hot standby takes over")
            # What starts only now keeps the drain long enough to be seen.
            starting()
            page.get_by_role("button", name="Drain", exact=True).click()
            question = page.get_by_role("dialog", name="Drain edge-b?")
            expect(question).to_contain_text(EXPECTED)
            question.get_by_role("button", name="Drain edge-b").click()
            drain = page.get_by_role("region", name="Drain of edge-b")
            bar = page.get_by_role("progressbar", name="Groups moved away")
            progress = drain.filter(has_text=re.compile(r"\d+ of \d+ groups moved")).filter(has=bar)
            expect(progress).to_be_visible()
            expect(row.filter(has_text="stopped").filter(has_text="running")).to_have_count(0)
            wait_until(lambda: moved_to("edge-a"), "it is drained", 180)
            expect(drain).to_have_count(0, timeout=SLOW_MS)
            expect(row.filter(has_text="stopped").filter(has_text="running")).to_have_count(0)

            # what happened is marked in its charts, and in those of all nodes
            for path, marks in (("/nodes/edge-b", ["handover"]), ("/nodes/", ["handover", "deployment"])):
                page.goto(path)
                page.get_by_role("button", name="1 h").click()
                for mark in marks:
                    expect(page.locator(".mark-legend")).to_contain_text(mark)
            page.get_by_role("button", name="Table of CPU").click()
            figures = page.get_by_role("region", name="Figures")
            expect(figures).to_contain_text("Live migration of positive from edge-b to edge-a: done")
        finally:
            client.post("/api/v1/nodes/edge-b/uncordon").raise_for_status()


def test_what_is_paused_is_listed_apart_from_what_runs(
    watched: str, dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page, api = dashboard.page, f"/api/v1/pipelines/{watched}/elements"
    apart = page.get_by_role("region", name="Deployed, not running").get_by_role("link", name=watched)
    runs = page.get_by_role("region", name="Running", exact=True).get_by_role("link", name=watched)
    page.goto("/")
    expect(runs).to_be_visible()
    with fogline.client() as client:
        try:
            for element in ("numbers", "positive"):
                client.post(f"{api}/{element}/pause").raise_for_status()
            expect(apart).to_contain_text("paused")
            expect(runs).to_have_count(0)
        finally:
            for element in ("numbers", "positive"):
                client.post(f"{api}/{element}/resume").raise_for_status()
        expect(runs).to_be_visible()
        expect(apart).to_have_count(0)
