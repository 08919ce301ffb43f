"""Control, Redis and node processes together: what is wanted comes to be, whatever is killed."""

from __future__ import annotations

import shutil
import signal

import pytest
import redis
from django.db.models import F
from django.utils import timezone

from pipeline_runtime.model.desired import Role
from pipeline_runtime.wire import tasks
from pipeline_runtime.wire.keys import element_history, node_history
from tests.integration.workers.cluster import (
    Cluster,
    each_seq_was_committed_in_epoch_order,
)
from tests.waiting import wait_until
from webapp.audit.models import Event
from webapp.nodes.models import Node
from webapp.placements.models import Deployment, GroupPlacement, Replica

pytestmark = pytest.mark.integration


def test_a_placed_group_runs_reports_and_is_checkpointed_centrally(cluster: Cluster, redis_url: str) -> None:
    deployment = cluster.deployed("power", "edge-a")
    wait_until(lambda: cluster.owns(deployment, "power", "edge-a"), "edge-a owns")

    wait_until(
        lambda: cluster.replicated(deployment, "power", "edge-a"), "a checkpoint is in the central store"
    )
    row = Replica.objects.get(deployment=deployment, node__name="edge-a")
    wait_until(lambda: Replica.objects.get(pk=row.pk).rates["rows_out_per_s"] > 0, "rates")
    assert Node.objects.get(name="edge-a").load["memory_bytes"] > 0
    told = Node.objects.filter(name="edge-a", revision_seen=F("revision_wanted"))
    wait_until(told.exists, "the node works on the newest revision")
    with redis.Redis.from_url(redis_url) as client:
        assert client.llen(node_history("edge-a")) > 0
        assert client.llen(element_history(deployment.pk, "power")) > 0


def test_a_checkpoint_is_taken_when_it_is_asked_for(cluster_without_periodic_checkpoints: Cluster) -> None:
    cluster = cluster_without_periodic_checkpoints
    deployment = cluster.deployed("power", "edge-a")
    wait_until(lambda: cluster.owns(deployment, "power", "edge-a"))
    status = cluster.status(deployment, "power", "edge-a")
    assert status is not None
    assert status.checkpoint_seq is None
    cluster.order_checkpoint(deployment, "power")
    wait_until(
        lambda: "central" in cluster.places(deployment, "power", "edge-a"),
        "a checkpoint is in the central store",
    )


def test_a_node_that_lost_its_disk_starts_from_the_central_checkpoint(
    cluster_without_periodic_checkpoints: Cluster,
) -> None:
    cluster = cluster_without_periodic_checkpoints
    deployment = cluster.deployed("power", "edge-a")
    wait_until(lambda: cluster.owns(deployment, "power", "edge-a"))
    assert cluster.control is not None
    cluster.order_checkpoint(deployment, "power")
    central = cluster.control.context.central
    wait_until(lambda: central.manifests(f"{deployment.pk}.power"), "a checkpoint is there")
    cluster.end_node("edge-a", signal.SIGKILL)
    shutil.rmtree(cluster.directory / "nodes" / "edge-a")
    committed = len(cluster.commits(deployment, "power"))
    cluster.start_node("edge-a")

    def fetched() -> bool:
        status = cluster.status(deployment, "power", "edge-a")
        return status is not None and status.role is Role.OWNER and status.bytes_fetched > 0

    wait_until(fetched, "it owns again, from the checkpoint")
    wait_until(lambda: len(cluster.commits(deployment, "power")) > committed)


def test_pause_and_resume_reach_the_owner(cluster: Cluster) -> None:
    deployment = cluster.deployed("power", "edge-a")
    wait_until(lambda: cluster.owns(deployment, "power", "edge-a"))
    for paused in (True, False):
        GroupPlacement.objects.filter(deployment=deployment).update(
            paused_at=timezone.now() if paused else None
        )

        def reported(paused: bool = paused) -> bool:
            status = cluster.status(deployment, "power", "edge-a")
            return status is not None and status.paused is paused

        wait_until(reported, f"paused is {paused}")


def test_a_killed_node_comes_back_from_its_disk_without_losing_anything(cluster: Cluster) -> None:
    deployment = cluster.deployed("power", "edge-a")
    wait_until(lambda: cluster.owns(deployment, "power", "edge-a"))
    run = Node.objects.get(name="edge-a").run_id
    assert cluster.end_node("edge-a", signal.SIGKILL) == -signal.SIGKILL
    committed = len(cluster.commits(deployment, "power"))
    cluster.start_node("edge-a")
    wait_until(lambda: Node.objects.get(name="edge-a").run_id != run, "a new run reports")
    wait_until(lambda: len(cluster.commits(deployment, "power")) > committed, "it goes on")
    assert {node for _, node in each_seq_was_committed_in_epoch_order(cluster, deployment)} == {"edge-a"}


def are_sent_what_is_wanted(cluster: Cluster) -> None:
    """All nodes for which the tests' clusters have no reason to wait: edge-a gets something new, twice, so
    that control has thought of edge-b at least once since this was called."""
    for _ in range(2):
        seen = Node.objects.get(name="edge-a").revision_seen
        cluster.deployed(f"other-{seen}", "edge-a")
        wait_until(lambda s=seen: Node.objects.get(name="edge-a").revision_seen > s, "edge-a is told")


def test_a_node_that_is_away_is_sent_nothing_until_it_is_back(
    manual_cluster: Cluster, redis_url: str
) -> None:
    cluster = manual_cluster
    queue = tasks.node_queue("edge-b")
    cluster.signal_node("edge-b", signal.SIGSTOP)
    deployment = cluster.deployed("power", "edge-b")
    with redis.Redis.from_url(redis_url) as client:
        wait_until(lambda: client.llen(queue), "it does not count as away yet")
        cluster.end_node("edge-b", signal.SIGKILL)
        cluster.falls_silent("edge-b")
        wait_until(lambda: not client.llen(queue), "what waited for it is deleted")
        GroupPlacement.objects.filter(deployment=deployment).update(paused_at=timezone.now())
        are_sent_what_is_wanted(cluster)
        node = Node.objects.get(name="edge-b")
        assert node.revision_wanted > node.revision_seen
        assert client.llen(queue) == 0
    GroupPlacement.objects.filter(deployment=deployment).update(paused_at=None)
    cluster.start_node("edge-b")
    wait_until(lambda: Node.objects.get(name="edge-b").up, "it is back")
    wait_until(lambda: cluster.owns(deployment, "power", "edge-b"), "it is told")


def test_what_is_not_read_yet_is_not_sent_again(cluster: Cluster, redis_url: str) -> None:
    # A node that hangs, and counts as up still.
    cluster.signal_node("edge-b", signal.SIGSTOP)
    cluster.deployed("power", "edge-b")
    with redis.Redis.from_url(redis_url) as client:
        queue = tasks.node_queue("edge-b")
        wait_until(lambda: client.llen(queue), "it is sent")  # the first may go to the socket of what hangs
        are_sent_what_is_wanted(cluster)
        before, waiting = Node.objects.get(name="edge-b"), client.llen(queue)
        are_sent_what_is_wanted(cluster)
        node = Node.objects.get(name="edge-b")
        assert node.up
        assert node.revision_wanted > node.revision_seen
        # What was wanted before may have been on its way into the queue then.
        assert client.llen(queue) - waiting <= node.revision_wanted - before.revision_wanted + 1
    cluster.signal_node("edge-b", signal.SIGCONT)


def test_sigterm_says_goodbye(cluster: Cluster) -> None:
    deployment = cluster.deployed("power", "edge-a")
    wait_until(lambda: cluster.owns(deployment, "power", "edge-a"))
    assert cluster.end_node("edge-a") == 0
    wait_until(lambda: Event.objects.filter(kind="node.stopped", node="edge-a").exists())
    status = cluster.status(deployment, "power", "edge-a")
    assert status is not None
    assert status.role is Role.STOPPED


def test_undesired_groups_are_stopped(cluster: Cluster) -> None:
    deployment = cluster.deployed("power", "edge-a")
    wait_until(lambda: cluster.owns(deployment, "power", "edge-a"))
    Deployment.objects.filter(pk=deployment.pk).update(status=Deployment.Status.UNDEPLOYED)

    another = cluster.deployed("another", "edge-a")

    def idle() -> bool:
        before = cluster.commits(deployment, "power")
        committed = len(cluster.commits(another, "another"))
        wait_until(lambda: len(cluster.commits(another, "another")) > committed + 3, "others go on")
        return cluster.commits(deployment, "power") == before

    wait_until(lambda: not Replica.objects.filter(deployment=deployment).exists(), "no rows are left")
    wait_until(idle, "it commits nothing any more")
