"""The requests that the web refuses before it reads their body."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings

from tests.contract.web.conftest import Caller
from webapp.accounts.actions import create_token
from webapp.accounts.models import User
from webapp.config.body_limit import BodyLimit

LARGE = str(5 << 20).encode()


class Read(Exception):
    """The body would be read now."""


async def limited(path: str, headers: dict[bytes, bytes], method: str = "POST") -> list[dict[str, Any]]:
    async def application(*_: Any) -> None:
        raise Read

    async def receive() -> dict[str, Any]:
        raise AssertionError("the body was read")

    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "query_string": b""}
    await BodyLimit(application)({**scope, "headers": list(headers.items())}, receive, send)
    return sent


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", "/api/v1/pipelines", {b"content-length": b"99999999"}, 413),
        ("POST", "/api/v1/files", {b"content-length": b"99999999999"}, 413),
        ("POST", "/api/v1/files", {b"transfer-encoding": b"chunked"}, 411),
        ("POST", "/api/v1/files", {b"content-length": b"-5"}, 413),
        ("PUT", "/api/v1/files", {b"content-length": LARGE}, 413),
    ],
)
async def test_a_body_that_is_too_large_is_refused(
    method: str, path: str, headers: dict[bytes, bytes], status: int
) -> None:
    sent = await limited(path, headers, method)
    assert sent[0]["status"] == status
    assert json.loads(sent[1]["body"])["detail"]


@pytest.mark.parametrize(
    ("role", "status"), [(None, 401), ("viewer", 403), ("operator", 403), ("editor", None)]
)
def test_a_large_file_is_read_from_editors_only(
    role: str | None, status: int | None, users: dict[str, User], caller: Callable[[str | None], Caller]
) -> None:
    cookies = caller(role).http.cookies
    session = f"{name}={cookies[name].value}" if (name := settings.SESSION_COOKIE_NAME) in cookies else ""
    async_to_sync(reads_if_allowed)({b"cookie": session.encode()}, status)


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), ("editor", None)])
def test_a_token_may_what_its_user_may(role: str, status: int | None, users: dict[str, User]) -> None:
    _, secret = create_token(users[role], "mine")
    async_to_sync(reads_if_allowed)({b"authorization": f"Bearer {secret}".encode()}, status)


async def test_a_token_that_is_not_valid_is_not_made_up_for_by_a_session(transactional_db: None) -> None:
    await reads_if_allowed({b"authorization": b"Bearer none"}, 401)


async def reads_if_allowed(headers: dict[bytes, bytes], status: int | None) -> None:
    asked = limited("/api/v1/files", {b"content-length": LARGE, **headers})
    if status is None:
        with pytest.raises(Read):
            await asked
    else:
        assert (await asked)[0]["status"] == status
