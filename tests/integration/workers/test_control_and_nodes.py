"""Control, Redis and node processes together: what is wanted comes to be, whatever is killed."""

from __future__ import annotations

import shutil
import signal

import pytest
import redis
from django.db.models import F

from pipeline_runtime.model.desired import Role
from tests.integration.workers.cluster import Cluster, eventually
from webapp.handovers.models import Handover
from webapp.monitoring.models import Event
from webapp.nodes.models import Node
from webapp.pipelines.models import Deployment, ExtraReplica, GroupPlacement, Replica
from workers import messages
from workers.messages import element_history, node_history

pytestmark = pytest.mark.integration


def ordered(deployment: Deployment, kind: str, origin: str, target: str) -> Handover:
    return Handover.objects.create(
        deployment=deployment,
        group="power",
        element="power",
        kind=kind,
        strategy="stop-and-copy",
        origin=origin,
        target=target,
    )


def ended(handover: Handover) -> str | None:
    handover.refresh_from_db()
    return handover.outcome


def each_seq_was_committed_in_epoch_order(cluster: Cluster, deployment: Deployment) -> list[tuple[int, str]]:
    commits = cluster.commits(deployment, "power")
    assert [epoch for epoch, _ in commits] == sorted(epoch for epoch, _ in commits)
    return commits


def test_a_placed_group_runs_reports_and_is_checkpointed_centrally(cluster: Cluster, redis_url: str) -> None:
    deployment = cluster.deployed("power", "edge-a")
    eventually(lambda: cluster.owns(deployment, "power", "edge-a"), what="edge-a owns")

    def replicated() -> bool:
        status = cluster.status(deployment, "power", "edge-a")
        return status is not None and "central" in status.checkpoint_where

    eventually(replicated, what="a checkpoint is in the central store")
    row = Replica.objects.get(deployment=deployment, node__name="edge-a")
    eventually(lambda: Replica.objects.get(pk=row.pk).rates["rows_out_per_s"] > 0, what="rates")
    assert Node.objects.get(name="edge-a").load["memory_bytes"] > 0
    told = Node.objects.filter(name="edge-a", revision_seen=F("revision_wanted"))
    eventually(told.exists, what="the node works on the newest revision")
    with redis.Redis.from_url(redis_url) as client:
        assert client.llen(node_history("edge-a")) > 0
        assert client.llen(element_history(deployment.pk, "power")) > 0


def test_a_checkpoint_is_taken_when_it_is_asked_for(cluster_without_periodic_checkpoints: Cluster) -> None:
    cluster = cluster_without_periodic_checkpoints
    deployment = cluster.deployed("power", "edge-a")
    eventually(lambda: cluster.owns(deployment, "power", "edge-a"))
    status = cluster.status(deployment, "power", "edge-a")
    assert status is not None
    assert status.checkpoint_seq is None
    # As the web sends it.
    web = messages.celery_app("web", cluster.settings.redis_url)
    messages.send(web, messages.CHECKPOINT, [deployment.pk, "power"], messages.CONTROL_QUEUE)

    def replicated() -> bool:
        status = cluster.status(deployment, "power", "edge-a")
        return status is not None and "central" in status.checkpoint_where

    eventually(replicated, what="a checkpoint is in the central store")


def test_a_node_that_lost_its_disk_starts_from_the_central_checkpoint(
    cluster_without_periodic_checkpoints: Cluster,
) -> None:
    cluster = cluster_without_periodic_checkpoints
    deployment = cluster.deployed("power", "edge-a")
    eventually(lambda: cluster.owns(deployment, "power", "edge-a"))
    assert cluster.control is not None
    web = messages.celery_app("web", cluster.settings.redis_url)
    messages.send(web, messages.CHECKPOINT, [deployment.pk, "power"], messages.CONTROL_QUEUE)
    central = cluster.control.context.central
    eventually(lambda: central.manifests(f"{deployment.pk}.power"), what="a checkpoint is there")
    cluster.end_node("edge-a", signal.SIGKILL)
    shutil.rmtree(cluster.directory / "nodes" / "edge-a")
    committed = len(cluster.commits(deployment, "power"))
    cluster.start_node("edge-a")

    def fetched() -> bool:
        status = cluster.status(deployment, "power", "edge-a")
        return status is not None and status.role is Role.OWNER and status.bytes_fetched > 0

    eventually(fetched, 90, "it owns again, from the checkpoint")
    eventually(lambda: len(cluster.commits(deployment, "power")) > committed)


def test_pause_and_resume_reach_the_owner(cluster: Cluster) -> None:
    deployment = cluster.deployed("power", "edge-a")
    eventually(lambda: cluster.owns(deployment, "power", "edge-a"))
    for paused in (True, False):
        GroupPlacement.objects.filter(deployment=deployment).update(paused=paused)

        def reported(paused: bool = paused) -> bool:
            status = cluster.status(deployment, "power", "edge-a")
            return status is not None and status.paused is paused

        eventually(reported, what=f"paused is {paused}")


def test_a_live_migration_moves_the_state_and_nothing_is_committed_twice(cluster: Cluster) -> None:
    deployment = cluster.deployed("power", "edge-a")
    eventually(lambda: cluster.owns(deployment, "power", "edge-a"))
    for origin, target in (("edge-a", "edge-b"), ("edge-b", "edge-a")):
        handover = ordered(deployment, "migration", origin, target)
        eventually(lambda h=handover: ended(h), 90, "the handover ends")
        assert (handover.outcome, handover.phase) == ("done", "FINISH"), handover.message
        assert [entry["phase"] for entry in handover.timeline] == ["STOP", "COPY", "CLAIM", "FINISH"]
        assert all(entry["end_ms"] >= entry["start_ms"] for entry in handover.timeline)
        assert handover.bytes_copied > 0
        assert handover.gap_ms is not None
        assert GroupPlacement.objects.get(deployment=deployment).node.name == target
        assert not ExtraReplica.objects.exists()
    commits = each_seq_was_committed_in_epoch_order(cluster, deployment)
    assert sorted(set(commits)) == [(1, "edge-a"), (2, "edge-b"), (3, "edge-a")]


def test_a_migration_to_a_node_where_it_cannot_start_gives_the_group_back(cluster: Cluster) -> None:
    deployment = cluster.deployed("power", "edge-a")
    eventually(lambda: cluster.owns(deployment, "power", "edge-a"))
    (cluster.ledger / "power.broken-on-edge-b").touch()
    handover = ordered(deployment, "migration", "edge-a", "edge-b")
    eventually(lambda: ended(handover), 90, "the handover ends")
    assert handover.outcome == "failed"
    assert "does not start" in handover.message
    eventually(lambda: cluster.owns(deployment, "power", "edge-a"), what="edge-a owns again")
    assert set(cluster.commits(deployment, "power")) == {(1, "edge-a"), (2, "edge-a")}


def test_a_killed_node_comes_back_from_its_disk_without_losing_anything(cluster: Cluster) -> None:
    deployment = cluster.deployed("power", "edge-a")
    eventually(lambda: cluster.owns(deployment, "power", "edge-a"))
    run = Node.objects.get(name="edge-a").run_id
    assert cluster.end_node("edge-a", signal.SIGKILL) == -signal.SIGKILL
    committed = len(cluster.commits(deployment, "power"))
    cluster.start_node("edge-a")
    eventually(lambda: Node.objects.get(name="edge-a").run_id != run, what="a new run reports")
    eventually(lambda: len(cluster.commits(deployment, "power")) > committed, what="it goes on")
    assert {node for _, node in each_seq_was_committed_in_epoch_order(cluster, deployment)} == {"edge-a"}


def test_sigterm_says_goodbye_within_ten_seconds(cluster: Cluster) -> None:
    deployment = cluster.deployed("power", "edge-a")
    eventually(lambda: cluster.owns(deployment, "power", "edge-a"))
    assert cluster.end_node("edge-a") == 0
    eventually(lambda: Event.objects.filter(kind="node.stopped", node="edge-a").exists())
    status = cluster.status(deployment, "power", "edge-a")
    assert status is not None
    assert status.role is Role.STOPPED


def test_a_silent_node_is_noticed_restored_elsewhere_and_fenced_when_it_wakes(cluster: Cluster) -> None:
    deployment = cluster.deployed("power", "edge-a")
    eventually(lambda: cluster.owns(deployment, "power", "edge-a"))

    def replicated() -> bool:
        status = cluster.status(deployment, "power", "edge-a")
        return status is not None and "central" in status.checkpoint_where

    eventually(replicated)
    cluster.signal_node("edge-a", signal.SIGSTOP)
    eventually(lambda: Event.objects.filter(kind="node.silent", node="edge-a").exists(), what="it is noticed")
    handover = ordered(deployment, "restoration", "edge-a", "edge-b")
    eventually(lambda: ended(handover), 90, "the restoration ends")
    assert handover.outcome == "done", handover.message
    assert [entry["phase"] for entry in handover.timeline] == ["COPY", "CLAIM", "FINISH"]
    eventually(lambda: cluster.owns(deployment, "power", "edge-b"))
    cluster.signal_node("edge-a", signal.SIGCONT)
    eventually(lambda: cluster.up("edge-a"), what="edge-a is back")

    def told_to_stop() -> bool:
        status = cluster.status(deployment, "power", "edge-a")
        return status is None or status.role is Role.STOPPED

    eventually(told_to_stop, what="the old copy has stopped")
    commits = each_seq_was_committed_in_epoch_order(cluster, deployment)
    assert set(commits) == {(1, "edge-a"), (2, "edge-b")}


def test_a_handover_goes_on_after_control_was_restarted(cluster: Cluster) -> None:
    deployment = cluster.deployed("power", "edge-a")
    eventually(lambda: cluster.owns(deployment, "power", "edge-a"))
    cluster.signal_node("edge-b", signal.SIGSTOP)  # so that it cannot end before the restart
    handover = ordered(deployment, "migration", "edge-a", "edge-b")

    def stopped() -> bool:
        handover.refresh_from_db()
        return handover.phase != "PENDING"

    eventually(stopped, what="the origin is being stopped")
    cluster.stop_control()
    cluster.signal_node("edge-b", signal.SIGCONT)
    cluster.start_control()
    eventually(lambda: ended(handover), 90, "the handover ends")
    assert handover.outcome == "done", handover.message
    eventually(lambda: cluster.owns(deployment, "power", "edge-b"))


def test_undesired_groups_are_stopped(cluster: Cluster) -> None:
    deployment = cluster.deployed("power", "edge-a")
    eventually(lambda: cluster.owns(deployment, "power", "edge-a"))
    Deployment.objects.filter(pk=deployment.pk).update(status=Deployment.Status.UNDEPLOYED)

    def idle() -> bool:
        before = len(cluster.commits(deployment, "power"))
        node = Node.objects.get(name="edge-a")
        return (
            node.revision_seen == node.revision_wanted and len(cluster.commits(deployment, "power")) == before
        )

    eventually(lambda: not Replica.objects.filter(deployment=deployment).exists(), what="no rows are left")
    eventually(idle)
