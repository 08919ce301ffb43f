"""The queue of a pipeline's moves: what is put into it, what is refused, what is cancelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from tests.contract.web.conftest import PIPELINE, Caller
from tests.contract.web.test_permissions import assert_problem
from webapp.audit.models import AuditRecord
from webapp.handovers.models import Handover, QueuedMove
from webapp.nodes.models import Node
from webapp.placements.models import Deployment

M = f"/pipelines/{PIPELINE}/moves"
Call = Callable[[str | None], Caller]
Commands = Callable[[], list[tuple[str, list[Any]]]]


def wanted(target: str, *elements: str) -> dict[str, Any]:
    return {"moves": [{"element": element, "target": target} for element in elements]}


def rows() -> list[tuple[str, str]]:
    return [(move.element, move.state) for move in QueuedMove.objects.all()]


@pytest.mark.usefixtures("deployment")
def test_moves_are_queued_behind_those_that_wait_and_shown_in_their_order(
    caller: Call, commands: Commands
) -> None:
    operator = caller("operator")
    assert operator.post(M, wanted("cloud", "readings", "alerts")).status_code == 202
    response = operator.post(M, wanted("edge-b", "power"))
    assert response.status_code == 202
    shown = [(each["element"], each["target"], each["place"], each["waits_for"]) for each in response.json()]
    assert shown == [
        ("readings", "cloud", 1, None),
        ("alerts", "cloud", 2, "readings"),
        ("power", "edge-b", 3, "alerts"),
    ]
    assert {(each["of"], each["state"], each["created_by"]) for each in response.json()} == {
        (3, "waits", "operator-user")
    }
    assert caller("viewer").get(M).json() == response.json()
    assert not Handover.objects.exists(), "control orders them"
    assert commands() == [("fogline.control.look", [])] * 2
    audit = AuditRecord.objects.filter(action="pipeline.queue_moves").order_by("id").first()
    assert audit is not None
    assert audit.detail["moves"] == [{"element": id, "to": "cloud"} for id in ("readings", "alerts")]


@pytest.mark.usefixtures("deployment")
def test_if_one_move_cannot_be_none_is_queued_and_each_fault_says_where(caller: Call) -> None:
    operator = caller("operator")
    Node.objects.filter(name="edge-b").update(cordoned=True)
    operator.post(M, wanted("cloud", "readings"))
    body = {
        "moves": [
            {"element": "power", "target": "edge-a"},
            {"element": "readings", "target": "edge-a"},
            {"element": "archive", "target": "edge-b"},
            {"element": "nothing", "target": "edge-a"},
            {"element": "variation", "target": "cloud"},
            {"element": "alerts", "target": "edge-a"},
        ]
    }
    problem = assert_problem(operator.post(M, body), 422)
    faults = {fault["path"]: fault["message"] for fault in problem["faults"]}
    assert set(faults) == {"moves.1.element", "moves.2.target", "moves.3.element", "moves.5.element"}
    assert "waits in the queue already, to move to cloud: cancel that first" in faults["moves.1.element"]
    assert "edge-b is cordoned" in faults["moves.2.target"]
    assert "waits in the queue already, to move to cloud" in faults["moves.5.element"], "it runs as one"
    assert problem["detail"].endswith("3 more cannot move, either.")
    assert rows() == [("readings", "waits")]


@pytest.mark.usefixtures("deployment")
def test_those_that_wait_are_cancelled_one_or_all_and_what_moves_goes_on(
    caller: Call, deployment: Deployment
) -> None:
    operator = caller("operator")
    first, second, _ = operator.post(M, wanted("edge-a", "power", "alerts", "archive")).json()
    handover = Handover.objects.create(
        deployment=deployment, group="power", element="power", begun={"start": "warm"}
    )
    QueuedMove.objects.filter(pk=first["id"]).update(handover=handover)
    problem = assert_problem(operator.post(f"{M}/{first['id']}/cancel"), 409)
    assert (problem["detail"], problem["next"]) == (
        "The move of power has begun, so it no longer waits.",
        f"Cancel the handover {handover.pk}.",
    )
    for _ in range(2):
        assert operator.post(f"{M}/{second['id']}/cancel").status_code == 200
    assert rows() == [("power", "moving"), ("alerts", "cancelled"), ("archive", "waits")]
    for _ in range(2):
        shown = operator.post(f"{M}/cancel").json()
    assert [each["state"] for each in shown] == ["moving", "cancelled", "cancelled"]
    assert AuditRecord.objects.filter(action="pipeline.cancel_moves").count() == 2


@pytest.mark.usefixtures("deployment")
def test_a_queue_lasts_until_its_last_move_has_ended_and_is_bounded(
    caller: Call, deployment: Deployment
) -> None:
    operator = caller("operator")
    ended = {"deployment": deployment, "target": "edge-a", "outcome": "done", "ended_at": timezone.now()}
    QueuedMove.objects.bulk_create(QueuedMove(element="power", **ended) for _ in range(499))
    waits = QueuedMove.objects.create(deployment=deployment, element="readings", target="cloud")
    problem = assert_problem(operator.post(M, wanted("edge-a", "power")), 409)
    assert "more than 500" in problem["detail"]
    QueuedMove.objects.filter(pk=waits.pk).update(outcome="done", ended_at=timezone.now())
    assert operator.post(M, wanted("edge-a", "power")).status_code == 202
    assert rows() == [("power", "waits")], "another queue"


def test_nothing_of_a_draft_can_move(caller: Call, pipeline: object) -> None:
    problem = assert_problem(caller("operator").post(M, wanted("edge-a", "power")), 409)
    assert "is not deployed" in problem["detail"]
