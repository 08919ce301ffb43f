"""Moves and restorations over REST: the rows that are written, the refusals, and the commands to control."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from tests.contract.web.conftest import PIPELINE, Caller, report
from tests.contract.web.test_permissions import assert_problem
from webapp.audit.models import AuditRecord
from webapp.config.settings import channel_layers
from webapp.handovers.models import Handover
from webapp.nodes.models import Node
from webapp.placements.models import Deployment, ExtraReplica, GroupPlacement

E = f"/pipelines/{PIPELINE}/elements/power"
Call = Callable[[str | None], Caller]
Commands = Callable[[], list[tuple[str, list[Any]]]]


def test_a_migration_is_ordered_once(caller: Call, deployment: Deployment, commands: Commands) -> None:
    operator = caller("operator")
    response = operator.post(f"{E}/migrate", {"target": "edge-b"})
    assert response.status_code == 202
    shown = response.json()["handover"]
    row = Handover.objects.get()
    assert shown["id"] == str(row.pk)
    assert (row.kind, row.strategy, row.origin, row.target) == (
        "migration",
        "standby",
        "cloud",
        "edge-b",
    )
    assert (row.deployment_id, row.group, row.element) == (deployment.pk, "power", "power")
    assert commands() == [("fogline.control.handover", [str(row.pk)])]
    assert AuditRecord.objects.filter(action="element.migrate").count() == 1
    problem = assert_problem(operator.post(f"{E}/migrate", {"target": "edge-a"}), 409)
    assert "already being moved" in problem["detail"]
    assert Handover.objects.count() == 1
    assert operator.get(E).json()["status"] == "moving"
    assert operator.get(E).json()["handover"] == shown["id"]
    assert operator.get(f"/handovers/{row.pk}").json() == shown | {"cancellable": True}


@pytest.mark.usefixtures("deployment")
def test_the_strategy_follows_from_what_a_standby_can_follow(caller: Call) -> None:
    operator = caller("operator")
    spec = GroupPlacement.objects.get(group="power").spec
    GroupPlacement.objects.filter(group="power").update(spec={**spec, "follow": "none"})
    refused = operator.post(f"{E}/migrate", {"target": "edge-b", "strategy": "standby"})
    assert "a standby cannot follow it" in assert_problem(refused, 409)["detail"]
    shown = operator.post(f"{E}/migrate", {"target": "edge-b"}).json()["handover"]
    assert shown["strategy"] == "stop-and-copy"


@pytest.mark.usefixtures("deployment")
def test_a_standby_is_kept_on_one_node_and_dropped(
    caller: Call, commands: Commands, nodes: dict[str, Node], deployment: Deployment
) -> None:
    operator = caller("operator")
    for _ in range(2):
        shown = operator.post(f"{E}/standby", {"node": "edge-b"})
        assert shown.status_code == 202
    assert shown.json()["standby"] == {"node": "edge-b", "behind": None, "armed": False, "wanted": True}
    assert commands() == [("fogline.control.desired_changed", [])]
    [row] = ExtraReplica.objects.all()
    assert (row.role, row.wanted, row.generation) == ("standby", True, 2)
    report(deployment, "power", nodes["edge-b"], "standby", seq=5, behind=2)
    assert operator.get(E).json()["standby"]["behind"] == 2
    assert operator.post(f"{E}/standby", {"node": "edge-a"}).json()["standby"]["node"] == "edge-a"
    assert ExtraReplica.objects.count() == 1
    for node, status in (("cloud", 409), ("nowhere", 422)):
        assert_problem(operator.post(f"{E}/standby", {"node": node}), status)
    assert operator.delete(f"{E}/standby").json()["standby"] is None
    assert operator.delete(f"{E}/standby").status_code == 202
    assert not ExtraReplica.objects.exists()
    actions = AuditRecord.objects.order_by("at").values_list("action", flat=True)
    assert list(actions) == ["element.keep_standby", "element.keep_standby", "element.drop_standby"]


@pytest.mark.usefixtures("deployment")
def test_a_former_owner_that_still_follows_becomes_the_kept_standby(
    caller: Call, nodes: dict[str, Node], deployment: Deployment
) -> None:
    ExtraReplica.objects.create(
        deployment=deployment,
        group="power",
        node=nodes["edge-a"],
        role="standby",
        until=timezone.now(),
        generation=1,
    )
    caller("operator").post(f"{E}/standby", {"node": "edge-a"})
    row = ExtraReplica.objects.get()
    assert (row.wanted, row.until, row.generation) == (True, None, 1)


@pytest.mark.usefixtures("deployment")
def test_a_restoration_prefers_the_standby_that_follows(
    caller: Call, nodes: dict[str, Node], deployment: Deployment
) -> None:
    operator = caller("operator")
    operator.post(f"{E}/standby", {"node": "edge-b"})
    report(deployment, "power", nodes["edge-b"], "standby")
    Node.objects.filter(name="cloud").update(up=False)
    shown = operator.post(f"{E}/restore").json()["handover"]
    assert (shown["strategy"], shown["target"]) == ("hot-standby", "edge-b")
    Handover.objects.all().delete()
    shown = operator.post(f"{E}/restore", {"target": "edge-a"}).json()["handover"]
    assert (shown["strategy"], shown["target"]) == ("checkpoint", "edge-a")
    assert_problem(operator.delete(f"{E}/standby"), 409)


@pytest.mark.usefixtures("deployment")
def test_a_rewind_needs_a_checkpoint(caller: Call) -> None:
    problem = assert_problem(caller("operator").post(f"{E}/restore", {"rewind": True}), 422)
    assert problem["faults"][0]["path"] == "checkpoint"
    assert not Handover.objects.exists()


@pytest.mark.parametrize(
    ("change", "target", "words"),
    [
        ({}, "cloud", "already runs on cloud"),
        ({"edge-b": {"up": False}}, "edge-b", "does not answer"),
        ({"edge-b": {"cordoned": True}}, "edge-b", "cordoned"),
        ({"cloud": {"up": False}}, "edge-b", "restore it elsewhere"),
    ],
)
@pytest.mark.usefixtures("deployment")
def test_a_migration_that_cannot_be_is_refused_with_the_reason_and_changes_nothing(
    caller: Call, commands: Commands, change: dict[str, Any], target: str, words: str
) -> None:
    for name, fields in change.items():
        Node.objects.filter(name=name).update(**fields)
    problem = assert_problem(caller("operator").post(f"{E}/migrate", {"target": target}), 409)
    assert words in problem["detail"]
    assert problem["safe"]
    assert not Handover.objects.exists()
    assert commands() == []


@pytest.mark.usefixtures("deployment")
def test_a_restoration_needs_neither_its_node_nor_a_target(caller: Call, commands: Commands) -> None:
    Node.objects.filter(name="cloud").update(up=False)
    Node.objects.filter(name="edge-a").update(cordoned=True)
    response = caller("operator").post(f"{E}/restore")
    assert response.status_code == 202
    row = Handover.objects.get()
    assert (row.kind, row.origin, row.target, row.checkpoint_seq) == ("restoration", "cloud", "edge-b", None)
    assert commands() == [("fogline.control.handover", [str(row.pk)])]
    assert AuditRecord.objects.filter(action="element.restore").count() == 1


@pytest.mark.usefixtures("deployment")
def test_a_restoration_that_nobody_can_take_is_refused(caller: Call) -> None:
    Node.objects.update(up=False)
    problem = assert_problem(caller("operator").post(f"{E}/restore"), 409)
    assert "no other node" in problem["detail"]


@pytest.mark.usefixtures("deployment")
def test_a_handover_is_cancelled_before_the_cut_only(caller: Call, commands: Commands) -> None:
    operator = caller("operator")
    id = operator.post(f"{E}/migrate", {"target": "edge-b"}).json()["handover"]["id"]
    commands()
    response = operator.post(f"/handovers/{id}/cancel")
    assert response.status_code == 202
    assert response.json()["cancel_requested"]
    assert commands() == [("fogline.control.handover", [id])]
    again = operator.post(f"/handovers/{id}/cancel")
    assert (again.status_code, again.json()["cancel_requested"]) == (202, True)
    assert not again.json()["cancellable"]
    assert (commands(), AuditRecord.objects.filter(action="handover.cancel").count()) == ([], 1)
    for phase in ("PREPARE", "WARM", "STOP", "COPY"):
        Handover.objects.update(cancel_requested=False, phase=phase)
        assert operator.get(f"/handovers/{id}").json()["cancellable"]
    for asked_before in (False, True):
        Handover.objects.update(cancel_requested=asked_before, phase="CUT")
        problem = assert_problem(operator.post(f"/handovers/{id}/cancel"), 409)
        assert "ownership is being passed on already" in problem["detail"]
    for strategy, can_end in (("checkpoint", True), ("hot-standby", True), ("stop-and-copy", False)):
        Handover.objects.update(cancel_requested=False, phase="CLAIM", strategy=strategy)
        assert operator.get(f"/handovers/{id}").json()["cancellable"] is can_end
    Handover.objects.update(phase="FINISH", outcome="done")
    assert_problem(operator.post(f"/handovers/{id}/cancel"), 409)
    assert operator.get(E).json()["handover"] is None


@pytest.mark.usefixtures("deployment")
def test_an_order_stands_when_redis_is_away(caller: Call, settings: Any) -> None:
    """The control side finds the row by itself: a lost command is no loss."""
    away = "redis://127.0.0.1:1/0"
    settings.FOGLINE = settings.FOGLINE.model_copy(update={"redis_url": away})
    settings.CHANNEL_LAYERS = channel_layers(away)
    assert caller("operator").post(f"{E}/migrate", {"target": "edge-b"}).status_code == 202
    assert Handover.objects.count() == 1


@pytest.mark.usefixtures("deployment")
def test_a_groups_handovers_are_found_whichever_element_was_pointed_at(caller: Call) -> None:
    operator = caller("operator")
    path = f"/pipelines/{PIPELINE}/elements"
    ids: list[str] = []
    for element in ("variation", "alerts"):
        answer = operator.post(f"{path}/{element}/migrate", {"target": "edge-a"})
        ids.insert(0, answer.json()["handover"]["id"])
        Handover.objects.update(outcome="failed")
    operator.post(f"{E}/migrate", {"target": "edge-b"})

    def found(query: str) -> list[str]:
        return [each["id"] for each in operator.get(f"/handovers?pipeline={PIPELINE}&{query}").json()]

    assert found("group=watch") == ids
    assert found("element=alerts") == ids[:1]
    assert found("group=watch&limit=1") == ids[:1]
