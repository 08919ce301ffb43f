"""The dashboard while control does not work or does not take in reports: it shows no old figure as
current."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
import redis
from django.db import connection
from django.test import Client
from django.utils import timezone

from pipeline_runtime.wire import keys
from tests.contract.web.conftest import PIPELINE, Caller
from tests.contract.web.test_health import samples
from webapp.backends.control_state import BLIND, STORE, ControlState
from webapp.monitoring import board
from webapp.nodes.models import Node
from webapp.operations.models import Operation
from webapp.placements.models import Deployment

Call = Callable[[str | None], Caller]
POWER = f"/pipelines/{PIPELINE}/elements/power"
SINCE = "2026-11-20T12:00:00+00:00"
NOBODY_IS_HEARD = {"kind": BLIND, "message": "all 3 nodes fell silent at once", "since": SINCE}
STORE_IS_FULL = {"kind": STORE, "message": "The disk is full.", "since": SINCE}


def attention(caller: Call) -> list[tuple[str, str]]:
    lines = caller("viewer").get("/overview").json()["attention"]
    return [(line["kind"], line["severity"]) for line in lines]


def shown(caller: Call) -> dict[str, Any]:
    viewer = caller("viewer")
    item = viewer.get(POWER).json()
    nodes = {node["name"]: node["up"] for node in viewer.get("/nodes").json()}
    found = samples(Client().get("/metrics").content.decode())
    assert ("fogline_element_lag_rows" in found) is (found["fogline_control_up"] == [({}, 1.0)])
    return {
        "status": item["status"],
        "rate": item["rows_in_per_s"],
        "pipeline": viewer.get(f"/pipelines/{PIPELINE}").json()["status"],
        "nodes": set(nodes.values()),
        "metrics": {value for _, value in found["fogline_node_up"]},
    }


UNHEARD = {"status": "unheard", "rate": None, "pipeline": "attention", "nodes": {False}, "metrics": {0.0}}
HEARD = {"status": "running", "rate": 100.0, "pipeline": "running", "nodes": {True}, "metrics": {1.0}}


def away(client: redis.Redis, settings: Any) -> None:
    client.delete(keys.CONTROL_STATE)


def redis_away(client: redis.Redis, settings: Any) -> None:
    settings.FOGLINE = settings.FOGLINE.model_copy(update={"redis_url": "redis://127.0.0.1:1/0"})


def blind(client: redis.Redis, settings: Any) -> None:
    client.set(keys.CONTROL_STATE, json.dumps([NOBODY_IS_HEARD]))


def full(client: redis.Redis, settings: Any) -> None:
    client.set(keys.CONTROL_STATE, json.dumps([STORE_IS_FULL]))


@pytest.mark.parametrize(
    ("happens", "sees", "lines"),
    [
        (lambda *_: None, HEARD, []),
        (away, UNHEARD, [("control.away", "error")]),
        (redis_away, UNHEARD, [("control.away", "error")]),
        (blind, UNHEARD, [(BLIND, "warning")]),
        (full, HEARD, [(STORE, "error")]),
    ],
)
def test_what_is_shown(
    happens: Callable[..., None],
    sees: dict[str, Any],
    lines: list[tuple[str, str]],
    caller: Call,
    deployment: Deployment,
    real_redis: redis.Redis,
    settings: Any,
) -> None:
    happens(real_redis, settings)
    assert shown(caller) == sees
    assert attention(caller) == lines


def test_a_node_that_was_silent_before_still_is(
    caller: Call, deployment: Deployment, real_redis: redis.Redis
) -> None:
    Node.objects.filter(name="cloud").update(up=False, silent_at=timezone.now())
    real_redis.delete(keys.CONTROL_STATE)
    control, cloud = caller("viewer").get("/overview").json()["attention"]
    assert "nothing is restored by itself" in control["message"]
    assert cloud["message"].startswith("cloud does not answer. It should run archive of machine-power, ")


def test_a_failed_upgrade_is_told_until_another_operation_follows_it(
    caller: Call, deployment: Deployment
) -> None:
    def operation(kind: str, status: str) -> None:
        Operation.objects.create(
            kind=kind, deployment=deployment, status=status, message="boom.", ended_at=timezone.now()
        )

    begun = timezone.now()
    operation("deploy", "done")
    operation("upgrade", "failed")
    [line] = caller("viewer").get("/overview").json()["attention"]
    assert (line["kind"], line["pipeline"]) == ("pipeline.upgrade_failed", PIPELINE)
    assert line["message"] == f"{PIPELINE} was not upgraded: boom."
    assert datetime.fromisoformat(line["at"]) >= begun.replace(microsecond=0)
    operation("upgrade", "done")
    assert attention(caller) == []


def test_no_action_waits_for_redis_while_it_holds_a_lock(
    caller: Call, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite has one for all who write."""

    def asked() -> ControlState:
        assert not connection.in_atomic_block
        return ControlState()

    monkeypatch.setattr(board, "control_state", asked)
    operator = caller("operator")
    for action, body in (("pause", {}), ("resume", {}), ("standby", {"node": "edge-b"}), ("checkpoints", {})):
        assert operator.post(f"{POWER}/{action}", body).status_code in (200, 202), action
    assert operator.delete(f"{POWER}/standby").status_code == 202
    assert operator.post(f"{POWER}/migrate", {"target": "edge-b"}).status_code == 202
