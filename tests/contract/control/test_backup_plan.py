"""Control's plan of backups: what it is made of, where it is kept, and who goes by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from pipeline_runtime.checkpoint.manifest import Manifest
from pipeline_runtime.model.ids import Epoch, Seq
from webapp.handovers.models import Handover
from webapp.nodes.models import Link, Node
from webapp.placements.models import GroupPlacement, Replica
from workers.control.bulkhead import Bulkhead
from workers.control.checkpoints.backups import Backups
from workers.control.context import ControlContext
from workers.control.handovers.drains import tend_drains
from workers.control.handovers.restorations import order_restorations

Deployed = Callable[..., GroupPlacement]
LOAD: dict[str, Any] = {"cpu_ratio": 0.25, "disk_free_bytes": 10**12}


@pytest.fixture(autouse=True)
def roomy(nodes: dict[str, Node]) -> None:
    Node.objects.update(load=LOAD, cores=4)


def planned() -> dict[str, tuple[str, str]]:
    rows = GroupPlacement.objects.values_list("group", "backup_node", "recovery_node")
    return {group: (backup, recovery) for group, backup, recovery in rows}


def passes(group: str, rows_per_s: float) -> None:
    Replica.objects.filter(group=group).update(rates={"rows_in_per_s": rows_per_s, "rows_out_per_s": 0})


def test_it_stands_with_the_placements_and_stays_when_control_starts_again(
    context: ControlContext, deployed: Deployed
) -> None:
    for group in ("first", "second"):
        deployed(group, "edge-a")
    Backups(context, Bulkhead()).plan()
    before = planned()
    assert sorted(before.values()) == [("edge-b", "edge-b"), ("edge-c", "edge-c")]
    GroupPlacement.objects.filter(group="first").update(backup_node="edge-c", recovery_node="edge-c")
    places = Backups(context, Bulkhead()).plan().places
    assert {place.node for place in places.values()} == {"edge-c", before["second"][0]}
    assert planned() == before | {"first": ("edge-c", "edge-c")}


def test_what_passes_says_how_much_cpu_a_group_takes_of_its_node(
    context: ControlContext, deployed: Deployed
) -> None:
    """ "busy" takes two thirds of the 3 cores in use on edge-a. edge-b has 1.2 cores to spare, edge-c 3.6."""
    Node.objects.filter(name="edge-a").update(load=LOAD | {"cpu_ratio": 0.75})
    Node.objects.filter(name="edge-b").update(load=LOAD | {"cpu_ratio": 0.6})
    Node.objects.filter(name="edge-c").update(load=LOAD | {"cpu_ratio": 0.0})
    for group, rows in (("busy", 200), ("calm", 100)):
        deployed(group, "edge-a")
        passes(group, rows)
    Backups(context, Bulkhead()).plan()
    assert planned()["busy"] == ("edge-c", "edge-c")
    passes("busy", 2_000)
    passes("calm", 20_000)
    GroupPlacement.objects.update(backup_node="", recovery_node="")
    Backups(context, Bulkhead()).plan()
    assert planned()["calm"] == ("edge-c", "edge-c")


def test_another_owner_site_or_cordon_is_planned_for_at_once_and_load_is_not(
    context: ControlContext, deployed: Deployed, nodes: dict[str, Node]
) -> None:
    deployed("power", "edge-a")
    backups = Backups(context, Bulkhead())
    backups.plan()
    assert planned()["power"] == ("edge-b", "edge-b")
    Node.objects.filter(name="edge-b").update(load=LOAD | {"cpu_ratio": 1.0})
    backups.plan()
    assert planned()["power"] == ("edge-b", "edge-b")
    Node.objects.filter(name="edge-b").update(cordoned=True)
    backups.plan()
    assert planned()["power"] == ("edge-b", "edge-c"), "its backup stays, it goes on elsewhere"
    GroupPlacement.objects.update(node=nodes["edge-b"])
    backups.plan()
    assert planned()["power"] == ("edge-a", "edge-a")
    Node.objects.filter(name__in=["edge-a", "edge-b"]).update(site="hall 1")
    backups.plan()
    assert planned()["power"][0] == "edge-c"


def test_a_line_between_sites_that_was_measured_carries_no_more_than_that(
    context: ControlContext, deployed: Deployed, nodes: dict[str, Node]
) -> None:
    power = deployed("power", "edge-a")
    for seq in (1, 2):
        context.central.put_manifest(
            Manifest(
                group=f"{power.deployment_id}.power",
                seq=Seq(seq),
                epoch=Epoch(1),
                node="edge-a",
                version="1",
                created_at_ms=seq * 1_000,
                ends={},
                bytes_total=50_000,
                bytes_new=50_000,
                files=(),
            )
        )
    for name in ("edge-b", "edge-c"):
        rate = 10_000.0 if name == "edge-b" else 1e6
        Link.objects.create(
            origin=nodes[name], target=nodes["edge-a"], bytes_per_s=rate, measured_at=timezone.now(), rtt_ms=9
        )
    Backups(context, Bulkhead()).plan()
    assert planned()["power"] == ("edge-c", "edge-c")


def test_a_restoration_and_a_drain_go_where_it_says_though_others_own_less(
    context: ControlContext, deployed: Deployed
) -> None:
    for group, node in (("dies", "edge-a"), ("there", "edge-c")):
        deployed(group, node)
    GroupPlacement.objects.filter(group="dies").update(recovery_node="edge-c")
    Node.objects.filter(name="edge-a").update(up=False, silent_at=timezone.now(), last_seen_at=timezone.now())
    order_restorations(context, Bulkhead())
    [restoration] = Handover.objects.all()
    assert (restoration.group, restoration.target) == ("dies", "edge-c")

    GroupPlacement.objects.filter(group="there").update(recovery_node="edge-b")
    deployed("left", "edge-b")
    Node.objects.filter(name="edge-c").update(cordoned=True, draining_since=timezone.now())
    Node.objects.filter(name="edge-a").update(up=True)
    Handover.objects.update(outcome="failed")
    tend_drains(context, Bulkhead())
    moved = Handover.objects.get(kind="migration")
    assert (moved.group, moved.target) == ("there", "edge-b")
