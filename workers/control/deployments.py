"""Deploying and undeploying a pipeline, step by step; each step can be repeated after a crash."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any

from django.db import DatabaseError, close_old_connections, transaction
from django.utils import timezone

from pipeline_runtime.kafka.admin import Topic, TopicsFailed, delete_topics, ensure_topics
from pipeline_runtime.model.desired import ReplicaStatus, Role
from pipeline_runtime.model.document import PipelineDocument, parse_document
from pipeline_runtime.model.faults import DocumentInvalid
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.placement.choose import GroupToPlace, NoPlacement, choose
from pipeline_runtime.planning.plan import topics
from webapp.handovers.models import Handover, Operation
from webapp.monitoring.records import announce, record_event
from webapp.nodes.models import Node
from webapp.pipelines.checking import planned
from webapp.pipelines.models import Deployment, ExtraReplica, GroupPlacement, Replica
from webapp.pipelines.placing import asked_nodes, candidates
from workers.control.context import Closing, ControlContext
from workers.control.replica_rows import reported

log = logging.getLogger(__name__)

NODES_S_MAX = 90.0
"""How long a deployment waits for nodes that are only starting."""
KAFKA_S_MAX = 30.0
START_S_MAX = 180.0
ERROR_S_MAX = 10.0
"""A replica that has shown an error for so long, in spite of its node's own restarts, has failed."""
RETIRE_S_MAX = 40.0
STOP_S_MAX = 30.0


UNDEPLOYED_BEFORE = "It was undeployed before it was running."


class OperationFailed(Exception):
    def __init__(self, message: str, faults: list[dict[str, Any]] | None = None) -> None:
        super().__init__(message)
        self.faults = faults or []


class Overtaken(Exception):
    """The deployment is to be undeployed: this operation has nothing more to do."""


class Steps:
    """The operation's progress, as the dashboard shows it."""

    def __init__(self, operation: Operation, names: list[str]) -> None:
        self.operation = operation
        operation.status = Operation.Status.RUNNING
        operation.steps = [{"name": name, "state": "pending", "at": None} for name in names]
        self._save()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self._set(name, "running")
        try:
            yield
        except Closing:
            raise
        except Exception:
            self._set(name, "failed")
            raise
        self._set(name, "done")

    def gives_up(self, message: str, faults: list[dict[str, Any]]) -> None:
        """Kept before anything is undone: whoever goes on with that knows why."""
        self.operation.message, self.operation.faults = message, faults
        self._save()

    def end(self, status: str, message: str, faults: list[dict[str, Any]] | None = None) -> None:
        end_operation(self.operation, status, message, faults)

    def _set(self, name: str, state: str) -> None:
        for step in self.operation.steps:
            if step["name"] == name:
                step["state"], step["at"] = state, timezone.now().isoformat()
        self._save()

    def _save(self) -> None:
        _save(self.operation)


def end_operation(
    operation: Operation, status: str, message: str, faults: list[dict[str, Any]] | None = None
) -> None:
    operation.status, operation.message = status, message
    operation.faults, operation.ended_at = faults or [], timezone.now()
    _save(operation)


def _save(operation: Operation) -> None:
    operation.save(update_fields=["status", "steps", "message", "faults", "ended_at"])
    announce("operations", str(operation.pk))


# -- deploy ----------------------------------------------------------------------------------------


def deploy(operation: Operation, context: ControlContext) -> None:
    """Until every group has an owner that runs; a failure leaves nothing running and says why."""
    deployment = operation.deployment
    steps = Steps(operation, ["validate", "place", "topics", "start", "run"])
    if operation.message:  # it was giving up when the control process ended
        _give_up(deployment, context, steps, operation.message, operation.faults)
        return
    try:
        with steps.step("validate"):
            document = parse_document(deployment.version.document)
            specs = planned(document, deployment.pk)
        with steps.step("place"):
            placed = _place(document, specs, deployment, context)
        with steps.step("topics"):
            _create_topics(specs, deployment, context)
        with steps.step("start"):
            while not _order_owners(specs, placed, deployment, context):
                placed = _place(document, specs, deployment, context)
        with steps.step("run"):
            _wait_for_owners(deployment, context)
    except Overtaken:
        steps.end(Operation.Status.FAILED, UNDEPLOYED_BEFORE)
        return
    except DocumentInvalid as error:
        _give_up(deployment, context, steps, str(error), [f.model_dump(mode="json") for f in error.faults])
        return
    except NoPlacement as error:
        faults = [_fault(deployment, fault.group, fault.message, "placement") for fault in error.faults]
        _give_up(
            deployment,
            context,
            steps,
            f"There is no node for some elements: {_unplaced(deployment, error)}",
            faults,
        )
        return
    except (OperationFailed, TopicsFailed) as error:
        _give_up(deployment, context, steps, str(error), getattr(error, "faults", []))
        return
    except (Closing, DatabaseError):
        raise  # taken up again: by the next process, or when the database is back
    except Exception as error:
        log.exception("%s: its deployment failed in a way that nobody foresaw", deployment.pipeline.name)
        _give_up(deployment, context, steps, f"{type(error).__name__}: {error}", [])
        return
    with transaction.atomic():
        if not _set_status(deployment, Deployment.Status.RUNNING):
            steps.end(Operation.Status.FAILED, UNDEPLOYED_BEFORE)
            return
        steps.end(Operation.Status.DONE, "All of it runs.")
        record_event(
            "pipeline.deployed",
            f"{deployment.pipeline.name} version {deployment.version.number} runs.",
            pipeline=deployment.pipeline.name,
        )


def _place(
    document: PipelineDocument, specs: tuple[GroupSpec, ...], deployment: Deployment, context: ControlContext
) -> dict[str, str]:
    """Group -> node. Nodes that are just starting are waited for; a cordon or a wrong name is not."""
    asked = asked_nodes(document, deployment.placement)
    groups = [GroupToPlace(spec.group, len(spec.elements), asked.get(spec.group)) for spec in specs]
    keep = {p.group: p.node.name for p in deployment.placements.select_related("node")}
    deadline = monotonic() + NODES_S_MAX
    while True:
        seen = context.reports.count
        close_old_connections()
        _refuse_when_overtaken(deployment)
        try:
            return choose(groups, candidates(), keep)
        except NoPlacement as error:
            if monotonic() > deadline or not all(fault.passing for fault in error.faults):
                raise
        if context.closing.is_set():
            raise Closing
        context.reports.wait(seen, 1.0)


def _unplaced(deployment: Deployment, error: NoPlacement) -> str:
    return "; ".join(f"{deployment.name_of(fault.group)}: {fault.message}" for fault in error.faults) + "."


def _create_topics(specs: tuple[GroupSpec, ...], deployment: Deployment, context: ControlContext) -> None:
    """A broker that does not answer is given some time: it may be starting, like the nodes."""
    deadline = monotonic() + KAFKA_S_MAX
    while True:
        _refuse_when_overtaken(deployment)
        try:
            ensure_topics(context.kafka, _topics(specs))
            return
        except TopicsFailed:
            raise
        except Exception as error:
            if monotonic() > deadline:
                raise OperationFailed(
                    f"Kafka at {context.kafka.bootstrap} does not answer ({type(error).__name__}: {error}). "
                    "See whether it runs and whether the security settings fit, then deploy again."
                ) from error
        if context.closing.wait(1.0):
            raise Closing


def _topics(specs: tuple[GroupSpec, ...]) -> list[Topic]:
    return [Topic(topic.name, topic.kind, topic.partitions) for spec in specs for topic in topics(spec)]


def _order_owners(
    specs: tuple[GroupSpec, ...], placed: Mapping[str, str], deployment: Deployment, context: ControlContext
) -> bool:
    """False: a node was cordoned or removed since it was chosen, and nothing was ordered."""
    with transaction.atomic():
        _refuse_when_overtaken(deployment)
        # Locked: a drain that finds the node empty ends before this, or sees what is placed there.
        locked = Node.objects.select_for_update(no_key=True).filter(name__in=placed.values())
        nodes = {node.name: node for node in locked.order_by("name")}
        there = set(deployment.placements.values_list("group", flat=True))
        chosen = {placed[spec.group] for spec in specs if spec.group not in there}
        if any(name not in nodes or nodes[name].cordoned for name in chosen):
            return False
        for spec in specs:
            if spec.group in there:
                continue  # ordered before this process crashed, and may run already
            placement = GroupPlacement(
                deployment=deployment, group=spec.group, node=nodes[placed[spec.group]]
            )
            placement.spec = spec.model_dump(mode="json")
            placement.give_order(over=0)
            placement.save()
        announce("elements", deployment.pipeline.name)
    context.desired.notify()
    return True


def _wait_for_owners(deployment: Deployment, context: ControlContext) -> None:
    failing_since: dict[str, float] = {}

    def all_own() -> bool:
        _refuse_when_overtaken(deployment)
        waiting = 0
        for placement in deployment.placements.select_related("node"):
            status = status_on(placement)
            if status is not None and status.role is Role.OWNER and status.order_id == placement.order_id:
                continue
            waiting += 1
            if status is None or status.error is None:
                failing_since.pop(placement.group, None)
            elif monotonic() - failing_since.setdefault(placement.group, monotonic()) > ERROR_S_MAX:
                message = f"On {placement.node.name}: {status.error.message}"
                raise OperationFailed(
                    f"{deployment.name_of(placement.group)} does not start. {message}",
                    [_fault(deployment, placement.group, message, "start", status.error.traceback)],
                )
        return waiting == 0

    if context.wait_until(all_own, START_S_MAX):
        return
    faults, late = [], []
    for placement in deployment.placements.select_related("node"):
        status = status_on(placement)
        if status is None or status.role is not Role.OWNER:
            late.append(deployment.name_of(placement.group))
            what = f"is {status.phase or status.role.value}" if status else "was not reported by its node"
            message = f"{placement.node.name}: it {what} after {START_S_MAX:.0f} s"
            faults.append(_fault(deployment, placement.group, message, "start"))
    raise OperationFailed(f"These did not start in time: {', '.join(late)}.", faults)


def status_on(placement: GroupPlacement) -> ReplicaStatus | None:
    row = Replica.objects.filter(
        deployment=placement.deployment_id,
        group=placement.group,
        node=placement.node_id,
        generation=placement.generation,
    ).first()
    return reported(row)


def _refuse_when_overtaken(deployment: Deployment) -> None:
    status = Deployment.objects.values_list("status", flat=True).get(pk=deployment.pk)
    if status != Deployment.Status.DEPLOYING:
        raise Overtaken


def _give_up(
    deployment: Deployment,
    context: ControlContext,
    steps: Steps,
    message: str,
    faults: list[dict[str, Any]],
) -> None:
    """Nothing of a failed deployment goes on: half a pipeline helps nobody."""
    log.warning("%s was not deployed: %s", deployment.pipeline.name, message)
    steps.gives_up(message, faults)
    specs = tuple(GroupSpec.model_validate(p.spec) for p in deployment.placements.all())
    _let_go(deployment, context)
    try:
        if specs:
            delete_topics(context.kafka, [topic.name for topic in _topics(specs)])
    except Exception as error:
        log.warning("topics of %s are left over: %s", deployment.pk, error)
    with transaction.atomic():
        steps.end(Operation.Status.FAILED, f"{message} Nothing of it runs.", faults)
        if not _set_status(deployment, Deployment.Status.FAILED, message):
            return  # it is being undeployed
        record_event(
            "pipeline.deploy_failed",
            f"{deployment.pipeline.name} was not deployed: {message}",
            severity="error",
            pipeline=deployment.pipeline.name,
        )


# -- undeploy --------------------------------------------------------------------------------------


def undeploy(operation: Operation, context: ControlContext) -> None:
    """Retire every group, stop what runs, delete the topics. Checkpoints stay for their retention."""
    deployment = operation.deployment
    steps = Steps(operation, ["retire", "stop", "delete topics"])
    specs = _deployed_specs(deployment)
    with steps.step("retire"):
        # Running handovers give back or end by themselves: they see the deployment's status.
        context.wait_until(lambda: not _handovers(deployment), timeout_s=RETIRE_S_MAX)
        # Not those that were let go of already, before this was broken off: nobody would retire them.
        deployment.placements.filter(role="owner").update(retire=True)
        context.desired.notify()
        context.wait_until(lambda: not _still_to_retire(deployment), timeout_s=RETIRE_S_MAX)
    with steps.step("stop"):
        _let_go(deployment, context)
    left_over = _left_running(deployment)
    try:
        with steps.step("delete topics"):
            _delete_topics(specs, context)
    except TopicsFailed as error:
        log.warning("topics of %s are left over: %s", deployment.pk, error)
        left_over += f" {error}. They are left over and nothing uses them any more: delete them in Kafka."
    message = f"Undeployed. Checkpoints are kept in the central store for a while.{left_over}"
    with transaction.atomic():
        Replica.objects.filter(deployment=deployment).delete()
        _set_status(deployment, Deployment.Status.UNDEPLOYED)
        steps.end(Operation.Status.DONE, message)
        name = deployment.pipeline.name
        severity = "warning" if left_over else "info"
        text = f"{name} was undeployed.{left_over}"
        record_event("pipeline.undeployed", text, severity=severity, pipeline=name)


def _deployed_specs(deployment: Deployment) -> tuple[GroupSpec, ...]:
    """Of its placements; when it was not placed yet, of its document: it may have topics already."""
    placed = tuple(GroupSpec.model_validate(p.spec) for p in deployment.placements.all())
    if placed:
        return placed
    try:
        return planned(parse_document(deployment.version.document), deployment.pk)
    except DocumentInvalid:
        return ()  # it never came as far as its topics


def _handovers(deployment: Deployment) -> bool:
    return Handover.objects.filter(deployment=deployment, outcome__isnull=True).exists()


def _still_to_retire(deployment: Deployment) -> bool:
    """Whether there is a group to hope for: its node is up, and it has neither ended nor failed."""
    for placement in deployment.placements.filter(role="owner").select_related("node"):
        status = status_on(placement)
        failed = status is not None and status.error is not None
        if placement.node.up and not failed and not _retired(placement):
            return True
    return False


def _retired(placement: GroupPlacement) -> bool:
    status = status_on(placement)
    return status is not None and status.retired


def _left_running(deployment: Deployment) -> str:
    """Which groups did not confirm their end, if any, as the end of a message."""
    left = [deployment.name_of(placement.group) for placement in deployment.placements.filter(retire=True)]
    if not left:
        return ""
    return f" These did not confirm their end, they stop when their nodes answer: {', '.join(left)}."


def _delete_topics(specs: tuple[GroupSpec, ...], context: ControlContext) -> None:
    """What Kafka refuses may be for a moment only. Raises TopicsFailed, with what is still there, if not."""
    names = [topic.name for topic in _topics(specs)]
    deadline = monotonic() + KAFKA_S_MAX
    while True:
        try:
            return delete_topics(context.kafka, names)
        except TopicsFailed:
            if monotonic() > deadline:
                raise
        except Exception as error:
            # Behind the deadline it ends all the same: a broker may be gone for good.
            if monotonic() > deadline:
                away = f"Kafka at {context.kafka.bootstrap} does not answer ({type(error).__name__})"
                raise TopicsFailed(f"{away}, so it did not delete {', '.join(names)}") from error
        if context.closing.wait(1.0):
            raise Closing


def _let_go(deployment: Deployment, context: ControlContext) -> None:
    """Stop it everywhere; waits until the nodes that answer have. The placements stay as history:
    of a deployment that has ended, nothing is wanted of any node."""
    with transaction.atomic():
        ExtraReplica.objects.filter(deployment=deployment).delete()
        # Noted now: once it is stopped, its node lets go of it, and nothing of it is reported any more.
        retired = [p.pk for p in deployment.placements.filter(retire=True) if _retired(p)]
        deployment.placements.filter(pk__in=retired).update(retire=False)
        deployment.placements.update(role="stopped")
    context.desired.notify()

    def all_stopped() -> bool:
        running = Replica.objects.filter(deployment=deployment, node__up=True)
        return not running.exclude(role=Role.STOPPED.value).exists()

    context.wait_until(all_stopped, STOP_S_MAX)


def _set_status(deployment: Deployment, status: str, message: str = "") -> bool:
    """False: it had another status than it can come from, since a user undeploys it, and keeps that."""
    undeployed = status == Deployment.Status.UNDEPLOYED
    before = Deployment.Status.UNDEPLOYING if undeployed else Deployment.Status.DEPLOYING
    ended_at = None if status in Deployment.ACTIVE else timezone.now()
    found = Deployment.objects.filter(pk=deployment.pk, status=before)
    if not found.update(status=status, message=message, ended_at=ended_at):
        return False
    announce("pipelines", deployment.pipeline.name)
    announce("elements", deployment.pipeline.name)
    return True


def _fault(
    deployment: Deployment, group: str, message: str, code: str, traceback: str | None = None
) -> dict[str, Any]:
    """In the shape of the document's faults; a group's fault is shown at its first element."""
    placement = deployment.placements.filter(group=group).first()
    element = placement.spec["elements"][0]["id"] if placement else group
    fault = {"element": element, "path": f"spec.elements.{element}", "message": message, "code": code}
    fault["title"] = deployment.name_of(group)
    return {**fault, "traceback": traceback} if traceback else fault
