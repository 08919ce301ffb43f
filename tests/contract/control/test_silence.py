"""Silence as ingest sees it in real reports: of one node, and of all."""

from __future__ import annotations

import pytest
import redis

from tests.contract.control.test_bad_rows import sent
from webapp.nodes.models import Node
from workers.control.context import ControlContext
from workers.control.ingest import Ingest


def redis_ms(client: redis.Redis) -> int:
    seconds, microseconds = client.time()
    return int(seconds) * 1000 + int(microseconds) // 1000


@pytest.mark.parametrize(
    ("law", "heard", "expected"),
    [
        ("one died", [("edge-a", 3500), ("edge-b", 2600), ("edge-c", 1500), ("edge-b", 400)], {"edge-a"}),
        ("the network broke", [("edge-a", 3500), ("edge-b", 2600), ("edge-c", 1800)], set()),
        ("it is back, and one is", [("edge-a", 21_000), ("edge-b", 20_500), ("edge-c", 0)], set()),
    ],
)
def test_who_is_down(
    law: str,
    heard: list[tuple[str, int]],
    expected: set[str],
    context: ControlContext,
    nodes: dict[str, Node],
    real_redis: redis.Redis,
) -> None:
    """`heard`: a node, and how many ms ago."""
    now_ms = redis_ms(real_redis)
    Node.objects.update(last_seen_at=None)
    ingest = Ingest(context)
    ingest._hearing_since_ms = 0
    for number, (node, ago_ms) in enumerate(heard, 1):
        sent(real_redis, node, number, heard_ms=now_ms - ago_ms)
    ingest._round()
    assert set(Node.objects.filter(up=False).values_list("name", flat=True)) == expected
