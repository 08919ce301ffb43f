"""Control does what policies say: as advice, or by itself."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from django.utils import timezone

from tests.integration.workers.cluster import Cluster
from tests.waiting import wait_until
from webapp.handovers.models import Handover
from webapp.nodes.models import Node
from webapp.policies.models import Decision, Policy

pytestmark = pytest.mark.integration


def standing(policy: Policy, node: str) -> list[tuple[str, str | None, str | None]]:
    policy.refresh_from_db()
    said = [each for each in policy.standing if each["node"] == node]
    return [(each["code"], each["element"], each["target"]) for each in said]


def test_a_battery_that_runs_down_moves_its_elements_in_order(cluster_of_three: Cluster) -> None:
    cluster = cluster_of_three
    sizes = {"large": 3000, "small": 1000, "middle": 2000}
    cluster.says("edge-a.battery", "0.5")
    cluster.says("edge-b.battery", "0.1")  # so nothing goes there
    for group, size in sizes.items():
        cluster.says(f"{group}.state-bytes", str(size))
    deployments = {group: cluster.deployed(group, "edge-a") for group in sizes}
    for group, deployment in deployments.items():
        wait_until(lambda g=group, d=deployment: cluster.owns(d, g, "edge-a"), f"edge-a owns {group}")

    policy = Policy.objects.create(
        name="night", rule={"kind": "battery", "threshold": 0.2, "for_s": 0}, moves_per_hour=60
    )
    wait_until(lambda: standing(policy, "edge-a") == [("calm", None, None)], "edge-a is looked at")
    assert standing(policy, "edge-b") == [("empty", None, None)]

    cluster.says("edge-a.battery", "0.15")
    wait_until(lambda: standing(policy, "edge-a") == [("move", "small", "edge-c")], "it is advised")
    assert not Handover.objects.exists()  # advice moves nothing

    Policy.objects.filter(pk=policy.pk).update(mode="automatic", standing=[])
    for group, deployment in deployments.items():
        wait_until(lambda g=group, d=deployment: cluster.owns(d, g, "edge-c"), f"edge-c owns {group}")
    wait_until(lambda: not Handover.objects.filter(outcome=None).exists(), "all moves have ended")

    moves = list(Handover.objects.order_by("created_at"))
    assert [(move.group, move.outcome, move.reason) for move in moves] == [
        (group, "done", "policy night") for group in ("small", "middle", "large")
    ]
    # One after another, and no batch in two epochs: nothing is lost or repeated.
    assert all(a.ended_at <= b.created_at for a, b in pairwise(moves) if a.ended_at)
    for group, deployment in deployments.items():
        epochs = [epoch for epoch, _ in cluster.commits(deployment, group)]
        assert epochs == sorted(epochs)
    ordered = Decision.objects.filter(handover__isnull=False).order_by("id")
    assert list(ordered.values_list("element", "handover")) == [(move.group, move.pk) for move in moves]
    wait_until(lambda: standing(policy, "edge-a") == [("empty", None, None)], "edge-a is empty")


def test_a_node_is_empty_for_its_maintenance_and_takes_nothing_until_it_is_over(
    cluster_of_three: Cluster,
) -> None:
    cluster = cluster_of_three
    deployment = cluster.deployed("power", "edge-a")
    wait_until(lambda: cluster.owns(deployment, "power", "edge-a"), "edge-a owns")
    late = {"kind": "latency", "pipeline": deployment.pipeline.name, "element": "", "ms": 500, "for_s": 60}
    late_policy = Policy.objects.create(name="late", rule=late)
    # A stand-in node measures none.
    wait_until(lambda: standing(late_policy, "edge-a") == [("unknown", "power", None)], "it is looked at")
    begins = timezone.now() + timedelta(minutes=20)  # its lead time has begun
    rule = {"kind": "maintenance", "of": "node", "name": "edge-a", "begins": begins.isoformat()}
    rule |= {"minutes": 60, "weekly": False, "lead_minutes": 30}
    policy = Policy.objects.create(name="night", rule=rule, mode="automatic", moves_per_hour=60)
    wait_until(lambda: standing(policy, "edge-a") == [("empty", None, None)], "edge-a is empty")
    [move] = Handover.objects.all()
    assert (move.origin, move.outcome, move.reason) == ("edge-a", "done", "policy night")
    assert cluster.owns(deployment, "power", move.target)
    assert Node.objects.get(name="edge-a").maintenance_until == begins + timedelta(minutes=60)
    policy.delete()
    wait_until(lambda: Node.objects.get(name="edge-a").maintenance_until is None, "it takes new elements")
