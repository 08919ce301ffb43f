"""The reports of a leaving node make a mark that lasts exactly as long as the node reports it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import redis
from django.db import transaction

from pipeline_runtime.model.desired import ReplicaStatus, Role
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.placement.choose import Placed
from tests.contract.control.test_bad_rows import sent
from tests.contract.control.test_drains import Look, end, events, look  # noqa: F401
from webapp.accounts.models import User
from webapp.handovers.models import Handover
from webapp.monitoring.nodes import one_node
from webapp.nodes import actions
from webapp.nodes.models import Node
from webapp.placements.models import GroupPlacement
from webapp.policies.facts import nodes_now
from webapp.problems import Conflict
from workers.control.context import ControlContext
from workers.control.operations.effects import order_owners
from workers.control.reports.ingest import Ingest
from workers.control.reports.silence import note_silence

Deployed = Callable[..., GroupPlacement]
Report = Callable[..., Node]


@pytest.fixture
def report(context: ControlContext, real_redis: redis.Redis) -> Report:
    """report(placement, ..., leaving=True): edge-a says so, and that it owns them; its row afterwards."""
    numbers = iter(range(1, 100))

    def once(*owned: GroupPlacement, leaving: bool = True, **fields: Any) -> Node:
        replicas = [
            ReplicaStatus(
                group=f"{each.deployment_id}.{each.group}",
                role=Role.OWNER,
                phase="owning",
                epoch=Epoch(1),
                seq=Seq(7),
                order_id="first",
            )
            for each in owned
        ]
        until_ms = int(time.time() * 1000) + 60_000 if leaving else None
        sent(real_redis, "edge-a", next(numbers), *replicas, leaving_until_ms=until_ms, **fields)
        Ingest(context)._round()
        return Node.objects.get(name="edge-a")

    return once


def test_what_a_node_that_ends_runs_goes_also_where_there_is_too_little_memory(
    deployed: Deployed,
    report: Report,
    look: Look,  # noqa: F811
) -> None:
    Node.objects.update(load={"memory_total_bytes": 1e9, "memory_ratio": 0.95})
    report(deployed("power", "edge-a"))
    assert look() == [("power", "edge-b")]


def test_it_counts_as_cordoned_its_groups_leave_and_the_end_is_told(
    deployed: Deployed,
    report: Report,
    look: Look,  # noqa: F811
) -> None:
    both = [deployed(group, "edge-a") for group in ("first", "second")]
    since = report(*both).leaving_since
    assert since is not None
    assert report(*both).leaving_since == since, "told once"
    assert events("node.leaving") == [
        "edge-a is leaving: it was stopped, and hands over its groups within 60 s."
    ]
    assert look() == [("first", "edge-b")]
    node = one_node("edge-a")
    assert (node["cordoned"], node["draining"]) == (False, False)
    assert node["leaving_until"] is not None
    assert (node["drain"] or {})["total"] == 2
    end("first")
    assert look() == [("second", "edge-c")]
    end("second")
    assert look() == []
    assert events("node.drained") == []

    report(kind="bye")
    assert events("node.left") == [
        "edge-a has left: 2 elements were handed over. Nothing is left there to run."
    ]
    assert events("node.stopped") == []
    node = one_node("edge-a")
    assert (node["up"], node["leaving_until"], node["drain"]) == (False, None, None)


def test_what_owns_elsewhere_already_is_not_waited_for(
    deployed: Deployed,
    report: Report,
    look: Look,  # noqa: F811
) -> None:
    both = [deployed(group, "edge-a") for group in ("first", "second")]
    report(*both)
    look()
    Handover.objects.filter(group="first").update(phase="FINISH")
    GroupPlacement.objects.filter(group="first").update(node=Node.objects.get(name="edge-b"))
    assert look() == [("first", "edge-b"), ("second", "edge-c")]
    report(both[1], kind="bye")
    [said] = events("node.left")
    assert said.startswith("edge-a has left: 1 element was handed over. Not handed over: second.")


def test_nothing_new_goes_there(
    deployed: Deployed,
    report: Report,
    look: Look,  # noqa: F811
) -> None:
    placement = deployed("power", "edge-b")
    report()
    spec = GroupSpec.model_validate(placement.spec)
    placement.delete()
    with transaction.atomic():
        assert not order_owners((spec,), {"power": Placed("edge-a", "pinned")}, placement.deployment, {})
    Node.objects.filter(name="edge-c").update(up=False)
    ada = User.objects.create_user("ada", role="operator")
    with pytest.raises(Conflict, match="no other node is running and takes new elements"):
        actions.drain(ada, "edge-b")


def test_policies_leave_it_alone_and_move_nothing_there(deployed: Deployed, report: Report) -> None:
    [seen] = nodes_now([report(deployed("power", "edge-a"))], {})
    assert (seen.refusal, seen.draining) == ("is leaving", True)


def test_it_is_told_to_wait_no_more_only_when_nothing_that_is_left_can_move(
    deployed: Deployed,
    report: Report,
    look: Look,  # noqa: F811
) -> None:
    first, second = deployed("first", "edge-a"), deployed("second", "edge-a")
    Node.objects.filter(name="edge-c").update(cordoned=True)
    report(first, second)
    assert look() == [("first", "edge-b")]
    Node.objects.filter(name="edge-b").update(cordoned=True)
    look()
    assert "second: no node can take it" in one_node("edge-a")["drain_blocked"]
    assert not Node.objects.get(name="edge-a").leaving_stuck, "the first moves still"
    end("first")
    look()
    assert Node.objects.get(name="edge-a").leaving_stuck
    [said] = events("node.drain_waits")
    assert said.startswith("edge-a is leaving, and these cannot be handed over: second: no node can take it")

    Node.objects.filter(name="edge-b").update(cordoned=False)
    assert look() == [("second", "edge-b")]
    assert not Node.objects.get(name="edge-a").leaving_stuck


def test_what_a_person_has_ordered_stays_when_it_has_left_or_died(
    deployed: Deployed,
    report: Report,
    look: Look,  # noqa: F811
) -> None:
    power = deployed("power", "edge-a")
    actions.drain(User.objects.create_user("ada", role="operator"), "edge-a")
    report(power)
    look()
    assert Handover.objects.get().reason == "drain of edge-a"
    node = report(power, kind="bye")
    assert (node.cordoned, node.draining_since is not None, node.leaving_since) == (True, True, None)


@pytest.mark.parametrize("again", ["a report without it", "silence"])
def test_one_that_is_not_leaving_any_more_takes_new_elements(
    deployed: Deployed, context: ControlContext, report: Report, again: str
) -> None:
    power = deployed("power", "edge-a")
    assert not report(power).takes_new
    if again == "silence":
        note_silence("edge-a", context)
        node = Node.objects.get(name="edge-a")
    else:
        node = report(power, leaving=False, run_id="the next run")
    assert (node.takes_new, node.leaving_until, node.drain_blocked) == (True, None, "")
    assert events("node.left") == []
