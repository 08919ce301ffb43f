"""Pipelines from a machine to a person, drawn with the mouse by what the machine, the broker and the database
say that they have; how many clicks that takes; and who is told of a pulled plug. All servers are real."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.message import Message
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.brokers import Broker
from tests.browser.axe import Axe
from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.browser.hands import Hands
from tests.databases import PASSWORD, Database
from tests.edge_nodes import EdgeNode
from tests.opcua_servers import OpcUaServer
from tests.plants import a_plant
from tests.receivers import Mailbox, mail_server
from tests.running import RunningFogline
from tests.waiting import wait_until

# the first test of a run waits for the whole start too
pytestmark = [pytest.mark.browser, pytest.mark.timeout(1200)]

CLICKS_MAX = 20
ARRIVES_S = 420


@contextmanager
def made(fogline: RunningFogline, path: str, **bodies: dict[str, Any]) -> Iterator[list[Any]]:
    """Makes each of these by the REST API, as an admin has before; they are gone afterwards, when no pipeline
    uses them any more."""
    with fogline.client() as client:
        before = fogline.pipelines()
        found = [client.post(f"/api/v1{path}", json={"name": name, **bodies[name]}) for name in bodies]
        keys = [each.raise_for_status().json() for each in found]
        try:
            yield keys
        finally:
            fogline.remove(fogline.pipelines() - before)
            for each in keys:
                client.delete(f"/api/v1{path}/{each.get('id', each['name'])}").raise_for_status()


def new_pipeline(hands: Hands, dashboard: Dashboard, name: str) -> None:
    page = dashboard.page
    page.goto("/")
    hands.click(page.get_by_role("navigation", name="Main").get_by_role("link", name="Pipelines"))
    hands.click(page.get_by_role("button", name="New pipeline").first)
    dialog = page.get_by_role("dialog", name="New pipeline")
    hands.type(dialog.get_by_label("Name"), name, clicked=False)  # it has the focus
    hands.click(dialog.get_by_role("button", name="Create pipeline"))
    expect(page.get_by_text("Draw your pipeline")).to_be_visible()


def add(hands: Hands, dashboard: Dashboard, title: str, id: str) -> None:
    """An element behind the selected one."""
    palette = dashboard.page.get_by_role("complementary", name="Elements")
    hands.click(palette.get_by_role("button", name=title, exact=True))
    expect(dashboard.card(id)).to_be_visible()


def browse(hands: Hands, dashboard: Dashboard, connection: str) -> Locator:
    hands.click(dashboard.inspector.get_by_role("button", name=f"Browse {connection}"))
    return dashboard.page.get_by_role("dialog", name=f"Browse {connection}")


def found(dialog: Locator, thing: Locator, again: Callable[[], None]) -> Locator:
    """Waits until the node has found it; asks `again` where a busy machine did not answer in time."""

    def is_found() -> bool:
        answered = dialog.get_by_role("status").get_by_text(
            re.compile("Connected|have “|Nobody listens|did not answer|Try")
        )
        expect(answered).to_be_visible()
        expect(dialog.get_by_text("Looking…")).to_have_count(0)
        if not thing.is_visible():
            again()
            return False
        return True

    wait_until(is_found, lambda: f"{thing} in:\n{dialog.aria_snapshot()}", ARRIVES_S)
    return thing


def look_again(dialog: Locator) -> Callable[[], None]:
    return lambda: dialog.get_by_role("button", name="Look again").click()


def take(hands: Hands, dialog: Locator) -> None:
    hands.click(dialog.get_by_role("button", name=re.compile("^Take over")))
    expect(dialog).to_have_count(0)


def give_up(dashboard: Dashboard) -> None:
    """Cancel while what is ticked is taken over ends the request, and changes nothing."""
    page, held = dashboard.page, list[Route]()
    dialog = browse(Hands(), dashboard, "press")
    press = dialog.get_by_role("button", name="Items in Press", exact=True)
    found(dialog, press, look_again(dialog)).click()
    found(dialog, dialog.get_by_role("checkbox", name="Strokes"), lambda: press.dblclick()).click()
    page.route("**/taken", lambda route: held.append(route))
    with page.expect_request("**/taken"):
        dialog.get_by_role("button", name=re.compile("^Take over")).click()
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/taken")):
        dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    held[0].abort()
    page.unroute("**/taken")


def deploy(hands: Hands, dashboard: Dashboard) -> None:
    expect(dashboard.problems).to_contain_text("No problems")
    hands.click(dashboard.deploy_button)
    dialog = dashboard.page.get_by_role("dialog", name=re.compile("^Deploy "))
    hands.click(dialog.get_by_role("button", name="Deploy"))
    expect(dialog).to_have_count(0)


def elements(fogline: RunningFogline, name: str) -> dict[str, Any]:
    with fogline.client() as client:
        draft = client.get(f"/api/v1/pipelines/{name}").raise_for_status().json()["document"]
    return {each["type"]: each for each in draft["spec"]["elements"]}


@pytest.mark.full
def test_from_a_machine_by_opc_ua_to_a_mail_in_20_clicks(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    hands, axe = Hands(), Axe(dashboard.page)
    with mail_server() as box, OpcUaServer() as server:
        fields = {"host": "127.0.0.1", "port": server.port, "endpoint": "/press"}
        url = f"mailto://127.0.0.1:{box.port}?from=fogline@example.org&to=ann@example.org"
        route = {"wait_s": 1, "severity": "info", "repeat_min": 0}
        with (
            made(fogline, "/alarms/channels", mail={"url": url}) as [channel],
            made(fogline, "/alarms/routes", ann={"spec": {**route, "channels": [channel["id"]]}}),
            made(fogline, "/connections", press={"kind": "opcua", "fields": fields}),
        ):
            draw_press(hands, dashboard, axe)
            drawn = elements(fogline, "press-heat")
            assert drawn["opcua-in"]["params"]["columns"] == [
                {"name": "Temperature", "type": "number", "unit": "°C", "node": "ns=2;s=Press.Temperature"}
            ]
            assert drawn["opcua-in"]["params"]["connection"] == "press"
            time, steps = datetime.now(UTC), count()

            def mail_has_come() -> bool:
                """A minute of the press takes two writes. A server sends what has changed alone."""
                step = next(steps)
                server.write("Temperature", 90.0 + step % 2, time=time + timedelta(seconds=30 * step))
                return any("Temperature" in text_of(mail) for mail in box.mails)

            wait_until(mail_has_come, "a mail about the press", ARRIVES_S)
            expect(dashboard.card("opcua-in")).to_contain_text("at least once")
    axe.expect_nothing()
    assert hands.clicks <= CLICKS_MAX


def text_of(mail: Message) -> str:
    return str(mail.get_payload(decode=True), "utf-8")  # type: ignore[arg-type]


def draw_press(hands: Hands, dashboard: Dashboard, axe: Axe) -> None:
    inspector = dashboard.inspector
    new_pipeline(hands, dashboard, "press-heat")
    add(hands, dashboard, "OPC UA in", "opcua-in")
    dialog = browse(hands, dashboard, "press")
    press = dialog.get_by_role("button", name="Items in Press", exact=True)
    hands.click(found(dialog, press, look_again(dialog)))
    temperature = found(dialog, dialog.get_by_role("checkbox", name="Temperature"), lambda: press.dblclick())
    expect(temperature).to_have_accessible_description("Double, °C 21.5")
    axe.look("what an OPC UA server has")
    hands.click(temperature)
    take(hands, dialog)
    give_up(dashboard)
    add(hands, dashboard, "Window aggregate", "window-aggregate")
    hands.type(dashboard.field("Length of a window, in seconds"), "60")
    hands.click(inspector.get_by_role("button", name="Add aggregate"))
    aggregate = inspector.get_by_role("group", name="Aggregate 1").first
    expect(aggregate.get_by_label("Function")).to_have_value("avg")
    hands.type(aggregate.get_by_label("Column"), "Temperature")
    add(hands, dashboard, "Threshold alert", "threshold-alert")
    hands.click(inspector.get_by_role("button", name="Add column"))
    column = inspector.get_by_role("group", name="Column 1", exact=True).locator("input")
    hands.type(column, "Temperature_avg")
    hands.type(dashboard.field("Limit"), "80")
    deploy(hands, dashboard)


def test_from_a_broker_into_a_table_in_20_clicks_and_a_mail_when_the_broker_is_away(
    dashboard: Dashboard, fogline: RunningFogline, tmp_path: Path
) -> None:
    hands, axe = Hands(), Axe(dashboard.page)
    with mail_server() as box, Broker(tmp_path) as broker, Database() as database:
        database.ask("CREATE TABLE climate (line text, temperature float8, at timestamptz)")
        payload = json.dumps({"line": "a", "temperature": 20.5})
        client = broker.client()
        client.publish("hall/climate", payload, 1, retain=True).wait_for_publish(10)
        mqtt = {"host": "127.0.0.1", "port": broker.port}
        postgresql = {"host": "127.0.0.1", "port": database.port, "database": "postgres", "user": "ann"}
        mail = {"url": f"mailto://127.0.0.1:{box.port}?from=fogline@example.org&to=ann@example.org"}
        route = {"wait_s": 1, "repeat_min": 0}
        fails = {"rule": {"metric": "connector_failing", "for_s": 5}}
        with (
            made(fogline, "/alarms/channels", mail=mail) as [channel],
            made(fogline, "/alarms/routes", ann={"spec": {**route, "channels": [channel["id"]]}}),
            made(fogline, "/alarms/rules", **{"Connector fails": fails}),
            made(
                fogline,
                "/connections",
                hall={"kind": "mqtt", "fields": mqtt},
                history={"kind": "postgresql", "fields": {**postgresql, "password": PASSWORD}},
            ),
        ):
            draw_climate(hands, dashboard, axe)
            assert hands.clicks <= CLICKS_MAX
            drawn = elements(fogline, "climate")
            assert [each["name"] for each in drawn["mqtt-in"]["params"]["columns"]] == ["line", "temperature"]
            assert drawn["postgresql-out"]["params"]["time_column"] == "at"
            expect(dashboard.card("postgresql-out")).to_contain_text("exactly once")

            def arrive(*warm: float) -> None:
                """The warm rows that come are in the table, and no other."""
                query = "SELECT DISTINCT temperature FROM climate WHERE at IS NOT NULL ORDER BY 1"

                def are_there() -> bool:
                    for temperature in (12.0, *warm):
                        said = json.dumps({"line": "b", "temperature": temperature})
                        client.publish("hall/climate", said, 1).wait_for_publish(10)
                    return database.ask(query) == [(each,) for each in warm]

                wait_until(are_there, f"the rows {warm} in the table, and no other", ARRIVES_S)

            arrive(31.5, 33.0)
            pull_the_plug(dashboard, broker, box)
            wait_until(client.is_connected, "a client of the broker to be back")
            arrive(31.5, 33.0, 34.0)
            say_who_uses_it(dashboard)
        client.disconnect()
        client.loop_stop()
    axe.expect_nothing()


def pull_the_plug(dashboard: Dashboard, broker: Broker, box: Mailbox) -> None:
    """The broker dies, and a mail says why no rows come. It is back: the alarm is over, which a mail says."""
    page = dashboard.page
    reason = f"Nobody listens at the MQTT broker 127.0.0.1, port {broker.port}"
    broker.kill()
    wait_until(
        lambda: any(reason in text_of(mail) for mail in box.mails), "a mail with the reason", ARRIVES_S
    )
    [subject, *_] = [
        subject for subject, mail in zip(box.subjects, box.mails, strict=False) if reason in text_of(mail)
    ]
    assert subject.startswith("[Fogline] warning: The connector of")
    before = len(box.subjects)
    page.goto("/alarms/?pipeline=climate")
    alarm = page.get_by_role("listitem").filter(has_text=reason)
    expect(alarm).to_be_visible()
    broker.start()
    expect(alarm).to_have_count(0, timeout=SLOW_MS)
    over = "[Fogline] cleared: The connector of"
    wait_until(
        lambda: any(said.startswith(over) for said in box.subjects[before:]),
        "a mail that it is over",
        ARRIVES_S,
    )
    page.get_by_role("tab", name="Past").click()
    expect(alarm.first).to_be_visible()


def say_who_uses_it(dashboard: Dashboard) -> None:
    """A connection in use cannot be deleted."""
    page = dashboard.page
    page.goto("/connections/")
    hall = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="hall", exact=True))
    expect(hall).to_contain_text(re.compile("Used by .+ of climate\\."))
    delete = hall.get_by_role("button", name="Delete: hall")
    expect(delete).to_be_disabled()
    expect(delete).to_have_attribute("title", re.compile("^.+ of climate uses it\\. Undeploy these elements"))


def draw_climate(hands: Hands, dashboard: Dashboard, axe: Axe) -> None:
    inspector = dashboard.inspector
    new_pipeline(hands, dashboard, "climate")
    add(hands, dashboard, "MQTT in", "mqtt-in")
    dialog = browse(hands, dashboard, "hall")
    hands.click(found(dialog, dialog.get_by_role("checkbox", name="hall/climate"), look_again(dialog)))
    take(hands, dialog)
    add(hands, dashboard, "Filter", "filter")
    hands.type(inspector.get_by_label("Condition", exact=True), "temperature > 30")
    add(hands, dashboard, "PostgreSQL out", "postgresql-out")
    dialog = browse(hands, dashboard, "history")
    hands.click(found(dialog, dialog.get_by_role("radio", name="climate"), look_again(dialog)))
    axe.look("the tables of a database")
    take(hands, dialog)
    deploy(hands, dashboard)


@pytest.mark.full
def test_what_is_ticked_is_one_step_of_undo_and_words_say_why_nothing_is_found(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    """By keyboard alone, too."""
    hands, page = Hands(), dashboard.page
    axe = Axe(page)
    with OpcUaServer() as server:
        fields = {"host": "127.0.0.1", "port": server.port, "endpoint": "/press"}
        with made(fogline, "/connections", press={"kind": "opcua", "fields": fields}):
            new_pipeline(hands, dashboard, "browsed")
            add(hands, dashboard, "OPC UA in", "opcua-in")
            browse(hands, dashboard, "press")
            dialog = page.get_by_role("dialog", name="Browse press")
            dashboard.tab_to(dialog.get_by_role("textbox", name="Part of the name"))
            page.keyboard.type("strokes")
            strokes = dialog.get_by_role("checkbox", name="Press / Strokes")
            dashboard.press("Enter")
            found(dialog, strokes, lambda: dashboard.press("Enter"))
            dashboard.tab_to(strokes)
            dashboard.press("Space")
            dashboard.tab_to(dialog.get_by_role("button", name="Take over 1"))
            dashboard.press("Enter")
            column = dashboard.inspector.get_by_role("group", name="Column 1").first
            expect(column.get_by_label("Name", exact=True)).to_have_value("Strokes")
            expect(dashboard.field("Connection")).to_have_value("press")
            dashboard.card("opcua-in").focus()
            dashboard.press("ControlOrMeta+z")
            expect(dashboard.field("Connection")).to_have_value("")
            expect(dashboard.inspector.get_by_role("group", name="Column 1")).to_have_count(0)

            server.kill()
            dialog = browse(hands, dashboard, "press")
            away = dialog.get_by_role("status").get_by_text("Nobody listens at the OPC UA server")
            found(dialog, away, look_again(dialog))
            axe.look("a server that is away")
    axe.expect_nothing()


@contextmanager
def an_edge_node_that_sends(broker: Broker) -> Iterator[EdgeNode]:
    """It says its metrics by aliases. Its birth comes only when somebody asks for it."""
    node, stop = EdgeNode(broker, "press"), threading.Event()

    def send() -> None:
        while not stop.wait(0.2):
            node.data(20.5, 7)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield node
    finally:
        stop.set()
        thread.join()
        node.close()


@pytest.mark.full
def test_ticked_metrics_of_sparkplug_become_columns_with_their_types(
    dashboard: Dashboard, fogline: RunningFogline, tmp_path: Path
) -> None:
    hands, axe = Hands(), Axe(dashboard.page)
    with Broker(tmp_path) as broker, an_edge_node_that_sends(broker):
        fields = {"host": "127.0.0.1", "port": broker.port, "rebirths": True}
        with made(fogline, "/connections", plant={"kind": "mqtt", "fields": fields}):
            new_pipeline(hands, dashboard, "metrics")
            add(hands, dashboard, "MQTT in", "mqtt-in")
            hands.choose(dashboard.field("Connection"), "plant")
            dialog = browse(hands, dashboard, "plant")
            press = dialog.get_by_role("button", name="Items in plant/press", exact=True)
            hands.click(found(dialog, press, look_again(dialog)))
            strokes = dialog.get_by_role("checkbox", name="Strokes")
            found(dialog, strokes, lambda: press.dblclick())
            expect(strokes).to_have_accessible_description(re.compile("^Int32 [07]$"))
            axe.look("the metrics of an edge node")
            hands.click(strokes)
            hands.click(dialog.get_by_role("checkbox", name="Temperature"))
            take(hands, dialog)
            for number, (name, type_) in enumerate((("Strokes", "integer"), ("Temperature", "number")), 1):
                column = dashboard.inspector.get_by_role("group", name=f"Column {number}", exact=True)
                expect(column.get_by_label("Name", exact=True)).to_have_value(name)
                expect(column.get_by_label("Type", exact=True)).to_have_value(type_)
            deploy(hands, dashboard)
            params = elements(fogline, "metrics")["mqtt-in"]["params"]
            assert (params["payload"], params["topics"]) == ("sparkplug", ["spBv1.0/plant/+/press/#"])
            rows = "/api/v1/pipelines/metrics/elements/mqtt-in"
            with fogline.client() as client:
                wait_until(
                    lambda: client.get(rows).json()["rows_out_total"], "rows of the metrics", ARRIVES_S
                )
    axe.expect_nothing()


@pytest.mark.full
def test_ticked_fields_of_an_answer_of_http_become_columns_with_their_types(
    dashboard: Dashboard, fogline: RunningFogline
) -> None:
    hands, axe = Hands(), Axe(dashboard.page)
    stations = [{"id": "a", "temperature": 21.5, "on": True}, {"id": "b", "temperature": 18.0, "on": False}]
    with a_plant() as plant:
        plant.answers["/api/stations"] = {"data": {"stations": stations}}
        with made(fogline, "/connections", weather={"kind": "http", "fields": plant.connection}):
            new_pipeline(hands, dashboard, "stations")
            add(hands, dashboard, "HTTP poll", "http-poll")
            hands.choose(dashboard.field("Connection"), "weather")
            hands.type(dashboard.field("Path"), "/api/stations")
            dialog = browse(hands, dashboard, "weather")
            rows = dialog.get_by_role("button", name="Items in data.stations", exact=True)
            hands.click(found(dialog, rows, look_again(dialog)))
            temperature = dialog.get_by_role("checkbox", name="temperature")
            found(dialog, temperature, lambda: rows.dblclick())
            expect(temperature).to_have_accessible_description("number 21.5")
            axe.look("the fields of an answer of HTTP")
            hands.click(temperature)
            hands.click(dialog.get_by_role("checkbox", name="on", exact=True))
            take(hands, dialog)
            deploy(hands, dashboard)
            params = elements(fogline, "stations")["http-poll"]["params"]
            assert (params["path"], params["rows"]) == ("/api/stations", "data.stations")
            assert params["columns"] == [
                {"name": "temperature", "type": "number"},
                {"name": "on", "type": "boolean"},
            ]
            path = "/api/v1/pipelines/stations/elements/http-poll"
            with fogline.client() as client:
                wait_until(lambda: client.get(path).json()["rows_out_total"], "rows of stations", ARRIVES_S)
    axe.expect_nothing()
