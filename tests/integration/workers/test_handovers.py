"""Live migrations: whoever is killed at whatever step, one node owns and nothing is committed twice."""

from __future__ import annotations

import signal
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from pipeline_runtime.model.desired import Role
from tests.chosen import chosen
from tests.integration.workers.cluster import (
    Cluster,
    each_seq_was_committed_in_epoch_order,
    ended,
    ordered,
    owned,
    phases,
    reaches,
)
from tests.waiting import wait_until
from webapp.handovers.models import Handover
from webapp.handovers.pause import pause_of
from webapp.nodes.models import Node
from webapp.pipelines.models import Pipeline, PipelineVersion
from webapp.placements.models import Deployment, ExtraReplica, GroupPlacement
from workers.control.handovers import steps as handover_steps
from workers.control.handovers.effects import Effects

pytestmark = pytest.mark.integration


def copies() -> list[tuple[str, str, bool]]:
    rows = ExtraReplica.objects.select_related("node").order_by("node__name")
    return [(row.node.name, row.role, row.until is not None) for row in rows]


def draft_pin() -> tuple[str, int]:
    """Where the draft pins the only element, and its revision."""
    pipeline = Pipeline.objects.get()
    return pipeline.draft["spec"]["elements"][0]["node"], pipeline.draft_revision


def test_a_standby_takes_over_and_the_way_back_needs_no_copy(cluster: Cluster) -> None:
    deployment = owned(cluster)
    pinned: dict[str, Any] = {"spec": {"elements": [{"id": "power", "node": "edge-a"}]}}
    Pipeline.objects.update(draft=pinned)
    PipelineVersion.objects.update(document=pinned)
    wait_until(lambda: cluster.replicated(deployment, "power", "edge-a"))
    there = ordered(deployment, "standby", "edge-a", "edge-b")
    wait_until(lambda: ended(there), "the handover ends")
    assert there.outcome == "done", there.message
    assert phases(there) == ["PREPARE", "WARM", "CUT", "FINISH"]
    # None at all when the target is the backup node and has the checkpoint already.
    assert there.bytes_copied == there.timeline[0]["bytes"]
    assert there.timeline[1]["behind"] >= 0
    assert (there.gap_ms is not None, there.round_trips) == (True, 3)
    pause = pause_of(there.measured)
    assert pause is not None
    assert (pause["gap_ms"], pause["usual_ms"], pause["at_most"]) == (there.gap_ms, 50, False)
    assert draft_pin() == ("edge-b", 2), "the draft follows, as a revision of its own"
    placement = GroupPlacement.objects.get(deployment=deployment)
    assert (placement.node.name, placement.order_id, placement.release) == ("edge-b", str(there.pk), "")
    assert copies() == [("edge-a", "standby", True)]

    def follows() -> bool:
        status = cluster.status(deployment, "power", "edge-a")
        return status is not None and status.role is Role.STANDBY

    wait_until(follows, "the origin follows")
    told = cluster.directory / "nodes" / "edge-b" / "desired.json"
    wait_until(lambda: '"followed":true' in told.read_text(), "the owner leaves it time")
    back = ordered(deployment, "standby", "edge-b", "edge-a")
    wait_until(lambda: ended(back), "the way back ends")
    assert back.outcome == "done", back.message
    assert back.bytes_copied == 0
    assert draft_pin() == ("edge-a", 3)
    placement.refresh_from_db()
    assert (placement.node.name, placement.generation) == ("edge-a", 1)
    commits = each_seq_was_committed_in_epoch_order(cluster, deployment)
    assert sorted(set(commits)) == [(1, "edge-a"), (2, "edge-b"), (3, "edge-a")]


def released(cluster: Cluster, deployment: Deployment, handover: Handover) -> bool:
    status = cluster.status(deployment, "power", "edge-a")
    return status is not None and status.released == str(handover.pk)


@pytest.mark.parametrize("strategy", chosen(["standby", "stop-and-copy"], ["standby"]))
def test_a_target_that_is_not_the_backup_node_copies_the_state(
    cluster_of_three: Cluster, strategy: str
) -> None:
    cluster = cluster_of_three
    deployment = owned(cluster)
    target = cluster.without_checkpoint(deployment, "power", "edge-a")
    handover = ordered(deployment, strategy, "edge-a", target)
    wait_until(lambda: ended(handover), "the handover ends")
    assert handover.outcome == "done", handover.message
    assert handover.bytes_copied > 0
    assert handover.bytes_copied in [entry.get("bytes") for entry in handover.timeline]
    commits = each_seq_was_committed_in_epoch_order(cluster, deployment)
    assert set(commits) == {(1, "edge-a"), (2, target)}


def test_a_former_owner_is_a_standby_for_a_while_only(cluster: Cluster) -> None:
    deployment = owned(cluster)
    handover = ordered(deployment, "standby", "edge-a", "edge-b")
    wait_until(lambda: ended(handover))
    assert copies() == [("edge-a", "standby", True)]
    ExtraReplica.objects.update(until=timezone.now() - timedelta(seconds=1))
    wait_until(lambda: not copies(), "it is dropped")

    def stopped() -> bool:
        status = cluster.status(deployment, "power", "edge-a")
        return status is None or status.role is Role.STOPPED

    wait_until(stopped, "its replica has stopped")
    assert cluster.owns(deployment, "power", "edge-b")


def test_a_node_that_restarts_after_a_takeover_owns_on(cluster: Cluster) -> None:
    deployment = owned(cluster)
    handover = ordered(deployment, "standby", "edge-a", "edge-b")
    wait_until(lambda: ended(handover))
    cluster.end_node("edge-b", signal.SIGKILL)
    committed = len(cluster.commits(deployment, "power"))
    cluster.start_node("edge-b")
    wait_until(lambda: len(cluster.commits(deployment, "power")) > committed, "it goes on")
    commits = each_seq_was_committed_in_epoch_order(cluster, deployment)
    assert commits[-1] == (3, "edge-b")


def test_stop_and_copy_moves_the_state_as_well(cluster: Cluster) -> None:
    deployment = owned(cluster)
    for origin, target in (("edge-a", "edge-b"), ("edge-b", "edge-a")):
        handover = ordered(deployment, "stop-and-copy", origin, target)
        wait_until(lambda h=handover: ended(h), "the handover ends")
        assert (handover.outcome, handover.phase) == ("done", "FINISH"), handover.message
        assert phases(handover) == ["STOP", "COPY", "CLAIM", "FINISH"]
        assert handover.gap_ms is not None
        assert GroupPlacement.objects.get(deployment=deployment).node.name == target
        assert copies() == []
    commits = each_seq_was_committed_in_epoch_order(cluster, deployment)
    assert sorted(set(commits)) == [(1, "edge-a"), (2, "edge-b"), (3, "edge-a")]


@pytest.mark.parametrize(
    ("strategy", "epochs"), [("standby", {1}), pytest.param("stop-and-copy", {1, 2}, marks=pytest.mark.full)]
)
def test_a_migration_to_a_node_where_it_cannot_start_leaves_it_with_its_origin(
    cluster: Cluster, strategy: str, epochs: set[int]
) -> None:
    deployment = owned(cluster)
    cluster.mark("power.broken-on-edge-b")
    handover = ordered(deployment, strategy, "edge-a", "edge-b")
    wait_until(lambda: ended(handover), "the handover ends")
    assert handover.outcome == "failed"
    assert "does not start" in handover.message
    assert "runs on edge-a as before" in handover.message
    wait_until(lambda: cluster.owns(deployment, "power", "edge-a"), "edge-a owns")
    commits = each_seq_was_committed_in_epoch_order(cluster, deployment)
    assert set(commits) == {(epoch, "edge-a") for epoch in epochs}


def test_a_standby_that_has_failed_is_made_again_for_a_migration(cluster: Cluster) -> None:
    deployment = owned(cluster)
    broken = cluster.mark("power.broken-on-edge-b")
    ExtraReplica.objects.create(
        deployment=deployment,
        group="power",
        node=Node.objects.get(name="edge-b"),
        role="standby",
        wanted=True,
        generation=2,
    )

    def failed() -> bool:
        status = cluster.status(deployment, "power", "edge-b")
        return status is not None and status.error is not None

    wait_until(failed, "the standby fails")
    broken.unlink()
    handover = ordered(deployment, "standby", "edge-a", "edge-b")
    wait_until(lambda: ended(handover), "the handover ends")
    assert handover.outcome == "done", handover.message
    [kept] = ExtraReplica.objects.select_related("node")
    assert (kept.node.name, kept.wanted, kept.until) == ("edge-a", True, None)


def test_a_cancel_before_the_cut_leaves_the_owner_untouched(cluster: Cluster) -> None:
    deployment = owned(cluster)
    cluster.mark("power.never-arms-on-edge-b")
    handover = ordered(deployment, "standby", "edge-a", "edge-b")
    reaches(handover, "WARM")
    Handover.objects.update(cancel_requested=True)
    wait_until(lambda: ended(handover), "it is cancelled")
    assert (handover.outcome, copies()) == ("cancelled", [])
    committed = len(cluster.commits(deployment, "power"))
    wait_until(lambda: len(cluster.commits(deployment, "power")) > committed)
    assert set(cluster.commits(deployment, "power")) == {(1, "edge-a")}


def test_an_origin_that_dies_in_the_cut_is_fenced_by_its_successor(cluster: Cluster) -> None:
    deployment = owned(cluster)
    cluster.mark("power.never-releases")
    handover = ordered(deployment, "standby", "edge-a", "edge-b")
    reaches(handover, "CUT")
    cluster.signal_node("edge-a", signal.SIGSTOP)
    cluster.falls_silent("edge-a")
    wait_until(lambda: ended(handover), "the handover ends")
    assert handover.outcome == "done", handover.message
    assert phases(handover) == ["PREPARE", "WARM", "CUT", "CLAIM", "FINISH"]
    assert Handover.objects.count() == 1, "no second handover beside it"
    cluster.signal_node("edge-a", signal.SIGCONT)

    def follows() -> bool:
        status = cluster.status(deployment, "power", "edge-a")
        return status is not None and status.role is Role.STANDBY

    wait_until(follows, "the old owner follows")
    commits = each_seq_was_committed_in_epoch_order(cluster, deployment)
    assert set(commits) == {(1, "edge-a"), (2, "edge-b")}


def test_a_target_that_dies_after_the_release_is_claimed_back_from(cluster: Cluster) -> None:
    deployment = owned(cluster)
    held = cluster.mark("power.never-releases")
    handover = ordered(deployment, "standby", "edge-a", "edge-b")
    reaches(handover, "CUT")
    cluster.signal_node("edge-b", signal.SIGSTOP)
    held.unlink()
    wait_until(lambda: released(cluster, deployment, handover), "edge-a has released")
    cluster.falls_silent("edge-b")
    wait_until(lambda: ended(handover), "the handover ends")
    assert handover.outcome == "failed"
    assert "the origin has taken it back" in handover.message
    assert "Nothing is lost" in handover.message
    committed = len(cluster.commits(deployment, "power"))
    wait_until(lambda: len(cluster.commits(deployment, "power")) > committed, "edge-a goes on")
    cluster.signal_node("edge-b", signal.SIGCONT)
    wait_until(lambda: cluster.up("edge-b"))
    commits = each_seq_was_committed_in_epoch_order(cluster, deployment)
    assert set(commits) == {(1, "edge-a"), (3, "edge-a")}


def test_a_cut_that_nobody_carries_out_becomes_a_claim(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover_steps, "CUT_MS_MAX", 1000)
    deployment = owned(cluster)
    cluster.mark("power.never-releases")
    handover = ordered(deployment, "standby", "edge-a", "edge-b")
    wait_until(lambda: ended(handover), "the handover ends")
    assert handover.outcome == "done", handover.message
    assert phases(handover) == ["PREPARE", "WARM", "CUT", "CLAIM", "FINISH"]
    commits = each_seq_was_committed_in_epoch_order(cluster, deployment)
    assert set(commits) == {(1, "edge-a"), (2, "edge-b")}


@pytest.mark.parametrize("status", chosen(["undeploying", "undeployed"], ["undeploying"]))
def test_a_cut_that_nobody_carries_out_ends_when_its_pipeline_is_let_go_of(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    monkeypatch.setattr(handover_steps, "CUT_MS_MAX", 1000)
    deployment = owned(cluster)
    cluster.mark("power.never-releases")
    cluster.mark("power.never-arms-on-edge-b")
    handover = ordered(deployment, "standby", "edge-a", "edge-b")
    reaches(handover, "WARM")
    cluster.stop_control()
    # What `undeploy` leaves of a handover in its cut, which does not give back.
    Handover.objects.update(phase="CUT")
    ExtraReplica.objects.all().delete()
    Deployment.objects.update(status=status)
    cluster.start_control()
    wait_until(lambda: ended(handover), "the handover ends")
    assert handover.outcome == "failed"
    assert "was undeployed" in handover.message
    assert GroupPlacement.objects.get(deployment=deployment).node.name == "edge-a"


def test_a_copy_that_its_origin_does_not_give_comes_from_the_central_store(
    cluster_of_three: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = cluster_of_three
    deployment = owned(cluster)
    target = cluster.without_checkpoint(deployment, "power", "edge-a")
    order_copy = Effects._order_copy

    def from_who_has_none(effects: Effects, role: Role, source: dict[str, object]) -> None:
        order_copy(effects, role, {**source, "url": f"http://127.0.0.1:{cluster.ports[target]}"})

    monkeypatch.setattr(Effects, "_order_copy", from_who_has_none)
    handover = ordered(deployment, "standby", "edge-a", target)
    wait_until(lambda: ended(handover), "the handover ends")
    assert handover.outcome == "done", handover.message
    [prepared] = [entry for entry in handover.timeline if entry["phase"] == "PREPARE"]
    assert "from the central store" in prepared["note"]
    assert handover.bytes_copied > 0
    each_seq_was_committed_in_epoch_order(cluster, deployment)


def test_a_successor_that_restarts_after_the_release_claims(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover_steps, "RELEASED_MS_MAX", 1000)
    deployment = owned(cluster)
    held = cluster.mark("power.never-releases")
    handover = ordered(deployment, "standby", "edge-a", "edge-b")
    reaches(handover, "CUT")
    # Killed, so that it has lost its token when the release comes.
    cluster.end_node("edge-b", signal.SIGKILL)
    held.unlink()
    wait_until(lambda: released(cluster, deployment, handover), "edge-a has released")
    cluster.start_node("edge-b")
    wait_until(lambda: ended(handover), "the handover ends")
    assert handover.outcome == "done", handover.message
    commits = each_seq_was_committed_in_epoch_order(cluster, deployment)
    assert set(commits) == {(1, "edge-a"), (3, "edge-b")}
