"""How a deployment ends when it is undeployed at the same moment."""

from __future__ import annotations

from typing import Any

import pytest

from webapp.handovers.models import Operation
from webapp.monitoring.models import Event
from webapp.nodes.models import Node
from webapp.pipelines.models import Deployment, Pipeline, PipelineVersion
from workers.control import deployments
from workers.control.context import ControlContext


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


@pytest.mark.parametrize("last", [undeployed_by_a_user, fails])
def test_its_own_end_takes_nothing_back(
    last: Any, nodes: dict[str, Node], context: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployments, "ensure_topics", lambda *_: None)
    monkeypatch.setattr(deployments, "delete_topics", lambda *_: None)
    monkeypatch.setattr(deployments, "_wait_for_owners", last)
    pipeline = Pipeline.objects.create(name="p", draft={})
    version = PipelineVersion.objects.create(pipeline=pipeline, number=1, document=document())
    deployment = Deployment.objects.create(pipeline=pipeline, version=version)
    operation = Operation.objects.create(kind="deploy", deployment=deployment)
    deployments.deploy(operation, context)
    deployment.refresh_from_db()
    assert (deployment.status, deployment.ended_at) == ("undeploying", None)
    assert operation.status == "failed"
    assert not Event.objects.filter(kind__startswith="pipeline.deploy").exists()
