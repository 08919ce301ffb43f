"""Carries out the steps of an operation: changes placements, orders and copies in the database, and topics in
Kafka.

Changes of the database belong to the transaction that stores the step. Requests to Kafka come outside of that
transaction, after the phase that makes them was stored. Each function may be called twice for one step.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from django.db.models import QuerySet
from django.utils import timezone

from pipeline_runtime.kafka.admin import Topic, TopicsFailed, delete_topics, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.desired import ReplicaStatus, Role
from pipeline_runtime.model.document import PipelineDocument
from pipeline_runtime.model.faults import DocumentInvalid
from pipeline_runtime.model.ids import document_group
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.placement.choose import Placed, place
from pipeline_runtime.planning.plan import topics
from pipeline_runtime.planning.regroup import elements_of
from pipeline_runtime.planning.upgrade import begins_another_query, group_changes, obsolete_topics
from webapp.audit.announcements import announce
from webapp.nodes.models import Node
from webapp.operations.models import Operation
from webapp.pipelines.shape import names_of
from webapp.placements.fleet import Fleet
from webapp.placements.models import Deployment, ExtraReplica, GroupPlacement, Replica
from webapp.placements.placing import groups_to_place
from webapp.placements.selectors import planned_for, specs_of
from workers.control.context import now_ms
from workers.control.operations.model import Answer, Unplaced
from workers.control.operations.reconnecting import connections, note_left_over
from workers.control.operations.undelivered import topics_kept
from workers.control.replica_rows import epoch_known, reported

log = logging.getLogger(__name__)

Change = Literal["added", "changed", "removed"]


def status_on(placement: GroupPlacement) -> ReplicaStatus | None:
    """Returns the report of the placement's node about the ordered generation, or None if there is none."""
    row = Replica.objects.filter(
        deployment=placement.deployment_id,
        group=placement.group,
        node=placement.node_id,
        generation=placement.generation,
    ).first()
    return reported(row)


def refusal(placement: GroupPlacement, status: ReplicaStatus | None) -> str | None:
    """Returns why the newest order was refused, or None if it was not. The refusal of an earlier order does
    not count."""
    if status is None or status.order_id != placement.order_id:
        return None
    return status.order_refused


def set_status(deployment: Deployment, status: str, message: str = "") -> None:
    ended_at = None if status in Deployment.ACTIVE else timezone.now()
    Deployment.objects.filter(pk=deployment.pk).update(status=status, message=message, ended_at=ended_at)
    announce()


# -- deploy ----------------------------------------------------------------------------------------


def choose_nodes(
    document: PipelineDocument, specs: Iterable[GroupSpec], deployment: Deployment
) -> dict[str, Placed] | Unplaced:
    """Returns group -> node, or why some groups have no node. A group that is already placed stays on its
    node."""
    specs, fleet = tuple(specs), Fleet()
    groups, ground = groups_to_place(specs, document, deployment, fleet)
    keep = {p.group: p.node.name for p in deployment.placements.select_related("node")}
    placed, faults = place(groups, fleet.nodes, keep, ground)
    if not faults:
        return placed
    first = {spec.group: spec.elements[0].id for spec in specs}
    titles = {fault.group: deployment.name_of(fault.group) for fault in faults}
    return Unplaced(
        "; ".join(f"{titles[fault.group]}: {fault.message}" for fault in faults),
        tuple(
            {
                "element": first[fault.group],
                "path": f"spec.elements.{first[fault.group]}",
                "message": fault.message,
                "code": "placement",
                "title": titles[fault.group],
            }
            for fault in faults
        ),
        passing=all(fault.passing for fault in faults),
    )


def order_owners(
    specs: Iterable[GroupSpec],
    placed: Mapping[str, Placed],
    deployment: Deployment,
    starts: Mapping[str, Mapping[str, Any]],
) -> bool:
    """Orders nodes to own the groups that have none. `starts`: group -> ClaimOrder.positions.

    Returns False if a node was cordoned, removed or told to stop since it was chosen. Then nothing is
    ordered.
    """
    # The lock orders this and a drain. A drain that finds a node empty ends before, or sees the new groups.
    locked = Node.objects.select_for_update(no_key=True).filter(
        name__in={each.node for each in placed.values()}
    )
    nodes = {node.name: node for node in locked.order_by("name")}
    there = set(deployment.placements.values_list("group", flat=True))
    new = [spec for spec in specs if spec.group not in there]
    chosen = {placed[spec.group].node for spec in new}
    if any(name not in nodes or not nodes[name].takes_new for name in chosen):
        return False
    for spec in new:
        found = placed[spec.group]
        placement = GroupPlacement(deployment=deployment, group=spec.group, node=nodes[found.node])
        placement.note_placed(why=found.then)
        placement.spec, placement.starts = spec.model_dump(mode="json"), dict(starts.get(spec.group, {}))
        placement.give_order(over=0)
        placement.save()
    announce()
    return True


# -- upgrade ---------------------------------------------------------------------------------------


def plan_upgrade(operation: Operation, specs: Sequence[GroupSpec]) -> None:
    """Sets the operation's steps, one for each group, and its obsolete topics. The caller saves it."""
    deployment = operation.deployment
    running, before = specs_of(deployment), _upgrade_before(operation)
    # If a group begins where another one stops, it comes after that one.
    connected = connections(deployment, specs)
    changes, changing = group_changes(running, specs), connected.in_order(groups_to_upgrade(operation, specs))
    names = names_of(deployment.version.document)
    former = {**names, **(names_of(operation.replaces.document) if operation.replaces else {})}
    groups: dict[Change, list[str]] = {
        "removed": [spec.group for spec in changes.removed],
        "changed": list(changing),
        "added": [spec.group for spec in changes.added],
    }
    operation.status = Operation.Status.RUNNING
    elsewhere: dict[Change, Collection[str]] = {"added": connected.begins, "removed": connected.ends}
    operation.steps = [
        {
            "name": group,
            "title": (former if change == "removed" else names).get(
                document_group(group), document_group(group)
            ),
            "change": change,
            "state": "pending",
            "at": None,
        }
        # The elements of such a group continue in another group. For users, none comes and none goes.
        | ({"regrouped": True} if group in elsewhere.get(change, ()) else {})
        for change, found in groups.items()
        for group in found
    ]
    # This upgrade also deletes the topics that an earlier failed upgrade has left.
    left = before.obsolete if before is not None and before.status == Operation.Status.FAILED else []
    needed = {topic.name for topic in _topics(specs)}
    operation.obsolete = sorted({*obsolete_topics(running, specs), *left} - needed)


def left_over(operation: Operation, specs: Iterable[GroupSpec]) -> list[str]:
    """Returns the names of the topics that a failed upgrade leaves. They include the topics of groups that it
    made but did not start. The next upgrade deletes them, or the end of the deployment does.
    """
    made = obsolete_topics([*specs], specs_of(operation.deployment))
    return sorted({*operation.obsolete, *made})


def _upgrade_before(operation: Operation) -> Operation | None:
    rows = operation.deployment.operations.filter(kind=Operation.Kind.UPGRADE)
    return rows.filter(created_at__lt=operation.created_at).first()


def groups_to_upgrade(operation: Operation, specs: Iterable[GroupSpec]) -> list[str]:
    """Returns the running groups that this operation has to change.

    They are the groups whose definition differs, and those that this operation has begun to change. They are
    also those that got their definition from an earlier upgrade and did not run by it.
    """
    begun = {step["name"] for step in operation.steps}
    before = _upgrade_before(operation)
    states = {step["name"]: step["state"] for step in before.steps} if before else {}
    placements = {placement.group: placement for placement in operation.deployment.placements.all()}

    def concerned(spec: GroupSpec) -> bool:
        placement = placements.get(spec.group)
        if placement is None:
            return False
        if placement.spec["version"] != spec.version or spec.group in begun:
            return True
        state = states.get(spec.group, "done")
        # The earlier upgrade did not begin with a pending group. So the group runs as it is, unless a still
        # earlier upgrade failed at it.
        return _is_down(placement) if state == "pending" else state != "done"

    return [spec.group for spec in specs if concerned(spec)]


def order_group(
    spec: GroupSpec, deployment: Deployment, restart: Collection[str], starts: Mapping[str, Any]
) -> None:
    """Gives a group its new definition, with an order to own.

    The node stops the replica after the running batch. It starts the replica from its local state, with the
    new parameters. The replica then claims. As with each claim, the journal decides who owns, so no row is
    lost or written twice.

    `restart`: the elements that begin with a fresh state. They do so once for this definition, at its first
    CLAIM, whichever order leads to that. `starts`: where the group begins in streams that it has not read
    before, as in ClaimOrder.positions.
    """
    placement = deployment.placements.get(group=spec.group)
    changes = placement.spec["version"] != spec.version
    if changes:
        note_left_over(placement, spec)
        deployment.save(update_fields=["left_over"])
        _connect(placement, spec, starts)
    if changes or _is_down(placement):
        fresh = any(element.id in restart for element in spec.elements)
        was = GroupSpec.model_validate(placement.spec)
        _ask_again(placement, spec, fresh=fresh or begins_another_query(was, spec, default_registry()))
        announce()


def _connect(placement: GroupPlacement, spec: GroupSpec, starts: Mapping[str, Any]) -> None:
    """Notes where the group begins, and which streams it no longer reads. The caller saves `placement`.

    The positions of an earlier order stay, because that order may never have been carried out.
    """
    read = {stream.topic for stream in spec.inputs}
    placement.starts = {
        key: at
        for key, at in placement.starts.items()
        if key.rpartition("-")[0] in read or key in elements_of(spec)
    } | dict(starts)
    before = [stream["topic"] for stream in placement.spec["inputs"] if stream["topic"] not in read]
    placement.former_inputs = [
        *placement.former_inputs,
        *({"topic": topic, "until": None} for topic in dict.fromkeys(before)),
    ]


def _ask_again(placement: GroupPlacement, spec: GroupSpec, *, fresh: bool) -> None:
    """Orders the node again to run the group. `fresh`: the group's state begins fresh.

    The order is a new one only if the definition is new, or if the present order was refused or its owner was
    fenced. A group that only failed may be starting again right now. It then owns by its present order, and
    would not carry out a new one.
    """
    status, changes = status_on(placement), placement.spec["version"] != spec.version
    if changes:
        # If an earlier definition had to begin fresh and never owned, this one has to begin fresh, too. It
        # may use the state of that definition, but no state from before.
        if fresh:
            placement.order_fresh, placement.order_keeps_state_of = True, []
        elif placement.order_fresh:
            placement.order_keeps_state_of = [*placement.order_keeps_state_of, placement.spec["version"]]
        placement.spec = spec.model_dump(mode="json")
    fenced = status is not None and status.phase == "fenced"
    if changes or fenced or refusal(placement, status) is not None:
        placement.give_order(epoch_known(placement))
    placement.vouch()
    fields = [
        "spec",
        "starts",
        "former_inputs",
        *GroupPlacement.FRESH,
        *GroupPlacement.ORDER,
        *GroupPlacement.VOUCHED,
    ]
    placement.save(update_fields=fields)


def _is_down(placement: GroupPlacement) -> bool:
    """Returns whether the node has given up on the group, or may give up.

    The node then tries again only after a new request.
    """
    status = status_on(placement)
    if status is None or status.role is Role.OWNER:
        return False
    return status.error is not None or refusal(placement, status) is not None


def order_again(deployment: Deployment, group: str) -> None:
    placement = GroupPlacement.objects.get(deployment=deployment, group=group)
    placement.give_order(epoch_known(placement))
    placement.save(update_fields=GroupPlacement.ORDER)


def keep_as_upgraded(deployment: Deployment, group: str) -> None:
    """Notes that the group owns with its new definition. From now on, no state begins fresh by it."""
    placement = deployment.placements.get(group=group)
    placement.order_fresh, placement.order_keeps_state_of = False, []
    status = status_on(placement)
    for former in placement.former_inputs:
        if former["until"] is None and status is not None:
            former["until"] = status.seq
    placement.save(update_fields=["former_inputs", *GroupPlacement.FRESH])


def retune(deployment: Deployment, specs: Iterable[GroupSpec]) -> None:
    """Sets how often groups start a batch, for the groups that an upgrade does not change otherwise."""
    wanted = {spec.group: spec for spec in specs}
    for placement in deployment.placements.filter(group__in=wanted):
        spec = wanted[placement.group].model_dump(mode="json")
        if placement.spec["version"] == spec["version"] and placement.spec.get("pace") != spec["pace"]:
            placement.spec = {**placement.spec, "pace": spec["pace"]}
            placement.save(update_fields=["spec"])
    announce()


def forget_groups(deployment: Deployment, groups: Collection[str]) -> set[str]:
    """Removes groups that are gone for good. Returns those of them that did not confirm their end.

    No node runs anything of them after this, and no later group or element may have their names. Elements
    that continue in other groups keep their names, streams and dead letters.
    """
    placements = deployment.placements.filter(group__in=groups)
    unconfirmed = {placement.group for placement in placements if placement.retire}
    names: set[str] = set()
    former: set[str] = set()
    for placement in placements:
        halted = deployment.left_over.get(placement.group, {}).get("halted")
        if halted:
            former.add(placement.group)
        else:
            names |= {placement.group, *(element["id"] for element in placement.spec["elements"])}
    deployment.removed = sorted({*deployment.removed, *names})
    deployment.former_groups = sorted({*deployment.former_groups, *former})
    deployment.save(update_fields=["removed", "former_groups"])
    placements.delete()
    Replica.objects.filter(deployment=deployment, group__in=groups).delete()
    return unconfirmed


# -- undeploy, what is left of a deployment that failed, and groups that an upgrade removes ----------


def to_retire(deployment: Deployment) -> tuple[str, ...]:
    """Returns the groups that have no order to end yet, sorted by name."""
    rows = deployment.placements.filter(role="owner", retire=False).order_by("group")
    return tuple(rows.values_list("group", flat=True))


def close(deployment: Deployment) -> None:
    """Ends the ingesters of all groups. The groups themselves end later."""
    deployment.placements.filter(role="owner").update(closing=True)


def retire(deployment: Deployment, only: Collection[str] | None = None) -> None:
    # An interrupted operation may already have stopped some groups. They have no owner that retires them.
    _placements(deployment, only).filter(role="owner").update(retire=True)


def run_on(deployment: Deployment) -> None:
    """Lets the groups run on that a failed upgrade had to end and that have not confirmed their end.

    Otherwise nobody could restore them if their node is lost. No other group reads on in their streams.
    """
    for placement in deployment.placements.filter(retire=True):
        if not _retired(placement):
            deployment.left_over.pop(placement.group, None)
            placement.retire, placement.role = False, "owner"
            placement.save(update_fields=["retire", "role"])
    deployment.save(update_fields=["left_over"])


def note_removed(deployment: Deployment, groups: Collection[str], staying: Collection[str]) -> None:
    """Notes what these groups read now, because other groups may begin where they stop.

    `staying`: the ids of the elements of the new version.
    """
    for placement in deployment.placements.filter(group__in=groups).select_related("node"):
        elements = (element["id"] for element in placement.spec["elements"])
        note_left_over(placement, None, [id for id in elements if id in staying])
    deployment.save(update_fields=["left_over"])


def let_go(deployment: Deployment, only: Collection[str] | None = None) -> None:
    """Stops the deployment on all nodes, or only its groups in `only`. The placements stay as history."""
    placements = _placements(deployment, only)
    ExtraReplica.objects.filter(deployment=deployment, group__in=placements.values("group")).delete()
    # This has to be noted now, because a node reports nothing about a group that is stopped.
    retired = [p.pk for p in placements.filter(retire=True) if _retired(p)]
    placements.filter(pk__in=retired).update(retire=False)
    placements.update(role="stopped")


def _placements(deployment: Deployment, only: Collection[str] | None) -> QuerySet[GroupPlacement]:
    rows = deployment.placements.all()
    return rows if only is None else rows.filter(group__in=only)


def _retired(placement: GroupPlacement) -> bool:
    status = status_on(placement)
    return status is not None and status.retired


def left_running(deployment: Deployment) -> str:
    """Returns the end of a message that names the groups that did not confirm their end. It is empty if all
    did."""
    return unconfirmed(
        deployment.name_of(placement.group) for placement in deployment.placements.filter(retire=True)
    )


def unconfirmed(titles: Iterable[str]) -> str:
    """Returns the end of a message that names groups that did not confirm their end. It is empty without
    titles."""
    left = ", ".join(titles)
    return left and f" These did not confirm their end. They stop when their nodes answer: {left}."


# -- topics ----------------------------------------------------------------------------------------


def create_topics(specs: Iterable[GroupSpec], kafka: KafkaSettings) -> Answer:
    try:
        ensure_topics(kafka, _topics(specs))
    except TopicsFailed as error:
        return Answer(now_ms(), refused=str(error))
    except Exception as error:
        return Answer(now_ms(), away=f"{_away(kafka)} ({type(error).__name__}: {error})")
    return Answer(now_ms())


def remove_topics(operation: Operation, kafka: KafkaSettings) -> Answer:
    """Deletes topics. After an upgrade, they are the topics that nobody needs any more. Otherwise they are
    all topics of the deployment. Keeps a stream if nobody knows whether its rows were delivered."""
    deployment = operation.deployment
    # Until the undeployment, older copies and checkpoints of the remaining groups may still read these.
    former = {each["topic"] for placement in deployment.placements.all() for each in placement.former_inputs}
    names = [name for name in operation.obsolete if name not in former]
    if operation.kind != Operation.Kind.UPGRADE:
        # An upgrade may have ended elements without starting them again. Their topics go, too.
        left = [GroupSpec.model_validate(each["spec"]) for each in deployment.left_over.values()]
        names = [topic.name for topic in _topics([*_deployed_specs(deployment), *left])]
        # Failed upgrades may have left topics.
        names += [name for broken in deployment.operations.exclude(obsolete=[]) for name in broken.obsolete]
    kept = topics_kept(operation)
    names = [name for name in dict.fromkeys(names) if name not in kept]
    if not names:
        return Answer(now_ms())
    try:
        delete_topics(kafka, names)
    except TopicsFailed as error:
        return Answer(now_ms(), refused=str(error))
    except Exception as error:
        log.debug("topics of %s were not deleted", deployment.pk, exc_info=error)
        not_done = f"so it did not delete {', '.join(names)}"
        return Answer(now_ms(), away=f"{_away(kafka)} ({type(error).__name__}), {not_done}")
    return Answer(now_ms())


def _away(kafka: KafkaSettings) -> str:
    return f"Kafka at {kafka.bootstrap} does not answer"


def _topics(specs: Iterable[GroupSpec]) -> list[Topic]:
    return [Topic(topic.name, topic.kind, topic.partitions) for spec in specs for topic in topics(spec)]


def _deployed_specs(deployment: Deployment) -> tuple[GroupSpec, ...]:
    """Returns the groups of the deployment's placements. Returns those of its document if it was not placed,
    because it may already have topics then."""
    placed = specs_of(deployment)
    if placed:
        return placed
    try:
        return planned_for(deployment, deployment.version.document)
    except DocumentInvalid:
        return ()  # its topics were never made
