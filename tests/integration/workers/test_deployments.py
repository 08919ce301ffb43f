"""Deploying, undeploying and draining, with real topics and stand-in nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.utils import timezone

from pipeline_runtime.kafka.clients import KafkaSettings, open_consumer
from pipeline_runtime.model.document import parse_document
from tests.integration.workers.cluster import Cluster
from tests.waiting import PATIENCE_S, wait_until
from webapp.audit.models import Event
from webapp.handovers.models import Handover
from webapp.nodes.models import Node
from webapp.operations.models import Operation
from webapp.pipelines.checking import planned
from webapp.pipelines.models import Pipeline, PipelineVersion
from webapp.placements.models import Deployment, GroupPlacement
from workers.control.operations import limits
from workers.control.operations.phases import OperationPhase

pytestmark = pytest.mark.integration


def document(name: str, **pins: str) -> dict[str, Any]:
    elements = [
        {"id": "numbers", "type": "generator", "params": {"rate": 10}},
        {"id": "saved", "type": "csv-sink", "params": {"file": "out.csv"}, "inputs": {"in": "numbers"}},
    ]
    for element in elements:
        if element["id"] in pins:
            element["node"] = pins[str(element["id"])]
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": name},
        "spec": {"elements": elements},
    }


def deploy(content: dict[str, Any]) -> Operation:
    pipeline = Pipeline.objects.create(name=content["metadata"]["name"], draft=content)
    version = PipelineVersion.objects.create(pipeline=pipeline, number=1, document=content)
    deployment = Deployment.objects.create(pipeline=pipeline, version=version)
    return Operation.objects.create(kind="deploy", deployment=deployment)


def undeploy(deployment: Deployment) -> Operation:
    Deployment.objects.filter(pk=deployment.pk).update(status=Deployment.Status.UNDEPLOYING)
    return Operation.objects.create(kind="undeploy", deployment=deployment)


def drain(node: str) -> None:
    """As the web writes it; that the control side is told by a message is not needed."""
    Node.objects.filter(name=node).update(cordoned=True, draining_since=timezone.now())


def state_of_drain() -> str:
    """For the message of a wait that is in vain."""
    blocked = list(Node.objects.values_list("name", "drain_blocked", "up", "ready"))
    moves = [
        (each.group, each.target, each.phase, each.outcome, each.message) for each in Handover.objects.all()
    ]
    return f"the drain to end; nodes {blocked}, moves {moves}"


def ended(operation: Operation) -> Operation:
    def over() -> bool:
        operation.refresh_from_db()
        return operation.status in ("done", "failed")

    wait_until(over, f"the operation {operation.kind} ends")
    operation.deployment.refresh_from_db()
    return operation


TopicsOf = Callable[[Deployment], set[str]]


@pytest.fixture(scope="module")
def topics_of(kafka: str) -> Iterator[TopicsOf]:
    consumer = open_consumer(KafkaSettings(kafka))
    yield lambda deployment: {name for name in consumer.topics() if name.startswith(f"fl.{deployment.pk}.")}
    consumer.close()


def test_a_pipeline_is_deployed_where_it_is_pinned_and_undeployed_without_rest(
    kafka_cluster: Cluster, topics_of: TopicsOf
) -> None:
    operation = ended(deploy(document("lines", numbers="edge-a", saved="edge-b")))
    assert operation.status == "done", operation.message
    assert [step["state"] for step in operation.steps] == ["done"] * 5
    deployment = operation.deployment
    assert deployment.status == "running"
    placed = {p.group: p.node.name for p in deployment.placements.select_related("node")}
    assert placed == {"numbers": "edge-a", "saved": "edge-b"}
    assert f"fl.{deployment.pk}.numbers.journal" in topics_of(deployment)
    assert f"fl.{deployment.pk}.numbers.out" in topics_of(deployment)

    operation = ended(undeploy(deployment))
    assert operation.status == "done", operation.message
    assert Deployment.objects.get(pk=deployment.pk).status == "undeployed"
    wait_until(lambda: not topics_of(deployment), "its topics are gone")
    assert "did not confirm" not in operation.message


def test_a_group_that_does_not_start_fails_the_deployment_and_nothing_of_it_stays(
    kafka_cluster: Cluster, topics_of: TopicsOf
) -> None:
    kafka_cluster.ledger.mkdir(exist_ok=True)
    (kafka_cluster.ledger / "saved.broken-on-edge-b").touch()
    operation = ended(deploy(document("broken", numbers="edge-a", saved="edge-b")))
    assert operation.status == "failed"
    [fault] = operation.faults
    assert fault["element"] == "saved"
    assert "edge-b" in fault["message"]
    assert "does not start" in fault["message"]
    assert operation.deployment.status == "failed"
    assert {p.role for p in operation.deployment.placements.all()} == {"stopped"}
    wait_until(lambda: not topics_of(operation.deployment), "its topics are gone")


def test_faults_of_document_and_placement_name_their_element(kafka_cluster: Cluster) -> None:
    broken = document("wrong")
    broken["spec"]["elements"][0]["params"]["rate"] = "fast"
    operation = ended(deploy(broken))
    assert (operation.status, operation.deployment.status) == ("failed", "failed")
    assert [fault["element"] for fault in operation.faults] == ["numbers"]

    Node.objects.filter(name="edge-b").update(cordoned=True)
    operation = ended(deploy(document("cordoned", saved="edge-b")))
    assert operation.status == "failed"
    assert [fault["element"] for fault in operation.faults] == ["saved"]
    assert "cordoned" in operation.message
    assert Event.objects.filter(kind="pipeline.deploy_failed").count() == 2


@pytest.mark.full
def test_a_broker_that_does_not_answer_is_named(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(limits.LIMIT_MS, OperationPhase.TOPICS, 1000)
    operation = ended(deploy(document("nowhere")))
    assert (operation.status, operation.deployment.status) == ("failed", "failed")
    assert "Kafka at 127.0.0.1:9 does not answer" in operation.message


def test_a_running_pipeline_is_upgraded_from_where_it_is(kafka_cluster: Cluster) -> None:
    content = document("upgraded", numbers="edge-a", kept="edge-b", saved="edge-b")
    kept = {"id": "kept", "type": "filter", "params": {"condition": "value > 0"}, "inputs": {"in": "numbers"}}
    content["spec"]["elements"].insert(1, {**kept, "node": "edge-b"})
    content["spec"]["elements"][2]["inputs"] = {"in": "kept"}
    operation = ended(deploy(content))
    assert operation.status == "done", operation.message
    deployment = operation.deployment
    wait_until(lambda: kafka_cluster.owns(deployment, "kept", "edge-b"))
    content["spec"]["elements"][1]["params"] = {"condition": "value > 1"}
    deployment.version = PipelineVersion.objects.create(
        pipeline=deployment.pipeline, number=2, document=content
    )
    deployment.save()
    operation = ended(Operation.objects.create(kind="upgrade", deployment=deployment))
    assert operation.status == "done", operation.message
    assert [(step["name"], step["state"]) for step in operation.steps] == [("kept", "done")]
    [spec] = deployment.placements.filter(group="kept").values_list("spec", flat=True)
    assert spec["elements"][0]["params"]["condition"] == "value > 1"
    commits = kafka_cluster.commits(deployment, "kept")
    assert [epoch for epoch, _ in commits] == sorted(epoch for epoch, _ in commits)
    wait_until(lambda: (2, "edge-b") in kafka_cluster.commits(deployment, "kept"))
    assert {epoch for epoch, _ in kafka_cluster.commits(deployment, "numbers")} == {1}
    assert ended(undeploy(deployment)).status == "done"


def test_elements_come_and_go_while_the_others_run(kafka_cluster: Cluster, topics_of: TopicsOf) -> None:
    content = document("reshaped", numbers="edge-a", saved="edge-b")
    operation = ended(deploy(content))
    assert operation.status == "done", operation.message
    deployment, before = operation.deployment, operation.deployment.version
    wait_until(lambda: kafka_cluster.owns(deployment, "saved", "edge-b"))
    kept = {"id": "kept", "type": "filter", "params": {"condition": "value > 0"}, "inputs": {"in": "numbers"}}
    content["spec"]["elements"][1] = {**kept, "node": "edge-b"}
    deployment.version = PipelineVersion.objects.create(
        pipeline=deployment.pipeline, number=2, document=content
    )
    deployment.save()
    operation = ended(Operation.objects.create(kind="upgrade", deployment=deployment, replaces=before))
    assert operation.status == "done", operation.message
    parts = ("out", "journal", "journal.released", "dead")
    topics = {f"fl.{deployment.pk}.{id}.{part}" for id in ("numbers", "kept") for part in parts}
    wait_until(lambda: topics_of(deployment) == topics, "streams come and go with their elements")
    wait_until(lambda: kafka_cluster.owns(deployment, "kept", "edge-b"))
    assert {epoch for epoch, _ in kafka_cluster.commits(deployment, "numbers")} == {1}, "it was not touched"
    wait_until(lambda: kafka_cluster.status(deployment, "saved", "edge-b") is None)
    assert ended(undeploy(deployment)).status == "done"


def test_an_upgrade_that_failed_goes_on_when_it_is_repeated(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ERROR_MS_MAX", 500)
    content = document("repaired")
    pipeline = Pipeline.objects.create(name="repaired", draft=content)
    version = PipelineVersion.objects.create(pipeline=pipeline, number=1, document=content)
    deployment = Deployment.objects.create(pipeline=pipeline, version=version, status="running")
    for spec in planned(parse_document(content), deployment.pk):
        node, made = Node.objects.get(name="edge-a"), spec.model_dump(mode="json")
        GroupPlacement.objects.create(
            deployment=deployment, group=spec.group, spec=made, node=node, order_id=f"first-{spec.group}"
        )
    wait_until(lambda: cluster.owns(deployment, "numbers", "edge-a"))
    content["spec"]["elements"][0]["params"] = {"rate": 20}
    deployment.version = PipelineVersion.objects.create(pipeline=pipeline, number=2, document=content)
    deployment.save()
    broken = cluster.mark("numbers.broken-on-edge-a")
    operation = ended(Operation.objects.create(kind="upgrade", deployment=deployment))
    assert operation.status == "failed"
    assert "does not start" in operation.message
    before = deployment.placements.get(group="numbers")
    assert before.spec["elements"][0]["params"]["rate"] == 20
    monkeypatch.setattr(limits, "ERROR_MS_MAX", PATIENCE_S * 1000)
    committed = len(cluster.commits(deployment, "numbers"))
    operation = Operation.objects.create(kind="upgrade", deployment=deployment)
    wait_until(lambda: deployment.placements.get(group="numbers").vouched != before.vouched, "asked again")
    broken.unlink()
    operation = ended(operation)
    assert operation.status == "done", operation.message
    assert [(step["name"], step["state"]) for step in operation.steps] == [("numbers", "done")]
    wait_until(lambda: len(cluster.commits(deployment, "numbers")) > committed, "it goes on")
    # It may have been starting by itself, by the order that it had: with another one it would own by the
    # wrong one for good.
    assert deployment.placements.get(group="numbers").order_id == before.order_id


def test_a_drained_node_ends_up_empty_and_takes_nothing_new(kafka_cluster: Cluster) -> None:
    operation = ended(deploy(document("drained", numbers="edge-a", saved="edge-a")))
    assert operation.status == "done", operation.message
    drain("edge-a")
    # Longer than usual: of two moves, one that stands still is given up after 120 s, and tried again.
    drained = Event.objects.filter(kind="node.drained")
    wait_until(drained.exists, state_of_drain, timeout_s=3 * PATIENCE_S)
    assert not GroupPlacement.objects.filter(node__name="edge-a").exists()
    assert Node.objects.get(name="edge-a").cordoned
    assert {handover.outcome for handover in Handover.objects.all()} == {"done"}, state_of_drain()
    assert ended(undeploy(operation.deployment)).status == "done"


def test_a_drain_that_is_ordered_while_control_is_away_goes_on_wherever_control_dies(
    cluster: Cluster,
) -> None:
    deployments = [cluster.deployed(group, "edge-a") for group in ("first", "second")]
    for deployment, group in zip(deployments, ("first", "second"), strict=True):
        wait_until(lambda d=deployment, g=group: cluster.owns(d, g, "edge-a"), f"edge-a owns {group}")
    cluster.stop_control()
    drain("edge-a")
    for count in (1, 2):
        cluster.start_control()
        wait_until(lambda n=count: Handover.objects.count() == n, f"move {count} is ordered")
        cluster.stop_control()
    cluster.start_control()
    wait_until(lambda: Node.objects.get(name="edge-a").draining_since is None, "the drain ends")
    assert not GroupPlacement.objects.filter(node__name="edge-a").exists()
    assert [handover.outcome for handover in Handover.objects.all()] == ["done", "done"]
    [told] = Event.objects.filter(kind="node.drained")
    assert "2 elements were moved away" in told.message
