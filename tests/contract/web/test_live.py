"""/ws/live over the real Redis layer. The law: old snapshot + events == refetched snapshot."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import pytest
from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async
from django.conf import settings as django_settings
from django.db import OperationalError

from tests.contract.web.conftest import PIPELINE, Caller, report
from tests.waiting import PATIENCE_S, wait_until
from webapp.accounts.models import User
from webapp.audit import announcements
from webapp.audit.announcements import announce
from webapp.audit.records import record_event
from webapp.config.asgi import application
from webapp.handovers.actions import migrate
from webapp.handovers.elements import set_paused
from webapp.handovers.models import Handover
from webapp.handovers.queues import Wanted, queue_moves
from webapp.monitoring import consumers
from webapp.nodes.actions import set_cordoned
from webapp.nodes.models import Node
from webapp.pipelines.actions import create_pipeline
from webapp.placements.models import Deployment
from webapp.placements.undeployed import delete_pipeline

Call = Callable[[str | None], Caller]


class WebsocketCommunicator(ApplicationCommunicator):
    """Speaks ASGI's websocket protocol; Channels' own is only to be had with Daphne."""

    async def connect(self) -> dict[str, Any]:
        await self.send_input({"type": "websocket.connect"})
        answer: dict[str, Any] = await self.receive_output(PATIENCE_S)
        return answer

    async def receive_from(self) -> str:
        message = await self.receive_output(PATIENCE_S)
        assert message["type"] == "websocket.send", message
        return str(message["text"])

    async def send_to(self, text_data: str) -> None:
        await self.send_input({"type": "websocket.receive", "text": text_data})

    async def disconnect(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(PATIENCE_S)


class Socket:
    """A client: takes messages and keeps what it knows, as static/shared/live-reducer.ts does."""

    def __init__(self, communicator: WebsocketCommunicator) -> None:
        self.communicator = communicator
        self.number = -1
        self.data: dict[str, Any] = {}

    async def take(self) -> dict[str, Any]:
        message = json.loads(await self.communicator.receive_from())
        assert message["n"] == self.number + 1
        self.number = message["n"]
        kind, data = message["type"], message["data"]
        if kind == "snapshot":
            self.data = data
        elif kind in ("nodes", "pipelines", "moves"):
            self.data[kind] = data
        elif kind == "elements":
            self.data["elements"][message["pipeline"]] = data
        else:
            rows = self.data[f"{kind}s"]
            self.data[f"{kind}s"] = [data, *(row for row in rows if row["id"] != data["id"])]
        return message

    async def take_until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while not condition(message := await self.take()):
            pass
        return message

    async def say(self, **message: Any) -> None:
        await self.communicator.send_to(text_data=json.dumps(message))


def known(data: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    """The data in an order of its own, of lists of the newest only what `like` has as well."""
    found: dict[str, Any] = {name: data[name] for name in ("nodes", "pipelines", "moves")}
    found["elements"] = {name: items for name, items in data["elements"].items() if items}
    for name in ("handovers", "operations", "events"):
        ids = {item["id"] for item in like[name]}
        found[name] = {item["id"]: item for item in data[name] if item["id"] in ids}
    return found


def communicator_of(session: str | None, origin: str = "http://localhost") -> WebsocketCommunicator:
    headers = [(b"origin", origin.encode()), (b"host", b"localhost")]
    if session is not None:
        headers.append((b"cookie", f"{django_settings.SESSION_COOKIE_NAME}={session}".encode()))
    scope = {
        "type": "websocket",
        "path": "/ws/live",
        "query_string": b"",
        "headers": headers,
        "subprotocols": [],
    }
    return WebsocketCommunicator(application, scope)


@pytest.fixture(autouse=True)
def nobody_is_too_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that is, a client would get a snapshot in place of what it waits for."""
    monkeypatch.setattr(consumers, "SLOW_S", float("inf"))


@pytest.fixture
def session(caller: Call) -> str:
    return str(caller("viewer").http.cookies[django_settings.SESSION_COOKIE_NAME].value)


@asynccontextmanager
async def connected(session: str) -> AsyncIterator[Socket]:
    communicator = communicator_of(session)
    assert (await communicator.connect())["type"] == "websocket.accept"
    try:
        yield Socket(communicator)
    finally:
        await communicator.disconnect()


@pytest.fixture
def do() -> Callable[..., Awaitable[Any]]:
    async def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await database_sync_to_async(function)(*args, **kwargs)

    return run


async def test_old_snapshot_and_events_equal_the_refetched_snapshot(
    session: str,
    deployment: Deployment,
    users: dict[str, User],
    nodes: dict[str, Node],
    do: Callable[..., Awaitable[Any]],
) -> None:
    editor = users["editor"]

    def report_progress(seq: int) -> None:
        report(deployment, "power", nodes["cloud"], seq=seq)
        announce()

    def finish_handover() -> None:
        Handover.objects.update(outcome="done", phase="FINISH", gap_ms=120)
        announce()

    async with connected(session) as socket:
        first = await socket.take()
        assert (first["type"], first["n"]) == ("snapshot", 0)
        assert [node["name"] for node in first["data"]["nodes"]] == ["cloud", "edge-a", "edge-b"]
        assert {item["id"] for item in first["data"]["elements"][PIPELINE]} >= {"power", "chart"}

        await do(set_cordoned, editor, "edge-a", True)
        await do(report_progress, 8)
        await do(migrate, editor, PIPELINE, "power", "edge-b")
        await do(queue_moves, editor, PIPELINE, [Wanted("alerts", "cloud")])
        await do(set_paused, editor, PIPELINE, "alerts", True)
        await do(create_pipeline, editor, "another")
        await do(create_pipeline, editor, "third")
        await do(delete_pipeline, editor, "third")
        for number in range(5):
            await do(record_event, "test.happened", f"event {number}", severity="warning")
        await do(finish_handover)
        await do(report_progress, 9)
        last = await do(record_event, "test.last", "the last one")

        await socket.take_until(lambda m: m["type"] == "event" and m["data"]["id"] == last.pk)
        before = json.loads(json.dumps(socket.data))
        await socket.say(resync=True)
        refetched = (await socket.take_until(lambda m: m["type"] == "snapshot"))["data"]
        assert known(before, refetched) == known(refetched, refetched)
        assert {item["name"] for item in refetched["pipelines"]} == {PIPELINE, "another"}
        assert refetched["handovers"][0]["gap_ms"] == 120
        assert [each["element"] for each in refetched["moves"]] == ["alerts"]


async def test_a_burst_of_changes_is_at_most_two_updates_a_second(
    session: str, nodes: dict[str, Node], do: Callable[..., Awaitable[Any]]
) -> None:
    def burst(number: int) -> None:
        Node.objects.filter(name="cloud").update(load={"cpu_ratio": number / 100})
        announce()

    async with connected(session) as socket:
        await socket.take()
        began = asyncio.get_running_loop().time()
        for number in range(100):
            await do(burst, number)
        updates = 0
        while True:
            message = await socket.take_until(lambda m: m["type"] == "nodes")
            updates += 1
            if next(node for node in message["data"] if node["name"] == "cloud")["load"]["cpu_ratio"] == 0.99:
                break
        elapsed = asyncio.get_running_loop().time() - began
        assert updates <= elapsed / consumers.INTERVAL_S + 2


async def test_what_nobody_announced_is_seen_a_little_later(
    session: str, nodes: dict[str, Node], do: Callable[..., Awaitable[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "IDLE_S", 0.3)
    async with connected(session) as socket:
        await socket.take()
        await do(Node.objects.filter(name="cloud").update, up=False)
        message = await socket.take_until(lambda m: m["type"] == "nodes")
        assert not next(node for node in message["data"] if node["name"] == "cloud")["up"]


async def test_a_client_that_watches_one_pipeline_gets_a_snapshot_of_it(
    session: str, deployment: Deployment
) -> None:
    async with connected(session) as socket:
        assert set((await socket.take())["data"]["elements"]) == {PIPELINE}
        await socket.say(watch={"pipeline": None, "nodes": True})  # nothing new: no message
        await socket.say(watch={"pipeline": "nothing", "nodes": False})
        message = await socket.take()
        assert message["type"] == "snapshot"
        assert (message["data"]["elements"], message["data"]["nodes"]) == ({}, [])
        await socket.say(watch={"pipeline": PIPELINE})
        assert set((await socket.take())["data"]["elements"]) == {PIPELINE}


def test_announcements_in_a_row_are_told_together(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []

    async def tell() -> None:
        told.append(1)

    monkeypatch.setattr(announcements, "_send", tell)
    for _ in range(200):
        announce()
    wait_until(lambda: told and not announcements._announcer().wanted.is_set(), "they are told")
    assert len(told) < 200


async def test_when_something_under_way_is_gone_a_snapshot_says_so(
    session: str, deployment: Deployment, do: Callable[..., Awaitable[Any]]
) -> None:
    """It ended while many others did, or was deleted: no message is about it any more."""
    handover = await do(
        Handover.objects.create,
        deployment=deployment,
        group="watch",
        element="watch",
        begun={"start": "warm", "bytes": None, "had": False},
    )
    async with connected(session) as socket:
        assert [each["id"] for each in (await socket.take())["data"]["handovers"]] == [str(handover.pk)]
        await do(handover.delete)
        await do(announce)
        message = await socket.take_until(lambda m: m["type"] == "snapshot")
        assert message["data"]["handovers"] == []


async def test_a_client_that_was_too_slow_gets_a_snapshot_not_a_queue(
    session: str, nodes: dict[str, Node], do: Callable[..., Awaitable[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "SLOW_S", -1.0)  # whatever it takes is too long
    async with connected(session) as socket:
        assert [(await socket.take())["type"] for _ in range(3)] == ["snapshot"] * 3


@pytest.mark.parametrize("message", ["", "x", "[]", '"resync"', '{"watch": 5}', "x" * 10_000])
async def test_a_message_that_makes_no_sense_ends_nothing(
    session: str, nodes: dict[str, Node], do: Callable[..., Awaitable[Any]], message: str
) -> None:
    async with connected(session) as socket:
        await socket.take()
        await socket.communicator.send_to(text_data=message)
        await do(record_event, "test.happened", "still here")
        await socket.take_until(lambda m: m["type"] == "event")


async def test_it_is_closed_when_the_database_fails_so_that_the_client_connects_again(
    session: str, nodes: dict[str, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing:
        async def get(self) -> NoReturn:
            raise OperationalError("database is locked")

    async with connected(session) as socket:
        await socket.take()
        monkeypatch.setattr(consumers, "shared_reading", Failing)
        await socket.say(resync=True)
        closed = await socket.communicator.receive_output(PATIENCE_S)
        assert (closed["type"], closed["code"]) == ("websocket.close", consumers.CLOSE_FAILED)
    monkeypatch.undo()
    async with connected(session) as socket:
        assert (await socket.take())["type"] == "snapshot"


async def test_a_client_that_has_gone_is_no_trouble(
    session: str, nodes: dict[str, Node], caplog: pytest.LogCaptureFixture
) -> None:
    tried = asyncio.Event()

    async def served(scope: Any, receive: Any, send: Any) -> None:
        async def to_nobody(message: dict[str, Any]) -> None:
            if message["type"] == "websocket.send":
                tried.set()
                raise OSError("as servers do when the client has gone")
            await send(message)

        await application(scope, receive, to_nobody)

    communicator = WebsocketCommunicator(served, communicator_of(session).scope)
    await communicator.connect()
    await asyncio.wait_for(tried.wait(), PATIENCE_S)
    await communicator.disconnect()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_nobody_sees_anything_without_a_session(transactional_db: None) -> None:
    for session in (None, "wrong"):
        communicator = communicator_of(session)
        assert (await communicator.connect())["type"] == "websocket.accept"
        closed = await communicator.receive_output(PATIENCE_S)
        assert closed["type"] == "websocket.close"
        assert closed["code"] == consumers.CLOSE_UNAUTHENTICATED
        await communicator.disconnect()


async def test_a_page_of_another_site_cannot_open_it(session: str) -> None:
    communicator = communicator_of(session, origin="https://evil.example")
    assert (await communicator.connect())["type"] == "websocket.close"


def sign_out() -> None:
    from django.contrib.sessions.models import Session

    Session.objects.all().delete()


def change_password() -> None:
    from webapp.accounts.models import User

    user = User.objects.get(username="viewer-user")
    user.set_password("another good passphrase")
    user.save()


@pytest.mark.parametrize("end", [sign_out, change_password])
async def test_it_ends_with_the_session(
    end: Callable[[], None],
    session: str,
    do: Callable[..., Awaitable[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consumers, "IDLE_S", 0.1)
    monkeypatch.setattr(consumers, "SESSION_CHECK_S", 0.0)
    async with connected(session) as socket:
        await socket.take()
        await do(end)
        closed = await socket.communicator.receive_output(PATIENCE_S)
        assert (closed["type"], closed["code"]) == ("websocket.close", consumers.CLOSE_UNAUTHENTICATED)
