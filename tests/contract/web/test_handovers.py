"""Moving and restoring: what is written, what is refused, what the control side is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.contract.web.conftest import PIPELINE, Caller
from tests.contract.web.test_permissions import assert_problem
from webapp.config.settings import channel_layers
from webapp.handovers.models import Handover
from webapp.monitoring.models import AuditRecord
from webapp.nodes.models import Node
from webapp.pipelines.models import Deployment

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
        "stop-and-copy",
        "cloud",
        "edge-b",
    )
    assert (row.deployment_id, row.group, row.element) == (deployment.pk, "power", "power")
    assert commands() == [("fogline.control.handover", [str(row.pk)])]
    assert AuditRecord.objects.filter(action="element.migrate").count() == 1
    problem = assert_problem(operator.post(f"{E}/migrate", {"target": "edge-a"}), 409)
    assert "moved already" in problem["detail"]
    assert Handover.objects.count() == 1
    assert operator.get(E).json()["status"] == "moving"
    assert operator.get(E).json()["handover"] == shown["id"]
    assert operator.get(f"/handovers/{row.pk}").json() == shown | {"cancellable": True}


@pytest.mark.parametrize(
    ("change", "target", "words"),
    [
        ({}, "cloud", "runs on cloud already"),
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
    Handover.objects.update(cancel_requested=False, phase="CLAIM")
    problem = assert_problem(operator.post(f"/handovers/{id}/cancel"), 409)
    assert "past the cut" in problem["detail"]
    Handover.objects.update(phase="FINISH", outcome="done")
    assert_problem(operator.post(f"/handovers/{id}/cancel"), 409)
    assert operator.get(E).json()["handover"] is None


@pytest.mark.usefixtures("deployment")
def test_an_order_stands_when_redis_is_away(caller: Call, settings: Any) -> None:
    """The control side finds the row by itself: a lost command is no loss."""
    away = "redis://127.0.0.1:1/0"
    settings.FOGLINE = replace(settings.FOGLINE, redis_url=away)
    settings.CHANNEL_LAYERS = channel_layers(away)
    assert caller("operator").post(f"{E}/migrate", {"target": "edge-b"}).status_code == 202
    assert Handover.objects.count() == 1
