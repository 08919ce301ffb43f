"""Refuses requests that no later part can handle, before they reach a session or the database. These are
requests with NUL characters, which PostgreSQL cannot store, and websockets to unknown paths or from wrong
origins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from django.http import HttpRequest, HttpResponseBase
from django.http.cookie import parse_cookie

from webapp.pages.views import error_page

WEBSOCKET = "/ws/live"

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class PlainRequestMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        query = unquote_to_bytes(request.META.get("QUERY_STRING", ""))
        if "\0" in request.path or b"\0" in query or _has_nul(request.COOKIES):
            return error_page(
                request,
                400,
                "This request cannot be read",
                "Its address or one of its cookies contains a NUL character, which no name may contain.",
                "Correct the address, or delete the cookies of this site.",
                safe="Nothing was changed.",
            )
        return self.get_response(request)


class PlainWebsockets:
    """Wraps the WEBSOCKET application. Closes all other connections before they are accepted (HTTP 403)."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["path"] == WEBSOCKET and _is_plain(scope["headers"]):
            await self.application(scope, receive, send)
            return
        await receive()  # websocket.connect
        await send({"type": "websocket.close"})


def _is_plain(headers: list[tuple[bytes, bytes]]) -> bool:
    for name, value in headers:
        text = value.decode("latin1")
        if name == b"cookie" and _has_nul(parse_cookie(text)):
            return False
        if name == b"origin":
            try:
                _ = urlsplit(text).port
            except ValueError:  # for example http://[ or a port above 65535
                return False
    return True


def _has_nul(cookies: dict[str, str]) -> bool:
    # A quoted cookie may write it as \000.
    return any("\0" in name or "\0" in value for name, value in cookies.items())
