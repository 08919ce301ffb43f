"""The gaps of connectors are counted across restarts of their process, restarts of control, and moves."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import redis

from pipeline_runtime.model.connectors import ConnectorStatus
from pipeline_runtime.model.desired import ReplicaStatus
from tests.contract.control.test_bad_rows import Deployed, sent, status
from webapp.audit.models import Event
from webapp.placements.models import Replica
from webapp.placements.selectors import gaps_by_element, troubles_by_element
from workers.control.context import ControlContext
from workers.control.reports.ingest import Ingest
from workers.control.reports.troubles import FAILS_MS, WORKS_MS


def test_gaps_are_those_of_all_nodes_and_are_never_fewer(
    context: ControlContext, deployed: Deployed, real_redis: redis.Redis
) -> None:
    placement = deployed("bench", "edge-a")
    deployment = placement.deployment_id
    numbers: dict[str, int] = {}

    def told(ingest: Ingest, node: str, **counts: Any) -> tuple[int, int] | None:
        connector = ConnectorStatus(element="bench", state="connected", **counts)
        said: ReplicaStatus = status(placement, 9).model_copy(update={"connectors": (connector,)})
        numbers[node] = numbers.get(node, 0) + 1
        sent(real_redis, node, numbers[node], said)
        ingest._round()
        found = gaps_by_element([deployment]).get((deployment, "bench"))
        return None if found is None else (found.times, found.rows)

    def newest_at() -> datetime:
        return gaps_by_element([deployment])[deployment, "bench"].at

    first = Ingest(context)
    assert told(first, "edge-a") is None
    assert told(first, "edge-a", gaps_total=2, gap_rows_total=10) == (2, 10)
    # It moves: the next node has counted nothing, and what edge-a counted stays when its copy is gone.
    assert told(first, "edge-b") == (2, 10)
    Replica.objects.filter(node__name="edge-a").delete()
    assert told(first, "edge-b", gaps_total=1, gap_rows_total=5) == (3, 15)
    # Another control process hears the same once more, and an older report.
    again, at = Ingest(context), newest_at()
    assert told(again, "edge-b", gaps_total=1, gap_rows_total=5) == (3, 15)
    assert told(again, "edge-a", gaps_total=1, gap_rows_total=4) == (3, 15)
    assert newest_at() == at
    # The disk of edge-a is new, so its counter begins again: what it counts is all added.
    assert told(again, "edge-a", gaps_total=1, gap_rows_total=4, gaps_counter="new") == (4, 19)
    assert told(again, "edge-a", gaps_total=3, gap_rows_total=4, gaps_counter="new") == (6, 19)
    assert newest_at() > at


def test_a_connector_that_fails_is_an_event_and_so_is_its_end(
    context: ControlContext, deployed: Deployed, real_redis: redis.Redis
) -> None:
    placement = deployed("bench", "edge-a")
    deployment, numbers, ingest = placement.deployment_id, {"edge-a": 0, "edge-b": 0}, Ingest(context)

    def told(node: str, state: str, lasts_ms: int, why: str = "") -> list[tuple[str, str, str, str]]:
        """Says it in a report, and returns all events of connectors, the oldest first."""
        said = {"element": "bench", "state": state, "why": why, "since_ms": 1_000_000}
        connector = ConnectorStatus.model_validate(said)
        numbers[node] += 1
        sent(
            real_redis,
            node,
            numbers[node],
            status(placement, 9).model_copy(update={"connectors": (connector,)}),
            at_ms=1_000_000 + lasts_ms,
        )
        ingest._round()
        rows = Event.objects.filter(kind__startswith="connector.").order_by("id")
        return [(row.kind, row.severity, row.element, row.message) for row in rows]

    away = "Nobody listens at the broker 10.0.0.1:1883. It is tried again within 5 s."
    assert told("edge-a", "connected", 10) == []
    assert told("edge-a", "failing", 10, away) == []
    [fails] = told("edge-a", "failing", FAILS_MS, away)
    message = "The connector of bench fails on edge-a: Nobody listens at the broker 10.0.0.1:1883."
    assert fails == ("connector.failing", "warning", "bench", message)
    # It is told once: also by another control process, and when it fails on another node.
    ingest = Ingest(context)
    assert told("edge-a", "failing", 60_000, away) == told("edge-b", "failing", 60_000, away) == [fails]
    assert troubles_by_element([deployment])[deployment, "bench"].why.startswith("Nobody listens")
    assert told("edge-b", "connected", 100) == [fails]
    [_, works] = told("edge-b", "connected", WORKS_MS)
    assert works[:3] == ("connector.works", "info", "bench")
    assert works[3].startswith("The connector of bench works again on edge-b. It has failed since ")
    assert troubles_by_element([deployment])[deployment, "bench"].over
    assert told("edge-b", "connected", 300_000) == [fails, works]
    assert troubles_by_element([deployment]) == {}
