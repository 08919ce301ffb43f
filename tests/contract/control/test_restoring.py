"""The groups that control restores by itself, and those that it leaves to a person."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from webapp.accounts.models import Role, User
from webapp.audit.models import Event
from webapp.handovers.elements import go_on
from webapp.handovers.facts import group_facts
from webapp.handovers.models import Handover
from webapp.monitoring.if_it_fails import if_node_fails
from webapp.nodes.models import Node
from webapp.pipelines.models import PipelineVersion
from webapp.placements.group_state import status_of
from webapp.placements.models import GroupPlacement, Replica
from workers.control.bulkhead import Bulkhead
from workers.control.context import ControlContext
from workers.control.handovers.effects import Effects, end
from workers.control.handovers.restorations import RESTORED_MAX, RESTORED_WITHIN, order_restorations
from workers.control.handovers.retries import TRIES_MAX


def silent(placement: GroupPlacement) -> None:
    Node.objects.filter(pk=placement.node_id).update(up=False, silent_at=timezone.now())


def restored(placement: GroupPlacement, times: int, **fields: object) -> None:
    for _ in range(times):
        Handover.objects.create(
            deployment=placement.deployment,
            group=placement.group,
            element=placement.group,
            kind=Handover.Kind.RESTORATION,
            strategy="checkpoint",
            origin="edge-b",
            target="edge-a",
            ended_at=timezone.now(),
            begun={"start": "warm", "bytes": None, "had": False},
            **{"measured": {"first_commit_at_ms": 1}, "outcome": Handover.Outcome.DONE, **fields},
        )


def ordered() -> int:
    return Handover.objects.filter(outcome=None).count()


def test_what_may_be_what_ends_its_nodes_is_not_passed_on_for_ever(
    context: ControlContext, deployed: Callable[..., GroupPlacement]
) -> None:
    placement = deployed("power", "edge-a")
    silent(placement)
    restored(placement, RESTORED_MAX)
    order_restorations(context, Bulkhead())
    assert ordered() == 0
    # And it stays so while that node is silent.
    later = timedelta(hours=1)
    Handover.objects.update(created_at=F("created_at") - later)
    Node.objects.filter(name="edge-a").update(silent_at=F("silent_at") - later)
    order_restorations(context, Bulkhead())
    assert ordered() == 0
    assert "each time its node fell silent" in Event.objects.get(kind="element.not_restored").message


def test_memory_keeps_nothing_down_but_what_is_to_be_apart_stays_so(
    context: ControlContext, deployed: Callable[..., GroupPlacement]
) -> None:
    placement, twin = deployed("power", "edge-a"), deployed("twin", "edge-b")
    document = {"spec": {"elements": [{"id": "power", "apart": ["twin"]}, {"id": "twin"}]}}
    PipelineVersion.objects.filter(deployments=placement.deployment).update(document=document)
    GroupPlacement.objects.filter(pk=twin.pk).update(deployment=placement.deployment)
    Node.objects.update(load={"memory_total_bytes": 1e9, "memory_ratio": 0.99})
    Node.objects.filter(name="edge-c").update(cordoned=True)
    silent(placement)
    order_restorations(context, Bulkhead())
    assert ordered() == 0
    [waits] = Event.objects.filter(kind="element.waits")
    assert "edge-b runs twin, from which it must stay apart, edge-c is cordoned" in waits.message
    Node.objects.filter(name="edge-c").update(cordoned=False)
    order_restorations(context, Bulkhead())
    assert Handover.objects.get().target == "edge-c"


def test_restorations_of_long_ago_and_those_that_people_ordered_do_not_count(
    context: ControlContext, deployed: Callable[..., GroupPlacement]
) -> None:
    placement = deployed("power", "edge-a")
    silent(placement)
    restored(placement, RESTORED_MAX - 1)
    restored(placement, 1, created_by=User.objects.create(username="ada"))
    restored(placement, 1)
    newest = Handover.objects.latest("created_at")
    long_ago = timezone.now() - RESTORED_WITHIN - timedelta(minutes=1)
    Handover.objects.filter(pk=newest.pk).update(created_at=long_ago)
    order_restorations(context, Bulkhead())
    assert ordered() == 1


def test_one_that_fails_is_tried_elsewhere_a_few_times_then_it_is_said_why_and_what_to_do(
    context: ControlContext, deployed: Callable[..., GroupPlacement]
) -> None:
    silent(deployed("power", "edge-a"))
    targets = []
    for _ in range(TRIES_MAX):
        order_restorations(context, Bulkhead())
        handover = Handover.objects.get(outcome=None)
        targets.append(handover.target)
        end(handover, Handover.Outcome.FAILED, "The copy stood still for 120 s.")
        order_restorations(context, Bulkhead())
        assert ordered() == 0, "not at once"
        Handover.objects.update(ended_at=F("ended_at") - timedelta(hours=1))
    assert targets[:2] == ["edge-b", "edge-c"]
    for _ in range(2):
        order_restorations(context, Bulkhead())
    assert ordered() == 0
    [told] = Event.objects.filter(kind="element.not_restored")
    assert (
        "failed: The copy stood still for 120 s. Tried 5 times; mend the cause, then restore" in told.message
    )


def test_one_that_a_user_cancels_is_left_to_people_without_an_alarm(
    context: ControlContext, deployed: Callable[..., GroupPlacement]
) -> None:
    silent(deployed("power", "edge-a"))
    order_restorations(context, Bulkhead())
    end(Handover.objects.get(), Handover.Outcome.CANCELLED, "Cancelled.")
    order_restorations(context, Bulkhead())
    assert ordered() == 0
    assert not Event.objects.filter(kind="element.not_restored").exists()


def test_what_a_node_ran_goes_where_its_page_foretold_and_not_all_of_it_to_one_node(
    context: ControlContext, deployed: Callable[..., GroupPlacement]
) -> None:
    placements = [deployed(group, "edge-a") for group in ("power", "speed", "heat", "noise")]
    foretold = {after["element"]: after["target"] for after in if_node_fails("edge-a")["groups"]}
    silent(placements[0])
    order_restorations(context, Bulkhead())
    assert dict(Handover.objects.values_list("group", "target")) == foretold
    assert sorted(foretold.values()) == ["edge-b", "edge-b", "edge-c", "edge-c"]


def test_what_is_restored_says_by_what_it_came_there(
    deployed: Callable[..., GroupPlacement], context: ControlContext
) -> None:
    placement = deployed("power", "edge-b")
    placement.note_placed(why="the document pins it there")
    placement.save()
    silent(placement)
    order_restorations(context, Bulkhead())
    handover = Handover.objects.get()
    effects = Effects(handover, placement, context)
    with transaction.atomic():
        effects.order_copy()
        effects.order_claim()
    placement.refresh_from_db()
    assert (placement.node.name, placement.placed_why) == (handover.target, "")
    assert placement.placed_by == str(handover.pk)


def test_one_with_which_two_nodes_fell_silent_is_held_and_all_else_is_restored(
    context: ControlContext, deployed: Callable[..., GroupPlacement]
) -> None:
    placement, other = deployed("power", "edge-a"), deployed("heat", "edge-a")
    way = {"id": "skip orders-0 12 16", "title": "Skip 4 records", "cost": "They are left out."}
    status = {
        "reads": "orders, partition 0, offsets 12 to 15",
        "group": "power",
        "role": "owner",
        "skip": way,
    }
    Replica.objects.filter(deployment=placement.deployment, node=placement.node).update(status=status)
    restored(placement, 1, measured={})
    restored(other, 1)
    silent(placement)
    for _ in range(2):
        order_restorations(context, Bulkhead())
    assert list(Handover.objects.filter(outcome=None).values_list("group", flat=True)) == ["heat"]
    [told] = Event.objects.filter(kind="element.not_restored")
    assert "edge-b and edge-a fell silent one after the other" in told.message
    assert "reading orders, partition 0, offsets 12 to 15" in told.message
    facts = group_facts([placement.deployment])[placement.deployment_id]["power"]
    assert status_of(facts) == "failed"
    assert facts.held is not None
    assert facts.held["code"] == "nodes-fell-silent"
    assert facts.held["ways"] == [way]

    # A person skips the records: so it is restored, and goes on behind them.
    document = {"spec": {"elements": [{"id": "power"}]}}
    PipelineVersion.objects.filter(deployments=placement.deployment).update(document=document)
    ada = User.objects.create(username="ada", role=Role.OPERATOR)
    go_on(ada, placement.deployment.pipeline.name, "power", way["id"])
    placement.refresh_from_db()
    assert (placement.java_ends, placement.accepts) == ([], [way["id"]])


def test_of_several_that_came_together_none_is_held_and_each_is_tried_alone(
    context: ControlContext, deployed: Callable[..., GroupPlacement]
) -> None:
    placements = [deployed("power", "edge-a"), deployed("heat", "edge-a")]
    for placement in placements:
        restored(placement, 1, measured={})
    silent(placements[0])
    order_restorations(context, Bulkhead())
    assert ordered() == 2
    for placement in placements:
        placement.refresh_from_db()
        assert [end["alone"] for end in placement.java_ends] == [False, False]


def test_one_that_is_on_its_way_when_its_next_node_falls_silent_is_held_as_well(
    context: ControlContext, deployed: Callable[..., GroupPlacement]
) -> None:
    """Its node is still the first one: the second has not owned yet."""
    placement = deployed("power", "edge-b")
    silent(placement)
    restored(placement, 1, measured={}, outcome=Handover.Outcome.FAILED)
    Node.objects.filter(name="edge-a").update(up=False, silent_at=timezone.now())
    order_restorations(context, Bulkhead())
    assert ordered() == 0
    assert "edge-b and edge-a fell silent" in Event.objects.get(kind="element.not_restored").message
