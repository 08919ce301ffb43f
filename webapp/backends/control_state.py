"""Reads the state that control reports about itself: whether it reads the nodes' reports, and its problems.

    control --SET fogline:control, for LASTS_S--> Redis --GET--> web

Control decides whether a node is up, and stores that in the database. If control dies, the database still
says "up". So the web trusts the database only as long as this report is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from time import monotonic
from typing import Any

import redis
from django.conf import settings

from pipeline_runtime.wire import keys

EACH_S = 1.0
LASTS_S = 10
"""By Redis's clock. A control process that is merely restarted is back sooner."""
HOLDS_S = 5.0
CLOCK = "Its clock is "
"""How the alert about a node's clock begins."""
BLIND = "detector.blind"
STORE = "central.store"

STANDS_STILL = (
    "Pipelines keep running, but you see only the last known state of nodes and elements. Until this is "
    "mended, nothing is restored by itself, moved or deployed."
)
NOT_HEARD = (
    "The control process cannot be heard: it does not run, or it cannot reach Redis or the database. Start "
    f"it again, or read its log. {STANDS_STILL}"
)
NO_REDIS = (
    "Redis does not answer, so neither the control process nor any node can be heard. Start Redis "
    f"again, or read its log. {STANDS_STILL}"
)


_answers: dict[str, tuple[float, ControlState]] = {}  # Redis's URL -> time and content of the last answer


@dataclass(frozen=True)
class ControlState:
    away: str | None = None  # why nothing is known about it; None while it works
    troubles: tuple[dict[str, Any], ...] = ()  # [{"kind", "message", "since"}], while they last

    @property
    def hears(self) -> bool:
        """Returns whether the facts about nodes are current."""
        return self.away is None and all(trouble["kind"] != BLIND for trouble in self.troubles)


def control_state() -> ControlState:
    """Returns control's state. If Redis is slow, the last answer stays valid for some seconds."""
    url = settings.FOGLINE.redis_url
    try:
        raw = _client(url).get(keys.CONTROL_STATE)
    except redis.RedisError:
        at_s, known = _answers.get(url, (0.0, None))
        return known if known is not None and monotonic() - at_s < HOLDS_S else ControlState(away=NO_REDIS)
    found = ControlState(away=NOT_HEARD) if raw is None else ControlState(troubles=tuple(json.loads(raw)))
    _answers[url] = monotonic(), found
    return found


@lru_cache(maxsize=4)
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, socket_connect_timeout=0.5, socket_timeout=0.5)


def tell_control_state(client: redis.Redis, troubles: Iterable[dict[str, Any]] = ()) -> None:
    """Stores control's state in Redis. Raises redis.RedisError."""
    client.set(keys.CONTROL_STATE, json.dumps(list(troubles)), ex=LASTS_S)
