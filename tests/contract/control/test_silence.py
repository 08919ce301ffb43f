"""Silence as ingest sees it in real reports: of one node, and of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import redis
from django.utils import timezone

from tests.contract.control.test_bad_rows import sent
from webapp.audit.models import Event
from webapp.nodes.models import Node
from webapp.placements.models import Deployment, GroupPlacement
from workers.control.context import ControlContext
from workers.control.reports.ingest import Ingest

ONE_DIED = [("edge-a", 3500), ("edge-b", 2600), ("edge-c", 1500), ("edge-b", 400)]


def redis_ms(client: redis.Redis) -> int:
    seconds, microseconds = client.time()
    return int(seconds) * 1000 + int(microseconds) // 1000


def listen(
    context: ControlContext, client: redis.Redis, heard: list[tuple[str, int]], ahead_ms: int = 0
) -> None:
    """`heard`: a node, and how many ms ago; `ahead_ms`: Redis's clock, of ours."""
    now_ms = redis_ms(client) + ahead_ms
    Node.objects.update(last_seen_at=None)
    ingest = Ingest(context)
    # It stands still: whatever else the machine has to do meanwhile, no more time has passed.
    ingest._stream.now_ms = lambda: now_ms  # type: ignore[method-assign]
    ingest._silence.since_ms = 0
    for number, (node, ago_ms) in enumerate(heard, 1):
        sent(client, node, number, heard_ms=now_ms - ago_ms)
    ingest._round()


@pytest.mark.parametrize(
    ("law", "heard", "expected"),
    [
        ("one died", ONE_DIED, {"edge-a"}),
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
    listen(context, real_redis, heard)
    assert set(Node.objects.filter(up=False).values_list("name", flat=True)) == expected


@pytest.mark.parametrize("ahead_ms", [-3_600_000, 3_600_000])
def test_since_when_it_is_silent_goes_by_the_clock_of_what_is_compared_with_it(
    ahead_ms: int, context: ControlContext, nodes: dict[str, Node], real_redis: redis.Redis
) -> None:
    before = timezone.now()
    listen(context, real_redis, ONE_DIED, ahead_ms)
    silent_at = Node.objects.get(name="edge-a").silent_at
    assert silent_at is not None
    assert before <= silent_at <= Event.objects.get(kind="node.silent").at


@pytest.mark.parametrize(
    ("ran", "restore", "said"),
    [
        ("edge-a", "auto", "What it ran is restored on other nodes by itself."),
        ("edge-a", "manual", "restore its elements on another node."),
        ("edge-b", "auto", "It had nothing to run."),
    ],
)
def test_the_event_of_a_silence_says_what_follows(
    ran: str,
    restore: str,
    said: str,
    deployed: Callable[..., GroupPlacement],
    context: ControlContext,
    real_redis: redis.Redis,
) -> None:
    deployed("power", ran)
    context = replace(context, settings=context.settings.model_copy(update={"restore": restore}))
    listen(context, real_redis, ONE_DIED)
    assert Event.objects.get(kind="node.silent").message.endswith(said)


def test_a_deployment_that_waits_for_the_silent_node_is_told_of(
    deployed: Callable[..., GroupPlacement], context: ControlContext, real_redis: redis.Redis
) -> None:
    deployed("power", "edge-a")
    Deployment.objects.update(status="deploying")
    listen(context, real_redis, ONE_DIED)
    assert Event.objects.get(kind="node.silent").message.endswith("A deployment waits for it.")
