"""Some reports on a group outlive its copies: ended Java processes, and where its state was begun fresh."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis
from django.utils import timezone

from pipeline_runtime.model.desired import DesiredReplica, JavaEnd, ReplicaStatus, is_held
from pipeline_runtime.model.spec import GroupSpec
from tests.contract.control.conftest import report
from tests.contract.control.test_bad_rows import sent, status
from webapp.accounts.models import User
from webapp.audit.models import Event
from webapp.handovers import actions
from webapp.handovers.facts import group_facts
from webapp.handovers.models import Handover
from webapp.nodes.models import Node
from webapp.placements.models import ExtraReplica, GroupPlacement
from workers.control.bulkhead import Bulkhead
from workers.control.context import ControlContext
from workers.control.desired import replicas_of
from workers.control.handovers.restorations import order_restorations
from workers.control.operations.effects import order_group
from workers.control.reports.ingest import Ingest

Deployed = Callable[..., GroupPlacement]


class Told:
    """Nodes report, and control takes it in."""

    def __init__(self, context: ControlContext, client: redis.Redis) -> None:
        self._ingest, self._client, self._number = Ingest(context), client, 0

    def __call__(self, node: str, replica: ReplicaStatus) -> None:
        self._number += 1
        sent(self._client, node, self._number, replica)
        self._ingest._round()


@pytest.fixture
def told(context: ControlContext, real_redis: redis.Redis) -> Told:
    return Told(context, real_redis)


def ended(
    placement: GroupPlacement, *ends: tuple[str, int], alone: bool = True, vouched: str = ""
) -> ReplicaStatus:
    known = tuple(JavaEnd(node=node, at_ms=at_ms, alone=alone) for node, at_ms in ends)
    return status(placement, 7).model_copy(update={"java_ends": known, "vouched": vouched})


def falls_silent(placement: GroupPlacement) -> None:
    Node.objects.filter(pk=placement.node_id).update(up=False, silent_at=timezone.now())


def wanted(node: Node) -> DesiredReplica:
    (replica,) = replicas_of(node, "key", lambda _: False)
    return replica


def test_one_that_ended_java_once_is_restored_and_its_next_node_knows(
    context: ControlContext, deployed: Deployed, nodes: dict[str, Node], told: Told
) -> None:
    placement = deployed("power", "edge-a")
    told("edge-a", ended(placement, ("edge-a", 1)))
    falls_silent(placement)
    order_restorations(context, Bulkhead())
    handover = Handover.objects.get()
    target = nodes[handover.target]
    ExtraReplica.objects.create(
        deployment=placement.deployment, group="power", node=target, role="standby", handover=handover.pk
    )
    assert wanted(target).java_ends == (JavaEnd(node="edge-a", at_ms=1, alone=True),)


def test_one_that_ended_java_twice_is_held_wherever_that_was(
    context: ControlContext, deployed: Deployed, nodes: dict[str, Node], told: Told
) -> None:
    placement = deployed("power", "edge-a")
    told("edge-b", ended(placement, ("edge-b", 1)))
    told("edge-a", ended(placement, ("edge-b", 1), ("edge-a", 2)))
    told("edge-a", ended(placement, ("edge-a", 2)))
    assert is_held(wanted(nodes["edge-a"]).java_ends)
    falls_silent(placement)
    for _ in range(2):
        order_restorations(context, Bulkhead())
    assert not Handover.objects.exists()
    event = Event.objects.get(kind="element.not_restored")
    assert "ended Spark's Java process 2 times" in event.message


def test_one_that_came_into_question_with_others_is_restored(
    context: ControlContext, deployed: Deployed, told: Told
) -> None:
    placement = deployed("power", "edge-a")
    told("edge-a", ended(placement, ("edge-a", 1), ("edge-a", 2), alone=False))
    falls_silent(placement)
    order_restorations(context, Bulkhead())
    assert Handover.objects.count() == 1


def restores(placement: GroupPlacement, actor: User | None) -> None:
    facts = group_facts([placement.deployment])[placement.deployment_id]["power"]
    actions.order(
        actor,
        placement.deployment,
        facts,
        element="power",
        kind=Handover.Kind.RESTORATION,
        strategy="checkpoint",
        target="edge-b",
    )


def deploys_a_changed_version(placement: GroupPlacement) -> None:
    spec = GroupSpec.model_validate(placement.spec).model_copy(update={"version": "2"})
    order_group(spec, placement.deployment, restart=[], starts={})


@pytest.mark.parametrize("action", ["a user restores it", "a user deploys a changed version"])
def test_a_users_action_releases_it_and_what_was_before_does_not_count(
    action: str, context: ControlContext, deployed: Deployed, nodes: dict[str, Node], told: Told
) -> None:
    placement = deployed("power", "edge-a")
    before = ended(placement, ("edge-a", 1), ("edge-a", 2))
    told("edge-a", before)
    if action == "a user restores it":
        restores(placement, User.objects.create(username="ada"))
    else:
        deploys_a_changed_version(placement)
    told("edge-a", before)
    released = wanted(nodes["edge-a"])
    assert released.java_ends == ()
    assert released.vouched
    told("edge-a", ended(placement, ("edge-a", 3), vouched=released.vouched))
    assert len(wanted(nodes["edge-a"]).java_ends) == 1


def test_what_control_does_by_itself_releases_nothing(
    deployed: Deployed, nodes: dict[str, Node], told: Told
) -> None:
    placement = deployed("power", "edge-a")
    told("edge-a", ended(placement, ("edge-a", 1)))
    report(placement)
    restores(placement, None)
    assert len(wanted(nodes["edge-a"]).java_ends) == 1


def test_where_a_state_was_begun_fresh_is_kept_while_a_restarted_copy_has_not_read_it(
    deployed: Deployed, told: Told
) -> None:
    placement = deployed("power", "edge-a")
    for fresh_from, kept in ((0, 0), (5, 5), (0, 5), (6, 6), (5, 6)):
        told("edge-a", status(placement, 7).model_copy(update={"fresh_from": fresh_from}))
        placement.refresh_from_db()
        assert placement.fresh_from == kept
