"""Why an element is where it is: as recorded when it came there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from tests.contract.web.conftest import PIPELINE, Caller, report
from tests.contract.web.test_map import link
from tests.contract.web.test_moves import moved
from tests.contract.web.test_permissions import assert_problem
from webapp.accounts.models import User
from webapp.handovers.draining import drain_reason, leave_reason
from webapp.handovers.models import Handover
from webapp.nodes.models import Node
from webapp.placements.models import Deployment, GroupPlacement
from webapp.policies.facts import REASON
from webapp.policies.models import Decision

Call = Callable[[str | None], Caller]


def why(caller: Call, element: str = "power") -> dict[str, Any]:
    response = caller("viewer").get(f"/pipelines/{PIPELINE}/elements/{element}/why")
    assert response.status_code == 200, response.content
    found: dict[str, Any] = response.json()
    return found


def moved_by(deployment: Deployment, **fields: Any) -> Handover:
    handover = moved(deployment, "power", "cloud", "edge-b", **fields)
    placement = GroupPlacement.objects.get(deployment=deployment, group="power")
    placement.note_placed(handover=str(handover.pk))
    placement.save()
    return handover


def test_what_was_chosen_says_by_what(caller: Call, deployment: Deployment) -> None:
    placement = GroupPlacement.objects.get(group="watch")
    placement.note_placed(why="it had the fewest elements (none) of the 3 nodes that could take it")
    placement.save()
    for element in ("variation", "alerts"):
        found = why(caller, element)
        assert found["sentence"] == (
            "Placed on edge-b when it was deployed: it had the fewest elements (none) of the 3 nodes that "
            "could take it."
        )
        assert found["at"] == placement.placed_at.isoformat()


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        (drain_reason("cloud"), "Moved here from cloud when cloud was drained."),
        (leave_reason("cloud"), "Moved here from cloud when cloud was stopped."),
        ("", "Moved here from cloud by a user who was removed since."),
    ],
)
def test_what_was_moved_by_itself_says_for_what(
    caller: Call, deployment: Deployment, reason: str, sentence: str
) -> None:
    handover = moved_by(deployment, reason=reason)
    found = why(caller)
    assert (found["sentence"], found["handover"], found["node"]) == (sentence, str(handover.pk), "edge-b")


def test_who_has_moved_it_is_named_and_what_a_policy_has_found(
    caller: Call, deployment: Deployment, users: dict[str, User]
) -> None:
    moved_by(deployment, created_by=users["operator"])
    assert why(caller)["sentence"] == "Moved here from cloud by operator-user."
    Handover.objects.all().delete()
    assert why(caller)["sentence"] == "It was moved there, but no record of that move is kept."
    handover = moved_by(deployment, reason=f"{REASON}busy")
    Decision.objects.create(
        at=timezone.now(), policy="busy", node="cloud", code="move", why="It was hot.", handover=handover.pk
    )
    found = why(caller)
    assert (found["sentence"], found["policy"]) == (
        "Moved here from cloud by the policy busy: It was hot.",
        "busy",
    )


def test_a_restoration_says_after_what(caller: Call, deployment: Deployment, users: dict[str, User]) -> None:
    handover = moved_by(deployment, reason="automatically, 5.2 s after cloud fell silent")
    Handover.objects.update(kind="restoration", strategy="checkpoint")
    assert why(caller)["sentence"] == (
        "Restored on edge-b, from cloud, automatically, 5.2 s after cloud fell silent."
    )
    Handover.objects.filter(pk=handover.pk).update(reason="", created_by=users["operator"])
    assert why(caller)["sentence"] == "Restored on edge-b, from cloud, by operator-user."


def test_what_has_no_node_says_so_and_what_is_not_there_is_missing(
    caller: Call, deployment: Deployment
) -> None:
    assert "The dashboard" in why(caller, "chart")["sentence"]
    assert_problem(caller("viewer").get(f"/pipelines/{PIPELINE}/elements/nothing/why"), 404)
    assert_problem(caller("viewer").get("/pipelines/nothing/elements/power/why"), 404)
    assert_problem(caller(None).get(f"/pipelines/{PIPELINE}/elements/power/why"), 401)
    Deployment.objects.update(status="undeployed")
    found = why(caller)
    assert (found["node"], found["sentence"], found["others"]) == (None, "It is not deployed.", [])


def others(caller: Call, element: str = "power") -> dict[str, dict[str, Any]]:
    return {other["node"]: other for other in why(caller, element)["others"]}


def test_the_other_nodes_say_what_speaks_for_and_against_each(
    caller: Call, deployment: Deployment, nodes: dict[str, Node]
) -> None:
    # power on cloud reads from readings on edge-a; archive, which reads from it, is on cloud as well
    link(nodes["edge-a"], nodes["cloud"], 20, bytes_per_s=3e6)
    Node.objects.filter(name="edge-b").update(cordoned=True)
    report(
        deployment, "power", nodes["cloud"], checkpoint_bytes=6_000, checkpoint_where=("edge-a", "central")
    )
    found = others(caller)
    assert sorted(found) == ["edge-a", "edge-b"]
    assert found["edge-a"] == {
        "node": "edge-a",
        "refusal": None,
        "cores": 2,
        "cores_free": 1.5,
        "upstream_ms": 0,
        "downstream_ms": 10,
        "state": "backup",
        "warnings": [],
    }
    full = nodes["edge-a"].load | {"memory_total_bytes": 1e9, "memory_ratio": 0.95}
    Node.objects.filter(name="edge-a").update(load=full, url="http://10.0.0.7:1")
    [warning] = others(caller)["edge-a"]["warnings"]
    assert warning == "has 50 MB free of the 80 MB needed"
    path = f"/pipelines/{PIPELINE}/elements/power/forecast"
    assert caller("viewer").get(path).json()["nodes"]["edge-a"]["warnings"] == [warning]
    beside = found["edge-b"]
    assert (beside["upstream_ms"], beside["downstream_ms"], beside["state"]) == (None, None, "none")
    assert "cordoned" in beside["refusal"]
    report(deployment, "power", nodes["edge-b"], "standby")
    Node.objects.filter(name="edge-b").update(up=False)
    silent = others(caller)["edge-b"]
    assert (silent["state"], silent["cores_free"]) == ("standby", None)


def test_what_a_move_costs_is_told_with_its_forecast(
    caller: Call, deployment: Deployment, nodes: dict[str, Node]
) -> None:
    link(nodes["edge-a"], nodes["cloud"], 20, bytes_per_s=3e6)  # what cloud sends edge-a
    report(deployment, "power", nodes["cloud"], checkpoint_bytes=6_000_000, checkpoint_where=("central",))
    Node.objects.filter(name="edge-a").update(url="http://10.0.0.7:1")
    path = f"/pipelines/{PIPELINE}/elements/power/forecast"
    cost = caller("viewer").get(path).json()["nodes"]["edge-a"]["cost"]
    # of the 25 % that cloud is busy, power and archive, which see as many rows, have half each
    assert cost == {
        "bytes": 6_000_000,
        "bytes_per_s": 3e6,
        "latency_ms": 10,
        "copy_s": 2,
        "same_site": False,
        "cpu": {"before": 0.25, "after": 0.375},
        "origin_cpu": {"before": 0.25, "after": 0.125},
        "upstream_ms": {"before": 10, "after": 0},
        "downstream_ms": {"before": 0, "after": 10},
    }
    Node.objects.filter(name__in=["edge-a", "cloud"]).update(site="hall", url="http://10.0.0.7:1")
    report(deployment, "power", nodes["edge-a"], "standby")
    cost = caller("viewer").get(path).json()["nodes"]["edge-a"]["cost"]
    assert (cost["bytes"], cost["copy_s"], cost["same_site"]) == (0, 0, True)
    assert cost["cpu"] == {"before": 0.25, "after": 0.25}, "they are on one machine"
    assert cost["upstream_ms"] == {"before": 0, "after": 0}
    readings = f"/pipelines/{PIPELINE}/elements/readings/forecast"
    assert caller("viewer").get(readings).json()["nodes"]["cloud"]["cost"]["upstream_ms"] is None
