"""Drives one operation: decides by `operations/steps.py`, and stores each phase together with its effect.

The database is changed in the transaction of the phase. Kafka is asked after the phase was stored, and can be
asked twice. So when a control process dies anywhere, the next one looks and goes on.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from django.db import DatabaseError, close_old_connections, transaction

from pipeline_runtime.checkpoint.errors import CheckpointError
from pipeline_runtime.checkpoint.portable import NotPortable
from pipeline_runtime.kafka.transactions import Doubtful
from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.faults import DocumentInvalid
from pipeline_runtime.model.ids import document_group
from pipeline_runtime.model.names import with_names
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.planning.reconnect import Reconnections
from pipeline_runtime.planning.regroup import elements_of
from pipeline_runtime.planning.upgrade import obsolete_topics
from webapp.audit.announcements import announce
from webapp.moments import moment_of_ms, ms_of_moment
from webapp.operations.actions import deploy_again
from webapp.operations.models import Operation
from webapp.placements.delivered import DeliveredStream
from webapp.placements.selectors import planned_for, specs_of
from workers.control.context import ControlContext, now_ms
from workers.control.operations import carried, effects, reconnecting, record, undelivered
from workers.control.operations.draining import next_to_end
from workers.control.operations.model import (
    Answer,
    CountUndelivered,
    CreateTopics,
    DeleteTopics,
    Done,
    Enter,
    Fail,
    GiveUp,
    GroupFault,
    NoteUndelivered,
    Observed,
    OrderAgain,
    OrderOwners,
    Progress,
    ReadPositions,
    Step,
    Wait,
)
from workers.control.operations.observing import (
    concerned,
    groups_seen,
    running,
    titles,
    unconfirmed,
    unsettled,
)
from workers.control.operations.phases import Kind, OperationPhase as P
from workers.control.operations.steps import failing_since, gives_up, next_step, overtaken

log = logging.getLogger(__name__)


def drive_operation(id: str, context: ControlContext) -> None:
    """Drives the operation until it has ended, or the process ends. The next process goes on with it."""
    driver = _Driver(id, context)
    while not context.closing.is_set():
        seen = context.reports.count
        close_old_connections()
        step = driver.advance()
        if step is None or isinstance(step, Done | Fail):
            return
        if isinstance(step, Wait):
            context.reports.wait(seen, 1.0)


class _Driver:
    def __init__(self, id: str, context: ControlContext) -> None:
        self._id = id
        self._context = context
        self._answer: Answer | None = None  # from Kafka, to what this phase asks
        self._specs: tuple[GroupSpec, ...] | None = None

    def advance(self) -> Step | None:
        """Takes one step and returns it. Returns None if the operation has ended."""
        try:
            with transaction.atomic():
                operation = self._locked()
                if operation is None:
                    return None
                step = self._decide(operation)
                self._apply(step, operation)
        except DatabaseError:
            raise  # it goes on when the database is back
        except Exception as error:
            return self._failed(error)
        if isinstance(step, CreateTopics):
            self._answer = effects.create_topics(self._planned(operation), self._context.kafka)
            if not self._answer.refused and not self._answer.away:
                self._bring_carried(operation)
        elif isinstance(step, ReadPositions) and operation.kind == Operation.Kind.UNDEPLOY:
            self._answer = undelivered.unread(operation, self._next_to_end(operation), self._context.kafka)
        elif isinstance(step, ReadPositions):
            groups, connected = self._at_work(operation), self._connected(operation)
            self._answer = reconnecting.positions(
                operation.deployment, connected, groups, self._context.kafka
            )
        elif isinstance(step, CountUndelivered):
            self._answer = self._counted(operation)
        elif isinstance(step, NoteUndelivered) and self._answer is not None:
            self._answer = replace(self._answer, noted=True)
        elif isinstance(step, DeleteTopics):
            self._answer = effects.remove_topics(operation, self._context.kafka)
        elif isinstance(step, Wait):
            self._answer = None if step.outdated else self._answer
        else:
            self._context.desired.notify()
        return step

    def _counted(self, operation: Operation) -> Answer:
        kafka = self._context.kafka
        found = undelivered.counted(operation, self._streams(operation), kafka)
        if operation.kind != Operation.Kind.UNDEPLOY or operation.phase != P.STOP:
            return found
        groups = operation.deployment.placements.values_list("group", flat=True)
        return undelivered.with_unread(found, undelivered.unread(operation, groups, kafka))

    def _bring_carried(self, operation: Operation) -> None:
        context, specs = self._context, self._planned(operation)
        try:
            carried.bring(operation.deployment, specs, context.settings.data, context.central, context.kafka)
        except Doubtful as error:
            self._answer = Answer(now_ms(), away=f"Kafka does not take the state that came along: {error}")
        except (CheckpointError, NotPortable, OSError) as error:
            self._answer = Answer(now_ms(), refused=f"The state that came along cannot be used: {error}")

    def _locked(self) -> Operation | None:
        """Locks the deployment as well, so that a user undeploys it before this step or after it."""
        rows = Operation.objects.select_for_update(of=("self", "deployment"), no_key=True)
        rows = rows.select_related("deployment__pipeline", "deployment__version")
        return rows.filter(pk=self._id, status__in=Operation.UNFINISHED).first()

    def _failed(self, error: Exception) -> Step | None:
        """Ends the operation after an error that nobody foresaw, or because its document is no longer
        valid."""
        with transaction.atomic():
            operation = self._locked()
            if operation is None:
                return None
            if operation.kind == Operation.Kind.UNDEPLOY:
                raise error  # it is tried again: nobody else would clear away what it leaves
            if isinstance(error, DocumentInvalid):
                message, faults, code = str(error), _json(error), "version-invalid"
            else:
                message, faults, code = f"{type(error).__name__}: {error}", (), ""
                name = operation.deployment.pipeline.name
                log.error("%s: its %s failed, and nobody foresaw how", name, operation.kind, exc_info=error)
            progress, status = _progress(operation), operation.deployment.status
            step = overtaken(progress, status) or gives_up(progress, message, faults, now_ms(), code)
            self._apply(step, operation)
        self._context.desired.notify()
        return step

    # -- what is known ---------------------------------------------------------------------------------

    def _decide(self, operation: Operation) -> Step:
        if operation.phase == P.PENDING:
            self._begin(operation)
        at_ms, progress = now_ms(), self._progress(operation)
        seen = self._observe(operation, progress)
        failing = failing_since(progress, seen, at_ms)
        if failing != progress.failing:
            operation.failing = failing
            operation.save(update_fields=["failing"])
            progress = replace(progress, failing=failing)
        return next_step(progress, seen, at_ms)

    def _progress(self, operation: Operation) -> Progress:
        progress = _progress(operation)
        match progress.phase:
            case P.SETTLE | P.READ | P.RETIRE | P.DELIVER | P.STOP:
                streams = self._streams(operation)
                if operation.kind == Operation.Kind.UNDEPLOY:
                    return replace(
                        progress,
                        later=effects.to_retire(operation.deployment) if streams else (),
                        delivers=bool(streams),
                        undelivered=undelivered.stored(operation, streams),
                    )
                connected, next_ = self._connected(operation), self._next_to_end(operation)
                return replace(
                    progress,
                    removed=next_,
                    later=tuple(group for group in progress.removed if group not in next_),
                    gives=connected.givers.intersection(next_),
                    asks=reconnecting.asks(connected, next_),
                    delivers=bool(streams),
                    undelivered=undelivered.stored(operation, streams),
                )
            case P.ORDER | P.START:
                asks = reconnecting.asks(self._connected(operation), self._at_work(operation))
                return replace(progress, asks=asks)
        return progress

    def _observe(self, operation: Operation, progress: Progress) -> Observed:
        """Returns what the phase depends on."""
        deployment = operation.deployment
        status, heard_ms = deployment.status, self._context.hearing_since_ms
        match progress.phase:
            case P.PENDING | P.VALIDATE if progress.kind != "undeploy":
                try:
                    if refused := self._connected(operation).refused:
                        why = _said(refused, titles(operation))
                        return Observed(
                            status, heard_ms, invalid=f"It cannot take over from what runs: {why}"
                        )
                    return Observed(status, heard_ms, new_topics=self._has_new_topics(operation))
                except DocumentInvalid as error:
                    return Observed(status, heard_ms, invalid=str(error), faults=_json(error))
            case P.PLACE | P.START:
                document = parse_document(deployment.version.document)
                placement = effects.choose_nodes(document, self._to_place(operation), deployment)
                # After START no topics are made.
                new_topics = progress.phase is P.PLACE and self._has_new_topics(operation)
                return Observed(
                    status, heard_ms, placement=placement, new_topics=new_topics, kafka=self._answer
                )
            case P.TOPICS:
                self._planned(operation)  # it is needed after this transaction
                return Observed(status, heard_ms, kafka=self._answer)
            case P.DELETE:
                return Observed(status, heard_ms, kafka=self._answer)
            case P.RUN:
                return Observed(
                    status, heard_ms, groups=groups_seen(operation, concerned(operation, progress.added))
                )
            case P.RETIRE:
                return Observed(
                    status, heard_ms, groups=groups_seen(operation, concerned(operation, progress.removed))
                )
            case P.DELIVER:
                groups = groups_seen(operation, concerned(operation, progress.removed))
                return Observed(status, heard_ms, groups=groups, kafka=self._answer)
            case P.READ:
                return Observed(
                    status,
                    heard_ms,
                    groups=groups_seen(operation, self._next_to_end(operation)),
                    unsettled=unsettled(operation, progress.removed),
                    kafka=self._answer,
                )
            case P.ORDER | P.OWN:
                groups = groups_seen(operation, progress.groups[:1])
                return Observed(status, heard_ms, groups=groups, kafka=self._answer)
            case P.SETTLE:
                return Observed(status, heard_ms, unsettled=unsettled(operation, progress.removed))
            case P.STOP:
                return Observed(
                    status,
                    heard_ms,
                    running=running(operation, concerned(operation, progress.removed)),
                    unconfirmed=unconfirmed(operation, progress.gives),
                    kafka=self._answer,
                )
        return Observed(status, heard_ms)

    def _has_new_topics(self, operation: Operation) -> bool:
        specs = self._planned(operation)
        return bool(obsolete_topics(specs, specs_of(operation.deployment)))

    def _to_place(self, operation: Operation) -> tuple[GroupSpec, ...]:
        """Returns what to place.

        An upgrade leaves what runs where it is, even if it is now pinned elsewhere.
        """
        specs = self._planned(operation)
        if operation.kind != Operation.Kind.UPGRADE:
            return specs
        return tuple(spec for spec in specs if spec.group in record.groups_left(operation, "added"))

    def _connected(self, operation: Operation) -> Reconnections:
        if operation.kind != Operation.Kind.UPGRADE:
            return Reconnections()
        return reconnecting.connections(operation.deployment, self._planned(operation))

    def _next_to_end(self, operation: Operation) -> tuple[str, ...]:
        """Returns the groups that end now. Others may have to read what these have written."""
        if operation.kind == Operation.Kind.UNDEPLOY:
            going = effects.to_retire(operation.deployment)
            return going if operation.hurry else next_to_end(specs_of(operation.deployment), going)
        going = record.groups_left(operation, "removed")
        return self._connected(operation).next_to_end(going) if going else ()

    def _streams(self, operation: Operation) -> tuple[DeliveredStream, ...]:
        """Returns the streams that end now and whose rows go to systems outside."""
        if operation.kind == Operation.Kind.UPGRADE:
            staying = {id for spec in self._planned(operation) for id in elements_of(spec)}
            return undelivered.streams(operation, self._next_to_end(operation), staying)
        return undelivered.streams(operation) if operation.kind == Operation.Kind.UNDEPLOY else ()

    def _at_work(self, operation: Operation) -> tuple[str, ...]:
        """Returns the groups that the phase orders next, or ends."""
        if operation.phase == P.START:
            return record.groups_left(operation, "added")
        if operation.phase == P.READ:
            return self._next_to_end(operation)
        return record.groups_left(operation, "changed")[:1]

    def _planned(self, operation: Operation) -> tuple[GroupSpec, ...]:
        if self._specs is None:
            self._specs = planned_for(operation.deployment, operation.deployment.version.document)
        return self._specs

    # -- what is done ----------------------------------------------------------------------------------

    def _apply(self, step: Step, operation: Operation) -> None:
        deployment = operation.deployment
        match step:
            case CreateTopics() | DeleteTopics() | ReadPositions() | CountUndelivered():
                return
            case NoteUndelivered(found, deadline_ms):
                undelivered.note(operation, found)
                operation.deadline = None if deadline_ms is None else moment_of_ms(deadline_ms)
            case Wait(for_what=what):
                if what != operation.waits_for:
                    operation.waits_for = what
                    operation.save(update_fields=["waits_for"])
                    announce()
                return
            case Enter(phase, deadline_ms):
                self._enter(operation, phase, deadline_ms)
            case OrderOwners(placement, deadline_ms):
                specs, connected = self._to_place(operation), self._connected(operation)
                starts = {spec.group: self._starts(connected, spec.group) for spec in specs}
                if not effects.order_owners(specs, placement, deployment, starts):
                    return  # the next look finds other nodes
                self._take_over(operation, connected)
                self._enter(operation, P.RUN, deadline_ms)
            case OrderAgain(group):
                effects.order_again(deployment, group)
                operation.orders += 1
            case GiveUp(message, faults, deadline_ms, code):
                log.warning("%s cannot be deployed: %s", deployment.pipeline.name, message)
                operation.message, operation.faults, operation.code = message, list(faults), code
                record.mark_running(operation, "failed")
                self._enter(operation, P.STOP, deadline_ms)
            case Fail():
                if self._answer is not None and (self._answer.refused or self._answer.away):
                    log.warning("topics of %s may be left over: %s", deployment.pk, self._answer)
                if operation.phase not in (P.PENDING, P.PLACE) and record.groups_left(operation, "added"):
                    operation.obsolete = effects.left_over(operation, self._planned(operation))
                record.end_failed(operation, step)
            case Done(left_over):
                self._end_done(operation, left_over)
        told = logging.DEBUG if isinstance(step, NoteUndelivered) else logging.INFO  # it comes each second
        log.log(told, "%s of %s: %s", operation.kind, deployment.pk, step)
        record.save(operation)

    def _enter(self, operation: Operation, phase: P, deadline_ms: int | None) -> None:
        deployment, before = operation.deployment, operation.phase
        removed = concerned(operation, self._next_to_end(operation))
        if before == P.OWN:
            effects.keep_as_upgraded(deployment, record.groups_left(operation, "changed")[0])
            record.mark_running(operation, "done")
        if before == P.STOP and removed is not None:
            record.mark_unconfirmed(operation, effects.forget_groups(deployment, removed))
            record.mark_running(operation, "done")
            removed = self._next_to_end(operation)
        match phase:
            case P.OWN:
                group = record.groups_left(operation, "changed")[0]
                spec = next(spec for spec in self._planned(operation) if spec.group == group)
                connected = self._connected(operation)
                self._take_over(operation, connected)
                starts = self._starts(connected, group)
                effects.order_group(spec, deployment, operation.restart, starts)
                operation.orders = 1
            case P.READ if operation.kind == Operation.Kind.UNDEPLOY:
                effects.close(deployment)
            case P.RETIRE:
                effects.retire(deployment, self._next_to_end(operation) if before == P.READ else removed)
                if removed is not None:
                    staying = {id for spec in self._planned(operation) for id in elements_of(spec)}
                    effects.note_removed(deployment, removed, staying)
            case P.STOP:
                effects.let_go(deployment, removed)
        self._answer = None
        record.enter(operation, phase, deadline_ms, removed or ())

    def _starts(self, connected: Reconnections, group: str) -> dict[str, Any]:
        return reconnecting.order_starts(connected, group, self._answer.starts if self._answer else {})

    def _take_over(self, operation: Operation, connected: Reconnections) -> None:
        """Notes that the groups at work are ordered in this transaction, so nobody else begins there."""
        reconnecting.taken_over(operation.deployment, connected, self._at_work(operation))
        operation.deployment.save(update_fields=["left_over"])

    def _begin(self, operation: Operation) -> None:
        """Sets the first steps. They are saved with the step that is decided next."""
        if operation.kind != Operation.Kind.UPGRADE:
            steps = record.STEPS[operation.kind]
            has_deliverers = bool(self._streams(operation))
            record.begin(operation, [each for each in steps if each != record.DELIVER or has_deliverers])
            return
        # If the document is invalid, what is observed says so.
        with contextlib.suppress(DocumentInvalid):
            specs = self._planned(operation)
            effects.plan_upgrade(operation, specs)
            effects.retune(operation.deployment, specs)

    def _end_done(self, operation: Operation, left_over: str) -> None:
        record.check_done(operation)
        match operation.kind:
            case Operation.Kind.DEPLOY:
                record.end_deployed(operation)
            case Operation.Kind.UNDEPLOY:
                record.end_undeployed(operation, left_over)
                if operation.again:
                    deploy_again(operation)
            case Operation.Kind.UPGRADE:
                operation.deployment.left_over = {}
                operation.deployment.save(update_fields=["left_over"])
                changed = {
                    step["name"]
                    for step in operation.steps
                    if step["change"] == "changed" or step.get("regrouped")
                }
                sizes = {spec.group: len(spec.elements) for spec in self._planned(operation)}
                started = sum(size for group, size in sizes.items() if group in changed)
                record.end_upgraded(operation, started, sum(sizes.values()), left_over)


def _progress(operation: Operation) -> Progress:
    return Progress(
        kind=cast(Kind, operation.kind),
        phase=P(operation.phase),
        deadline_ms=None if operation.deadline is None else ms_of_moment(operation.deadline),
        error=operation.message,
        groups=record.groups_left(operation, "changed"),
        added=record.groups_left(operation, "added"),
        removed=record.groups_left(operation, "removed"),
        obsolete=bool(operation.obsolete),
        orders=operation.orders,
        failing=operation.failing,
        hurries=operation.hurry,
    )


def _said(refused: Mapping[str, str], names: Mapping[str, str]) -> str:
    groups = {group: document_group(group) for group in refused}  # two groups may have the same title
    return "; ".join(
        f"{names.get(groups[group], groups[group])}: {with_names(why, names)}"
        for group, why in refused.items()
    )


def _json(error: DocumentInvalid) -> tuple[GroupFault, ...]:
    return tuple(fault.model_dump(mode="json") for fault in error.faults)
