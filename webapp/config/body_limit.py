"""Refuses bodies that are too large before they are read: Django under ASGI reads all of a body first."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings

from webapp.problems import problem_document

UPLOADS = "/api/v1/files"
MULTIPART_BYTES = 64 * 1024  # what a form adds around the file

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class BodyLimit:
    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        upload = scope["path"] == UPLOADS
        bytes_max = (
            settings.UPLOAD_BYTES_MAX + MULTIPART_BYTES if upload else settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        )
        length = headers.get(b"content-length", b"0")
        if b"chunked" in headers.get(b"transfer-encoding", b"").lower():
            detail = "The request does not say how long it is."
            await _refuse(send, 411, detail, "Send Content-Length.")
        elif not length.isdigit() or int(length) > bytes_max:
            hint = "Split it, or raise FOGLINE_UPLOAD_BYTES_MAX." if upload else "Send less."
            await _refuse(send, 413, f"The request is larger than {bytes_max:,} bytes.", hint)
        else:
            await self.application(scope, receive, send)


async def _refuse(send: Send, status: int, detail: str, next: str) -> None:
    document = problem_document(status, detail, "too-large", "Nothing was stored.", next)
    body = json.dumps(document).encode()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
