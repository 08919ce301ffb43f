"""The gaps of connectors are counted across restarts of their process, restarts of control, and moves."""

from __future__ import annotations

from typing import Any

import redis

from pipeline_runtime.model.connectors import ConnectorStatus
from pipeline_runtime.model.desired import ReplicaStatus
from tests.contract.control.test_bad_rows import Deployed, sent, status
from webapp.placements.models import Replica
from webapp.placements.selectors import gaps_by_element
from workers.control.context import ControlContext
from workers.control.reports.ingest import Ingest


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
        return gaps_by_element([deployment]).get((deployment, "bench"))

    first = Ingest(context)
    assert told(first, "edge-a") is None
    assert told(first, "edge-a", gaps_total=2, gap_rows_total=10) == (2, 10)
    # It moves: the next node has counted nothing, and what edge-a counted stays when its copy is gone.
    assert told(first, "edge-b") == (2, 10)
    Replica.objects.filter(node__name="edge-a").delete()
    assert told(first, "edge-b", gaps_total=1, gap_rows_total=5) == (3, 15)
    # Another control process hears the same once more, and an older report.
    again = Ingest(context)
    assert told(again, "edge-b", gaps_total=1, gap_rows_total=5) == (3, 15)
    assert told(again, "edge-a", gaps_total=1, gap_rows_total=4) == (3, 15)
    # The disk of edge-a is new, so its counter begins again: what it counts is all added.
    assert told(again, "edge-a", gaps_total=1, gap_rows_total=4, gaps_counter="new") == (4, 19)
    assert told(again, "edge-a", gaps_total=3, gap_rows_total=4, gaps_counter="new") == (6, 19)
