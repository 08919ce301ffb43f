"""Control reports about itself while it works. The web reads the report, and it disappears soon after control
ends."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from pipeline_runtime.wire import keys
from tests.contract.control.test_bad_rows import sent
from tests.contract.control.test_silence import redis_ms
from tests.waiting import PATIENCE_S
from webapp.backends import control_state as told_module
from webapp.backends.control_state import BLIND, STORE, control_state
from webapp.nodes.models import Node
from workers.control.context import ControlContext
from workers.control.reports import ingest as module
from workers.control.reports.ingest import Ingest

LASTS_S = int(PATIENCE_S)


@pytest.fixture(autouse=True)
def lasts_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was told is still there when a slow machine comes to look at it."""
    monkeypatch.setattr(told_module, "LASTS_S", LASTS_S)


@pytest.fixture
def told_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EACH_S", 0.0)
    monkeypatch.setattr(module, "DETECT_INTERVAL_S", 0.0)


def test_it_is_told_for_some_seconds_by_who_takes_reports_in(
    context: ControlContext, nodes: dict[str, Node], real_redis: redis.Redis
) -> None:
    assert control_state().away is not None
    Ingest(context)._round()
    assert control_state().hears
    assert 0 < real_redis.ttl(keys.CONTROL_STATE) <= LASTS_S


def test_what_is_the_matter_is_told_as_long_as_it_is(
    told_each_time: None, context: ControlContext, nodes: dict[str, Node], real_redis: redis.Redis
) -> None:
    alerts = ["The disk is full."]
    ingest = Ingest(context, lambda: alerts)
    ingest._silence.since_ms = 0
    now_ms = redis_ms(real_redis)
    ingest._stream.now_ms = lambda: now_ms  # type: ignore[method-assign]
    Node.objects.update(last_seen_at=None)
    for number, name in enumerate(nodes, 1):
        sent(real_redis, name, number, heard_ms=now_ms - 60_000 + number)

    def troubles() -> dict[str, Any]:
        ingest._round()
        return {trouble["kind"]: trouble for trouble in control_state().troubles}

    first = troubles()
    assert first[STORE]["message"] == "The disk is full."
    assert "all 3 nodes fell silent at once" in first[BLIND]["message"]
    assert not control_state().hears
    assert troubles() == first, "with the time since when it is so"
    for number, name in enumerate(nodes, 1):
        sent(real_redis, name, 10, heard_ms=now_ms + number)
    alerts.clear()
    assert troubles() == {}
    assert control_state().hears
