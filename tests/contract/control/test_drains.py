"""A drain is a mark on the node's row: it is carried out look by look, whoever died in between.

No handover is carried out here: the tests say what becomes of those that are ordered.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from pipeline_runtime.model.desired import ReplicaError, Role
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.placement.choose import Placed
from tests.contract.control.conftest import end, move_ordered, report
from webapp.accounts.models import User
from webapp.audit.models import Event
from webapp.handovers.models import Handover
from webapp.monitoring.nodes import one_node
from webapp.nodes import actions
from webapp.nodes.models import Node
from webapp.placements.copies import next_generation
from webapp.placements.models import Deployment, ExtraReplica, GroupPlacement
from workers.control.bulkhead import Bulkhead
from workers.control.context import ControlContext
from workers.control.handovers import drains
from workers.control.handovers.drains import tend_drains
from workers.control.handovers.retries import TRIES_MAX
from workers.control.operations.effects import order_owners

Deployed = Callable[..., GroupPlacement]
Look = Callable[[], list[tuple[str, str]]]


@pytest.fixture
def operator() -> User:
    return User.objects.create_user("ada", role="operator")


@pytest.fixture
def look(context: ControlContext) -> Look:
    """One look of a control process that remembers nothing; the groups that move now, with their targets."""

    def once() -> list[tuple[str, str]]:
        tend_drains(context, Bulkhead())
        return sorted(Handover.objects.filter(outcome__isnull=True).values_list("group", "target"))

    return once


def without_pause() -> None:
    Handover.objects.filter(outcome="failed").update(ended_at=timezone.now() - timedelta(hours=1))


def events(kind: str) -> list[str]:
    return list(Event.objects.filter(kind=kind).order_by("id").values_list("message", flat=True))


def is_drained(name: str) -> bool:
    node = one_node(name)
    return not node["draining"] and node["cordoned"] and len(events("node.drained")) == 1


def test_groups_leave_one_after_another_and_the_end_is_told(
    deployed: Deployed, operator: User, look: Look
) -> None:
    for group in ("first", "second"):
        deployed(group, "edge-a")
    actions.drain(operator, "edge-a")
    assert one_node("edge-a")["draining"]
    assert look() == [("first", "edge-b")]
    assert look() == [("first", "edge-b")], "no second move of what is moving"
    end("first")
    assert look() == [("second", "edge-c")]
    assert one_node("edge-a")["draining"]
    end("second")
    assert look() == []
    assert is_drained("edge-a")
    assert events("node.drained") == [
        "edge-a is drained: nothing runs there, 2 elements were moved away. It stays cordoned."
    ]
    look()
    assert len(events("node.drained")) == 1
    assert events("node.drain_waits") == []


def test_a_node_without_memory_is_not_filled_and_the_drain_says_what_each_lacks(
    deployed: Deployed, operator: User, look: Look
) -> None:
    deployed("power", "edge-a")
    full = {"memory_total_bytes": 1e9, "memory_ratio": 0.95, "java_bytes": 1, "memory_bytes": 0}
    Node.objects.update(load=full)
    actions.drain(operator, "edge-a")
    assert look() == []
    assert (
        "edge-b has 50 MB free of the 80 MB needed, edge-c has 50 MB" in one_node("edge-a")["drain_blocked"]
    )
    Node.objects.filter(name="edge-c").update(load=full | {"memory_ratio": 0.5})
    assert look() == [("power", "edge-c")]


def test_ordered_again_it_moves_nothing_twice(deployed: Deployed, operator: User, look: Look) -> None:
    deployed("power", "edge-a")
    for _ in range(2):
        actions.drain(operator, "edge-a")
        assert look() == [("power", "edge-b")]
    assert Handover.objects.count() == 1
    end("power")
    look()
    assert "1 element was moved away" in events("node.drained")[0]


def test_a_move_that_a_user_has_ordered_is_waited_for(deployed: Deployed, operator: User, look: Look) -> None:
    placement = deployed("power", "edge-a")
    move_ordered(placement, "edge-a", "edge-c", created_by=operator)
    actions.drain(operator, "edge-a")
    assert look() == [("power", "edge-c")]
    end("power")
    look()
    assert is_drained("edge-a")


def test_what_is_on_its_way_to_the_node_leaves_again(deployed: Deployed, operator: User, look: Look) -> None:
    placement = deployed("power", "edge-b")
    move_ordered(placement, "edge-b", "edge-a")
    actions.drain(operator, "edge-a")
    assert look() == [("power", "edge-a")]
    assert not is_drained("edge-a")
    end("power")
    assert look() == [("power", "edge-b")]


def test_uncordon_ends_it(deployed: Deployed, operator: User, look: Look) -> None:
    for group in ("first", "second"):
        deployed(group, "edge-a")
    actions.drain(operator, "edge-a")
    look()
    actions.set_cordoned(operator, "edge-a", False)
    node = one_node("edge-a")
    assert (node["cordoned"], node["draining"], node["draining_since"]) == (False, False, None)
    assert len(events("node.drain_cancelled")) == 1
    end("first")
    assert look() == []
    assert events("node.drained") == []


def test_without_a_node_that_fits_it_says_so_once_and_goes_on_when_there_is_one(
    deployed: Deployed, operator: User, look: Look
) -> None:
    for group in ("first", "second"):
        deployed(group, "edge-a")
    actions.drain(operator, "edge-a")
    Node.objects.filter(name="edge-b").update(cordoned=True)
    Node.objects.filter(name="edge-c").update(up=False)
    for _ in range(2):
        assert look() == []
    reason = "first, second: no node can take it (edge-b is cordoned, edge-c does not answer)"
    assert reason in one_node("edge-a")["drain_blocked"]
    [told] = events("node.drain_waits")
    assert reason in told
    Node.objects.filter(name="edge-b").update(cordoned=False)
    assert look() == [("first", "edge-b")]
    assert one_node("edge-a")["drain_blocked"] is None
    assert one_node("edge-a")["draining"]


def test_a_group_that_has_failed_stays_and_the_others_go(
    deployed: Deployed, operator: User, look: Look
) -> None:
    error = ReplicaError(message="disk full", safe="", next="")
    report(deployed("failing", "edge-a"), Role.STOPPED, error=error)
    deployed("well", "edge-a")
    actions.drain(operator, "edge-a")
    assert look() == [("well", "edge-b")]
    assert "failing: it has failed on edge-a" in one_node("edge-a")["drain_blocked"]
    assert len(events("node.drain_waits")) == 1


def test_a_group_that_is_starting_is_waited_for_without_an_alarm(
    deployed: Deployed, operator: User, look: Look
) -> None:
    placement = deployed("power", "edge-a")
    report(placement, Role.STANDBY)
    actions.drain(operator, "edge-a")
    assert look() == []
    assert "not started" in one_node("edge-a")["drain_blocked"]
    assert events("node.drain_waits") == []
    report(placement)
    assert look() == [("power", "edge-b")]


def test_a_move_that_failed_is_tried_elsewhere_a_few_times(
    deployed: Deployed, operator: User, look: Look
) -> None:
    deployed("power", "edge-a")
    actions.drain(operator, "edge-a")
    targets = []
    for _ in range(TRIES_MAX):
        [(_, target)] = look()
        targets.append(target)
        end("power", "failed", "Drain of edge-a: The target could not start its copy.")
        assert look() == [], "not at once"
        assert events("node.drain_waits") == [] or len(targets) == TRIES_MAX
        without_pause()
    assert targets[:2] == ["edge-b", "edge-c"]
    assert look() == []
    blocked = one_node("edge-a")["drain_blocked"]
    assert "failed: The target could not start its copy. Tried 5 times" in blocked
    assert len(events("node.drain_waits")) == 1
    actions.drain(operator, "edge-a")
    assert look() == [("power", "edge-b")], "a new order tries it again"


def test_a_move_that_stops_the_element_is_tried_once(deployed: Deployed, operator: User, look: Look) -> None:
    deployed("power", "edge-a", follow="none")
    actions.drain(operator, "edge-a")
    assert look() == [("power", "edge-b")]
    end("power", "failed", "The target fell silent.")
    without_pause()
    assert look() == []
    assert "The target fell silent. Each try stops it" in one_node("edge-a")["drain_blocked"]
    assert len(events("node.drain_waits")) == 1


def test_who_was_refused_to_own_does_not_start_by_itself(
    deployed: Deployed, operator: User, look: Look
) -> None:
    report(deployed("power", "edge-a"), Role.STANDBY, order_refused="the journal grants another")
    actions.drain(operator, "edge-a")
    assert look() == []
    assert len(events("node.drain_waits")) == 1


def test_a_stopped_copy_that_must_stay_is_shown(deployed: Deployed, operator: User, look: Look) -> None:
    deployment = deployed("power", "edge-b").deployment
    ExtraReplica.objects.create(
        deployment=deployment,
        group="power",
        node=Node.objects.get(name="edge-a"),
        role="stopped",
        generation=next_generation(deployment.pk, "power"),
    )
    actions.drain(operator, "edge-a")
    assert look() == []
    assert "kept here until it runs elsewhere" in one_node("edge-a")["drain_blocked"]
    ExtraReplica.objects.all().delete()
    look()
    assert is_drained("edge-a")


def test_a_deployment_does_not_use_a_node_that_was_drained_since_it_was_chosen(
    deployed: Deployed, operator: User, look: Look
) -> None:
    placement = deployed("power", "edge-b")
    spec = GroupSpec.model_validate(placement.spec)
    placement.delete()
    chosen = {"power": Placed("edge-a", "pinned")}
    actions.drain(operator, "edge-a")
    look()
    assert is_drained("edge-a")
    Deployment.objects.update(status=Deployment.Status.DEPLOYING)
    with transaction.atomic():
        assert not order_owners((spec,), chosen, placement.deployment, {})
        assert not GroupPlacement.objects.exists()
        placed = Placed("edge-b", "the only node that can take it", "it was the only node that could take it")
        assert order_owners((spec,), {"power": placed}, placement.deployment, {})
    placement = GroupPlacement.objects.get()
    assert (placement.node.name, placement.placed_why) == ("edge-b", placed.then)
    assert placement.placed_at is not None


def test_a_move_that_a_user_cancels_is_not_ordered_again_by_itself(
    deployed: Deployed, operator: User, look: Look
) -> None:
    deployed("power", "edge-a")
    actions.drain(operator, "edge-a")
    look()
    end("power", "cancelled")
    assert look() == []
    assert "was cancelled" in one_node("edge-a")["drain_blocked"]


def test_standbys_are_dropped_and_a_wanted_one_is_told(
    deployed: Deployed, operator: User, look: Look
) -> None:
    deployment = deployed("power", "edge-b").deployment
    ExtraReplica.objects.create(
        deployment=deployment,
        group="power",
        node=Node.objects.get(name="edge-a"),
        role="standby",
        wanted=True,
        generation=next_generation(deployment.pk, "power"),
    )
    actions.drain(operator, "edge-a")
    look()
    assert not ExtraReplica.objects.exists()
    assert len(events("standby.dropped")) == 1
    assert is_drained("edge-a")


def test_what_is_undeployed_goes_by_itself(deployed: Deployed, operator: User, look: Look) -> None:
    deployment = deployed("power", "edge-a").deployment
    Deployment.objects.filter(pk=deployment.pk).update(status="undeploying")
    actions.drain(operator, "edge-a")
    assert look() == []
    assert one_node("edge-a")["drain_blocked"] is None
    Deployment.objects.filter(pk=deployment.pk).update(status="undeployed")
    look()
    assert is_drained("edge-a")


def test_a_drain_that_breaks_off_stops_no_other(
    deployed: Deployed, operator: User, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed("bad", "edge-a")
    deployed("good", "edge-b")
    ordered = drains.order

    def fails_for_bad(*arguments: object, **fields: object) -> Handover:
        assert fields["element"] != "bad", "a fault of that row"
        return ordered(*arguments, **fields)

    monkeypatch.setattr(drains, "order", fails_for_bad)
    for name in ("edge-a", "edge-b"):
        actions.drain(operator, name)
    assert look() == [("good", "edge-c")]
    assert Event.objects.filter(kind="node.alert", node="edge-a").count() == 1
