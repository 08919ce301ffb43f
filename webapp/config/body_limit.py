"""Refuses bodies that are too large before Django reads them. Under ASGI, Django first reads the whole body.

If a caller sends more than a form may hold, this module also authenticates the caller before the body is on
the disk.
"""

from __future__ import annotations

import io
import json
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.core.handlers.asgi import ASGIRequest

from webapp.accounts.models import Role
from webapp.accounts.permissions import require
from webapp.accounts.tokens import user_of_token
from webapp.problems import LengthRequired, Problem, TooLarge, Unauthenticated

UPLOADS = ("/api/v1/files", "/api/v1/states")
MULTIPART_BYTES = 64 * 1024  # what a form adds to the file

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class BodyLimit:
    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        try:
            if _length(scope) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
                await database_sync_to_async(_require_editor)(scope)
        except Problem as problem:
            await _refuse(send, problem)
        else:
            await self.application(scope, receive, send)


def _length(scope: Message) -> int:
    """Returns the body's length in bytes. Raises LengthRequired, TooLarge."""
    headers = dict(scope["headers"])
    upload = scope["path"] in UPLOADS and scope["method"] == "POST"
    bytes_max = (
        settings.UPLOAD_BYTES_MAX + MULTIPART_BYTES if upload else settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    )
    length = headers.get(b"content-length", b"0")
    if b"chunked" in headers.get(b"transfer-encoding", b"").lower():
        raise LengthRequired(
            "The request does not say how long it is.",
            safe="Nothing was stored.",
            next="Send Content-Length.",
        )
    if not length.isdigit() or int(length) > bytes_max:
        hint = "Split it, or raise FOGLINE_UPLOAD_BYTES_MAX." if upload else "Send less."
        raise TooLarge(
            f"The request is larger than {bytes_max:,} bytes.", safe="Nothing was stored.", next=hint
        )
    return int(length)


def _require_editor(scope: Message) -> None:
    """Refuses a caller who is not at least an editor. Raises Unauthenticated, Forbidden."""
    request = ASGIRequest(scope, io.BytesIO())
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        user = user_of_token(secret.strip())
        if user is None:
            raise Unauthenticated(
                "This API token is not valid.",
                safe="Nothing was stored.",
                next="Make a new one under Account, API tokens.",
            )
    else:
        sessions = import_module(settings.SESSION_ENGINE)
        request.session = sessions.SessionStore(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
        user = get_user(request)
    require(user, Role.EDITOR, "upload files")


async def _refuse(send: Send, problem: Problem) -> None:
    body = json.dumps(problem.document()).encode()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
