"""All that runs elsewhere is brought home by one order, and a user's pin stays."""

from __future__ import annotations

from collections.abc import Callable

from tests.contract.web.conftest import PIPELINE, Caller, report
from tests.contract.web.test_moves import moved, pins
from tests.contract.web.test_permissions import assert_problem
from webapp.audit.models import AuditRecord
from webapp.handovers.draining import drain_reason
from webapp.handovers.models import Handover
from webapp.nodes.models import Node
from webapp.pipelines.models import Pipeline
from webapp.placements.models import Deployment

P = f"/pipelines/{PIPELINE}"
Call = Callable[[str | None], Caller]


def test_one_order_brings_all_home_and_says_what_cannot_move(
    caller: Call, deployment: Deployment, pipeline: Pipeline
) -> None:
    operator = caller("operator")
    assert "where it belongs" in assert_problem(operator.post(f"{P}/bring-back"), 409)["detail"]

    before = pins(pipeline)
    moved(deployment, "watch", "edge-b", "edge-a", reason=drain_reason("edge-b"))
    moved(deployment, "power", "cloud", "edge-a", reason=drain_reason("cloud"))
    moved(deployment, "archive", "cloud", "edge-a", reason=drain_reason("cloud"))
    archive = deployment.replicas.get(group="archive")
    report(deployment, "archive", archive.node, error={"message": "It fails.", "safe": "All.", "next": "Go."})
    answer = operator.post(f"{P}/bring-back")
    assert answer.status_code == 202, answer.content
    told = answer.json()
    assert {(each["group"], each["target"]) for each in told["handovers"]} == {
        ("watch", "edge-b"),
        ("power", "cloud"),
    }
    assert sorted(told["elements"]) == ["alerts", "power", "variation"], "a group moves as one"
    [refused] = told["refused"]
    assert (refused["element"], refused["home"]) == ("archive", "cloud")
    assert "has failed on edge-a" in refused["reason"]
    assert pins(pipeline) == before
    [line] = AuditRecord.objects.filter(action="pipeline.bring_back")
    assert (line.username, line.target) == ("operator-user", PIPELINE)
    assert line.detail["elements"] == told["elements"]

    # what is on its way home is not ordered twice
    assert operator.post(f"{P}/bring-back").json()["handovers"] == []
    assert Handover.objects.filter(outcome=None).count() == 2
    assert operator.get("/audit").json()[0]["action"] == "pipeline.bring_back"


def test_what_belongs_on_two_nodes_moves_once_and_a_node_that_is_gone_is_said(
    caller: Call, deployment: Deployment, pipeline: Pipeline
) -> None:
    document = pipeline.draft
    for element in document["spec"]["elements"]:
        element["node"] = {"variation": "edge-a", "alerts": "cloud", "power": "gone"}.get(
            element["id"], element.get("node")
        )
    pipeline.save()
    told = caller("operator").post(f"{P}/bring-back").json()
    assert [(each["element"], each["target"]) for each in told["handovers"]] == [("variation", "edge-a")]
    why = {each["element"]: each["reason"] for each in told["refused"]}
    assert "runs as one with what moves to edge-a" in why["alerts"]
    assert "gone is no longer registered" in why["power"]
    Node.objects.filter(name="edge-b").update(up=False)
    Deployment.objects.update(status="undeployed")
    assert "does not run" in assert_problem(caller("operator").post(f"{P}/bring-back"), 409)["detail"]
