"""Control does what policies say: as advice, or by itself."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from signal import SIGKILL
from typing import Any

import pytest
from django.utils import timezone

from pipeline_runtime.planning.copies import with_copies
from tests.integration.workers.cluster import Cluster
from tests.integration.workers.conftest import Running
from tests.integration.workers.test_deployments import deploy, document, ended
from tests.waiting import wait_until
from webapp.handovers.models import Handover
from webapp.nodes.models import Node
from webapp.operations.models import Operation
from webapp.placements.models import Deployment
from webapp.policies.models import Decision, Policy

pytestmark = pytest.mark.integration


def standing(policy: Policy, node: str) -> list[tuple[str, str | None, str | None]]:
    policy.refresh_from_db()
    said = [each for each in policy.standing if each["node"] == node]
    return [(each["code"], each["element"], each["target"]) for each in said]


@pytest.mark.full
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
    wait_until(lambda: standing(policy, "edge-b") == [("empty", None, None)], "edge-b is looked at")

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


def at_site(policy: Policy, site: str) -> list[str]:
    policy.refresh_from_db()
    return [each["code"] for each in policy.standing if each.get("site") == site]


def said(policy: Policy) -> list[Any]:
    policy.refresh_from_db()
    return list(policy.standing)


def placed(deployment: Deployment) -> dict[str, str]:
    return dict(deployment.placements.values_list("group", "node__name"))


def set_rule(policy: Policy, **changes: Any) -> None:
    """A while later: what was changed before rests no more."""
    Operation.objects.update(created_at=timezone.now() - timedelta(minutes=30))
    policy.refresh_from_db()
    Policy.objects.filter(pk=policy.pk).update(rule=policy.rule | changes, standing=[])


@pytest.mark.full
def test_a_site_that_joins_gets_its_copy_and_one_that_goes_waits_or_gives_its_input_back(
    running: Running, redis_url: str, kafka: str
) -> None:
    sites = {"edge-a": "Hall", "edge-b": "Barn", "edge-c": "Yard"}
    with running(redis_url, kafka=kafka, nodes=tuple(sites)) as cluster:
        cluster.end_node("edge-c", SIGKILL)
        cluster.falls_silent("edge-c")
        for name, site in sites.items():
            Node.objects.filter(name=name).update(site=site)
        content, _ = with_copies(document("flow", saved="edge-a"), {}, ["numbers"], ["Hall", "Barn"])
        for element in content["spec"]["elements"]:
            if element["type"] == "merge":
                element["node"] = "edge-a"
        operation = ended(deploy(content))
        assert operation.status == "done", operation.message
        deployment = operation.deployment
        before = placed(deployment)
        assert before == {
            "numbers": "edge-a",
            "numbers-barn": "edge-b",
            "numbers-all": "edge-a",
            "saved": "edge-a",
        }
        rule = {"kind": "sites", "pipeline": "", "for_s": 1, "gone": "wait", "gone_s": 0}
        policy = Policy.objects.create(name="plants", rule=rule, mode="automatic")

        cluster.start_node("edge-c")
        wait_until(
            lambda: cluster.owns(deployment, "numbers-yard", "edge-c"),
            lambda: f"the copy runs at its site; {said(policy)}, {deployment.operations.values()}",
        )
        upgrade = ended(deployment.operations.get(kind="upgrade"))
        assert (upgrade.status, upgrade.reason, upgrade.created_by) == ("done", "policy plants", None)
        assert placed(deployment) == {**before, "numbers-yard": "edge-c"}
        deployment.refresh_from_db()
        pipeline = deployment.pipeline
        assert pipeline.draft == deployment.version.document
        assert deployment.version.note == "copies at Yard, by the policy plants"
        [merge] = [each for each in pipeline.draft["spec"]["elements"] if each["type"] == "merge"]
        assert list(merge["inputs"].values()) == ["numbers", "numbers-barn", "numbers-yard"]
        wait_until(lambda: (2, "edge-a") in cluster.commits(deployment, "numbers-all"), "it reads all three")
        [decision] = Decision.objects.filter(operation__isnull=False)
        assert (decision.site, decision.code, decision.operation) == ("Yard", "copy", upgrade.pk)
        wait_until(lambda: at_site(policy, "Yard") == ["calm"], "all is well there")

        # It goes, and is waited for: nothing is restored elsewhere.
        cluster.end_node("edge-c", SIGKILL)
        cluster.falls_silent("edge-c")
        wait_until(lambda: at_site(policy, "Yard") == ["waits"], "its copy waits")
        cluster.has_swept(deployment)
        assert placed(deployment)["numbers-yard"] == "edge-c"
        assert not Handover.objects.exists()

        # As long as the draft is another one than what runs, nothing is deployed with it.
        pipeline.draft["spec"]["elements"][0]["params"]["rate"] = 20
        pipeline.save()
        set_rule(policy, gone="take-out")
        wait_until(lambda: at_site(policy, "Yard") == ["refused"], "it says why not")
        pipeline.draft = deployment.version.document
        pipeline.save()
        wait_until(lambda: "numbers-yard" not in placed(deployment), "its input is given back")
        upgrade = ended(deployment.operations.filter(kind="upgrade").first())
        assert upgrade.status == "done", upgrade.message
        assert placed(deployment) == before

        # It comes back. What it held is not taken up again, and the new copy is another one.
        cluster.start_node("edge-c")
        wait_until(lambda: at_site(policy, "Yard") == ["resting"], "a site that flaps takes nothing along")
        wait_until(lambda: cluster.status(deployment, "numbers-yard", "edge-c") is None, "it lets go of it")
        set_rule(policy, gone="elsewhere")
        wait_until(lambda: cluster.owns(deployment, "numbers-yard-2", "edge-c"), "it has a copy again")
        ended(deployment.operations.filter(kind="upgrade").first())

        # And goes on elsewhere, as anything else would.
        cluster.end_node("edge-c", SIGKILL)
        cluster.falls_silent("edge-c")
        wait_until(lambda: placed(deployment)["numbers-yard-2"] != "edge-c", "it goes on elsewhere")

        # Nothing of all that has touched the others.
        for group in ("numbers", "numbers-barn", "saved"):
            assert {epoch for epoch, _ in cluster.commits(deployment, group)} == {1}
        commits = [epoch for epoch, _ in cluster.commits(deployment, "numbers-all")]
        assert commits == sorted(commits)
