"""Operations that control is away from: what is ordered, and how control ends in one of its phases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from pipeline_runtime.model.document import parse_document
from tests.integration.workers.cluster import Cluster
from tests.integration.workers.test_deployments import deploy, document, ended
from tests.waiting import wait_until
from webapp.nodes.models import Node
from webapp.operations.models import Operation
from webapp.pipelines.checking import planned
from webapp.pipelines.models import Pipeline, PipelineVersion
from webapp.placements.models import Deployment, GroupPlacement
from workers.control.operations import driver
from workers.control.operations.model import Observed, Progress, Step, Wait
from workers.control.operations.phases import OperationPhase as P

AN_HOUR = timedelta(hours=1)


Begin = Callable[[Cluster], Operation]


def deploying(cluster: Cluster) -> Operation:
    return deploy(document("lines", numbers="edge-a", saved="edge-b"))


def runs(cluster: Cluster, content: dict[str, Any] | None = None) -> Deployment:
    """What a deployment would have made, without its topics: the stand-in nodes do without."""
    content = content or document("lines")
    pipeline = Pipeline.objects.create(name="lines", draft=content)
    version = PipelineVersion.objects.create(pipeline=pipeline, number=1, document=content)
    deployment = Deployment.objects.create(pipeline=pipeline, version=version, status="running")
    specs = planned(parse_document(content), deployment.pk)
    for spec, node in zip(specs, ("edge-a", "edge-b"), strict=True):
        GroupPlacement.objects.create(
            deployment=deployment,
            group=spec.group,
            spec=spec.model_dump(mode="json"),
            node=Node.objects.get(name=node),
            order_id=f"first-{spec.group}",
        )
    for spec, node in zip(specs, ("edge-a", "edge-b"), strict=True):
        wait_until(lambda g=spec.group, n=node: cluster.owns(deployment, g, n), f"{spec.group} runs")
    return deployment


def reshaping(cluster: Cluster) -> Operation:
    return reshape(runs(cluster), "edge-b")


def reshape(deployment: Deployment, node: str) -> Operation:
    """One element changes, one goes, one comes, to `node`."""
    content = document("lines")
    numbers = {**content["spec"]["elements"][0], "params": {"rate": 20}}
    params, inputs = {"condition": "value > 0"}, {"in": "numbers"}
    kept = {"id": "kept", "type": "filter", "params": params, "inputs": inputs, "node": node}
    content["spec"]["elements"] = [numbers, kept]
    before = deployment.version
    deployment.version = PipelineVersion.objects.create(
        pipeline=deployment.pipeline, number=2, document=content
    )
    deployment.save()
    return Operation.objects.create(kind="upgrade", deployment=deployment, replaces=before)


RESHAPING = [P.PLACE, P.TOPICS, P.SETTLE, P.RETIRE, P.STOP, P.ORDER, P.OWN, P.START, P.RUN, P.DELETE]


def has_its_new_shape(cluster: Cluster, deployment: Deployment) -> None:
    deployment.refresh_from_db()
    assert deployment.status == "running"
    assert set(deployment.placements.values_list("group", flat=True)) == {"numbers", "kept"}
    assert deployment.removed == ["saved"]
    wait_until(lambda: (2, "edge-a") in cluster.commits(deployment, "numbers"), "what changed goes on")
    wait_until(lambda: cluster.owns(deployment, "kept", "edge-b"), "what came runs")
    for group, epochs in (("numbers", {1, 2}), ("kept", {1}), ("saved", {1})):
        commits = cluster.commits(deployment, group)
        assert [epoch for epoch, _ in commits] == sorted(epoch for epoch, _ in commits)
        assert {epoch for epoch, _ in commits} == epochs, f"{group} was ordered once"
    wait_until(lambda: cluster.status(deployment, "saved", "edge-b") is None, "what went is let go of")


def comes_to(phase: P, operation: Operation) -> None:
    def there() -> bool:
        operation.refresh_from_db()
        assert operation.ended_at is None, operation.message
        return operation.phase == phase

    wait_until(there, phase)


def stopped_in(phase: P, cluster: Cluster, begin: Begin) -> Operation:
    """Control ends in that phase, before it sees what it has come to."""
    next_step = driver.next_step

    def sees_nothing(progress: Progress, seen: Observed, now_ms: int) -> Step:
        return Wait("nothing") if progress.phase == phase else next_step(progress, seen, now_ms)

    with pytest.MonkeyPatch.context() as held:
        held.setattr(driver, "next_step", sees_nothing)
        operation = begin(cluster)
        comes_to(phase, operation)
        cluster.stop_control()
    return operation


def interrupted(cluster: Cluster, begin: Begin, phase: P, away: timedelta = AN_HOUR) -> Operation:
    """Control ends there, and is back later."""
    operation = stopped_in(phase, cluster, begin)
    Operation.objects.filter(pk=operation.pk).update(deadline=F("deadline") - away)
    cluster.start_control()
    return ended(operation)
