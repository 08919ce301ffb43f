"""The groups of a silent node are restored: by control, by a user, from a standby, from a checkpoint."""

from __future__ import annotations

import signal

import pytest

from pipeline_runtime.model.desired import Role
from tests.integration.workers.cluster import (
    Cluster,
    each_seq_was_committed_in_epoch_order,
    ended,
    ordered,
    owned,
    phases,
)
from tests.waiting import wait_until
from webapp.audit.models import Event
from webapp.handovers.models import Handover
from webapp.nodes.models import Node
from webapp.placements.copies import next_generation
from webapp.placements.models import Deployment, ExtraReplica, GroupPlacement

pytestmark = pytest.mark.integration


def owned_and_replicated(cluster: Cluster, follow: str = "exact") -> Deployment:
    deployment = cluster.deployed("power", "edge-a", follow)
    wait_until(lambda: cluster.owns(deployment, "power", "edge-a"), "edge-a owns")
    wait_until(lambda: cluster.replicated(deployment, "power", "edge-a"), "a central checkpoint")
    return deployment


def with_standby(deployment: Deployment, node: str) -> ExtraReplica:
    """As the web writes it."""
    return ExtraReplica.objects.create(
        deployment=deployment,
        group="power",
        node=Node.objects.get(name=node),
        role="standby",
        wanted=True,
        generation=next_generation(deployment.pk, "power"),
    )


def only_handover() -> Handover:
    wait_until(lambda: Handover.objects.exists(), "a restoration is ordered")
    return Handover.objects.get()


def follows(cluster: Cluster, deployment: Deployment, node: str) -> bool:
    status = cluster.status(deployment, "power", node)
    return status is not None and status.role is Role.STANDBY


def test_a_central_store_that_was_begun_again_sends_the_target_to_the_backup_node(
    cluster_of_three: Cluster,
) -> None:
    cluster = cluster_of_three
    deployment = owned(cluster)
    target = cluster.without_checkpoint(deployment, "power", "edge-a")
    cluster.end_node("edge-a", signal.SIGKILL)
    assert cluster.control is not None
    central = cluster.control.context.central
    central.drop_group(f"{deployment.pk}.power")
    assert not central.manifests(f"{deployment.pk}.power")
    handover = ordered(deployment, "checkpoint", "edge-a", target)
    wait_until(lambda: ended(handover), "the restoration ends")
    assert handover.outcome == "done", handover.message
    assert handover.bytes_copied > 0, "it began with nothing"
    each_seq_was_committed_in_epoch_order(cluster, deployment)


def test_a_silent_node_is_restored_by_hand_and_fenced_when_it_wakes(manual_cluster: Cluster) -> None:
    cluster = manual_cluster
    deployment = owned_and_replicated(cluster)
    cluster.signal_node("edge-a", signal.SIGSTOP)
    cluster.falls_silent("edge-a")
    assert "restore its elements" in Event.objects.get(kind="node.silent", node="edge-a").message
    cluster.has_swept(deployment)
    assert not Handover.objects.exists()
    handover = ordered(deployment, "checkpoint", "edge-a", "edge-b")
    wait_until(lambda: ended(handover), "the restoration ends")
    assert handover.outcome == "done", handover.message
    assert phases(handover) == ["COPY", "CLAIM", "FINISH"]
    wait_until(lambda: cluster.owns(deployment, "power", "edge-b"))
    cluster.signal_node("edge-a", signal.SIGCONT)
    wait_until(lambda: cluster.up("edge-a"), "edge-a is back")

    def told_to_stop() -> bool:
        status = cluster.status(deployment, "power", "edge-a")
        return status is None or status.role is Role.STOPPED

    wait_until(told_to_stop, "the old copy has stopped")
    commits = each_seq_was_committed_in_epoch_order(cluster, deployment)
    assert set(commits) == {(1, "edge-a"), (2, "edge-b")}


def test_a_dead_node_is_restored_by_itself_and_takes_nothing_back(cluster: Cluster) -> None:
    deployment = owned_and_replicated(cluster)
    cluster.end_node("edge-a", signal.SIGKILL)
    cluster.falls_silent("edge-a")
    handover = only_handover()
    assert (handover.strategy, handover.target, handover.created_by) == ("checkpoint", "edge-b", None)
    wait_until(lambda: ended(handover), "the restoration ends")
    assert handover.outcome == "done", handover.message
    assert handover.message.startswith("Automatically, ")
    assert "s after edge-a fell silent" in handover.message
    begun = Event.objects.get(kind="element.restoring")
    assert "fell silent" in begun.message
    assert begun.cause is not None
    assert begun.cause.kind == "node.silent", "a failure is one event"
    assert handover.gap_ms is not None
    cluster.start_node("edge-a")
    wait_until(lambda: cluster.up("edge-a"))
    cluster.has_swept(deployment)
    committed = len(cluster.commits(deployment, "power"))
    wait_until(lambda: len(cluster.commits(deployment, "power")) > committed + 3)
    assert Handover.objects.count() == 1
    commits = each_seq_was_committed_in_epoch_order(cluster, deployment)
    assert set(commits) == {(1, "edge-a"), (2, "edge-b")}


def test_a_hot_standby_is_preferred_and_kept_on_the_former_node(cluster: Cluster) -> None:
    deployment = owned_and_replicated(cluster)
    with_standby(deployment, "edge-b")
    wait_until(lambda: follows(cluster, deployment, "edge-b"), "edge-b follows")
    cluster.end_node("edge-a", signal.SIGKILL)
    cluster.falls_silent("edge-a")
    handover = only_handover()
    wait_until(lambda: ended(handover), "the restoration ends")
    assert (handover.outcome, handover.strategy) == ("done", "hot-standby"), handover.message
    assert phases(handover) == ["CLAIM", "FINISH"]
    [kept] = ExtraReplica.objects.select_related("node")
    assert (kept.node.name, kept.role, kept.wanted) == ("edge-a", "standby", True)
    cluster.start_node("edge-a")
    wait_until(lambda: follows(cluster, deployment, "edge-a"), "the former owner follows")
    commits = each_seq_was_committed_in_epoch_order(cluster, deployment)
    assert set(commits) == {(1, "edge-a"), (2, "edge-b")}


def test_without_a_node_it_waits_for_one(cluster: Cluster) -> None:
    deployment = owned_and_replicated(cluster)
    Node.objects.filter(name="edge-b").update(cordoned=True)
    cluster.end_node("edge-a", signal.SIGKILL)
    cluster.falls_silent("edge-a")
    wait_until(Event.objects.filter(kind="element.waits").exists, "it is said that it waits")
    Node.objects.filter(name="edge-b").update(cordoned=False)
    handover = only_handover()
    wait_until(lambda: ended(handover), "the restoration ends")
    assert handover.outcome == "done", handover.message
    assert Event.objects.filter(kind="element.waits").count() == 1
    wait_until(lambda: cluster.owns(deployment, "power", "edge-b"))


def test_what_is_not_deterministic_is_left_to_people(cluster: Cluster) -> None:
    deployment = owned_and_replicated(cluster, "none")
    cluster.end_node("edge-a", signal.SIGKILL)
    cluster.falls_silent("edge-a")
    wait_until(Event.objects.filter(kind="element.not_restored").exists, "it is said")
    assert "by hand" in Event.objects.get(kind="element.not_restored").message
    cluster.has_swept(deployment)
    assert not Handover.objects.exists()


def test_a_node_that_is_stopped_is_not_restored_from(cluster: Cluster) -> None:
    deployment = owned_and_replicated(cluster)
    cluster.end_node("edge-a")
    wait_until(Event.objects.filter(kind="node.stopped", node="edge-a").exists)
    cluster.has_swept(deployment)
    cluster.start_node("edge-a")
    committed = len(cluster.commits(deployment, "power"))
    wait_until(lambda: len(cluster.commits(deployment, "power")) > committed)
    assert not Handover.objects.exists()


def test_a_rewind_emits_again_what_came_after_its_checkpoint(cluster: Cluster) -> None:
    deployment = owned_and_replicated(cluster)
    assert cluster.control is not None
    central, group = cluster.control.context.central, f"{deployment.pk}.power"
    wait_until(lambda: len(central.manifests(group)) > 1, "two checkpoints")
    seq = central.manifests(group)[-1].seq
    handover = ordered(deployment, "rewind", "edge-a", "edge-b", checkpoint_seq=seq)
    wait_until(lambda: ended(handover), "the rewind ends")
    assert handover.outcome == "done", handover.message
    assert "writes again what was written after that checkpoint" in handover.message
    assert phases(handover) == ["COPY", "CLAIM", "FINISH"]
    commits = each_seq_was_committed_in_epoch_order(cluster, deployment)
    assert commits[seq - 1] == (1, "edge-a")
    assert commits[seq] == (2, "edge-b")
    placement = GroupPlacement.objects.get(deployment=deployment)
    assert (placement.node.name, placement.order_rewind) == ("edge-b", None)
