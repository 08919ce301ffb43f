"""Telling the open dashboards that something has changed."""

from __future__ import annotations

import logging
from typing import Literal

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction
from typing_extensions import TypedDict

from pipeline_runtime.wire.keys import LIVE_GROUP

log = logging.getLogger(__name__)


class Announcement(TypedDict):
    """On the channel layer, to every open dashboard: look again. What has changed each finds by itself."""

    type: Literal["live.changed"]


def announce() -> None:
    """After commit, tell every open dashboard to look again."""
    transaction.on_commit(_send)


def _send() -> None:
    message: Announcement = {"type": "live.changed"}
    try:
        async_to_sync(get_channel_layer().group_send)(LIVE_GROUP, message)
    except OSError as error:
        # The change itself is committed; dashboards look again by themselves every few seconds.
        log.warning("Redis is away, dashboards are not told of a change: %s", error)
    except Exception as error:
        from redis.exceptions import RedisError

        if not isinstance(error, RedisError):
            raise
        log.warning("Redis is away, dashboards are not told of a change: %s", error)
