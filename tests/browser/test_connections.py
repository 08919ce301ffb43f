"""An admin makes, tests, changes and deletes connections by mouse. All servers are real."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import Axe
from tests.browser.dashboard import Dashboard
from tests.browser.hands import Hands
from tests.modbus_devices import Device
from tests.opcua_servers import OpcUaServer, certificate
from tests.running import RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

NAMES = ("pump", "press")
NO_ANSWER = "did not answer"
SECRET = "PRIVATE KEY"


@pytest.fixture
def no_connection(fogline: RunningFogline) -> Iterator[None]:
    yield
    with fogline.client() as client:
        for name in NAMES:
            client.delete(f"/api/v1/connections/{name}")


def begun(hands: Hands, page: Page, name: str, kind: str) -> Locator:
    """The form of a new connection, with its name and its kind."""
    hands.click(page.get_by_role("button", name="New connection"))
    form = page.get_by_role("dialog", name="New connection")
    hands.type(form.get_by_label("Name", exact=True), name, clicked=False)  # it has the focus
    hands.choose(form.get_by_label("Kind"), kind)
    hands.type(form.get_by_label("Host"), "127.0.0.1")
    return form


def result_of(hands: Hands, dialog: Locator) -> Locator:
    """What a test of the connection says. It is repeated where a busy node did not answer in time."""
    said = dialog.get_by_role("status").locator(".notice, .field__error")

    def answered() -> bool:
        hands.click(dialog.get_by_role("button", name="Test connection"))
        expect(said).to_be_visible()
        return NO_ANSWER not in said.inner_text()

    wait_until(answered, lambda: f"the answer of a node in:\n{dialog.aria_snapshot()}")
    return said


def item(page: Page, name: str) -> Locator:
    return page.get_by_role("listitem").filter(has=page.get_by_role("heading", name=name, exact=True))


def opened(hands: Hands, page: Page, action: str, name: str, title: str) -> Locator:
    hands.click(item(page, name).get_by_role("button", name=f"{action}: {name}"))
    return page.get_by_role("dialog", name=title)


def press(hands: Hands, dialog: Locator, button: str) -> None:
    """The dialog is gone afterwards."""
    hands.click(dialog.get_by_role("button", name=button, exact=True))
    expect(dialog).to_have_count(0)


def a_device_is_connected(hands: Hands, page: Page, axe: Axe, device: Device) -> None:
    """The test shows what it reads; once the device is away, it shows why not. Then the connection is
    changed and deleted."""
    form = begun(hands, page, "pump", "Modbus TCP device")
    hands.type(form.get_by_label("Port"), str(device.port))
    expect(result_of(hands, form)).to_contain_text("Connected.")
    expect(form.get_by_role("row").nth(1)).to_have_text(re.compile("^0 ?1000$"))
    axe.look("a connection that is tested")
    press(hands, form, "Create connection")
    expect(item(page, "pump")).to_contain_text("No deployed element uses it.")

    device.kill()
    stored = opened(hands, page, "Test", "pump", "Test pump")
    reason = f"Nobody listens at the Modbus device 127.0.0.1, port {device.port}"
    expect(result_of(hands, stored)).to_contain_text(reason)
    press(hands, stored, "Close")
    form = opened(hands, page, "Change", "pump", "Change pump")
    hands.type(form.get_by_label("Answers within, in seconds"), "2")
    press(hands, form, "Save connection")
    form = opened(hands, page, "Change", "pump", "Change pump")
    expect(form.get_by_label("Answers within, in seconds")).to_have_value("2")
    press(hands, form, "Cancel")

    press(hands, opened(hands, page, "Delete", "pump", "Delete pump?"), "Delete pump")
    expect(item(page, "pump")).to_have_count(0)


def a_server_that_signs_is_connected(hands: Hands, page: Page, axe: Axe, server: OpcUaServer) -> None:
    """Its certificate is accepted at the test. The private key is not shown again, and stays."""
    own, key = certificate("fogline")
    form = begun(hands, page, "press", "OPC UA server")
    hands.type(form.get_by_label("Port"), str(server.port))
    hands.type(form.get_by_label("Path"), "/press")
    hands.choose(form.get_by_label("Security", exact=True), "sign and encrypt")
    form.get_by_label("Own certificate").fill(own)
    form.get_by_label("Own private key").fill(key)
    said = result_of(hands, form)
    expect(said).to_contain_text("is not verified yet, so Fogline does not log in there")
    axe.look("a certificate that is offered")
    hands.click(said.get_by_role("button", name="Accept this certificate"))
    expect(form.get_by_label("Server's certificate")).to_have_value(re.compile("^-----BEGIN CERTIFICATE"))
    expect(result_of(hands, form)).to_contain_text("Connected.")
    expect(form.get_by_role("row").filter(has_text="Note")).to_contain_text("Good")
    press(hands, form, "Create connection")

    form = opened(hands, page, "Change", "press", "Change press")
    expect(form.get_by_label("Own private key")).to_have_value("")
    expect(form.get_by_label("Own private key")).to_have_attribute("placeholder", "stays as it is")
    # The text of the page does not have what its fields hold.
    held = page.locator("input, textarea").evaluate_all("fields => fields.map((field) => field.value)")
    assert not [each for each in (page.content(), *held) if SECRET in each]
    # It works with the key that is stored.
    expect(result_of(hands, form)).to_contain_text("Connected.")
    press(hands, form, "Cancel")


@pytest.mark.usefixtures("no_connection")
def test_an_admin_makes_tests_changes_and_deletes_connections_by_mouse(
    open_dashboard: Callable[..., Dashboard], fogline: RunningFogline, tmp_path: Path
) -> None:
    page, hands = open_dashboard(*fogline.login()).page, Hands()
    axe = Axe(page)
    with Device() as device, OpcUaServer(tmp_path, trusted=[certificate("fogline")[0]]) as server:
        page.goto("/")
        hands.click(page.get_by_role("navigation", name="Main").get_by_role("link", name="Connections"))
        a_device_is_connected(hands, page, axe, device)
        a_server_that_signs_is_connected(hands, page, axe, server)
    axe.expect_nothing()
