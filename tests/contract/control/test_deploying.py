"""How a deployment ends when something else happens at the same moment."""

from __future__ import annotations

from typing import Any

import pytest

from webapp.handovers.models import Operation
from webapp.monitoring.models import Event
from webapp.nodes.models import Node
from webapp.pipelines.models import Deployment, Pipeline, PipelineVersion
from workers.control import deployments
from workers.control.context import Closing, ControlContext


def document(**params: Any) -> dict[str, Any]:
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "p"},
        "spec": {"elements": [{"id": "readings", "type": "generator", "params": params}]},
    }


def undeployed_by_a_user(*_: Any) -> None:
    Deployment.objects.update(status=Deployment.Status.UNDEPLOYING)


def fails(*_: Any) -> None:
    undeployed_by_a_user()
    raise deployments.OperationFailed("readings does not start.")


def ordered() -> tuple[Deployment, Operation]:
    pipeline = Pipeline.objects.create(name="p", draft={})
    version = PipelineVersion.objects.create(pipeline=pipeline, number=1, document=document())
    deployment = Deployment.objects.create(pipeline=pipeline, version=version)
    return deployment, Operation.objects.create(kind="deploy", deployment=deployment)


@pytest.mark.parametrize("last", [undeployed_by_a_user, fails])
def test_its_own_end_takes_nothing_back(
    last: Any, nodes: dict[str, Node], context: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployments, "ensure_topics", lambda *_: None)
    monkeypatch.setattr(deployments, "delete_topics", lambda *_: None)
    monkeypatch.setattr(deployments, "_wait_for_owners", last)
    deployment, operation = ordered()
    deployments.deploy(operation, context)
    deployment.refresh_from_db()
    assert (deployment.status, deployment.ended_at) == ("undeploying", None)
    assert operation.status == "failed"
    assert not Event.objects.filter(kind__startswith="pipeline.deploy").exists()


def test_one_that_gives_up_while_control_ends_still_says_why(
    nodes: dict[str, Node], context: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    monkeypatch.setattr(deployments, "ensure_topics", lambda *_: made.append("topics"))
    monkeypatch.setattr(deployments, "delete_topics", lambda *_: None)
    fault = {"element": "readings", "message": "no such file"}

    def does_not_start(*_: Any) -> None:
        raise deployments.OperationFailed("readings does not start.", [fault])

    def control_ends(*_: Any) -> None:
        raise Closing

    deployment, operation = ordered()
    monkeypatch.setattr(deployments, "_wait_for_owners", does_not_start)
    with monkeypatch.context() as ending:
        ending.setattr(deployments, "_let_go", control_ends)
        with pytest.raises(Closing):
            deployments.deploy(operation, context)
    operation = Operation.objects.get()
    assert operation.ended_at is None
    deployments.deploy(operation, context)
    assert (operation.status, operation.faults) == ("failed", [fault])
    assert operation.message == "readings does not start. Nothing of it runs."
    assert made == ["topics"], "it was not begun anew"
    deployment.refresh_from_db()
    assert deployment.status == "failed"
