"""Versions: looked at, compared, restored, deployed; and two editors who changed the same."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.axe import Axe
from tests.browser.dashboard import Dashboard
from tests.running import RunningFogline

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

PASSWORD = "two-heads-are-better-3"
DOCUMENT: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": "versioned"},
    "spec": {
        "elements": [
            {"id": "numbers", "type": "generator", "params": {"rate": 5}, "node": "edge-b"},
            {
                "id": "window",
                "type": "window-aggregate",
                "title": "Per second",
                "params": {"size_s": 1, "aggregates": [{"function": "count", "as": "n"}]},
                "inputs": {"in": "numbers"},
            },
            {"id": "file", "type": "csv-sink", "params": {"file": "a.csv"}, "inputs": {"in": "window"}},
        ]
    },
}


@pytest.fixture
def client(fogline: RunningFogline) -> Iterator[httpx.Client]:
    with fogline.client() as client:
        yield client


def draft(client: httpx.Client, name: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/v1/pipelines/{name}").raise_for_status().json()
    return found


def create(client: httpx.Client, name: str) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    document["metadata"]["name"] = name
    client.post("/api/v1/pipelines", json={"document": document}).raise_for_status()
    return document


def save_draft(client: httpx.Client, name: str, document: dict[str, Any]) -> None:
    tag = {"If-Match": f'"{draft(client, name)["revision"]}"'}
    client.put(f"/api/v1/pipelines/{name}", json={"document": document}, headers=tag).raise_for_status()


def save(client: httpx.Client, name: str, document: dict[str, Any], note: str) -> None:
    """The document as draft and as version."""
    save_draft(client, name, document)
    client.post(f"/api/v1/pipelines/{name}/versions", json={"note": note}).raise_for_status()


def versions(page: Page) -> Locator:
    return page.get_by_role("complementary", name="Versions")


def changes(page: Page) -> Locator:
    return page.get_by_role("complementary", name="What it changes")


def test_versions_are_compared_in_words_and_on_the_canvas_and_restored(
    client: httpx.Client, dashboard: Dashboard
) -> None:
    page = dashboard.page
    first = create(client, "versioned")
    save(client, "versioned", first, "as drawn")
    second = copy.deepcopy(first)
    numbers, window, _ = second["spec"]["elements"]
    window["params"]["size_s"] = 2
    second["spec"]["elements"] = [numbers, window]
    save(client, "versioned", second, "longer windows")

    page.goto("/pipelines/versioned")
    page.get_by_role("button", name="versioned, pipeline menu").click()
    page.get_by_role("menuitem", name="Versions").click()
    entries = versions(page).get_by_role("listitem")
    expect(entries).to_contain_text(["Draft", "longer windows", "as drawn"])
    expect(changes(page).get_by_text("The same as version 2")).to_be_visible()
    entries.nth(1).get_by_role("button").click()
    page.reload()  # a permalink
    told = changes(page).get_by_role("region", name="Changes")
    expect(told).to_contain_text("Against version 1: 1 changed, 1 removed")
    expect(told.get_by_role("listitem").filter(has_text="Per second")).to_contain_text(
        re.compile("Length of a window.*1 s.*to.*2 s")
    )
    expect(dashboard.card("window")).to_contain_text("changed")
    expect(dashboard.card("file")).to_contain_text("removed")
    expect(dashboard.card("numbers")).not_to_contain_text("changed")
    gone = page.get_by_label("Stream from Per second to file, removed")
    expect(gone.locator("path").first).to_have_css("stroke-dasharray", "7px, 6px")
    expect(page.get_by_label("Stream from numbers to Per second", exact=True)).to_have_count(1)

    # what is looked at cannot be changed
    dashboard.select("window")
    page.keyboard.press("Delete")
    expect(dashboard.card("window")).to_be_visible()
    assert draft(client, "versioned")["document"] == second

    # restored, the draft is the version; the present one can be had back
    entries.nth(2).get_by_role("button").click()
    changes(page).get_by_label("Compare with").select_option("The draft")
    expect(told).to_contain_text("Against the draft: 1 added, 1 changed")
    expect(page.get_by_label("Stream from Per second to file, added")).to_have_count(1)
    changes(page).get_by_role("button", name="Restore into the draft").click()
    expect(dashboard.toast).to_contain_text("Version 1 is now the draft")
    expect(dashboard.card("file")).to_be_visible()
    expect(page.get_by_label("Stream from Per second to file", exact=True)).to_have_count(1)
    expect(page.get_by_role("status", name="Draft saved")).to_be_visible()
    assert draft(client, "versioned")["document"] == first
    page.keyboard.press("Control+z")
    expect(dashboard.card("file")).to_have_count(0)

    # a first deployment says what goes where, and why: here apart from the element that is pinned to edge-b
    dashboard.select("window")
    page.get_by_text("Never on one node with", exact=True).click()
    page.get_by_role("group", name="Elements that run on another node").get_by_label("numbers").check()
    expect(page.get_by_text("Never on one node with (1)", exact=True)).to_be_visible()
    dashboard.deploy_button.click()
    dialog = page.get_by_role("dialog", name="Deploy versioned?")
    rows = dialog.get_by_role("row")
    expect(rows.filter(has_text="numbers")).to_contain_text(re.compile("edge-b.*the draft names this node"))
    expect(rows.filter(has_text="Per second")).to_contain_text(
        re.compile("edge-a.*the only node that can take it")
    )
    dialog.get_by_role("button", name="Cancel").click()
    assert draft(client, "versioned")["deployment"] is None


@pytest.mark.full
def test_an_earlier_version_is_deployed_by_the_same_dialog(
    watched: str, client: httpx.Client, dashboard: Dashboard
) -> None:
    page = dashboard.page
    before = draft(client, watched)
    # what cannot take over from what runs is refused with the reason and the way out
    other = copy.deepcopy(before["document"])
    positive = next(each for each in other["spec"]["elements"] if each["id"] == "positive")
    positive |= {"type": "derive", "params": {"columns": [{"name": "double", "expression": "value * 2"}]}}
    save_draft(client, watched, other)
    page.goto(f"/pipelines/{watched}")
    dashboard.deploy_button.click()
    dialog = page.get_by_role("dialog", name=f"Deploy changes of {watched}?")
    misfit = dialog.get_by_role("region", name="Does not fit the running pipeline")
    expect(misfit).to_contain_text("positive")
    expect(misfit).to_contain_text("undeploy the pipeline and deploy it again")
    expect(dialog.get_by_role("button", name="Deploy changes")).to_have_attribute("aria-disabled", "true")
    dialog.get_by_role("button", name="Cancel").click()

    save_draft(client, watched, before["document"])
    page.goto(f"/pipelines/{watched}")
    dashboard.select("positive")
    dashboard.field("Condition").fill("value > 1")
    dashboard.select("numbers")
    dashboard.inspector.get_by_role("combobox", name=re.compile("Latency target")).select_option("100 ms")
    expect(page.get_by_role("status", name="Draft saved")).to_be_visible()
    dashboard.open_palette("versions").get_by_role("option", name=re.compile("Versions")).click()
    changes(page).get_by_label("Note").fill("only large ones")
    changes(page).get_by_role("button", name="Save as a version").click()
    saved = versions(page).get_by_role("listitem").filter(has_text="only large ones")
    saved.get_by_role("button").click()
    changes(page).get_by_role("button", name=re.compile("^Deploy version")).click()
    dialog = page.get_by_role("dialog", name=re.compile(rf"^Deploy changes of {watched}, version \d+\?$"))
    expect(dialog.get_by_role("region", name="Starts again with its state")).to_contain_text(
        "Condition value > 0 to value > 1"
    )
    expect(dialog.get_by_role("region", name="Changes while it runs")).to_contain_text(
        "Latency target 200 ms to 100 ms"
    )
    dialog.get_by_role("button", name="Cancel").click()

    runs = versions(page).get_by_role("listitem").filter(has_text="deployed")
    runs.get_by_role("button").click()
    deploy = changes(page).get_by_role("button", name=re.compile("^Deploy version"))
    expect(deploy).to_have_attribute("aria-disabled", "true")
    deploy.focus()  # also without a pointer it is told why
    expect(page.get_by_role("tooltip")).to_have_text("This version runs already.")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    changes(page).get_by_role("button", name="Restore into the draft").click()
    expect(dashboard.toast).to_contain_text("is now the draft")
    after = draft(client, watched)
    # A move by another test may have pinned an element in the draft that was there before.
    assert [(each["id"], each["params"]) for each in after["document"]["spec"]["elements"]] == [
        (each["id"], each["params"]) for each in before["document"]["spec"]["elements"]
    ]
    assert (after["differs"], after["deployed_version"]) == (False, before["deployed_version"])


@pytest.fixture
def editors(
    chromium: Browser, fogline: RunningFogline, client: httpx.Client
) -> Iterator[tuple[Dashboard, Dashboard]]:
    """Two windows of two people. A refused save is logged to the console, so nobody watches that here."""
    expect.set_options(timeout=30_000)
    person = {"username": "grace", "password": PASSWORD, "role": "editor"}
    client.post("/api/v1/users", json=person).raise_for_status()
    contexts = [chromium.new_context(base_url=fogline.url) for _ in range(2)]
    found = [Dashboard(context.new_page()) for context in contexts]
    found[0].sign_in(*fogline.login())
    found[1].sign_in("grace", PASSWORD)
    yield found[0], found[1]
    for context in contexts:
        context.close()


@pytest.mark.full
def test_of_what_two_editors_changed_each_element_is_chosen(
    editors: tuple[Dashboard, Dashboard], client: httpx.Client
) -> None:
    create(client, "shared")
    mine, theirs = editors
    axe = Axe(mine.page)
    for one in editors:
        one.page.goto("/pipelines/shared")
    mine.page.context.set_offline(True)
    mine.select("window")
    size_of(mine).fill("3")
    mine.select("file")
    mine.field("Name of the file").fill("mine.csv")
    expect(mine.page.get_by_text("not saved, kept in this browser")).to_be_visible()

    theirs.select("window")
    size_of(theirs).fill("4")
    theirs.inspector.get_by_role("combobox", name=re.compile(r"^\s*Node")).select_option("edge-a")
    theirs.select("numbers")
    theirs.field("Rows per second").fill("9")
    theirs.select("file")
    theirs.page.keyboard.press("Delete")
    expect(theirs.card("file")).to_have_count(0)
    expect(theirs.page.get_by_role("status", name="Draft saved")).to_be_visible()
    mine.page.context.set_offline(False)

    dialog = mine.page.get_by_role("dialog", name="grace changed this draft, too")
    window = dialog.get_by_role("group", name="Per second")
    expect(window.locator("label").first).to_contain_text("3 s")
    expect(window.locator("label").last).to_contain_text("4 s")
    file = dialog.get_by_role("group", name="file", exact=True)
    expect(file.locator("label").last).to_contain_text("removed")
    axe.look("the conflict")
    axe.expect_nothing()
    save_it = dialog.get_by_role("button", name="Save the merged draft")
    window.get_by_role("radio", name="Theirs").check()
    expect(save_it).to_have_attribute("aria-disabled", "true")
    file.get_by_role("radio", name="Mine").check()
    save_it.click()
    expect(mine.page.get_by_role("status", name="Draft saved")).to_be_visible()

    merged = {element["id"]: element for element in draft(client, "shared")["document"]["spec"]["elements"]}
    assert (merged["window"]["params"]["size_s"], merged["window"]["node"]) == (4, "edge-a")
    assert merged["file"]["params"]["file"] == "mine.csv"
    assert merged["numbers"]["params"]["rate"] == 9
    [kept] = client.get("/api/v1/pipelines/shared/versions").json()
    assert kept["note"] == "the draft of grace before the merge"
    mine.select("window")  # in a text field, Ctrl Z is the field's
    mine.page.keyboard.press("Control+z")
    expect(size_of(mine)).to_have_value("3")


def size_of(editor: Dashboard) -> Locator:
    """The field of the selected window."""
    return editor.inspector.get_by_label(re.compile("^(Length of|Rows in) a window"))
