"""Handovers while control, Redis or the database is away: they go on from the phase where they were."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import OperationalError

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
from webapp.placements.models import Deployment
from workers.control.handovers import driver
from workers.control.handovers.steps import Observed, Progress, Step, Wait
from workers.supervisor.services import Redis

pytestmark = pytest.mark.integration

AN_HOUR_MS = 3_600_000


def is_told_to_release(cluster: Cluster, handover: Handover) -> None:
    """The order has to reach the node; after that nothing but the journal is used."""
    told = cluster.directory / "nodes" / "edge-a" / "desired.json"
    wait_until(lambda: f'"release":"{handover.pk}"' in told.read_text(), "edge-a is told to release")


def is_done(cluster: Cluster, deployment: Deployment, handover: Handover) -> None:
    wait_until(lambda: ended(handover), "the handover ends")
    assert handover.outcome == "done", handover.message
    wait_until(lambda: cluster.owns(deployment, "power", "edge-b"), "edge-b owns")
    commits = each_seq_was_committed_in_epoch_order(cluster, deployment)
    assert set(commits) == {(1, "edge-a"), (2, "edge-b")}


@pytest.mark.parametrize(
    ("phase", "mark"),
    [
        pytest.param("WARM", "power.never-arms-on-edge-b", marks=pytest.mark.full),
        ("CUT", "power.never-releases"),
    ],
)
def test_a_handover_goes_on_after_control_was_restarted(cluster: Cluster, phase: str, mark: str) -> None:
    deployment = owned(cluster)
    held = cluster.mark(mark)
    handover = ordered(deployment, "standby", "edge-a", "edge-b")
    reaches(handover, phase)
    cluster.stop_control()
    held.unlink()
    cluster.start_control()
    is_done(cluster, deployment, handover)


@pytest.mark.parametrize(
    ("strategy", "phase"),
    [
        pytest.param("standby", "PREPARE", marks=pytest.mark.full),
        pytest.param("standby", "FINISH", marks=pytest.mark.full),
        pytest.param("stop-and-copy", "STOP", marks=pytest.mark.full),
        pytest.param("stop-and-copy", "COPY", marks=pytest.mark.full),
        pytest.param("stop-and-copy", "CLAIM", marks=pytest.mark.full),
        pytest.param("checkpoint", "COPY", marks=pytest.mark.full),
        ("checkpoint", "CLAIM"),
    ],
)
def test_control_is_away_for_an_hour_before_it_sees_what_a_phase_has_come_to(
    cluster: Cluster, strategy: str, phase: str
) -> None:
    deployment = owned(cluster)
    wait_until(lambda: cluster.replicated(deployment, "power", "edge-a"), "it is replicated")
    next_step = driver.next_step

    def sees_nothing(progress: Progress, seen: Observed) -> Step:
        return Wait() if progress.phase == phase else next_step(progress, seen)

    with pytest.MonkeyPatch.context() as held:
        held.setattr(driver, "next_step", sees_nothing)
        handover = ordered(deployment, strategy, "edge-a", "edge-b")
        reaches(handover, phase)
        cluster.stop_control()
    handover.refresh_from_db()
    handover.timeline[-1]["start_ms"] -= AN_HOUR_MS
    handover.save()
    cluster.start_control()
    is_done(cluster, deployment, handover)
    assert len(set(phases(handover))) == len(handover.timeline), "no phase was entered twice"


def test_control_is_not_needed_between_the_release_and_the_takeover(cluster: Cluster) -> None:
    deployment = owned(cluster)
    held = cluster.mark("power.never-releases")
    handover = ordered(deployment, "standby", "edge-a", "edge-b")
    reaches(handover, "CUT")
    is_told_to_release(cluster, handover)
    cluster.stop_control()
    held.unlink()
    wait_until(lambda: (2, "edge-b") in cluster.commits(deployment, "power"), "edge-b owns without control")
    cluster.start_control()
    is_done(cluster, deployment, handover)


@pytest.mark.parametrize(
    ("phase", "mark"),
    [
        pytest.param("WARM", "power.never-arms-on-edge-b", marks=pytest.mark.full),
        ("CUT", "power.never-releases"),
    ],
)
def test_a_handover_goes_on_after_redis_was_away(
    cluster_on_own_redis: Cluster, own_redis: Redis, phase: str, mark: str
) -> None:
    cluster = cluster_on_own_redis
    deployment = owned(cluster)
    held = cluster.mark(mark)
    handover = ordered(deployment, "standby", "edge-a", "edge-b")
    reaches(handover, phase)
    if phase == "CUT":
        is_told_to_release(cluster, handover)
    own_redis.stop()
    held.unlink()
    if phase == "CUT":
        wait_until(lambda: (2, "edge-b") in cluster.commits(deployment, "power"), "edge-b owns without Redis")
    else:
        committed = len(cluster.commits(deployment, "power"))
        wait_until(lambda: len(cluster.commits(deployment, "power")) > committed + 3, "it goes on")
    own_redis.start()
    is_done(cluster, deployment, handover)


@pytest.mark.parametrize(
    ("strategy", "entered"),
    [
        ("standby", ["PREPARE", "WARM", "CUT", "FINISH"]),
        pytest.param("stop-and-copy", ["STOP", "COPY", "CLAIM", "FINISH"], marks=pytest.mark.full),
    ],
)
def test_a_handover_goes_on_after_the_database_failed_in_each_step(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, strategy: str, entered: list[str]
) -> None:
    deployment = owned(cluster)
    failed: list[tuple[str, str | None]] = []
    save = Handover.save

    def save_at_the_second_try(handover: Handover, **options: Any) -> None:
        """The first comes to nothing, with all that its transaction has changed already."""
        step = (str(handover.phase), handover.outcome)
        if threading.current_thread().name.startswith("handover ") and step not in failed:
            failed.append(step)
            raise OperationalError("server closed the connection unexpectedly")
        save(handover, **options)

    monkeypatch.setattr(Handover, "save", save_at_the_second_try)
    handover = ordered(deployment, strategy, "edge-a", "edge-b")
    is_done(cluster, deployment, handover)
    assert phases(handover) == entered
    assert failed == [*((phase, None) for phase in entered), ("FINISH", "done")]
