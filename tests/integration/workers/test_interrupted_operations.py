"""Deploying, upgrading and undeploying while control or the database is away: each goes on from its phase."""

from __future__ import annotations

import signal
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from tests.chosen import chosen
from tests.integration.workers.cluster import Cluster
from tests.integration.workers.interrupted import (
    RESHAPING,
    Begin,
    comes_to,
    deploying,
    has_its_new_shape,
    interrupted,
    reshaping,
    runs,
    stopped_in,
)
from tests.integration.workers.test_deployments import document, ended, undeploy
from tests.waiting import wait_until
from webapp.operations.models import Operation
from webapp.pipelines.models import PipelineVersion
from workers.control.operations import limits
from workers.control.operations.phases import OperationPhase as P

pytestmark = pytest.mark.integration


def deploying_in_vain(cluster: Cluster) -> Operation:
    cluster.mark("saved.broken-on-edge-b")
    return deploying(cluster)


def upgrading(cluster: Cluster) -> Operation:
    deployment, content = runs(cluster), document("lines")
    content["spec"]["elements"][0]["params"] = {"rate": 20}
    content["spec"]["elements"][1]["params"] = {"file": "other.csv"}
    deployment.version = PipelineVersion.objects.create(
        pipeline=deployment.pipeline, number=2, document=content
    )
    deployment.save()
    return Operation.objects.create(kind="upgrade", deployment=deployment)


def undeploying(cluster: Cluster) -> Operation:
    return undeploy(runs(cluster))


@pytest.mark.parametrize("phase", chosen([P.VALIDATE, P.PLACE, P.TOPICS, P.START, P.RUN], [P.RUN]))
def test_a_deployment_goes_on_wherever_control_dies(kafka_cluster: Cluster, phase: P) -> None:
    operation = interrupted(kafka_cluster, deploying, phase)
    assert operation.status == "done", operation.message
    assert [step["state"] for step in operation.steps] == ["done"] * 5
    deployment = operation.deployment
    assert deployment.status == "running"
    for group, node in (("numbers", "edge-a"), ("saved", "edge-b")):
        wait_until(lambda g=group, n=node: kafka_cluster.owns(deployment, g, n), f"{group} runs")
        assert {epoch for epoch, _ in kafka_cluster.commits(deployment, group)} == {1}, "started once"


@pytest.mark.parametrize("phase", chosen([P.RUN, P.STOP, P.DELETE], [P.STOP]))
def test_a_deployment_that_fails_says_why_wherever_control_dies(
    cluster: Cluster, topics: list[str], monkeypatch: pytest.MonkeyPatch, phase: P
) -> None:
    monkeypatch.setattr(limits, "ERROR_MS_MAX", 500)
    monkeypatch.setattr(limits, "HEARD_MS", 500)
    # What counts is the error, not that the deadline of an hour ago is over.
    operation = interrupted(cluster, deploying_in_vain, phase, away=timedelta(0))
    assert (operation.status, operation.deployment.status) == ("failed", "failed")
    assert operation.message.startswith("Start of saved failed. On edge-b: ")
    assert operation.message.endswith("Nothing of it runs.")
    assert [fault["element"] for fault in operation.faults] == ["saved"]
    assert [step["state"] for step in operation.steps] == [*["done"] * 4, "failed"]
    assert {placement.role for placement in operation.deployment.placements.all()} == {"stopped"}
    assert topics == ["create", "delete"]


@pytest.mark.parametrize("phase", chosen([P.ORDER, P.OWN], [P.OWN]))
def test_an_upgrade_goes_on_wherever_control_dies(cluster: Cluster, phase: P) -> None:
    operation = interrupted(cluster, upgrading, phase)
    assert operation.status == "done", operation.message
    assert [(step["name"], step["state"]) for step in operation.steps] == [
        ("numbers", "done"),
        ("saved", "done"),
    ]
    for group, node in (("numbers", "edge-a"), ("saved", "edge-b")):
        wait_until(lambda g=group, n=node: (2, n) in cluster.commits(operation.deployment, g), "it goes on")
        commits = cluster.commits(operation.deployment, group)
        assert [epoch for epoch, _ in commits] == sorted(epoch for epoch, _ in commits)
        assert {epoch for epoch, _ in commits} == {1, 2}, "ordered once"


@pytest.mark.parametrize("phase", chosen([P.SETTLE, P.RETIRE, P.STOP, P.DELETE], [P.DELETE]))
def test_an_undeployment_goes_on_wherever_control_dies(cluster: Cluster, topics: list[str], phase: P) -> None:
    operation = interrupted(cluster, undeploying, phase)
    assert operation.status == "done", operation.message
    assert [step["state"] for step in operation.steps] == ["done"] * 3
    assert operation.deployment.status == "undeployed"
    assert "did not confirm" not in operation.message
    assert topics == ["delete"]


def test_a_deployment_that_is_undeployed_while_control_is_away_ends_and_leaves_nothing(
    cluster: Cluster, topics: list[str]
) -> None:
    operation = stopped_in(P.RUN, cluster, deploying)
    end = undeploy(operation.deployment)
    cluster.start_control()
    assert ended(end).status == "done", end.message
    assert ended(operation).message == "It was undeployed before it was running."
    assert operation.deployment.status == "undeployed"
    assert "did not confirm" not in end.message


def test_the_deadline_of_a_deployment_outlives_control(
    cluster: Cluster, topics: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HEARD_MS", 500)
    cluster.signal_node("edge-b", signal.SIGSTOP)
    operation = deploying(cluster)
    comes_to(P.RUN, operation)
    wait_until(lambda: cluster.owns(operation.deployment, "numbers", "edge-a"), "numbers runs")

    def waits() -> bool:
        operation.refresh_from_db()
        return operation.waits_for == "saved on edge-b: it is about to start there"

    wait_until(waits, "it says what it waits for")
    deadline = operation.deadline
    cluster.stop_control()
    cluster.start_control()
    wait_until(lambda: operation.ended_at is None and waits(), "it waits on")
    assert operation.deadline == deadline
    Operation.objects.update(deadline=timezone.now())
    operation = ended(operation)
    assert operation.message == "These did not start in time: saved. Nothing of it runs."
    cluster.signal_node("edge-b", signal.SIGCONT)


def test_the_deadline_of_an_undeployment_outlives_control_and_who_did_not_end_is_named(
    cluster: Cluster, topics: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HEARD_MS", 500)
    monkeypatch.setitem(limits.LIMIT_MS, P.STOP, 500)
    deployment = runs(cluster)
    cluster.signal_node("edge-b", signal.SIGSTOP)
    operation = undeploy(deployment)
    comes_to(P.RETIRE, operation)

    def waits() -> bool:
        operation.refresh_from_db()
        return operation.waits_for == "saved on edge-b to end"

    wait_until(waits, "it says what it waits for")
    cluster.stop_control()
    Operation.objects.update(deadline=timezone.now())
    cluster.start_control()
    operation = ended(operation)
    assert operation.status == "done"
    assert "They stop when their nodes answer: saved." in operation.message
    cluster.signal_node("edge-b", signal.SIGCONT)


@pytest.mark.parametrize(
    ("begin", "entered"),
    [
        (deploying, [P.VALIDATE, P.PLACE, P.TOPICS, P.START, P.RUN]),
        pytest.param(upgrading, [P.ORDER, P.OWN], marks=pytest.mark.full),
        pytest.param(reshaping, RESHAPING, marks=pytest.mark.full),
        pytest.param(undeploying, [P.SETTLE, P.RETIRE, P.STOP, P.DELETE], marks=pytest.mark.full),
    ],
)
def test_an_operation_goes_on_after_the_database_failed_in_each_step(
    cluster: Cluster, topics: list[str], monkeypatch: pytest.MonkeyPatch, begin: Begin, entered: list[P]
) -> None:
    failed: list[tuple[str, str]] = []
    save = Operation.save

    def save_at_the_second_try(operation: Operation, **options: Any) -> None:
        """The first comes to nothing, with all that its transaction has changed already."""
        step = (str(operation.phase), str(operation.status))
        if threading.current_thread().name.startswith("operation ") and step not in failed:
            failed.append(step)
            raise OperationalError("server closed the connection unexpectedly")
        save(operation, **options)

    monkeypatch.setattr(Operation, "save", save_at_the_second_try)
    operation = ended(begin(cluster))
    assert operation.status == "done", operation.message
    assert "did not confirm" not in operation.message
    last = P.ORDER if begin is upgrading else entered[-1]
    assert failed == [*((phase, "running") for phase in entered), (last, "done")]
    if begin is upgrading:
        for group in ("numbers", "saved"):
            assert {epoch for epoch, _ in cluster.commits(operation.deployment, group)} <= {1, 2}
    if begin is reshaping:
        has_its_new_shape(cluster, operation.deployment)
