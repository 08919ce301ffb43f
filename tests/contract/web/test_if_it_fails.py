"""The forecast of a node's failure: it agrees with the decisions of control."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from tests.contract.web.conftest import Caller, report
from tests.contract.web.test_permissions import assert_problem
from webapp.handovers.facts import group_facts
from webapp.handovers.models import Handover
from webapp.handovers.targets import restoration_target
from webapp.nodes.models import Node
from webapp.placements.fleet import Fleet
from webapp.placements.models import Deployment, ExtraReplica, GroupPlacement

Call = Callable[[str | None], Caller]


def told(caller: Call, node: str) -> dict[str, Any]:
    response = caller("viewer").get(f"/nodes/{node}/failure")
    assert response.status_code == 200, response.content
    found: dict[str, Any] = response.json()
    return found


def of(caller: Call, node: str) -> dict[str, Any]:
    [group] = told(caller, node)["groups"]
    found: dict[str, Any] = group
    return found


def test_each_group_goes_where_there_is_the_most_room_and_counts_there_for_the_next(
    caller: Call, deployment: Deployment, nodes: dict[str, Node]
) -> None:
    # One element on edge-z, two on edge-b; archive and power on cloud. Equals go by name.
    Node.objects.filter(name="edge-a").update(name="edge-z")
    groups = told(caller, "cloud")["groups"]
    assert [(group["element"], group["target"]) for group in groups] == [
        ("archive", "edge-z"),
        ("power", "edge-b"),
    ]
    assert all(group["by_itself"] and group["way"] == "checkpoint" for group in groups)
    Node.objects.filter(name="edge-z").update(cordoned=True)
    assert {group["target"] for group in told(caller, "cloud")["groups"]} == {"edge-b"}


def test_a_hot_standby_takes_over_and_a_copy_that_lies_there_is_not_fetched(
    caller: Call, deployment: Deployment, nodes: dict[str, Node]
) -> None:
    report(
        deployment, "watch", nodes["edge-b"], checkpoint_bytes=5_000, checkpoint_where=("edge-b", "central")
    )
    found = of(caller, "edge-b")
    assert found["titles"] == ["variation", "alerts"]
    assert (found["target"], found["way"], found["bytes"]) == ("edge-a", "checkpoint", 5_000)
    report(
        deployment, "watch", nodes["edge-b"], checkpoint_bytes=5_000, checkpoint_where=("edge-b", "edge-a")
    )
    assert of(caller, "edge-b")["bytes"] == 0
    assert told(caller, "edge-a")["backups"] == ["variation and alerts"]

    ExtraReplica.objects.create(deployment=deployment, group="watch", node=nodes["cloud"], role="standby")
    report(deployment, "watch", nodes["cloud"], "standby", seq=7)
    found = of(caller, "edge-b")
    assert (found["target"], found["way"], found["bytes"]) == ("cloud", "hot-standby", None)
    assert found["expected"]["basis"] == "typical"


def test_it_is_what_the_control_side_would_choose(
    caller: Call, deployment: Deployment, nodes: dict[str, Node]
) -> None:
    foretold = of(caller, "edge-b")["target"]
    Node.objects.filter(name="edge-b").update(up=False, silent_at=timezone.now())
    facts = group_facts([deployment])[deployment.pk]["watch"]
    assert restoration_target(deployment, facts, Fleet()) == (foretold, None)


def test_what_nobody_can_take_stands_still_with_the_reason(
    caller: Call, deployment: Deployment, nodes: dict[str, Node]
) -> None:
    Node.objects.exclude(name="edge-b").update(up=False)
    found = of(caller, "edge-b")
    assert (found["target"], found["way"], found["by_itself"]) == (None, None, False)
    assert found["reason"] == "no other node is running and takes new elements"


def test_what_a_person_has_to_restore_is_told(caller: Call, deployment: Deployment, settings: Any) -> None:
    placement = GroupPlacement.objects.get(group="watch")
    GroupPlacement.objects.filter(pk=placement.pk).update(spec={**placement.spec, "follow": "none"})
    found = of(caller, "edge-b")
    assert (found["by_itself"], found["target"]) == (False, "edge-a")
    assert "a person decides" in found["reason"]
    GroupPlacement.objects.filter(pk=placement.pk).update(spec=placement.spec)
    assert of(caller, "edge-b")["by_itself"]

    ends = [{"node": "edge-b", "at_ms": at_ms, "alone": True} for at_ms in (1, 2)]
    GroupPlacement.objects.filter(pk=placement.pk).update(java_ends=ends)
    assert "it is held" in of(caller, "edge-b")["reason"]
    settings.FOGLINE = settings.FOGLINE.model_copy(update={"restore": "manual"})
    assert "FOGLINE_RESTORE" in of(caller, "edge-b")["reason"]


def test_what_is_moving_is_not_foretold(caller: Call, deployment: Deployment) -> None:
    assert (
        caller("operator")
        .post(f"/pipelines/{deployment.pipeline.name}/elements/alerts/migrate", {"target": "cloud"})
        .status_code
        == 202
    )
    assert Handover.objects.count() == 1
    found = of(caller, "edge-b")
    assert (found["target"], found["reason"]) == (None, "it is already being moved")


@pytest.mark.usefixtures("nodes")
def test_a_node_that_runs_nothing_loses_nothing_and_one_that_is_not_there_is_missing(caller: Call) -> None:
    assert told(caller, "edge-a") | {"silence_s": 0} == {"groups": [], "backups": [], "silence_s": 0}
    assert_problem(caller("viewer").get("/nodes/nowhere/failure"), 404)
    assert_problem(caller(None).get("/nodes/edge-a/failure"), 401)
