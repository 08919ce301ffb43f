"""Everybody can use it: axe finds nothing on any page, and a phone is enough to look and to act."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.axe import Axe
from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.running import RunningFogline

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

WATCHED = "watched"  # the fixture's
DRAFT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": "looked-at"},
    "spec": {
        "elements": [
            {"id": "numbers", "type": "generator", "params": {"rate": 10}, "ui": {"x": 0, "y": 0}},
            {
                "id": "average",
                "type": "count-window-aggregate",
                # a fault, so that one is shown
                "params": {"size": 0, "aggregates": [{"fn": "avg", "column": "value", "as": "average"}]},
                "inputs": {"in": "numbers"},
                "ui": {"x": 360, "y": 0},
            },
        ]
    },
}


@pytest.fixture
def drafts(fogline: RunningFogline, watched: str) -> Iterator[None]:
    """A draft `looked-at` with a fault, one `empty`, and for `watched` one that differs from what runs."""
    with fogline.client() as client:
        path = f"/api/v1/pipelines/{watched}"

        def save(document: dict[str, Any]) -> None:
            revision = client.get(path).json()["revision"]
            answer = client.put(path, json={"document": document}, headers={"If-Match": f'"{revision}"'})
            answer.raise_for_status()

        found = client.get(path).json()["document"]
        changed = copy.deepcopy(found)
        next(each for each in changed["spec"]["elements"] if each["id"] == "positive")["params"] = {
            "condition": "value > 1"
        }
        save(changed)
        empty = {**DRAFT, "metadata": {"name": "empty"}, "spec": {"elements": []}}
        for document in (DRAFT, empty):
            body = {"name": document["metadata"]["name"], "document": document}
            client.post("/api/v1/pipelines", json=body).raise_for_status()
        yield
        save(found)


@pytest.fixture
def handover(fogline: RunningFogline, watched: str) -> str:
    """Address of the page of a handover that was cancelled before it did anything."""
    with fogline.client() as client:
        order = {"target": "edge-b", "strategy": "standby"}
        path = f"/api/v1/pipelines/{watched}/elements/positive/migrate"
        handover = client.post(path, json=order).raise_for_status().json()["handover"]["id"]
        client.post(f"/api/v1/handovers/{handover}/cancel").raise_for_status()
        return f"/handovers/{handover}"


@pytest.mark.usefixtures("drafts", "watched")
def test_axe_finds_nothing_on_any_page_or_dialog_in_light_or_dark(
    open_dashboard: Callable[..., Dashboard], fogline: RunningFogline, handover: str
) -> None:
    dashboard = open_dashboard(*fogline.login())
    axe = Axe(dashboard.page)
    look_at_pages(axe, handover)
    look_at_editor(axe, dashboard)
    look_at_live_view(axe, dashboard)
    axe.page.context.clear_cookies()
    axe.page.goto("/")
    axe.page.get_by_label("User name").fill("nobody")
    axe.page.get_by_label("Password").fill("nothing that fits")
    axe.page.get_by_role("button", name="Sign in").click()
    expect(axe.page.get_by_role("alert")).to_be_visible()
    axe.look("signing in")
    assert len(axe.looked) > 35, axe.looked
    axe.expect_nothing()


def test_axe_finds_nothing_on_a_page_that_is_not_there(chromium: Browser, dashboard: Dashboard) -> None:
    # Chromium logs the answer 404 as an error, which no page of `dashboard` may have.
    context = chromium.new_context(
        base_url=dashboard.page.url, storage_state=dashboard.page.context.storage_state()
    )
    axe = Axe(context.new_page())
    for path in ("/nodes/nowhere", "/pipelines/nothing", "/nothing"):
        axe.page.goto(path)
        expect(axe.page.get_by_role("heading", level=1)).to_be_visible()
        axe.look(path)
    context.close()
    axe.expect_nothing()


def look_at_pages(axe: Axe, handover: str) -> None:
    page = axe.page
    shown = {
        "/": page.get_by_role("heading", name="Latest"),
        "/pipelines/": page.get_by_role("row").filter(has_text="watched"),
        "/walls/": page.get_by_role("heading", name="Walls", exact=True),
        "/templates/": page.locator(".gallery__card").last,
        "/templates/additive-control": page.get_by_role("heading", name="Element by element"),
        "/nodes/": page.get_by_role("row").filter(has_text="edge-a"),
        "/nodes/edge-a": page.get_by_role("region", name="Elements here")
        .get_by_role("row")
        .filter(has_text="positive"),
        "/files/": page.get_by_role("heading", name="Upload a file to play it into a pipeline").or_(
            page.get_by_role("row").nth(1)
        ),
        "/alarms/": page.get_by_role("tab", name="Active"),
        "/alarms/?tab=rules": page.get_by_role("button", name="New rule"),
        "/alarms/?tab=told": page.get_by_role("button", name="New route"),
        "/connections/": page.get_by_role("heading", name="No connections yet"),
        "/policies/": page.get_by_text("No policy has decided anything yet."),
        "/map/": page.get_by_role("img", name=re.compile("^The sites and the lines between them")),
        "/events/": page.locator(".feed__item").first,
        "/events/?tab=audit": page.get_by_role("row").filter(has_text="watched").first,
        handover: page.locator(".handover--cancelled"),
        "/accounts/": page.get_by_role("button", name="Create a token"),
        f"/pipelines/{WATCHED}/elements/positive": page.get_by_role("heading", name="positive"),
    }
    for path, what in shown.items():
        page.goto(path)
        expect(what).to_be_visible()
        expect(page.get_by_role("status", name="Loading")).to_have_count(0)
        axe.look(path)

    page.get_by_role("button", name="Collapse the menu").click()
    axe.look("the collapsed menu")
    page.get_by_role("button", name="Expand the menu").click()
    page.goto("/pipelines/")
    look_at_dialog(axe, page.get_by_role("button", name="New pipeline"), "New pipeline")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Import", exact=True).click()
    chooser.value.set_files({"name": "hall.state", "mimeType": "application/zip", "buffer": b"none"})
    look_at_shown(axe, page.get_by_role("dialog", name="Import hall.state"), "an import with a state")
    page.goto("/nodes/")
    look_at_dialog(axe, page.get_by_role("button", name="Add a machine"), "Add a machine")
    page.goto("/connections/")
    look_at_dialog(axe, page.get_by_role("button", name="New connection"), "New connection")
    page.goto("/policies/")
    look_at_dialog(axe, page.get_by_role("button", name="New policy"), "New policy")
    page.goto("/map/")
    give = page.get_by_role("button", name="Set latencies")
    look_at_dialog(axe, give, "Set latencies between sites")
    page.goto("/nodes/edge-a")
    look_at_dialog(axe, page.get_by_role("button", name="Drain", exact=True), "Drain edge-a?")
    site = page.get_by_role("button", name="Set its site")
    look_at_dialog(axe, site, "Where is edge-a?")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog", name="Command palette").get_by_text("positive")).to_be_visible()
    axe.look("the command palette")


def look_at_dialog(axe: Axe, button: Locator, name: str | re.Pattern[str], close: str = "Cancel") -> None:
    button.click()
    about = f"the dialog {name if isinstance(name, str) else name.pattern}"
    look_at_shown(axe, axe.page.get_by_role("dialog", name=name), about, close)


def look_at_shown(axe: Axe, dialog: Locator, about: str, close: str = "Cancel") -> None:
    expect(dialog).to_be_visible()
    expect(dialog.get_by_role("status", name="Loading")).to_have_count(0)
    axe.look(about)
    dialog.get_by_role("button", name=close).last.click()
    expect(dialog).to_have_count(0)


def look_at_editor(axe: Axe, dashboard: Dashboard) -> None:
    page = axe.page
    page.goto("/pipelines/empty")
    expect(page.get_by_text("Draw your pipeline")).to_be_visible()
    axe.look("the empty editor")
    page.goto("/pipelines/looked-at")
    dashboard.problems.get_by_role("button").click()
    expect(dashboard.problems.get_by_role("listitem")).not_to_have_count(0)
    axe.look("the editor with a problem")
    dashboard.select("average")
    expect(dashboard.field("Rows in a window")).to_be_visible()
    axe.look("an element's parameters")
    for tab in ("Schema", "Docs"):
        dashboard.inspector.get_by_role("tab", name=tab).click()
        axe.look(f"an element's {tab.lower()}")
    dashboard.card("average").get_by_label("Output of average").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name=re.compile("^Connect the output of"))).to_be_visible()
    axe.look("what a port is connected with")
    # once an option is active, fewer and more rows must not leave a name of one that is gone
    for word in ("s", "", "select"):
        page.get_by_role("combobox").fill(word)
    expect(page.get_by_role("option")).to_have_count(1)
    axe.look("what was found to connect a port with")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard map")).to_be_visible()
    axe.look("the keyboard map")
    page.keyboard.press("Escape")
    menu = page.get_by_role("button", name="looked-at, pipeline menu")
    menu.click()
    expect(page.get_by_role("menu")).to_be_visible()
    axe.look("the pipeline's menu")
    page.keyboard.press("Escape")
    for item, title in (("Rename", "Rename the pipeline"), ("Delete", "Delete looked-at?")):
        menu.click()
        look_at_dialog(axe, page.get_by_role("menuitem", name=item), title)
    page.goto(f"/pipelines/{WATCHED}?version=1")
    expect(page.get_by_role("complementary", name="What it changes")).to_be_visible()
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    axe.look("a version")


def look_at_lanes(axe: Axe, dashboard: Dashboard) -> None:
    page = axe.page
    dashboard.arrange_in_lanes()
    dashboard.select("positive")
    page.keyboard.press("m")
    question = page.get_by_role("dialog", name="Move positive to edge-b")
    expect(question).to_contain_text("Getting ready")
    axe.look("a move to another lane")
    page.keyboard.press("Escape")
    expect(question).to_have_count(0)
    page.get_by_role("button", name="Edit", exact=True).click()
    expect(dashboard.canvas.get_by_text("Fogline chooses", exact=True)).to_be_visible()
    axe.look("lanes of a draft")
    page.get_by_role("button", name="Live", exact=True).click()
    page.get_by_role("button", name="As drawn").click()
    expect(dashboard.canvas.locator(".lane-box")).to_have_count(0)
    page.keyboard.press("Escape")  # nothing is selected any more


def look_at_live_view(axe: Axe, dashboard: Dashboard) -> None:
    page, panel = axe.page, dashboard.live_panel
    page.goto(f"/pipelines/{WATCHED}?mode=live")
    dashboard.expect_status("positive", "running")
    axe.look("the live view")
    look_at_lanes(axe, dashboard)
    look_at_dialog(axe, page.get_by_role("button", name="Undeploy", exact=True), "Undeploy watched?")
    page.get_by_role("button", name="watched, pipeline menu").click()
    export = page.get_by_role("menuitem", name="Export with its state")
    look_at_dialog(axe, export, "Export with its state", close="Close")
    look_at_dialog(axe, dashboard.deploy_button, "Deploy changes of watched?")
    dashboard.select("numbers")
    place = panel.get_by_role("button", name="Say where its user is")
    look_at_dialog(axe, place, "Where is the user of numbers?")
    dashboard.select("positive")
    actions = panel.get_by_role("group", name="Actions")
    more = panel.get_by_role("button", name="More details")
    more.click()
    expect(page.get_by_role("menuitem", name="Log")).to_be_visible()
    axe.look("the menu of details that are seldom opened")
    # by keyboard: what is chosen is a tab among the others then, and the arrow keys go on from it
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(panel.get_by_role("tab", name="Log")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(panel.get_by_role("tab", name="Dead letters")).to_be_focused()
    # the charts, which draw all the time, last
    for name in ("Log", "Replicas", "Checkpoints", "Dead letters", "State", "Records", "Charts"):
        if name == "State" and panel.get_by_role("tab", name=name).count() == 0:
            continue
        dashboard.open_tab(name)
        expect(panel.get_by_role("tab", name=name)).to_be_in_viewport(ratio=1)
        expect(panel.get_by_role("tabpanel").get_by_role("status", name="Loading")).to_have_count(0)
        axe.look(f"an element's {name.lower()}")
        if name == "Replicas":
            for action in ("Migrate", "Restore"):
                look_at_dialog(axe, actions.get_by_role("button", name=action), f"{action} positive")
            look_at_dialog(axe, actions.get_by_role("button", name="Pause"), "Pause positive?")
            standby = panel.get_by_role("button", name="Keep a standby")
            look_at_dialog(axe, standby, "Keep a standby of positive")


def test_on_a_phone_one_can_look_at_a_pipeline_open_its_migration_and_pause_it(
    open_dashboard: Callable[..., Dashboard], fogline: RunningFogline, watched: str
) -> None:
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    dashboard = open_dashboard(*fogline.login(), **phone)
    page, panel = dashboard.page, dashboard.live_panel
    menu = page.get_by_role("navigation", name="Main")
    expect(menu).to_be_hidden()
    for name in ("Pipelines", "Nodes", "Map", "Events", "Overview"):
        page.get_by_role("button", name="Menu", exact=True).tap()
        menu.get_by_role("link", name=name).tap()
        expect(page.get_by_role("heading", level=1)).to_contain_text(name)
        expect(menu).to_be_hidden()
        expect(page.get_by_role("status", name="Loading")).to_have_count(0)
        expect_nothing_beside(page)
    for path in ("/nodes/edge-a", "/accounts/", f"/pipelines/{watched}"):
        page.goto(path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect_nothing_beside(page)

    # the menu is closed by Escape and by a touch beside it, too
    button = page.get_by_role("button", name="Menu", exact=True)
    button.tap()
    expect(menu).to_be_visible()
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(button).to_be_focused()
    button.tap()
    page.touchscreen.tap(380, 500)
    expect(menu).to_be_hidden()

    page.goto("/")
    page.get_by_role("link", name=re.compile(watched)).first.tap()
    dashboard.expect_status("positive", "running")
    dashboard.card("positive").tap()
    expect(panel.get_by_text("rows/s").first).to_be_visible()
    for tab in ("Records", "Checkpoints"):
        dashboard.open_tab(tab)
        expect(panel.get_by_role("tabpanel", name=tab)).to_be_visible()
        expect_nothing_beside(page)

    panel.get_by_role("button", name="Migrate", exact=True).tap()
    dialog = page.get_by_role("dialog", name="Migrate positive")
    dialog.get_by_role("radio", name="edge-b", exact=True).tap()
    expect(dialog.get_by_role("button", name="Migrate to edge-b")).to_be_in_viewport(ratio=1)
    expect_nothing_beside(page)
    dialog.get_by_role("button", name="Cancel").tap()

    # a finger drags it to another lane, which says what a move takes
    dashboard.arrange_in_lanes()
    page.get_by_role("button", name="Zoom to fit").tap()
    expect(dashboard.lane("edge-b")).to_be_in_viewport(ratio=1)
    dashboard.drag_to_lane_by_finger("positive", "edge-b")
    question = page.get_by_role("dialog", name="Move positive to edge-b")
    expect(question.get_by_role("button", name="Move to edge-b")).to_be_in_viewport(ratio=1)
    expect_nothing_beside(page)
    question.get_by_role("button", name="Cancel").tap()
    expect(question).to_have_count(0)

    panel.get_by_role("button", name="Pause").tap()
    page.get_by_role("dialog", name="Pause positive?").get_by_role("button", name="Pause").tap()
    expect(panel.get_by_role("button", name="Resume")).to_be_visible(timeout=SLOW_MS)
    panel.get_by_role("button", name="Resume").tap()
    expect(panel.get_by_role("button", name="Pause")).to_be_visible(timeout=SLOW_MS)
    dashboard.expect_status("positive", "running")


def expect_nothing_beside(page: Page) -> None:
    """Nothing is wider than the window: one scrolls down, never sideways."""
    lists = ".table-wrap:has(> .table--rows)"
    wide = page.evaluate(
        """(lists) => [...document.querySelectorAll(`html, main, .panel, .dialog, .page__head, ${lists}`)]
          .filter((part) => part.scrollWidth > Math.min(part.clientWidth, innerWidth))
          .map((part) => `${part.tagName} ${part.className}: ${part.scrollWidth} px`)""",
        lists,
    )
    assert wide == [], f"{page.url}: {wide}"
