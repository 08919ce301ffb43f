"""Tests how a deployment ends when something else happens at the same moment."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from pipeline_runtime.kafka.admin import TopicsFailed
from pipeline_runtime.model.desired import ReplicaError, Role
from tests.contract.control.conftest import report
from webapp.audit.models import Event
from webapp.nodes.models import GivenLatency, Link, Node
from webapp.operations.models import Operation
from webapp.operations.selectors import operation_json
from webapp.pipelines.models import Pipeline, PipelineVersion
from webapp.placements.models import Deployment, GroupPlacement, Replica
from webapp.placements.placing import first_placement
from workers.control.context import ControlContext
from workers.control.operations import effects as operation_effects
from workers.control.operations.driver import _Driver, drive_operation
from workers.control.operations.limits import LIMIT_MS
from workers.control.operations.phases import OperationPhase as P

ERROR = ReplicaError(message="no such file", safe="", next="", traceback="Traceback: no such file")


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What Kafka was asked for; it does all of it."""
    found: list[str] = []
    monkeypatch.setattr(operation_effects, "ensure_topics", lambda *_: found.append("create"))
    monkeypatch.setattr(operation_effects, "delete_topics", lambda *_: found.append("delete"))
    return found


def document(**params: Any) -> dict[str, Any]:
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "p"},
        "spec": {"elements": [{"id": "readings", "type": "generator", "params": params}]},
    }


def ordered() -> Operation:
    pipeline = Pipeline.objects.create(name="p", draft={})
    version = PipelineVersion.objects.create(pipeline=pipeline, number=1, document=document())
    deployment = Deployment.objects.create(pipeline=pipeline, version=version)
    return Operation.objects.create(kind="deploy", deployment=deployment)


def comes_to(phase: P, operation: Operation, context: ControlContext) -> Operation:
    """Step by step, until it is there."""
    driver = _Driver(str(operation.pk), context)
    while operation.phase != phase:
        assert driver.advance() is not None
        operation.refresh_from_db()
    return operation


def ends(operation: Operation, context: ControlContext) -> Operation:
    drive_operation(str(operation.pk), context)
    operation.refresh_from_db()
    operation.deployment.refresh_from_db()
    return operation


def states(operation: Operation) -> list[str]:
    return [step["state"] for step in operation.steps]


def test_each_phase_is_stored_before_its_effect_and_all_of_it_comes_to_run(
    nodes: dict[str, Node], context: ControlContext, asked: list[str]
) -> None:
    operation = comes_to(P.TOPICS, ordered(), context)
    assert (operation.status, states(operation)) == ("running", ["done", "done", "running", *["pending"] * 2])
    assert asked == []
    operation = comes_to(P.START, operation, context)
    assert asked == ["create"]
    operation = comes_to(P.RUN, operation, context)
    placement = GroupPlacement.objects.get()
    assert placement.placed_why == "it had the fewest elements (none) of the 3 nodes that could take it"
    _Driver(str(operation.pk), context).advance()
    operation.refresh_from_db()
    assert operation.waits_for == f"readings on {placement.node.name}: it is about to start there"
    assert operation.phase_since is not None
    assert operation.deadline is not None
    waits_s = (operation.deadline - operation.phase_since).total_seconds()
    assert waits_s == pytest.approx(LIMIT_MS[P.RUN] / 1000, abs=1)
    report(placement, order_id=placement.order_id)
    operation = ends(operation, context)
    assert (operation.status, states(operation), operation.waits_for) == ("done", ["done"] * 5, "")
    assert operation.deployment.status == "running"
    shown = operation_json(operation)
    assert (shown["waits_for"], shown["deadline"], shown["message"]) == ("", None, "All of it runs.")


@pytest.mark.parametrize("phase", [P.PENDING, P.VALIDATE, P.PLACE, P.TOPICS, P.START, P.RUN])
def test_one_that_is_undeployed_meanwhile_takes_nothing_back(
    phase: P, nodes: dict[str, Node], context: ControlContext
) -> None:
    operation = comes_to(phase, ordered(), context)
    Deployment.objects.update(status=Deployment.Status.UNDEPLOYING)
    operation = ends(operation, context)
    assert (operation.deployment.status, operation.deployment.ended_at) == ("undeploying", None)
    assert (operation.status, operation.message) == ("failed", "It was undeployed before it was running.")
    assert not Event.objects.filter(kind__startswith="pipeline.deploy").exists()


def gives_up(operation: Operation, context: ControlContext) -> Operation:
    """Its group shows an error for too long."""
    operation = comes_to(P.RUN, operation, context)
    report(GroupPlacement.objects.get(), Role.STOPPED, error=ERROR)
    _Driver(str(operation.pk), context).advance()
    operation.refresh_from_db()
    assert operation.failing.keys() == {"readings"}
    operation.failing["readings"] -= 3_600_000
    operation.save()
    return comes_to(P.STOP, operation, context)


@pytest.mark.parametrize("phase", [P.STOP, P.DELETE])
def test_one_that_gives_up_while_control_ends_still_says_why(
    phase: P, nodes: dict[str, Node], context: ControlContext, asked: list[str]
) -> None:
    operation = gives_up(ordered(), context)
    assert operation.message == "Start of readings failed. On edge-a: no such file."
    assert states(operation) == [*["done"] * 4, "failed"]
    assert GroupPlacement.objects.get().role == "stopped"
    report(GroupPlacement.objects.get(), Role.STOPPED)
    operation = ends(comes_to(phase, operation, context), context)
    assert operation.status == "failed"
    assert operation.message == "Start of readings failed. On edge-a: no such file. Nothing of it runs."
    [fault] = operation.faults
    assert (fault["element"], fault["traceback"]) == ("readings", "Traceback: no such file")
    assert asked == ["create", "delete"], "it was not begun again"
    assert operation.deployment.status == "failed"
    assert Event.objects.filter(kind="pipeline.deploy_failed").count() == 1


def test_one_that_gives_up_and_is_undeployed_leaves_the_rest_to_that(
    nodes: dict[str, Node], context: ControlContext
) -> None:
    operation = gives_up(ordered(), context)
    Deployment.objects.update(status=Deployment.Status.UNDEPLOYING)
    operation = ends(operation, context)
    assert operation.deployment.status == "undeploying"
    assert operation.message.startswith("Start of readings failed.")


def test_topics_that_were_made_before_it_was_placed_are_deleted(
    nodes: dict[str, Node], context: ControlContext, asked: list[str]
) -> None:
    operation = comes_to(P.START, ordered(), context)
    Node.objects.update(cordoned=True)
    operation = ends(operation, context)
    assert operation.status == "failed"
    assert "There is no node for some elements: readings" in operation.message
    assert asked == ["create", "delete"]


def test_topics_that_are_refused_fail_it_with_kafkas_words(
    nodes: dict[str, Node], context: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise TopicsFailed("Kafka did not create fl.1.readings.out: PolicyViolationError")

    monkeypatch.setattr(operation_effects, "ensure_topics", refuse)
    operation = ends(ordered(), context)
    assert "PolicyViolationError" in operation.message
    assert states(operation) == ["done", "done", "failed", "pending", "pending"]


def test_what_is_not_pinned_is_placed_nearest_to_what_it_reads(
    nodes: dict[str, Node], context: ControlContext
) -> None:
    """And an element at its site, also where other nodes have less to do."""
    operation = ordered()
    keep = {"type": "filter", "params": {"condition": "n >= 0"}}
    drawn = document()
    drawn["spec"]["elements"][0]["site"] = "yard"
    drawn["spec"]["elements"] += [
        {"id": "first", **keep, "inputs": {"in": "readings"}},
        {"id": "second", **keep, "inputs": {"in": "first"}},
    ]
    PipelineVersion.objects.update(document=drawn)
    Node.objects.filter(name="edge-c").update(site="yard")
    for other in ("edge-a", "edge-b"):
        GivenLatency.objects.create(origin="yard", target=other, ms=40)
    comes_to(P.RUN, operation, context)
    placed = {each.group: (each.node.name, each.placed_why) for each in GroupPlacement.objects.all()}
    assert placed["readings"] == ("edge-c", "it was to run at yard; it was the only node that could take it")
    near = ("edge-c", "it was nearest to what it reads: at the same site")
    assert (placed["first"], placed["second"]) == (near, near)


def drawn(apart: bool = False) -> dict[str, Any]:
    """readings, and a filter that reads it."""
    found = document()
    found["spec"]["elements"].append(
        {"id": "first", "type": "filter", "params": {"condition": "n >= 0"}, "inputs": {"in": "readings"}}
    )
    if apart:
        found["spec"]["elements"][0]["apart"] = ["first"]
    return found


def test_what_is_to_be_apart_is_deployed_so_or_not_at_all(
    nodes: dict[str, Node], context: ControlContext
) -> None:
    operation = ordered()
    PipelineVersion.objects.update(document=drawn(apart=True))
    Node.objects.exclude(name="edge-a").update(cordoned=True)
    operation = ends(operation, context)
    assert (
        "There is no node for some elements: first: no node can take it (edge-a runs readings, from which it "
        "must stay apart, edge-b is cordoned, edge-c is cordoned); make room on one, or pin the element to "
        "one that should take it anyway"
    ) in operation.message
    GivenLatency.objects.create(origin="edge-a", target="edge-b", ms=40)  # near is where it may not go
    Node.objects.filter(name="edge-b").update(cordoned=False)
    told = first_placement(drawn(apart=True), {})
    assert [each["node"] for each in told] == ["edge-a", "edge-b"]


def test_memory_is_asked_for_and_a_refusal_says_what_is_lacking(
    nodes: dict[str, Node], context: ControlContext
) -> None:
    """As heartbeats have it; on one machine it is there once."""
    load = {"memory_total_bytes": 1e9, "memory_ratio": 0.95, "cpu_ratio": 0.1}
    Node.objects.update(load=load)
    operation = ends(ordered(), context)
    assert "edge-a has 50 MB free of the 80 MB that it is assumed to need, edge-b has" in operation.message
    [fault] = operation.faults
    assert (fault["element"], fault["code"]) == ("readings", "placement")

    Pipeline.objects.all().delete()
    Node.objects.update(load=load | {"memory_ratio": 0.9})
    Node.objects.exclude(name="edge-c").update(url="http://one:1")
    operation = ordered()
    PipelineVersion.objects.update(document=drawn())
    Node.objects.filter(name="edge-c").update(cordoned=True)
    operation = ends(operation, context)
    assert "first: no node can take it (edge-a has 20 MB free of the 80 MB" in operation.message


def test_a_line_that_is_full_is_not_used_where_rates_are_known(
    nodes: dict[str, Node], context: ControlContext
) -> None:
    """Those of what runs: here of the element that the new one reads."""
    operation = ordered()
    comes_to(P.RUN, operation, context)
    placement = GroupPlacement.objects.get()
    origin = placement.node.name
    report(placement, order_id=placement.order_id)
    Replica.objects.update(rates={"rows_out_per_s": 10, "bytes_per_s": {"readings.out": 250_000.0}})
    for other in {"edge-a", "edge-b", "edge-c"} - {origin}:
        Link.objects.create(
            origin=nodes[other],
            target=placement.node,
            rtt_ms=2,
            bytes_per_s=125_000,
            measured_at=timezone.now(),
        )
    Node.objects.filter(name=origin).update(cordoned=True)
    running = operation.deployment
    [change] = first_placement(drawn(), {}, ["first"], running)
    assert change["node"] is None
    assert f"has no line for it: that from {origin} to " in str(change["problem"])
    assert "carries 0 of 1 Mbit/s and it brings 2" in str(change["problem"])
    Link.objects.update(bytes_per_s=375_000)
    [change] = first_placement(drawn(), {}, ["first"], running)
    assert change["node"] not in (None, origin)


def test_a_pin_is_obeyed_and_what_speaks_against_it_said(
    nodes: dict[str, Node], context: ControlContext
) -> None:
    pinned = drawn(apart=True)
    for element in pinned["spec"]["elements"]:
        element["node"] = "edge-a"
    told = {each["element"]: each for each in first_placement(pinned, {})}
    assert told["first"]["node"] == "edge-a"
    assert told["first"]["warning"] == "runs readings, from which it must stay apart"
    assert told["readings"]["warning"] is None


def test_a_restart_of_control_changes_no_deadline(nodes: dict[str, Node], context: ControlContext) -> None:
    operation = comes_to(P.RUN, ordered(), context)
    deadline = operation.deadline
    _Driver(str(operation.pk), context).advance()
    operation.refresh_from_db()
    assert operation.deadline == deadline
    Operation.objects.update(deadline=timezone.now() - timedelta(seconds=1))
    operation = ends(operation, context)
    assert operation.message == "These did not start in time: readings. Nothing of it runs."


@pytest.mark.parametrize("phase", [P.PLACE, P.TOPICS, P.STOP])
def test_what_nobody_foresaw_ends_it_and_is_told(
    phase: P, nodes: dict[str, Node], context: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    make: Callable[..., Operation] = gives_up if phase is P.STOP else lambda *_: comes_to(phase, *_)
    operation = make(ordered(), context)
    place = "running" if phase is P.STOP else "next_step"
    with monkeypatch.context() as broken:
        broken.setattr(f"workers.control.operations.driver.{place}", breaks)
        _Driver(str(operation.pk), context).advance()
    operation = ends(operation, context)
    assert operation.status == "failed"
    assert "ZeroDivisionError: division by zero." in operation.message
    assert operation.deployment.status == "failed"


def test_what_nobody_foresaw_leaves_the_rest_to_an_undeployment_that_came_meanwhile(
    nodes: dict[str, Node], context: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    operation = comes_to(P.PLACE, ordered(), context)
    Deployment.objects.update(status="undeploying")
    monkeypatch.setattr("workers.control.operations.driver.next_step", breaks)
    _Driver(str(operation.pk), context).advance()
    operation.refresh_from_db()
    assert (operation.status, operation.deployment.status) == ("failed", "undeploying")
    assert not Event.objects.filter(kind="pipeline.deploy_failed").exists()
