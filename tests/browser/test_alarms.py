"""The page Alarms: routes, notifications of the browser on any page, and where an alarm is red."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import Axe
from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.certificates import Authority
from tests.receivers import Mailbox, mail_server
from tests.running import RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

RECORDED = """
const Real = window.Notification;
const add = (name, value) =>
  localStorage.setItem(name, JSON.stringify([...JSON.parse(localStorage.getItem(name) ?? "[]"), value]));
window.Notification = class extends Real {
  constructor(title, options) { super(title, options); add("test-told", title); }
  static requestPermission() { add("test-asked", location.pathname); return super.requestPermission(); }
};
"""
"""Notifications are the browser's own; what is told goes into its storage, too, for all tabs together."""


def recorded(page: Page, name: str) -> list[str]:
    found: list[str] = json.loads(page.evaluate(f"localStorage.getItem('{name}') ?? '[]'"))
    return found


def told(page: Page, title: str) -> int:
    """Returns how often it was told. Other alarms of this Fogline may be raised meanwhile."""
    return sum(each.startswith(title) for each in recorded(page, "test-told"))


def test_a_browser_tells_of_each_alarm_once_on_whichever_pages_are_open(
    open_dashboard: Callable[..., Dashboard], fogline: RunningFogline
) -> None:
    first = open_dashboard(*fogline.login(), permissions=["notifications"]).page
    first.context.add_init_script(RECORDED)
    other = first.context.new_page()
    for page, path in ((first, "/alarms/"), (other, "/nodes/")):
        page.goto(path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
    with fogline.client() as client:

        def rule(name: str, **fields: Any) -> int:
            body = {"name": name, "rule": {"metric": "memory_percent", "raise_at": 0, **fields}}
            return int(client.post("/api/v1/alarms/rules", json=body).raise_for_status().json()["id"])

        rules = [rule("before", node="edge-a")]
        try:
            expect(first.get_by_text("The memory of edge-a is").first).to_be_visible()
            assert recorded(first, "test-told") == recorded(first, "test-asked") == []
            first.get_by_role("button", name="Notify me here").click()
            expect(first.get_by_role("button", name="Notifications on")).to_be_visible()
            assert recorded(first, "test-asked") == ["/alarms/"]
            # None of the open pages is Alarms now.
            first.goto("/")
            expect(first.get_by_role("heading", level=1)).to_be_visible()
            rules.append(rule("later", node="edge-b", severity="critical"))
            wait_until(lambda: told(first, "critical: edge-b"), "the browser to tell of it")
            # Each page looks again as it loads: it knows of both then.
            for page in (first, other):
                page.goto("/alarms/")
                expect(page.get_by_text("The memory of edge-b is").first).to_be_visible()
                # The page tells under this lock, and has asked for it before it shows the alarm.
                page.evaluate("navigator.locks.request('fogline-alarms-known', () => null)")
            assert told(first, "critical: edge-b") == 1
            assert told(first, "warning: edge-a") == 0
            assert recorded(first, "test-asked") == ["/alarms/"]
        finally:
            for each in rules:
                client.delete(f"/api/v1/alarms/rules/{each}").raise_for_status()


def test_a_route_tells_at_several_times_which_its_form_says_in_words(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page = dashboard.page
    with fogline.client() as client:
        body = {"name": "hook", "url": "json://127.0.0.1:9/x", "enabled": False}
        channel = client.post("/api/v1/alarms/channels", json=body).raise_for_status().json()["id"]

        def shifts() -> list[dict[str, Any]]:
            routes = client.get("/api/v1/alarms/routes").raise_for_status().json()
            return [each for each in routes if each["name"] == "shifts"]

        try:
            page.goto("/alarms/?tab=told")
            page.get_by_role("button", name="New route").click()
            form = page.get_by_role("dialog", name="New route")
            form.get_by_label("Name").fill("shifts")
            form.get_by_label("When").select_option("hours")
            form.get_by_role("button", name="Add a time").click()
            night = form.get_by_role("region", name="Time 2")
            night.get_by_label("Sunday").uncheck()
            night.get_by_label("From").fill("22:00")
            night.get_by_label("To").fill("6")
            expect(night.get_by_text("Write times such as 08:00 or 17:30.")).to_be_visible()
            expect(form.get_by_role("button", name="Create route")).to_be_disabled()
            night.get_by_label("To").fill("06:00")
            expect(night.get_by_text("Sat 22:00 to 06:00 of the next day")).to_be_visible()
            form.get_by_label("Time zone").fill("Mars/Olympus")
            expect(form.get_by_text("Write a time zone such as Europe/Vienna.").last).to_be_visible()
            # The field is not there with "always", and what was typed is kept.
            form.get_by_label("When").select_option("always")
            expect(form.get_by_role("button", name="Create route")).to_be_enabled()
            form.get_by_label("When").select_option("hours")
            form.get_by_label("Time zone").fill("Europe/Vienna")
            words = "Mon to Fri 08:00 to 17:00; Sat 22:00 to 06:00 of the next day (Europe/Vienna)."
            words = f"It sends messages {words}"
            expect(form.get_by_text(words).first).to_be_visible()
            form.get_by_role("button", name="Create route").click()
            expect(form).to_have_count(0)
            expect(page.get_by_role("region", name="Routes").get_by_text(words)).to_be_visible()
            [route] = shifts()
            assert (route["spec"]["on_call"], route["spec"]["zone"]) == (
                [
                    {"days": [0, 1, 2, 3, 4], "begins": "08:00", "ends": "17:00"},
                    {"days": [5], "begins": "22:00", "ends": "06:00"},
                ],
                "Europe/Vienna",
            )
        finally:
            for each in shifts():
                client.delete(f"/api/v1/alarms/routes/{each['id']}").raise_for_status()
            client.delete(f"/api/v1/alarms/channels/{channel}").raise_for_status()


def test_an_alarm_is_red_on_its_card_lane_and_wall_until_somebody_silences_it(
    watched: str, dashboard: Dashboard, fogline: RunningFogline
) -> None:
    page, axe = dashboard.page, Axe(dashboard.page)
    with fogline.client() as client:
        of = {"pipeline": watched, "element": "positive"}
        rule = {"metric": "rate_low", "raise_at": 1_000_000, **of}
        made = client.post("/api/v1/alarms/rules", json={"name": "slow", "rule": rule})
        wall = client.post("/api/v1/walls", json={"title": "Hall of alarms"}).raise_for_status().json()
        path = f"/api/v1/walls/{wall['id']}"
        try:
            series = {**of, "column": "value"}
            figure = {"id": "f", "kind": "figure", "series": series, "x": 0, "y": 0, "w": 6, "h": 4}
            body = {"title": wall["title"], "tiles": [figure]}
            client.put(path, json=body, headers={"If-Match": f'"{wall["revision"]}"'}).raise_for_status()

            page.goto(f"/pipelines/{watched}?mode=live&arranged=lanes")
            mark = dashboard.card("positive").get_by_label("Active warning alarm")
            expect(mark).to_be_visible()
            red = mark.evaluate("mark => getComputedStyle(mark).color")
            expect(dashboard.card("positive").locator(".el-card")).to_have_css("border-top-color", red)
            lane = page.locator(".lane-box", has=page.get_by_role("link", name="1 active alarm"))
            expect(lane).to_have_css("border-top-color", red)
            page.goto(f"/walls/{wall['id']}")
            tile = page.locator(".wall-tile")
            expect(tile.get_by_label("active warning alarm")).to_be_visible()
            expect(tile).to_have_css("border-top-color", red)

            page.goto(f"/alarms/?pipeline={watched}")
            alarm = page.get_by_role("listitem").filter(has_text="positive of watched has")
            for action, word in (("Acknowledge", "Acknowledged"), ("Silence", "Silenced")):
                alarm.get_by_role("button", name=f"{action}: ").click()
                dialog = page.get_by_role("dialog", name=f"{action}: positive of watched")
                dialog.get_by_label("Note").fill(f"{word} on purpose")
                axe.look(f"the question whether to {action.lower()} an alarm")
                dialog.get_by_role("button", name=action, exact=True).click()
                expect(dialog).to_have_count(0)
                expect(alarm.get_by_text(f": {word} on purpose")).to_contain_text(f"{word} by ")
            page.goto(f"/walls/{wall['id']}")
            expect(tile.locator(".wall-figure__value")).to_be_visible()
            expect(tile.get_by_label("active warning alarm")).to_have_count(0)
            axe.expect_nothing()
        finally:
            client.delete(path).raise_for_status()
            client.delete(f"/api/v1/alarms/rules/{made.raise_for_status().json()['id']}").raise_for_status()


def channel_form(page: Page, button: str, title: str) -> Locator:
    page.get_by_role("button", name=button, exact=True).click()
    return page.get_by_role("dialog", name=title)


def a_test_is_refused_then_taken(page: Page, axe: Axe, box: Mailbox) -> None:
    """First the password is wrong. Then it is changed, and the test arrives."""
    where = f"127.0.0.1:{box.port}?mode=ssl&verify=no&from=fogline@example.org&to=bea@example.org"
    reason = "The mail server refused the user or the password."
    log = page.get_by_role("region", name="Messages").get_by_role("row")
    form = channel_form(page, "New channel", "New channel")
    form.get_by_label("Name").fill("shift")
    form.get_by_label("URL").fill(f"mailtos://ann:wrong-secret@{where}")
    form.get_by_role("button", name="Create channel").click()
    expect(form).to_have_count(0)
    shift = page.get_by_role("region", name="Channels").get_by_role("listitem").filter(has_text="shift")
    page.get_by_role("button", name="Send a test: shift").click()
    expect(page.get_by_text("A test goes to shift")).to_be_visible()
    expect(shift).to_contain_text(reason)
    expect(shift.get_by_text("fails", exact=True)).to_be_visible()
    page.get_by_role("tab", name="Messages").click()
    expect(log.filter(has_text="shift").filter(has_text="not taken yet")).to_contain_text(reason)
    axe.look("a message that was not taken")
    assert "wrong-secret" not in page.content()
    assert box.subjects == []

    page.get_by_role("tab", name="Who is told").click()
    form = channel_form(page, "Change: shift", "Change shift")
    form.get_by_label("URL").fill(f"mailtos://ann:right@{where}")
    form.get_by_role("button", name="Save channel").click()
    expect(form).to_have_count(0)
    # The message waits, and is sent again by itself.
    expect(shift.get_by_text("works", exact=True)).to_be_visible(timeout=SLOW_MS)
    expect(shift).not_to_contain_text(reason)
    page.get_by_role("tab", name="Messages").click()
    sent = log.filter(has_text="shift").filter(has=page.get_by_text("sent", exact=True))
    expect(sent).to_contain_text(re.compile(r"test.*sent.*\d attempts.*\[Fogline\] Test message"))
    assert box.subjects == ["[Fogline] Test message"]


def test_a_test_of_a_channel_goes_to_a_mail_server_and_says_in_words_why_one_was_refused(
    dashboard: Dashboard, fogline: RunningFogline, tmp_path: Path
) -> None:
    page = dashboard.page
    axe = Axe(page)
    secure = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    secure.load_cert_chain(*Authority().sign("localhost").written(tmp_path, "server"))
    with mail_server(secure) as box:
        try:
            page.goto("/alarms/?tab=told")
            a_test_is_refused_then_taken(page, axe, box)
            page.get_by_role("tab", name="Who is told").click()
            channel_form(page, "Delete: shift", "Delete shift?")
            page.get_by_role("button", name="Delete shift").click()
            expect(page.get_by_role("button", name="Send a test: shift")).to_have_count(0)
        finally:
            with fogline.client() as client:
                for each in client.get("/api/v1/alarms/channels").raise_for_status().json():
                    client.delete(f"/api/v1/alarms/channels/{each['id']}").raise_for_status()
    axe.expect_nothing()
