"""Tests that an undeployment always ends, and that its message names what it could not clear away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from pipeline_runtime.kafka.admin import Topic, TopicsFailed, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.transactions import OutgoingRecord
from pipeline_runtime.model.connectors import ConnectorStatus
from pipeline_runtime.model.desired import Role
from pipeline_runtime.model.ids import intake_topic, stream_topic
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import GroupSpec, InputStream, OutputStream
from pipeline_runtime.planning.plan import topics
from tests.contract.control.conftest import report
from tests.contract.kafka.test_transactions import opened
from tests.waiting import wait_until
from webapp.audit.models import Event
from webapp.nodes.models import Node
from webapp.operations.models import Operation
from webapp.placements.delivered import failing_connectors
from webapp.placements.models import Deployment, GroupPlacement, Replica
from workers.control.context import ControlContext
from workers.control.desired import replicas_of
from workers.control.operations import draining, effects as operation_effects, undelivered
from workers.control.operations.driver import _Driver, drive_operation
from workers.control.operations.limits import LIMIT_MS
from workers.control.operations.model import CountUndelivered, Enter, NoteUndelivered, Undelivered
from workers.control.operations.phases import OperationPhase as P

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
    drive_operation(str(operation.pk), context)
    operation.refresh_from_db()
    return operation


def test_topics_that_kafka_does_not_delete_are_named_and_the_pipeline_is_undeployed(
    retired: GroupPlacement, context: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise TopicsFailed(REFUSED)

    monkeypatch.setitem(LIMIT_MS, P.DELETE, 0)
    monkeypatch.setattr(operation_effects, "delete_topics", refuse)
    operation = undeployed(retired, context)
    assert operation.status == "done"
    assert [step["state"] for step in operation.steps] == ["done", "done", "failed"]
    assert Deployment.objects.get().status == "undeployed"
    event = Event.objects.get(kind="pipeline.undeployed")
    assert event.severity == "warning"
    for told in (operation.message, event.message):
        assert REFUSED in told
        assert "Delete them in Kafka" in told
        assert "did not confirm" not in told


def test_it_ends_without_kafka_and_names_the_topics(
    retired: GroupPlacement, context: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LIMIT_MS, P.DELETE, 0)
    kafka = KafkaSettings("127.0.0.1:1", {"bootstrap_timeout_ms": 100})  # nobody listens there
    operation = undeployed(retired, replace(context, kafka=kafka))
    assert operation.status == "done"
    assert Deployment.objects.get().status == "undeployed"
    assert "Kafka at 127.0.0.1:1 does not answer" in operation.message
    for topic in topics(GroupSpec.model_validate(retired.spec)):
        assert topic.name in operation.message


def deliver(placement: GroupPlacement) -> str:
    """Makes its element one that delivers to a system outside. Returns the topic of its stream."""
    spec = GroupSpec.model_validate(placement.spec)
    topic = stream_topic(spec.deployment, spec.elements[0].id)
    stream = OutputStream(
        source="power.out", topic=topic, data_schema=StreamSchema(fields=()), delivered=True
    )
    placement.spec = spec.model_copy(update={"outputs": (stream,)}).model_dump(mode="json")
    placement.save()
    return topic


def test_without_kafka_a_stream_stays_of_which_nobody_knows_whether_it_was_delivered(
    retired: GroupPlacement, context: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted: list[str] = []
    for phase in (P.DELIVER, P.STOP):
        monkeypatch.setitem(LIMIT_MS, phase, 0)
    monkeypatch.setattr(draining, "READ_MS", 0)
    monkeypatch.setattr(operation_effects, "delete_topics", lambda _, names: deleted.extend(names))
    topic = deliver(retired)
    kafka = KafkaSettings("127.0.0.1:1", {"bootstrap_timeout_ms": 100})  # nobody listens there
    operation = undeployed(retired, replace(context, kafka=kafka))
    assert operation.status == "done"
    assert {step["name"]: step["state"] for step in operation.steps}["deliver"] == "failed"
    event = Event.objects.get(kind="pipeline.undeployed")
    assert event.severity == "warning"
    for told in (operation.message, event.message):
        assert "Kafka did not say how many rows of power were not delivered" in told
        assert f"kept in Kafka: {topic}." in told
    assert deleted
    assert topic not in deleted


def test_it_waits_until_the_processes_of_connectors_have_ended(
    retired: GroupPlacement, context: ControlContext
) -> None:
    """Its copy stands still long before."""
    connector = ConnectorStatus(element="power", state="connected")
    report(retired, Role.STOPPED, retired=True, connectors=(connector,))
    operation = Operation.objects.create(
        kind="undeploy", deployment=retired.deployment, status="running", phase="STOP"
    )
    driver = _Driver(str(operation.pk), context)
    driver.advance()
    operation.refresh_from_db()
    assert (operation.phase, operation.waits_for) == ("STOP", "power on edge-a to stop")
    report(retired, Role.STOPPED, retired=True)
    driver.advance()
    operation.refresh_from_db()
    assert operation.phase == "DELETE"


def take_in(placement: GroupPlacement) -> str:
    """Makes its element one whose ingester takes rows in. Returns the topic of its intake."""
    topic, element = intake_topic(placement.deployment_id, placement.group), placement.group
    taken_in = InputStream(
        source=f"{element}.out",
        topic=topic,
        data_schema=StreamSchema(fields=()),
        consumer=element,
        external=True,
        intake=True,
    )
    placement.spec["inputs"] = [taken_in.model_dump(mode="json")]
    placement.save()
    return topic


def test_what_groups_have_not_read_is_counted_one_by_one(
    deployed: Deployed, context: ControlContext, kafka: str
) -> None:
    """A row may have headers. A group whose journal cannot be read keeps its streams, and hides no other."""
    settings, placement, broken = (
        KafkaSettings(kafka),
        deployed("power", "edge-a"),
        deployed("saved", "edge-b"),
    )
    GroupPlacement.objects.filter(pk=broken.pk).update(deployment=placement.deployment)
    broken.deployment = placement.deployment
    topics = [take_in(each) for each in (placement, broken)]
    journals = [GroupSpec.model_validate(each.spec).journal for each in (placement, broken)]
    ensure_topics(settings, [Topic(name) for name in (*topics, *journals)])
    writer = opened(kafka, topics[0])
    writer.commit(
        [OutgoingRecord(topic, b"{}", None, 1, headers=(("a", b"b"),)) for topic in topics]
        + [OutgoingRecord(journals[1], b"this is no record of a journal", None, 1)]
    )
    writer.close()
    operation = Operation.objects.create(kind="undeploy", deployment=placement.deployment)
    answer = undelivered.unread(operation, ["power", "saved"], settings)
    counted, unknown = answer.undelivered
    assert (counted.element, counted.rows, counted.unread) == ("power", 1, True)
    assert (unknown.element, unknown.rows, unknown.topic) == ("saved", None, topics[1])
    assert answer.away
    undelivered.note(operation, answer.undelivered)
    assert undelivered.topics_kept(operation) == {topics[1]}


def test_what_a_failed_upgrade_did_not_learn_keeps_its_stream_until_it_is_counted(
    retired: GroupPlacement,
) -> None:
    found = Undelivered("power", "power", "power", rows=None, topic="fl.d.power.out")
    failed = Operation(kind="upgrade", status="failed", deployment=retired.deployment)
    undelivered.note(failed, [found])
    failed.save()
    operation = Operation(kind="upgrade", deployment=retired.deployment)
    assert undelivered.topics_kept(operation) == {found.topic}
    undelivered.note(operation, [replace(found, rows=0)])
    assert undelivered.topics_kept(operation) == set()


def test_a_later_count_replaces_all_that_was_counted_before(
    retired: GroupPlacement, context: ControlContext
) -> None:
    """Also rows that nobody counts any more: control would store the same count for ever."""
    deliver(retired)
    before = Undelivered("power", "power", "power", rows=5, unread=True)
    operation = Operation.objects.create(
        kind="undeploy",
        deployment=retired.deployment,
        status="running",
        phase="STOP",
        deadline=timezone.now() - timedelta(hours=1),
        undelivered=[asdict(before)],
    )
    kafka = KafkaSettings("127.0.0.1:1", {"bootstrap_timeout_ms": 100})  # nobody listens there
    driver = _Driver(str(operation.pk), replace(context, kafka=kafka))
    steps = [type(driver.advance()) for _ in range(3)]
    assert steps == [CountUndelivered, NoteUndelivered, Enter]
    operation.refresh_from_db()
    assert [(each["rows"], each["unread"]) for each in operation.undelivered] == [(None, False)]


def test_ingesters_end_before_their_group_does(deployed: Deployed, context: ControlContext) -> None:
    placement = deployed("power", "edge-a")
    Deployment.objects.update(status=Deployment.Status.UNDEPLOYING)
    deliver(placement)
    take_in(placement)
    report(placement, connectors=(ConnectorStatus(element="power", state="connected"),))
    operation = Operation.objects.create(
        kind="undeploy", deployment=placement.deployment, status="running", phase="SETTLE"
    )
    kafka = KafkaSettings("127.0.0.1:1", {"bootstrap_timeout_ms": 100})  # nobody listens there
    driver = _Driver(str(operation.pk), replace(context, kafka=kafka))

    def waits_for() -> str:
        driver.advance()
        operation.refresh_from_db()
        return operation.waits_for

    wait_until(lambda: waits_for() == "power on edge-a to take in nothing more", "the ingester to be awaited")
    [wanted] = replicas_of(placement.node, "key", lambda _: False)
    assert (operation.phase, wanted.closing, wanted.retire) == ("READ", True, False)
    report(placement)
    wait_until(lambda: waits_for().startswith("Kafka to say what is not read"), "Kafka to be asked")
    operation.hurry = True
    operation.save()
    waits_for()
    placement.refresh_from_db()
    assert (operation.phase, placement.retire) == ("RETIRE", True)


def test_why_a_connector_fails_is_what_the_node_says_that_runs_the_group(
    retired: GroupPlacement, nodes: dict[str, Node]
) -> None:
    why = "The broker does not answer. It is tried again within 5 s."
    report(retired, connectors=(ConnectorStatus(element="power", state="failing", why=why),))
    here = retired.node
    retired.node = nodes["edge-b"]
    report(retired, Role.STANDBY, connectors=(ConnectorStatus(element="power", state="failing", why="old"),))
    retired.node = here
    assert failing_connectors(retired.deployment) == {"power": "The broker does not answer"}


def test_what_kafka_refuses_for_a_moment_is_not_left_over(
    retired: GroupPlacement, context: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = iter([TopicsFailed(REFUSED)])

    def refuse_once(*_: Any) -> None:
        for refusal in refusals:
            raise refusal

    monkeypatch.setattr(operation_effects, "delete_topics", refuse_once)
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

    operation = Operation.objects.create(kind="undeploy", deployment=retired.deployment)
    driver = _Driver(str(operation.pk), context)
    while operation.phase != P.DELETE:
        assert driver.advance() is not None
        operation.refresh_from_db()
        Replica.objects.filter(group="power").update(role="stopped")
    Replica.objects.all().delete()  # their nodes have let go of them
    monkeypatch.setattr(operation_effects, "delete_topics", lambda *_: None)
    operation = undeployed(retired, context)
    assert operation.status == "done"
    assert "These did not confirm their end. They stop when their nodes answer: saved." in operation.message


def test_what_runs_again_is_deployed_in_the_transaction_that_ends_it(
    retired: GroupPlacement, context: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation_effects, "delete_topics", lambda *_: None)
    ended = retired.deployment
    Operation.objects.create(kind="undeploy", deployment=ended, again=True)
    operation = undeployed(retired, context)
    following = operation.next
    assert (operation.status, following.kind, following.status) == ("done", "deploy", "pending")
    assert following.deployment.version == ended.version
    assert following.deployment.placement == ended.placement
    assert sorted(Deployment.objects.values_list("status", flat=True)) == ["deploying", "undeployed"]


def test_it_waits_for_handovers_and_for_the_operation_before(
    retired: GroupPlacement, context: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation_effects, "delete_topics", lambda *_: None)
    before = Operation.objects.create(kind="upgrade", deployment=retired.deployment)
    operation = Operation.objects.create(kind="undeploy", deployment=retired.deployment)
    driver = _Driver(str(operation.pk), context)
    driver.advance()
    driver.advance()
    operation.refresh_from_db()
    assert (operation.phase, operation.waits_for) == ("SETTLE", "the upgrade before it to end")
    drive_operation(str(before.pk), context)
    before.refresh_from_db()
    assert (before.status, before.message) == ("failed", "It was undeployed before it was upgraded.")
    assert undeployed(retired, context).status == "done"


def test_while_redis_is_away_nobody_is_given_up(retired: GroupPlacement, context: ControlContext) -> None:
    report(retired)  # it runs, and cannot be told that it is to end
    away = replace(context, hearing_since_ms=None)
    operation = Operation.objects.create(kind="undeploy", deployment=retired.deployment)
    driver = _Driver(str(operation.pk), away)
    for _ in range(3):
        assert driver.advance() is not None
    Operation.objects.update(deadline=timezone.now() - timedelta(hours=1))
    driver.advance()
    operation.refresh_from_db()
    assert operation.phase == "RETIRE"
    assert operation.waits_for == "power on edge-a to end. Nodes cannot be heard: Redis is away"
