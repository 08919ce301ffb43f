"""A pipeline that has ended runs again by one order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.web.conftest import PIPELINE, Caller, audited, report
from tests.contract.web.test_permissions import assert_problem
from webapp.audit.models import AuditRecord
from webapp.operations import actions
from webapp.operations.actions import deploy_again
from webapp.operations.models import Operation
from webapp.pipelines.models import Pipeline
from webapp.placements.models import Deployment

P = f"/pipelines/{PIPELINE}"
Call = Callable[[str | None], Caller]
Commands = Callable[[], list[tuple[str, list[Any]]]]


def let_end(deployment: Deployment) -> None:
    for placement in deployment.placements.select_related("node"):
        report(deployment, placement.group, placement.node, ended=True)


def test_it_is_undeployed_and_then_deployed_by_one_order(
    caller: Call, deployment: Deployment, commands: Commands
) -> None:
    editor = caller("editor")
    problem = assert_problem(editor.post(f"{P}/run-again"), 409)
    assert "has not ended" in problem["detail"]
    assert '"variation and alerts" is running' in problem["next"], "what has not ended is named"
    assert commands() == []

    let_end(deployment)
    assert editor.get(P).json()["status"] == "ended"
    answer = editor.post(f"{P}/run-again")
    assert answer.status_code == 202
    ordered = answer.json()
    assert answer.headers["Location"] == f"/api/v1/operations/{ordered['id']}"
    assert (ordered["kind"], ordered["again"], ordered["next"]) == ("undeploy", True, None)
    assert editor.post(f"{P}/run-again").json()["id"] == ordered["id"], "it is under way"
    [line] = AuditRecord.objects.filter(action="pipeline.undeploy")
    assert line.detail["again"] is True
    [(_, args)] = commands()
    assert args == [ordered["id"]]

    # control ends the undeployment
    undeployment = Operation.objects.get()
    Deployment.objects.update(status="undeployed")
    deploy_again(undeployment)
    undeployment.status = "done"
    undeployment.save()
    ended = editor.get(f"/operations/{ordered['id']}").json()
    following = editor.get(f"/operations/{ended['next']}").json()
    assert (following["kind"], following["again"]) == ("deploy", False)
    assert following["deployment"] != deployment.pk
    assert Deployment.objects.get(pk=following["deployment"]).version == deployment.version
    assert audited("pipeline.deploy") == 1


def test_refusals_call_a_pipeline_as_people_call_it(
    caller: Call, deployment: Deployment, pipeline: Pipeline
) -> None:
    pipeline.draft["metadata"]["title"] = "Fräsen Überwachung"
    pipeline.save()
    refused = assert_problem(caller("editor").post(f"{P}/run-again"), 409)
    assert refused["detail"] == '"Fräsen Überwachung" has not ended, so it cannot run again.'
    Deployment.objects.update(status="undeployed")
    for path in ("bring-back", "undeploy", "elements/power/pause"):
        detail = assert_problem(caller("editor").post(f"{P}/{path}"), 409)["detail"]
        assert "Fräsen Überwachung" in detail
        assert PIPELINE not in detail


def test_an_undeployment_that_is_ordered_meanwhile_takes_the_rest_back(
    caller: Call, deployment: Deployment
) -> None:
    editor = caller("editor")
    let_end(deployment)
    ordered = editor.post(f"{P}/run-again").json()
    answer = editor.post(f"{P}/undeploy").json()
    assert (answer["id"], answer["again"]) == (ordered["id"], False)
    assert audited("pipeline.undeploy") == 2
    assert "has not ended" in assert_problem(editor.post(f"{P}/run-again"), 409)["detail"]


def test_an_undeployment_is_hurried_by_its_id_and_what_follows_it_stays(
    caller: Call, deployment: Deployment
) -> None:
    editor = caller("editor")
    let_end(deployment)
    ordered = editor.post(f"{P}/run-again").json()
    path = f"/operations/{ordered['id']}"
    for _ in range(2):
        answer = editor.post(f"{path}/hurry")
        assert (answer.status_code, answer.json()["hurry"], answer.json()["again"]) == (202, True, True)
    assert audited("pipeline.hurry") == 1
    Operation.objects.update(status="done")
    problem = assert_problem(editor.post(f"{path}/hurry"), 409)
    assert "has ended" in problem["detail"]

    following = Operation.objects.create(kind="deploy", deployment=deployment)
    problem = assert_problem(editor.post(f"/operations/{following.pk}/hurry"), 409)
    assert "waits for no deliveries" in problem["detail"]
    following.refresh_from_db()
    assert not following.hurry


def test_what_cannot_be_deployed_any_more_is_not_undeployed(caller: Call, deployment: Deployment) -> None:
    editor = caller("editor")
    let_end(deployment)
    version = deployment.version
    version.document["spec"]["elements"][1]["params"] = {}
    version.save()
    assert assert_problem(editor.post(f"{P}/run-again"), 422)["faults"]
    deployment.refresh_from_db()
    assert deployment.status == "running"
    Deployment.objects.update(status="undeployed")
    assert "is not deployed" in assert_problem(editor.post(f"{P}/run-again"), 409)["detail"]


def test_what_has_not_ended_is_said_in_words_and_not_by_the_name_of_its_state(
    caller: Call, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "status_of", lambda _: "unheard")
    refused = assert_problem(caller("editor").post(f"{P}/run-again"), 409)
    assert '"power" is not heard, as control gets no reports' in refused["next"]
