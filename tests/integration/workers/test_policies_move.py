"""Each kind of policy moves something by itself, and load that flaps nothing: real control, stand-in nodes.

What policies would wait for is told as if it had been so for a while: samples of the past are put where
control keeps them, and moves are made an hour old.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.db.models import F

from pipeline_runtime.wire import keys
from tests.integration.workers.cluster import Cluster
from tests.waiting import wait_until
from webapp.accounts.models import Role, User
from webapp.handovers.models import Handover
from webapp.nodes.models import GivenLatency
from webapp.placements.models import Deployment
from webapp.policies.facts import groups_now
from webapp.policies.models import Policy
from webapp.policies.places import tell

pytestmark = [pytest.mark.integration, pytest.mark.full]

PAST_S = 120
HOUR = timedelta(hours=1)
WAYS = {("edge-a", "edge-b"): 5.0, ("edge-a", "edge-c"): 40.0, ("edge-b", "edge-c"): 40.0}


def automatic(name: str, rule: dict[str, Any]) -> Policy:
    """One move: what is told of the nodes' load stays as it is, and would move the next one."""
    return Policy.objects.create(name=name, rule=rule, mode="automatic", moves_per_hour=1)


def is_heard(cluster: Cluster, cpu: Mapping[str, float]) -> None:
    """Control has a sample of each node that is of this alone."""
    for node, ratio in cpu.items():
        cluster.says(f"{node}.cpu", str(ratio))
    with redis.Redis.from_url(cluster.settings.redis_url) as client:
        for node, ratio in cpu.items():
            key = keys.node_samples(node)
            wait_until(
                lambda k=key, r=ratio: json.loads(client.lindex(k, -1) or "{}").get("cpu_ratio") == r,
                f"{node} says {ratio}",
            )


def has_been(cluster: Cluster, key: str, points: list[dict[str, Any]]) -> None:
    """In place of what was measured: these, evenly over the last two minutes."""
    now_ms = int(time.time() * 1000)
    step_ms = PAST_S * 1000 // len(points)
    past = [
        json.dumps({"t": now_ms - step_ms * back, **point})
        for back, point in zip(range(len(points) - 1, -1, -1), points, strict=True)
    ]
    with redis.Redis.from_url(cluster.settings.redis_url) as client:
        client.pipeline().delete(key).rpush(key, *past).execute()


def busy(cluster: Cluster, cpu: Mapping[str, float]) -> None:
    """So busy the nodes have been for two minutes, and are."""
    is_heard(cluster, cpu)
    for node, ratio in cpu.items():
        has_been(cluster, keys.node_samples(node), [{"cpu_ratio": ratio}] * 8)


def moved(cluster: Cluster, deployment: Deployment, policy: Policy) -> Handover:
    """What the policy has moved; then it is gone, and an hour over."""
    made = Handover.objects.filter(reason=f"policy {policy.name}")
    wait_until(lambda: made.exclude(outcome=None).exists(), f"{policy.name} has moved something")
    [move] = made
    policy.delete()
    assert move.outcome == "done", move.message
    wait_until(lambda: cluster.owns(deployment, move.group, move.target), f"{move.target} owns {move.group}")
    an_hour_passes()
    return move


def an_hour_passes() -> None:
    Handover.objects.update(
        created_at=F("created_at") - HOUR, ended_at=F("ended_at") - HOUR, reason="an hour ago"
    )


def test_spread_pack_follow_apart_and_latency_each_move_an_element(cluster_of_three: Cluster) -> None:
    cluster = cluster_of_three
    for (a, b), ms in WAYS.items():
        GivenLatency.objects.create(origin=a, target=b, ms=ms)
        GivenLatency.objects.create(origin=b, target=a, ms=ms)
    cluster.says("phone.state-bytes", "2000")
    cluster.says("clean.state-bytes", "1000")
    deployment = cluster.deployed_chain(("phone", "clean"), "edge-a")
    for group in ("phone", "clean"):
        wait_until(lambda g=group: cluster.owns(deployment, g, "edge-a"), f"edge-a owns {group}")
    pipeline = deployment.pipeline.name

    busy(cluster, {"edge-a": 0.7, "edge-b": 0.1, "edge-c": 0.4})
    move = moved(cluster, deployment, automatic("even", {"kind": "spread", "difference": 0.35, "for_s": 60}))
    assert (move.origin, move.target) == ("edge-a", "edge-b")

    busy(cluster, {"edge-a": 0.3, "edge-b": 0.1, "edge-c": 0.4})
    back = moved(cluster, deployment, automatic("few", {"kind": "pack", "threshold": 0.8, "for_s": 60}))
    assert (back.group, back.origin, back.target) == (move.group, "edge-b", "edge-a")

    # From where it is told to where it runs: first the element itself, then what reads only from it.
    busy(cluster, {"edge-a": 0.3, "edge-b": 0.1, "edge-c": 0.2})
    operator = User.objects.create_user("device", role=Role.OPERATOR)
    follow = {"kind": "follow", "pipeline": pipeline, "element": "phone", "along": True, "for_s": 0}
    for group in ("phone", "clean"):
        tell(operator, pipeline, "phone", "edge-c")
        move = moved(cluster, deployment, automatic("near", follow))
        assert (move.group, move.origin, move.target) == (group, "edge-a", "edge-c")

    wait_until(
        lambda: [each.now.refusal for each in groups_now().values()] == [None, None], "both may move again"
    )
    move = moved(cluster, deployment, automatic("apart", {"kind": "apart", "pipeline": pipeline, "most": 1}))
    assert (move.group, move.origin, move.target) == ("clean", "edge-c", "edge-b")  # the least busy one

    cluster.says("clean.latency-ms", "900")
    point = {"rows_in_per_s": 200.0, "rows_out_per_s": 200.0, "latency_ms_p95": 900.0}
    has_been(cluster, keys.element_history(deployment.pk, "clean"), [point] * 60)
    late = {"kind": "latency", "pipeline": pipeline, "element": "clean", "ms": 500, "for_s": 60}
    move = moved(cluster, deployment, automatic("late", late))
    assert (move.group, move.origin, move.target) == ("clean", "edge-b", "edge-c")  # where phone is

    for group in ("phone", "clean"):
        epochs = [epoch for epoch, _ in cluster.commits(deployment, group)]
        assert epochs == sorted(epochs)


def test_load_that_flaps_around_the_threshold_moves_nothing_back_and_forth(cluster_of_three: Cluster) -> None:
    cluster = cluster_of_three
    deployment = cluster.deployed_chain(("left", "right"), "edge-a")
    for group in ("left", "right"):
        wait_until(lambda g=group: cluster.owns(deployment, g, "edge-a"), f"edge-a owns {group}")
    calm = {"edge-b": 0.1, "edge-c": 0.5}
    busy(cluster, {"edge-a": 0.9} | calm)
    flapping = [{"cpu_ratio": ratio} for ratio in (0.9, 0.75) * 4]
    has_been(cluster, keys.node_samples("edge-a"), flapping)
    policy = automatic("busy", {"kind": "cpu", "threshold": 0.8, "for_s": 60})

    def flaps(node: str) -> None:
        """And control sees each of it."""
        for ratio, code in ((0.9, "not-yet"), (0.75, "calm")) * 3:
            is_heard(cluster, {node: ratio})
            wait_until(lambda c=code: said(policy, node) == c, f"{node} is {code}")

    flaps("edge-a")
    assert not Handover.objects.exists()

    busy(cluster, {"edge-a": 0.9} | calm)
    wait_until(lambda: Handover.objects.filter(outcome="done").exists(), "what stays busy is relieved")
    [move] = Handover.objects.all()
    assert (move.origin, move.target, move.reason) == ("edge-a", "edge-b", "policy busy")

    # Its load goes with it, and flaps there; nor is it only its rest that keeps it.
    is_heard(cluster, {"edge-a": 0.45, "edge-b": 0.75})
    an_hour_passes()
    has_been(cluster, keys.node_samples("edge-b"), flapping)
    flaps("edge-b")
    assert Handover.objects.count() == 1
    assert cluster.owns(deployment, move.group, "edge-b")


def said(policy: Policy, node: str) -> str | None:
    policy.refresh_from_db()
    codes = [each["code"] for each in policy.standing if each["node"] == node and each["group"] is None]
    return codes[0] if codes else None
