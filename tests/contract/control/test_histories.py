"""The points of the curves: written in one go, behind the transactions, and only when they are due."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import redis
from django.db import connection
from django.test.utils import CaptureQueriesContext

from pipeline_runtime.wire.keys import element_history, node_history
from tests.contract.control.test_bad_rows import sent, status
from webapp.placements.models import GroupPlacement
from workers import messages
from workers.control.context import ControlContext
from workers.control.reports.ingest import Ingest


def test_a_round_makes_one_trip_with_no_transaction_open(
    context: ControlContext,
    deployed: Callable[..., GroupPlacement],
    real_redis: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    execute, in_transaction = redis.client.Pipeline.execute, []

    def noted(pipe: Any) -> Any:
        in_transaction.append(connection.in_atomic_block)
        return execute(pipe)

    monkeypatch.setattr(redis.client.Pipeline, "execute", noted)
    monkeypatch.setattr(messages, "HISTORY_INTERVAL_S", 3600.0)
    placed = [deployed("power", "edge-a"), deployed("saved", "edge-a"), deployed("third", "edge-b")]
    ingest = Ingest(context)
    took = {"batch_ms_p50": 5.0, "latency_ms_p95": 9.0}

    def round_(number: int) -> None:
        paused = status(placed[0], 8).model_copy(update=took | {"paused": True})
        sent(real_redis, "edge-a", number, paused, status(placed[1], 8).model_copy(update=took))
        sent(real_redis, "edge-b", number, status(placed[2], 8))
        ingest._round()

    round_(1)
    assert in_transaction == [False]
    keys = [node_history(node) for node in ("edge-a", "edge-b")]
    keys += [element_history(each.deployment_id, each.group) for each in placed]
    found = [json.loads(point) for key in keys for point in real_redis.lrange(key, 0, -1)]
    assert len(found) == len(keys)
    assert all(point["t"] > 0 for point in found)
    assert {"latency_ms_p50", "latency_ms_p95", "latency_ms_p99"} <= found[-1].keys()
    _, _, paused, runs, _ = found
    assert (paused["batch_ms_p50"], paused["latency_ms_p95"]) == (None, None), (
        "no batch ends while it is paused"
    )
    assert (runs["batch_ms_p50"], runs["latency_ms_p95"]) == (5.0, 9.0)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        round_(2)
    assert in_transaction == [False], "no point is due yet"
    assert not [query for query in queries if GroupPlacement._meta.db_table in query["sql"]]
