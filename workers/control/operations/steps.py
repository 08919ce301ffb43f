"""Decides what an operation does next, from what is stored and from the answers of nodes and Kafka. Pure.

Which phase may follow which (made by `make reference`):

    deploy    PENDING -> VALIDATE -> PLACE -> TOPICS -> START -> RUN -> done
              TOPICS -> STOP
              START -> STOP
              RUN -> STOP
              STOP -> DELETE
    upgrade   PENDING -> PLACE -> TOPICS -> SETTLE -> READ -> RETIRE -> DELIVER -> STOP -> ORDER -> OWN ->
                ORDER -> START -> RUN -> DELETE -> done
              PENDING -> TOPICS, SETTLE, ORDER, DELETE
              PLACE -> SETTLE, ORDER, START
              TOPICS -> ORDER, START, DELETE
              SETTLE -> RETIRE
              READ -> SETTLE
              RETIRE -> STOP
              STOP -> SETTLE, START, DELETE
              ORDER -> DELETE
    undeploy  PENDING -> SETTLE -> READ -> RETIRE -> DELIVER -> STOP -> DELETE -> done
              SETTLE -> RETIRE
              RETIRE -> READ, STOP

The phases:

    phase     what it orders                      what it waits for                              at most
    PENDING   -                                   -
    VALIDATE  -                                   -, an invalid document fails
    PLACE     -                                   a node for each group, while nodes are starting   90 s
    TOPICS    Kafka is asked to make the topics   its answer                                        30 s
    START     Kafka is asked for positions        a node for each group: one may be cordoned now    90 s
    RUN       each group's node is to own it      each group to own, 10 s for an error             180 s
    ORDER     Kafka is asked for positions        moves of the group to end, last rows to be read  180 s
    OWN       a group is to own, newly defined    the group to own by that, 10 s for an error      180 s
    SETTLE    -                                   handovers and the operation before to end         90 s
    READ      Kafka is asked for positions        groups to remove to have read last rows          600 s
              of an undeployment: ingesters end   groups that end next to have read all             90 s
    RETIRE    groups are to end for good          those to confirm it that can                      40 s
    DELIVER   Kafka is asked what was delivered   deliverers to deliver, 90 s for the next row
    STOP      nothing of the groups is wanted     nodes that answer to run nothing of them,         30 s
                                                  Kafka to say what was not delivered
    DELETE    Kafka is asked to delete topics     its answer; a failed deployment asks once         30 s

In an upgrade, SETTLE to STOP concern the groups to remove, and PLACE, START and RUN the groups to add. In
ORDER and START, control sends each group the positions at which it begins in new streams
(`planning.reconnect`). These are the positions at which removed or changed groups have stopped. A group may
no longer read a stream that no group writes any more. It first reads that stream to its end. If other groups
begin where a group stops, and that group does not confirm its end, the upgrade fails.

If groups of an undeployment deliver to outside systems, the groups end one after another, those that only
write first (`draining`). In READ, the next groups read what the groups before them have written.

An upgrade may join elements of several groups in one group. The groups to remove then end one after another.
In READ, a later one reads everything that the earlier ones have written, because in the new group these rows
no longer pass through those streams.

A deployment that cannot go on leaves nothing running. If a deployment or an upgrade is undeployed meanwhile,
it ends at once, and the undeployment clears away. An undeployment always ends as done. Its message says what
it left over, and what was not delivered.

While a group ends, its ingesters end, and its deliverers continue. In STOP the deliverers end, too, and
control counts the rows that they have not delivered. If Kafka does not answer that question for a stream, the
stream is not deleted.

A deadline is an instant that is stored when the phase begins, so a restart of control does not change it.
Nodes may have started together with control. So no wait is in vain, and no group has failed, before control
has received reports for HEARD_MS, or for the phase's own time if that is shorter. While Redis is away,
control decides nothing at all.
"""

from __future__ import annotations

from pipeline_runtime.model.names import sentence
from workers.control.operations.deliveries import count_last, deliver
from workers.control.operations.draining import enter_read, read_last
from workers.control.operations.limits import (
    LIMIT_MS,
    NAMED_MAX,
    asked_long_enough,
    asks_again,
    enter,
    has_failed,
    in_vain,
    wait,
)
from workers.control.operations.model import (
    CreateTopics,
    DeleteTopics,
    Done,
    Enter,
    Fail,
    GiveUp,
    GroupFault,
    GroupSeen,
    Observed,
    OrderAgain,
    OrderOwners,
    Progress,
    ReadPositions,
    Step,
    Unplaced,
    Wait,
)
from workers.control.operations.phases import OperationPhase

P = OperationPhase
ORDERS_MAX = 5
UNDEPLOYED_BEFORE = "It was undeployed before it was running."
UNDEPLOYED_BEFORE_UPGRADE = "It was undeployed before it was upgraded."


def next_step(progress: Progress, seen: Observed, now_ms: int) -> Step:
    late = overtaken(progress, seen.status)
    if late is not None:
        return late
    match progress.phase:
        case P.PENDING:
            return _begin(progress, seen, now_ms)
        case P.VALIDATE:
            if seen.invalid is not None:
                return Fail(sentence(seen.invalid), seen.faults, code="version-invalid")
            return enter(P.PLACE, now_ms)
        case P.PLACE | P.START:
            return _place(progress, seen, now_ms)
        case P.TOPICS:
            return _create_topics(progress, seen, now_ms)
        case P.RUN:
            return _run(progress, seen, now_ms)
        case P.ORDER:
            return _order(progress, seen, now_ms)
        case P.OWN:
            return _own(progress, seen, now_ms)
        case P.SETTLE:
            return _settle(progress, seen, now_ms)
        case P.READ:
            return _read(progress, seen, now_ms)
        case P.RETIRE:
            return _retire(progress, seen, now_ms)
        case P.DELIVER:
            return deliver(progress, seen, now_ms)
        case P.STOP:
            return _stop(progress, seen, now_ms)
        case P.DELETE:
            return _delete_topics(progress, seen, now_ms)


def overtaken(progress: Progress, status: str) -> Fail | None:
    """Returns the failure of an operation whose deployment was undeployed meanwhile. Returns None if it was
    not."""
    if progress.kind == "deploy" and status != "deploying":
        return Fail(f"{progress.error} {UNDEPLOYED_BEFORE}".lstrip(), overtaken=True)
    if progress.kind == "upgrade" and status != "running":
        return Fail(UNDEPLOYED_BEFORE_UPGRADE, overtaken=True)
    return None


def failing_since(progress: Progress, seen: Observed, now_ms: int) -> dict[str, int]:
    """Returns the new `Progress.failing`: group -> since when it shows an error, in ms since 1970."""
    return {
        each.group: progress.failing.get(each.group, now_ms)
        for each in seen.groups
        if each.error is not None and not each.owns
    }


def gives_up(
    progress: Progress, message: str, faults: tuple[GroupFault, ...], now_ms: int, code: str
) -> GiveUp | Fail:
    """Returns the end of an operation that cannot go on. An earlier error keeps its code."""
    message = sentence(message)
    if progress.error:
        return Fail(f"{progress.error} {message}", faults)
    if progress.kind != "deploy" or progress.phase in (P.PENDING, P.VALIDATE, P.PLACE):
        return Fail(message, faults, code=code)
    return GiveUp(message, faults, now_ms + LIMIT_MS[P.STOP], code)


def _begin(progress: Progress, seen: Observed, now_ms: int) -> Step:
    match progress.kind:
        case "deploy":
            return enter(P.VALIDATE, now_ms)
        case "upgrade":
            if seen.invalid is not None:
                return Fail(sentence(seen.invalid), seen.faults, code="version-invalid")
            return _upgrade_on(P.PENDING, progress, seen, now_ms)
        case "undeploy":
            return enter(P.SETTLE, now_ms)


def _on(phase: OperationPhase, progress: Progress, seen: Observed, now_ms: int) -> Step:
    """Enters `phase` in a deployment. In an upgrade, enters the next phase that has something to do."""
    return (
        _upgrade_on(progress.phase, progress, seen, now_ms)
        if progress.kind == "upgrade"
        else enter(phase, now_ms)
    )


# --- deploy


def _place(progress: Progress, seen: Observed, now_ms: int) -> Step:
    found = seen.placement
    if isinstance(found, Unplaced):
        if found.passing and not in_vain(progress, seen, now_ms):
            return wait(seen, f"a node for each element: {found.message}")
        message = f"There is no node for some elements: {found.message}."
        return gives_up(progress, message, found.faults, now_ms, "no-node")
    if progress.phase is P.PLACE:
        return _on(P.TOPICS, progress, seen, now_ms)
    asks = _read_positions(progress, seen, now_ms) if progress.asks else None
    return asks or OrderOwners(found, now_ms + LIMIT_MS[P.RUN])


def _create_topics(progress: Progress, seen: Observed, now_ms: int) -> Step:
    answer = seen.kafka
    if answer is None:
        return CreateTopics()
    if answer.refused:
        return gives_up(progress, answer.refused, (), now_ms, "topics-refused")
    if not answer.away:
        return _on(P.START, progress, seen, now_ms)
    if asked_long_enough(progress, now_ms):
        message = (
            f"{answer.away}. See whether it runs and whether the security settings fit, then deploy again."
        )
        return gives_up(progress, message, (), now_ms, "kafka-away")
    return CreateTopics() if asks_again(answer, now_ms) else Wait(f"Kafka to make the streams: {answer.away}")


def _run(progress: Progress, seen: Observed, now_ms: int) -> Step:
    waiting = [each for each in seen.groups if not each.owns]
    if not waiting:
        return _upgrade_on(P.RUN, progress, seen, now_ms) if progress.kind == "upgrade" else Done()
    for each in waiting:
        if has_failed(each, progress, seen, now_ms):
            message = f"On {each.node}: {each.error}"
            fault = _fault(each, message, each.traceback)
            return gives_up(
                progress, f"Start of {each.title} failed. {message}", (fault,), now_ms, "start-failed"
            )
    if in_vain(progress, seen, now_ms):
        names = ", ".join(each.title for each in waiting)
        limit_s = LIMIT_MS[P.RUN] // 1000
        late = tuple(
            _fault(each, f"{each.node}: it {_state(each)} after {limit_s} s", each.traceback)
            for each in waiting
        )
        return gives_up(progress, f"These did not start in time: {names}.", late, now_ms, "start-overdue")
    return wait(seen, *(_owner_awaited(each) for each in waiting))


def _owner_awaited(each: GroupSeen) -> str:
    if not each.node_up:
        return f"{each.title}: {each.node} does not answer"
    if each.error is not None:
        return f"{each.title} on {each.node}: {each.error.removesuffix('.')}"
    state = "about to start there" if each.state is None else each.state
    return f"{each.title} on {each.node}: it is {state}"


def _state(each: GroupSeen) -> str:
    return "was not reported by its node" if each.state is None else f"is {each.state}"


def _fault(each: GroupSeen, message: str, traceback: str | None) -> GroupFault:
    """Returns a fault of a group, in the form of a document's faults."""
    fault = {
        "element": each.element,
        "path": f"spec.elements.{each.element}",
        "message": message,
        "code": "start",
        "title": each.title,
    }
    return {**fault, "traceback": traceback} if traceback else fault


# --- upgrade

_UPGRADE = (P.PENDING, P.PLACE, P.TOPICS, P.SETTLE, P.ORDER, P.START, P.RUN, P.DELETE)
"""The phases of an upgrade in their order. SETTLE leads to STOP by itself, again and again until all groups
to remove are gone."""


def _upgrade_on(phase: OperationPhase, progress: Progress, seen: Observed, now_ms: int) -> Enter | Done:
    """Returns the step after `phase`: into the next phase that has something to do, or the end."""
    concerns = {
        P.PLACE: progress.added,
        P.TOPICS: seen.new_topics,
        P.SETTLE: progress.removed,
        P.ORDER: progress.groups,
        P.START: progress.added,
        P.RUN: progress.added,
        P.DELETE: progress.obsolete,
    }
    after = _UPGRADE[_UPGRADE.index(phase) + 1 :]
    following = next((each for each in after if concerns[each]), None)
    return Done() if following is None else enter(following, now_ms)


def _order(progress: Progress, seen: Observed, now_ms: int) -> Step:
    if not progress.groups:
        return _upgrade_on(P.ORDER, progress, seen, now_ms)
    group = _at_work(progress, seen)
    if group is None:
        return Fail("An element that was to change has no place any more.", code="no-node")
    if not group.moving:
        asks = _read_positions(progress, seen, now_ms) if progress.asks else None
        return asks or enter(P.OWN, now_ms)
    if in_vain(progress, seen, now_ms):
        return Fail(
            f"Moves of {group.title} did not end, so there was no upgrade of it.", code="waited-in-vain"
        )
    return wait(seen, f"the move of {group.title} to end")


def _read_positions(progress: Progress, seen: Observed, now_ms: int) -> Step | None:
    """Returns the step that asks Kafka where the groups at work begin, or None if that is known."""
    answer = seen.kafka
    if answer is None:
        return ReadPositions()
    if answer.refused:
        return Fail(sentence(answer.refused), code="positions-unknown")
    trouble = answer.away or answer.unread
    if not trouble:
        return None
    if in_vain(progress, seen, now_ms):
        return Fail(
            sentence(f"It waited too long for {trouble}" if answer.unread else trouble),
            code="positions-unknown" if answer.unread else "kafka-away",
        )
    return ReadPositions() if asks_again(answer, now_ms) else wait(seen, trouble)


def _at_work(progress: Progress, seen: Observed) -> GroupSeen | None:
    return next((each for each in seen.groups if each.group in progress.groups[:1]), None)


def _own(progress: Progress, seen: Observed, now_ms: int) -> Step:
    group = _at_work(progress, seen)
    if group is None:
        return _order(progress, seen, now_ms)
    if group.owns:
        return enter(P.ORDER, now_ms)  # for the next group
    if group.refused is not None:
        # The epoch in the report does not matter: a group that lost to another claim at the same moment may
        # not have read the other's epoch yet, and the next order may be right.
        if group.retired or progress.orders >= ORDERS_MAX:
            return Fail(
                sentence(f"{group.node} was not allowed to own {group.title}: {group.refused}"),
                code="ownership-refused",
            )
        return OrderAgain(group.group)
    if has_failed(group, progress, seen, now_ms):
        return Fail(
            sentence(f"The new version of {group.title} fails on {group.node}: {group.error}"),
            code="start-failed",
        )
    if in_vain(progress, seen, now_ms):
        return Fail(
            f"The new version of {group.title} did not run within {LIMIT_MS[P.OWN] // 1000} s.",
            code="start-overdue",
        )
    return wait(seen, _owner_awaited(group))


# --- undeploy, and what is left of a deployment that failed


def _settle(progress: Progress, seen: Observed, now_ms: int) -> Step:
    is_late = in_vain(progress, seen, now_ms)
    if progress.asks and seen.unsettled and is_late:
        return Fail(
            sentence(f"It waited too long for {'; '.join(seen.unsettled[:NAMED_MAX])}"), code="waited-in-vain"
        )
    if not seen.unsettled or is_late:
        if progress.kind == "undeploy" and progress.later:
            return enter_read(now_ms)
        return enter(P.READ if progress.asks else P.RETIRE, now_ms)
    return wait(seen, *seen.unsettled)


def _read(progress: Progress, seen: Observed, now_ms: int) -> Step:
    if progress.kind == "undeploy":
        return read_last(progress, seen, now_ms)
    if seen.unsettled:
        return enter(P.SETTLE, now_ms)  # after a rewind the group may have more to read
    for each in seen.groups:
        if has_failed(each, progress, seen, now_ms):
            return Fail(
                sentence(f"Reading of {each.title} stopped on {each.node}: {each.error}"),
                code="positions-unknown",
            )
    return _read_positions(progress, seen, now_ms) or enter(P.RETIRE, now_ms)


def _retire(progress: Progress, seen: Observed, now_ms: int) -> Step:
    awaited = [
        each
        for each in seen.groups
        if each.wanted
        and each.ends
        and not each.retired
        and (_may_confirm(each) or _has_to_confirm(each, progress))
    ]
    if not awaited:
        return _after_retire(progress, now_ms)
    if in_vain(progress, seen, now_ms):
        silent = next((each for each in awaited if each.group in progress.gives), None)
        if silent is None:
            return _after_retire(progress, now_ms)
        return Fail(
            f"{silent.title} on {silent.node} did not confirm its end, so nobody knows from where others "
            "go on. Restore it on another node, then deploy again.",
            code="end-not-confirmed",
        )
    return wait(seen, *(f"{each.title} on {each.node} to end" for each in awaited))


def _after_retire(progress: Progress, now_ms: int) -> Step:
    if progress.kind == "undeploy" and progress.later:
        return enter_read(now_ms)
    return enter(P.DELIVER if progress.delivers else P.STOP, now_ms)


def _may_confirm(each: GroupSeen) -> bool:
    """Returns whether the group may still confirm its end: its node answers, and it has not failed. An owner
    that shows an error goes on, and only waits for something, such as a schema registry."""
    return each.node_up and (each.error is None or each.owns)


def _has_to_confirm(each: GroupSeen, progress: Progress) -> bool:
    """Returns whether other groups begin where this group stops, and its node does not answer.

    A failed group cannot confirm its end, but its node can stop it.
    """
    return each.group in progress.gives and not each.node_up


def _stop(progress: Progress, seen: Observed, now_ms: int) -> Step:
    if seen.unconfirmed:
        if in_vain(progress, seen, now_ms):
            names = ", ".join(seen.unconfirmed[:NAMED_MAX])
            return Fail(
                f"These may still run, so nobody knows from where others go on: {names}. See that their "
                "nodes answer, then deploy again.",
                code="end-not-confirmed",
            )
        return wait(seen, *(f"{what} to stop" for what in seen.unconfirmed))
    if not seen.running or in_vain(progress, seen, now_ms):
        if (counts := count_last(progress, seen, now_ms)) is not None:
            return counts
        if progress.kind == "upgrade":
            return (
                enter(P.SETTLE, now_ms) if progress.later else _upgrade_on(P.SETTLE, progress, seen, now_ms)
            )
        # The broker may be the reason for the failure, so a failed deployment asks it only once.
        return Enter(P.DELETE, now_ms) if progress.kind == "deploy" else enter(P.DELETE, now_ms)
    return wait(seen, *(f"{what} to stop" for what in seen.running))


def _delete_topics(progress: Progress, seen: Observed, now_ms: int) -> Step:
    answer = seen.kafka
    if answer is None:
        return DeleteTopics()
    trouble = answer.refused or answer.away
    if trouble and not asked_long_enough(progress, now_ms):
        return (
            DeleteTopics() if asks_again(answer, now_ms) else Wait(f"Kafka to delete the streams: {trouble}")
        )
    if progress.kind == "deploy":
        return Fail(progress.error)
    if trouble:
        return Done(f"{trouble}. They are left over, and nothing uses them any more. Delete them in Kafka.")
    return Done()
