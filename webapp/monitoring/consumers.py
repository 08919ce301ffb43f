"""/ws/live: sends a snapshot, then numbered changes.

    connect --> snapshot n=0 --> event n=1 --> event n=2 ...
                   ^--- watch changed, {"resync": true}, or the client was too slow ---'

The consumer remembers what it has sent to its client. At most twice a second, it compares this with the
database and sends the difference. Announcements only say "look again", so a lost announcement delays a change
by `IDLE_S` at most. However slow a client is, the consumer keeps no more than one state for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY
from django.utils.crypto import constant_time_compare

from pipeline_runtime.model.plain_data import NotPlainData, read_json
from pipeline_runtime.wire.keys import LIVE_GROUP
from webapp.accounts.models import User
from webapp.audit.announcements import Announcement
from webapp.monitoring.live_state import LiveState, SharedReading, Watch, changes, has_lost
from webapp.monitoring.messages import LiveBody

log = logging.getLogger(__name__)

INTERVAL_S = 0.5  # at most two updates a second of each type
IDLE_S = 5.0  # looks again even when nothing was announced
SLOW_S = 5.0  # a client that takes longer to receive gets a snapshot next
SESSION_CHECK_S = 60.0
MESSAGE_CHARACTERS_MAX = 4096
CLOSE_UNAUTHENTICATED = 4401
CLOSE_FAILED = 1011

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_readings: WeakKeyDictionary[asyncio.AbstractEventLoop, SharedReading] = WeakKeyDictionary()


def shared_reading() -> SharedReading:
    """Returns the shared reading of this event loop. A server has one loop, and each test has its own."""
    return _readings.setdefault(asyncio.get_running_loop(), SharedReading())


class LiveConsumer(AsyncWebsocketConsumer):
    groups = [LIVE_GROUP]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.watch = Watch()
        self.sent: LiveState | None = None  # None when a snapshot has to be sent
        self.number = 0
        self.changed = asyncio.Event()
        self.sender: asyncio.Task[None] | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        user = scope.get("user")
        if isinstance(user, User) and user.is_active:
            await super().__call__(scope, receive, send)
            return
        # Accepted first, since a browser cannot tell a refused handshake from a server that is away. And
        # before the channel layer is used, since only a client with a session gets a place there.
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": CLOSE_UNAUTHENTICATED})

    async def connect(self) -> None:
        await self.accept()
        self.changed.set()
        self.sender = asyncio.create_task(self._send_changes())

    async def disconnect(self, code: int) -> None:
        if self.sender is not None:
            self.sender.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.sender

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        message = _parsed(text_data)
        watch = message.get("watch")
        if isinstance(watch, dict):
            pipeline = watch.get("pipeline")
            wanted = Watch(pipeline if isinstance(pipeline, str) else None, watch.get("nodes") is not False)
            if wanted != self.watch:
                self.watch, self.sent = wanted, None
        if message.get("resync"):
            self.sent = None
        if self.sent is None:
            self.changed.set()

    async def live_changed(self, message: Announcement) -> None:
        """Handles an announcement that something has changed."""
        self.changed.set()

    async def _send_changes(self) -> None:
        try:
            await self._follow()
        except OSError:
            # ASGI raises it when something is sent to a client that has gone
            log.debug("a dashboard has gone")
        except Exception:
            # Otherwise the socket would stay open and show its last state for ever.
            log.warning("a dashboard's updates could not be read or sent; it connects again", exc_info=True)
            with contextlib.suppress(Exception):  # the client may be gone
                await self.close(CLOSE_FAILED)

    async def _follow(self) -> None:
        checked_at = time.monotonic()
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.changed.wait(), IDLE_S)
            self.changed.clear()
            if time.monotonic() - checked_at > SESSION_CHECK_S:
                checked_at = time.monotonic()
                if not await self._still_signed_in():
                    await self.close(CLOSE_UNAUTHENTICATED)
                    return
            whole = await shared_reading().get()
            began = time.monotonic()
            # Set before sending: a resync that arrives meanwhile sets it to None, and that has to stay.
            old, state = self.sent, whole.seen_by(self.watch)
            state = state if old is None else state.paced(old)
            self.sent = state
            if old is None or has_lost(old, state):
                await self._send_numbered({"type": "snapshot", "data": state.data()})
            else:
                for change in changes(old, state):
                    await self._send_numbered(change)
            if time.monotonic() - began > SLOW_S:
                self.sent = None
                self.changed.set()
            await asyncio.sleep(INTERVAL_S)

    async def _send_numbered(self, message: LiveBody) -> None:
        number, self.number = self.number, self.number + 1
        await self.send(text_data=json.dumps({"type": message["type"], "n": number, **message}))

    @database_sync_to_async
    def _still_signed_in(self) -> bool:
        """Returns whether the user is still signed in. Each call checks it, because the session may have
        ended, or a new password may have ended it."""
        sessions = import_module(settings.SESSION_ENGINE)
        session = sessions.SessionStore(self.scope["session"].session_key)  # empty when it has expired
        user = User.objects.filter(pk=self.scope["user"].pk, is_active=True).first()
        return user is not None and constant_time_compare(
            session.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash()
        )


def _parsed(text: str | None) -> dict[str, Any]:
    """Returns a client's message, or {} if the text is no message, because the client may be newer than this
    server."""
    if text is None or len(text) > MESSAGE_CHARACTERS_MAX:
        return {}
    try:
        message = read_json(text)
    except NotPlainData:
        return {}
    return message if isinstance(message, dict) else {}
