"""Redis is away: the pipelines go on, no node counts as down, and everything works when Redis is back."""

from __future__ import annotations

import pytest
from django.utils import timezone

from tests.integration.workers.cluster import Cluster
from tests.waiting import wait_until
from webapp.audit.models import Event
from webapp.nodes.models import Node
from webapp.placements.models import GroupPlacement
from workers.supervisor.services import Redis

pytestmark = pytest.mark.integration

AN_HOUR_MS = 3_600_000


def test_pipelines_go_on_without_redis_and_commands_arrive_when_it_is_back(
    cluster_on_own_redis: Cluster, own_redis: Redis
) -> None:
    cluster = cluster_on_own_redis
    deployment = cluster.deployed("power", "edge-a")
    wait_until(lambda: cluster.owns(deployment, "power", "edge-a"))

    own_redis.stop()
    committed = len(cluster.commits(deployment, "power"))
    cluster.clock.now_ms += AN_HOUR_MS
    wait_until(lambda: len(cluster.commits(deployment, "power")) > committed + 3, "it goes on")
    # Also a node that is started while Redis is away begins from its disk.
    cluster.end_node("edge-a")
    cluster.start_node("edge-a")
    committed = len(cluster.commits(deployment, "power"))
    wait_until(lambda: len(cluster.commits(deployment, "power")) > committed, "from its disk")
    GroupPlacement.objects.filter(deployment=deployment).update(paused_at=timezone.now())

    own_redis.start()

    def paused() -> bool:
        status = cluster.status(deployment, "power", "edge-a")
        return status is not None and status.paused

    wait_until(paused, "the pause arrives")
    for node in ("edge-a", "edge-b"):
        cluster.is_heard(node)  # control goes on to judge
    assert Node.objects.filter(up=True).count() == 2
    assert not Event.objects.filter(kind="node.silent").exists()
