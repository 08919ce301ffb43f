"""What undeploying says of what it cannot clear away, and that it ends all the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pipeline_runtime.kafka.admin import TopicsFailed
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.desired import Role
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.planning.plan import topics
from tests.contract.control.conftest import report
from webapp.handovers.models import Operation
from webapp.monitoring.models import Event
from webapp.nodes.models import Node
from webapp.pipelines.models import Deployment, GroupPlacement, Replica
from workers.control import deployments
from workers.control.context import Closing, ControlContext

Deployed = Callable[..., GroupPlacement]
REFUSED = "Kafka did not delete fl.1.power.out: TopicDeletionDisabledError"


@pytest.fixture
def retired(deployed: Deployed) -> GroupPlacement:
    """A group that has confirmed its end, of a pipeline that is being undeployed."""
    placement = deployed("power", "edge-a")
    Deployment.objects.update(status=Deployment.Status.UNDEPLOYING)
    report(placement, Role.STOPPED, retired=True)
    return placement


def undeployed(placement: GroupPlacement, context: ControlContext) -> Operation:
    operation, _ = Operation.objects.get_or_create(kind="undeploy", deployment=placement.deployment)
    deployments.undeploy(operation, context)
    operation.refresh_from_db()
    return operation


def test_topics_that_kafka_does_not_delete_are_named_and_the_pipeline_is_undeployed(
    retired: GroupPlacement, context: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise TopicsFailed(REFUSED)

    monkeypatch.setattr(deployments, "KAFKA_S_MAX", 0.0)
    monkeypatch.setattr(deployments, "delete_topics", refuse)
    operation = undeployed(retired, context)
    assert operation.status == "done"
    assert [step["state"] for step in operation.steps] == ["done", "done", "failed"]
    assert Deployment.objects.get().status == "undeployed"
    event = Event.objects.get(kind="pipeline.undeployed")
    assert event.severity == "warning"
    for told in (operation.message, event.message):
        assert REFUSED in told
        assert "delete them in Kafka" in told
        assert "did not confirm" not in told


def test_it_ends_without_kafka_and_names_the_topics(
    retired: GroupPlacement, context: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployments, "KAFKA_S_MAX", 0.0)
    kafka = KafkaSettings("127.0.0.1:1", {"bootstrap_timeout_ms": 100})  # nobody listens there
    operation = undeployed(retired, replace(context, kafka=kafka))
    assert operation.status == "done"
    assert Deployment.objects.get().status == "undeployed"
    assert "Kafka at 127.0.0.1:1 does not answer" in operation.message
    for topic in topics(GroupSpec.model_validate(retired.spec)):
        assert topic.name in operation.message


def test_what_kafka_refuses_for_a_moment_is_not_left_over(
    retired: GroupPlacement, context: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = iter([TopicsFailed(REFUSED)])

    def refuse_once(*_: Any) -> None:
        for refusal in refusals:
            raise refusal

    monkeypatch.setattr(deployments, "delete_topics", refuse_once)
    operation = undeployed(retired, context)
    assert [step["state"] for step in operation.steps] == ["done"] * 3
    assert "left over" not in operation.message


def test_who_has_retired_is_remembered_when_undeploying_is_taken_up_again(
    retired: GroupPlacement, deployed: Deployed, context: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Beside it one whose node is away, so it cannot confirm.
    unconfirmed = deployed("saved", "edge-b")
    GroupPlacement.objects.filter(pk=unconfirmed.pk).update(deployment=retired.deployment)
    Node.objects.filter(name="edge-b").update(up=False)

    def closing(*_: Any) -> None:
        raise Closing

    with monkeypatch.context() as patched:
        patched.setattr(deployments, "_delete_topics", closing)
        with pytest.raises(Closing):
            undeployed(retired, context)
    Replica.objects.all().delete()  # their nodes have let go of them
    monkeypatch.setattr(deployments, "delete_topics", lambda *_: None)
    operation = undeployed(retired, context)
    assert operation.status == "done"
    assert "These did not confirm their end, they stop when their nodes answer: saved." in operation.message
