"""Stores an operation's progress and end, and tells the dashboards.

Everything here runs in the transaction in which the step is stored.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from typing import cast

from django.utils import timezone

from webapp.audit.announcements import announce
from webapp.audit.records import record_event
from webapp.moments import moment_of_ms
from webapp.operations.models import Operation
from webapp.placements.models import Deployment, Replica
from workers.control.operations.deliveries import not_delivered
from workers.control.operations.effects import Change, left_running, run_on, set_status, unconfirmed
from workers.control.operations.model import Fail, GroupFault, Undelivered
from workers.control.operations.phases import DONE_AFTER, NEXT, Kind, OperationPhase as P
from workers.control.phases import PhaseOutOfTurn, check_turn

log = logging.getLogger(__name__)

DELIVER = "deliver"
STEPS: dict[str, tuple[str, ...]] = {
    "deploy": ("validate", "place", "topics", "start", "run"),
    "undeploy": ("retire", DELIVER, "stop", "delete topics"),
}
"""The steps that the dashboard shows. The steps of an upgrade are its groups. DELIVER is left out if nothing
is delivered to a system outside."""
STEP_OF: dict[tuple[str, P], str] = {
    ("deploy", P.VALIDATE): "validate",
    ("deploy", P.PLACE): "place",
    ("deploy", P.TOPICS): "topics",
    ("deploy", P.START): "start",
    ("deploy", P.RUN): "run",
    ("undeploy", P.SETTLE): "retire",
    ("undeploy", P.READ): "retire",
    ("undeploy", P.RETIRE): "retire",
    ("undeploy", P.DELIVER): DELIVER,
    ("undeploy", P.STOP): "stop",
    ("undeploy", P.DELETE): "delete topics",
}


def begin(operation: Operation, names: Iterable[str]) -> None:
    operation.status = Operation.Status.RUNNING
    operation.steps = [{"name": name, "state": "pending", "at": None} for name in names]


def groups_left(operation: Operation, change: Change) -> tuple[str, ...]:
    """Returns the groups that an upgrade has not yet added, changed or removed."""
    if operation.kind != Operation.Kind.UPGRADE:
        return ()
    steps = [step for step in operation.steps if step["change"] == change]
    return tuple(step["name"] for step in steps if step["state"] != "done")


def enter(operation: Operation, phase: P, deadline_ms: int | None, removed: Collection[str]) -> None:
    """Sets the phase of an operation and the states of its steps; the caller saves it.

    `removed` are the groups that an upgrade removes now. Raises PhaseOutOfTurn if the phase may not follow.
    """
    check_turn(NEXT[cast(Kind, operation.kind)], P(operation.phase), phase)
    shown = _shown(operation, phase, removed)
    for step in operation.steps:
        if step["state"] == "running" and step["name"] not in shown:
            _set(step, "done")
        elif step["state"] == "pending" and step["name"] in shown:
            _set(step, "running")
    operation.phase, operation.phase_since = phase.value, timezone.now()
    operation.deadline = None if deadline_ms is None else moment_of_ms(deadline_ms)
    operation.waits_for, operation.failing = "", {}


def _shown(operation: Operation, phase: P, removed: Collection[str]) -> Collection[str]:
    """Returns the steps that are under way in a phase."""
    match phase:
        case P.ORDER | P.OWN:
            return groups_left(operation, "changed")[:1]
        case P.SETTLE | P.READ | P.RETIRE | P.DELIVER | P.STOP if operation.kind == Operation.Kind.UPGRADE:
            return removed
        case P.START | P.RUN if operation.kind == Operation.Kind.UPGRADE:
            return groups_left(operation, "added")
    step = STEP_OF.get((operation.kind, phase))
    return () if step is None else (step,)


def mark_running(operation: Operation, state: str) -> None:
    """Sets the state of the steps that are under way."""
    for step in operation.steps:
        if step["state"] == "running":
            _set(step, state)


def mark_unconfirmed(operation: Operation, groups: Collection[str]) -> None:
    """Marks groups that an upgrade has removed, and that did not confirm their end."""
    for step in operation.steps:
        if step["name"] in groups:
            step["unconfirmed"] = True


def _set(step: dict[str, str | None], state: str) -> None:
    step["state"], step["at"] = state, timezone.now().isoformat()


def save(operation: Operation) -> None:
    operation.save()
    announce()


# -- the end -----------------------------------------------------------------------------------------


def end_failed(operation: Operation, why: Fail) -> None:
    mark_running(operation, "failed")
    operation.code = operation.code or why.code
    if why.overtaken:
        _end(operation, Operation.Status.FAILED, why.message, operation.faults)
    elif operation.kind == Operation.Kind.DEPLOY:
        _deployment_failed(operation, why)
    else:
        _upgrade_failed(operation, why)


def _deployment_failed(operation: Operation, why: Fail) -> None:
    deployment, pipeline = operation.deployment, operation.deployment.pipeline
    log.warning("%s was not deployed: %s", pipeline.name, why.message)
    faults = why.faults or operation.faults
    _end(operation, Operation.Status.FAILED, f"{why.message} Nothing of it runs.", faults)
    set_status(deployment, Deployment.Status.FAILED, why.message)
    text = f"{pipeline.title} was not deployed: {why.message}"
    record_event("pipeline.deploy_failed", text, severity="error", pipeline=pipeline.name)


def _upgrade_failed(operation: Operation, why: Fail) -> None:
    deployment, pipeline = operation.deployment, operation.deployment.pipeline
    run_on(deployment)
    fresh = ", ".join(deployment.name_of(element) for element in operation.restart)
    kept = f"At most the state of {fresh} is lost, as was agreed." if fresh else "Nothing is lost."
    waiting = _not_delivered(operation, kept=True)
    waits = " What reads from an element that is missing now waits." if deployment.left_over else ""
    text = (
        f"{why.message} What was upgraded before it runs on, the rest runs as before.{waits} {kept} Deploy "
        f"a corrected version, or the former one, to go on from where it is.{waiting}"
    )
    log.warning("%s was not upgraded: %s", pipeline.name, why.message)
    _end(operation, Operation.Status.FAILED, text, why.faults)
    record_event(
        "pipeline.upgrade_failed", f"{pipeline.title}: {text}", severity="error", pipeline=pipeline.name
    )


def check_done(operation: Operation) -> None:
    """Raises PhaseOutOfTurn if an operation of this kind is not done after its present phase."""
    if P(operation.phase) not in DONE_AFTER[cast(Kind, operation.kind)]:
        raise PhaseOutOfTurn(f"A {operation.kind} operation is not done after {operation.phase}.")


def end_deployed(operation: Operation) -> None:
    mark_running(operation, "done")
    deployment, pipeline = operation.deployment, operation.deployment.pipeline
    set_status(deployment, Deployment.Status.RUNNING)
    _end(operation, Operation.Status.DONE, "All of it runs.")
    text = f"{pipeline.title} version {deployment.version.number} runs."
    record_event("pipeline.deployed", text, pipeline=pipeline.name)


def end_upgraded(operation: Operation, started: int, elements: int, topics_left: str) -> None:
    """`started` says how many of the `elements` were started again."""
    mark_running(operation, "done")
    deployment, pipeline = operation.deployment, operation.deployment.pipeline
    again = f"{started} of {elements} elements were started again"
    text = f"{pipeline.title} runs version {deployment.version.number}: {again}."
    regrouped = [
        step["title"] for step in operation.steps if step.get("regrouped") and step["change"] == "added"
    ]
    if regrouped:
        text += f" Grouped otherwise: {', '.join(regrouped)}."
    for change, verb in (("added", "Added"), ("removed", "Removed")):
        titles = [
            step["title"] for step in operation.steps if step["change"] == change and "regrouped" not in step
        ]
        if titles:
            text += f" {verb}: {', '.join(titles)}."
    if operation.restart:
        fresh = ", ".join(deployment.name_of(element) for element in operation.restart)
        text += f" Begun with a fresh state, as was agreed: {fresh}."
    text += unconfirmed(step["title"] for step in operation.steps if step.get("unconfirmed"))
    lost = _not_delivered(operation)
    text += lost
    if topics_left:
        text += f" {topics_left}"
    _end(operation, Operation.Status.DONE, text)
    severity = "warning" if lost else "info"
    record_event("pipeline.upgraded", text, severity=severity, pipeline=pipeline.name)


def end_undeployed(operation: Operation, topics_left: str) -> None:
    mark_running(operation, "failed" if topics_left else "done")
    deployment, pipeline = operation.deployment, operation.deployment.pipeline
    lost = _not_delivered(operation)
    for step in operation.steps:
        if lost and step["name"] == DELIVER:
            _set(step, "failed")
    left_over = lost + left_running(deployment) + (f" {topics_left}" if topics_left else "")
    if topics_left:
        log.warning("topics of %s are left over: %s", deployment.pk, topics_left)
    Replica.objects.filter(deployment=deployment).delete()
    set_status(deployment, Deployment.Status.UNDEPLOYED)
    message = f"Undeployed. Checkpoints are kept in the central store for a while.{left_over}"
    _end(operation, Operation.Status.DONE, message)
    text, severity = f"{pipeline.title} was undeployed.{left_over}", "warning" if left_over else "info"
    record_event("pipeline.undeployed", text, severity=severity, pipeline=pipeline.name)


def _not_delivered(operation: Operation, *, kept: bool = False) -> str:
    return not_delivered((Undelivered(**each) for each in operation.undelivered), kept=kept)


def _end(operation: Operation, status: str, message: str, faults: Sequence[GroupFault] = ()) -> None:
    operation.status, operation.message, operation.faults = status, message, list(faults)
    operation.deadline, operation.waits_for, operation.ended_at = None, "", timezone.now()
