"""Tells the open dashboards that something has changed."""

from __future__ import annotations

import asyncio
import logging
import threading
from functools import cache
from typing import Literal

from channels.layers import get_channel_layer
from django.db import transaction
from redis.exceptions import RedisError
from typing_extensions import TypedDict

from pipeline_runtime.wire.keys import LIVE_GROUP

PAUSE_S = 0.05
"""The pause between two announcements. A dashboard looks at most twice a second, however often it is told."""
log = logging.getLogger(__name__)


class Announcement(TypedDict):
    """A message on the channel layer to every open dashboard: look again. Each dashboard finds out by itself
    what has changed."""

    type: Literal["live.changed"]


def announce() -> None:
    """Tells every open dashboard to look again, after the commit. Returns at once."""
    transaction.on_commit(lambda: _announcer().wanted.set())


class _Announcer:
    """A thread with an event loop that stays open, because the channel layer opens a connection for each
    loop."""

    def __init__(self) -> None:
        self.wanted = threading.Event()
        threading.Thread(target=self._run, name="announcements", daemon=True).start()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            while True:
                self.wanted.wait()
                self.wanted.clear()
                try:
                    runner.run(_send())
                except Exception:
                    log.exception("dashboards were not told of a change")
                runner.run(asyncio.sleep(PAUSE_S))


async def _send() -> None:
    message: Announcement = {"type": "live.changed"}
    try:
        await get_channel_layer().group_send(LIVE_GROUP, message)
    except (OSError, RedisError) as error:
        # The change itself is committed, and dashboards look again by themselves every few seconds.
        log.warning("Redis is away, dashboards are not told of a change: %s", error)


@cache
def _announcer() -> _Announcer:
    return _Announcer()
