"""Upgrades a running deployment in place: group by group, each from its own state.

A group gets its new definition and a new claim order together. Its node stops the replica after its
running batch, starts it from its local state with the new parameters, and it claims: the journal decides
as ever, and nothing is lost or written twice. A group whose state the new definition cannot use, and whose
user agreed to lose it, begins with an empty one, where its inputs stand. Repeatable: a group that has its
new definition is only waited for.
"""

from __future__ import annotations

import logging
from time import monotonic

from django.db import DatabaseError, transaction

from pipeline_runtime.model.desired import ReplicaStatus, Role
from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.faults import DocumentInvalid
from pipeline_runtime.model.spec import GroupSpec
from webapp.handovers.models import Handover, Operation
from webapp.monitoring.records import announce, record_event
from webapp.pipelines.checking import planned
from webapp.pipelines.models import Deployment, GroupPlacement
from workers.control.context import Closing, ControlContext
from workers.control.deployments import (
    ERROR_S_MAX,
    START_S_MAX,
    OperationFailed,
    Overtaken,
    Steps,
    end_operation,
    status_on,
)
from workers.control.replica_rows import epoch_known

log = logging.getLogger(__name__)

ORDERS_MAX = 5


def upgrade(operation: Operation, context: ControlContext) -> None:
    """Until every changed group runs its new version; a failure leaves the rest as it is."""
    try:
        _upgrade(operation, context)
    except Overtaken:
        end_operation(operation, Operation.Status.FAILED, "It was undeployed before it was upgraded.")
    except DocumentInvalid as error:
        faults = [fault.model_dump(mode="json") for fault in error.faults]
        end_operation(operation, Operation.Status.FAILED, f"{error}", faults)
    except OperationFailed as error:
        _fail(operation, str(error))
    except (Closing, DatabaseError):
        raise  # taken up again: by the next process, or when the database is back
    except Exception as error:
        log.exception(
            "%s: its upgrade failed in a way that nobody foresaw", operation.deployment.pipeline.name
        )
        _fail(operation, f"{type(error).__name__}: {error}.")


def _upgrade(operation: Operation, context: ControlContext) -> None:
    deployment = operation.deployment
    specs = planned(parse_document(deployment.version.document), deployment.pk)
    changed = _to_upgrade(operation, specs)
    steps = Steps(operation, [spec.group for spec in changed])
    for spec in changed:
        with steps.step(spec.group):
            _order(spec, deployment, context, anew=_begins_anew(spec, operation))
            _wait_for_owner(spec.group, deployment, context)
    name, number = deployment.pipeline.name, deployment.version.number
    with transaction.atomic():
        count, all_of_them = (sum(len(spec.elements) for spec in each) for each in (changed, specs))
        started = f"{count} of {all_of_them} elements were started again"
        done = f"{name} runs version {number}: {started}."
        if operation.restart:
            anew = ", ".join(deployment.name_of(element) for element in operation.restart)
            done += f" Without the state that it had, as was agreed: {anew}."
        steps.end(Operation.Status.DONE, done)
        record_event("pipeline.upgraded", done, pipeline=name)


def _to_upgrade(operation: Operation, specs: tuple[GroupSpec, ...]) -> list[GroupSpec]:
    """Those that differ, those with which this operation has begun, and those that have the definition by an
    upgrade before, which did not bring them to run."""
    begun = {step["name"] for step in operation.steps}
    before = operation.deployment.operations.filter(
        kind=Operation.Kind.UPGRADE, created_at__lt=operation.created_at
    ).first()
    states = {step["name"]: step["state"] for step in before.steps} if before else {}
    placements = {placement.group: placement for placement in operation.deployment.placements.all()}

    def concerned(spec: GroupSpec) -> bool:
        placement = placements.get(spec.group)
        if placement is None or placement.spec["version"] != spec.version or spec.group in begun:
            return True
        state = states.get(spec.group, "done")
        # One that was not begun with runs as it is, unless an upgrade before that one has failed at it.
        return _is_down(placement) if state == "pending" else state != "done"

    return [spec for spec in specs if concerned(spec)]


def _begins_anew(spec: GroupSpec, operation: Operation) -> bool:
    return any(element.id in operation.restart for element in spec.elements)


def _order(spec: GroupSpec, deployment: Deployment, context: ControlContext, *, anew: bool = False) -> None:
    """The new definition with an order to own, once no handover is under way.

    `anew`: without the state that the former definition has left. That stays with this definition, whoever
    takes it up: an order that comes after its first CLAIM leaves nothing behind any more.
    """

    def ordered() -> bool:
        _refuse_when_overtaken(deployment)
        with transaction.atomic():
            running = Handover.objects.filter(deployment=deployment, group=spec.group, outcome__isnull=True)
            if running.exists():
                return False
            placement = GroupPlacement.objects.get(deployment=deployment, group=spec.group)
            if placement.spec["version"] != spec.version or _is_down(placement):
                _ask_anew(placement, spec, anew=anew)
                announce("elements", deployment.pipeline.name)
        context.desired.notify()
        return True

    if not context.wait_until(ordered, START_S_MAX):
        raise OperationFailed(
            f"{deployment.name_of(spec.group)} is being moved all the time, so it was not upgraded."
        )


def _ask_anew(placement: GroupPlacement, spec: GroupSpec, *, anew: bool) -> None:
    """With another order only for another definition, or where the one that it has came to nothing. What only
    failed may be starting again by itself right now: it then owns by its order, and carries out no other."""
    status, changes = status_on(placement), placement.spec["version"] != spec.version
    if changes:
        # One before that was to begin anew, and never owned, leaves that to this one: its own state could be
        # gone on with, but not what lay before it.
        if anew:
            placement.order_anew, placement.order_anew_but_for = True, []
        elif placement.order_anew:
            placement.order_anew_but_for = [*placement.order_anew_but_for, placement.spec["version"]]
        placement.spec = spec.model_dump(mode="json")
    fenced = status is not None and status.phase == "fenced"
    if changes or fenced or _refusal(placement, status) is not None:
        placement.give_order(epoch_known(placement))
    placement.vouch()
    fields = ["spec", *GroupPlacement.ANEW, *GroupPlacement.ORDER, *GroupPlacement.VOUCHED]
    placement.save(update_fields=fields)


def _is_down(placement: GroupPlacement) -> bool:
    """Its node has given up on it, or may: only when it is asked anew does it try again."""
    status = status_on(placement)
    if status is None or status.role is Role.OWNER:
        return False
    return status.error is not None or _refusal(placement, status) is not None


def _wait_for_owner(group: str, deployment: Deployment, context: ControlContext) -> None:
    failing_since: float | None = None
    orders = 1
    name = deployment.name_of(group)

    def owns() -> bool:
        nonlocal failing_since, orders
        _refuse_when_overtaken(deployment)
        placement = GroupPlacement.objects.select_related("node").get(deployment=deployment, group=group)
        status = status_on(placement)
        if status is not None and status.order_id == placement.order_id and status.role is Role.OWNER:
            # The journal has its definition: there is nothing left to begin without.
            placement.order_anew, placement.order_anew_but_for = False, []
            placement.save(update_fields=GroupPlacement.ANEW)
            return True
        refused = _refusal(placement, status)
        if status is not None and refused is not None:
            # The epoch in the report says nothing about that: who lost to another that claimed at the
            # same time may not have read of that one's epoch yet, and the next order may be right.
            if status.retired or orders >= ORDERS_MAX:
                raise OperationFailed(f"{name} was refused on {placement.node.name}: {refused}")
            orders += 1
            placement.give_order(epoch_known(placement))
            placement.save(update_fields=GroupPlacement.ORDER)
            context.desired.notify()
        elif status is None or status.error is None:
            failing_since = None
        elif failing_since is None:
            failing_since = monotonic()
        elif monotonic() - failing_since > ERROR_S_MAX:
            raise OperationFailed(
                f"{name} does not run its new version on {placement.node.name}: {status.error.message}"
            )
        return False

    if not context.wait_until(owns, START_S_MAX):
        raise OperationFailed(f"{name} did not run its new version within {START_S_MAX:.0f} s.")


def _refusal(placement: GroupPlacement, status: ReplicaStatus | None) -> str | None:
    """Why the newest order was refused; None: it was not. An earlier order's refusal says nothing of it."""
    if status is None or status.order_id != placement.order_id:
        return None
    return status.order_refused


def _refuse_when_overtaken(deployment: Deployment) -> None:
    status = Deployment.objects.values_list("status", flat=True).get(pk=deployment.pk)
    if status != Deployment.Status.RUNNING:
        raise Overtaken


def _fail(operation: Operation, message: str) -> None:
    name = operation.deployment.pipeline.name
    anew = ", ".join(operation.deployment.name_of(element) for element in operation.restart)
    kept = f"Lost is at most what was agreed to, the state of {anew}" if anew else "Nothing is lost"
    text = (
        f"{message} What was upgraded before it runs on, the rest runs as before. {kept}: deploy "
        "a corrected version, or the former one, to go on from where it is."
    )
    log.warning("%s was not upgraded: %s", name, message)
    with transaction.atomic():
        end_operation(operation, Operation.Status.FAILED, text)
        record_event("pipeline.upgrade_failed", f"{name}: {text}", severity="error", pipeline=name)
