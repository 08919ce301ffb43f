"""A node that is told to stop hands over what it owns, and ends by itself; nothing is committed twice."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.integration.workers.cluster import (
    Cluster,
    each_seq_was_committed_in_epoch_order,
    owned,
)
from tests.integration.workers.conftest import NEVER_S, Running
from tests.waiting import wait_until
from webapp.audit.models import Event
from webapp.handovers.models import Handover
from webapp.nodes.models import Node
from webapp.pipelines.models import Pipeline, PipelineVersion
from webapp.placements.models import Deployment, GroupPlacement

pytestmark = pytest.mark.integration


@pytest.fixture
def patient(running: Running, redis_url: str) -> Iterator[Cluster]:
    """Its nodes wait for as long as it takes."""
    with running(redis_url, leave_s=NEVER_S) as started:
        yield started


def told(kind: str, node: str = "edge-a") -> list[str]:
    return list(Event.objects.filter(kind=kind, node=node).values_list("message", flat=True))


def is_leaving(node: str = "edge-a") -> bool:
    return Node.objects.filter(name=node, leaving_since__isnull=False).exists()


def is_standby(cluster: Cluster, deployment: Deployment, node: str) -> bool:
    status = cluster.status(deployment, "power", node)
    return status is not None and status.role == "standby"


def owners(deployment: Deployment) -> set[str]:
    return set(deployment.placements.values_list("node__name", flat=True))


def test_its_groups_move_it_ends_by_itself_and_takes_work_again(patient: Cluster) -> None:
    deployments = [patient.deployed(group, "edge-a") for group in ("first", "second")]
    for deployment, group in zip(deployments, ("first", "second"), strict=True):
        wait_until(lambda d=deployment, g=group: patient.owns(d, g, "edge-a"), f"edge-a owns {group}")
    pinned = {"spec": {"elements": [{"id": "first", "node": "edge-a"}]}}
    Pipeline.objects.filter(name="p-first").update(draft=pinned)
    PipelineVersion.objects.filter(pipeline__name="p-first").update(document=pinned)

    assert patient.end_node("edge-a") == 0
    wait_until(lambda: told("node.left"), "it has left")
    assert "2 elements were handed over. Nothing is left there" in told("node.left")[0]
    assert len(told("node.leaving")) == 1
    assert (told("node.stopped"), told("node.silent")) == ([], [])
    for deployment, group in zip(deployments, ("first", "second"), strict=True):
        assert owners(deployment) == {"edge-b"}
        committed = len(patient.commits(deployment, group))
        wait_until(lambda d=deployment, g=group, n=committed: len(patient.commits(d, g)) > n, "it goes on")
        commits = patient.commits(deployment, group)
        assert [epoch for epoch, _ in commits] == sorted(epoch for epoch, _ in commits)
        # The new owner claims once more, as epoch 3, if control's order reaches it before the release does.
        assert [node for epoch, node in sorted(set(commits)) if epoch == 1] == ["edge-a"]
        assert {node for epoch, node in commits if epoch > 1} == {"edge-b"}
    assert {(each.outcome, each.reason) for each in Handover.objects.all()} == {
        ("done", "shutdown of edge-a")
    }
    assert Pipeline.objects.get(name="p-first").draft == pinned, "it is for as long as the node is away"
    node = Node.objects.get(name="edge-a")
    assert (node.up, node.takes_new, node.leaving_until) == (False, True, None)

    patient.start_node("edge-a")
    wait_until(lambda: patient.up("edge-a"), "it is back")
    third = patient.deployed("third", "edge-a")
    wait_until(lambda: patient.owns(third, "third", "edge-a"), "it takes work again")


def test_where_nobody_can_take_anything_it_does_not_wait(patient: Cluster) -> None:
    deployment = owned(patient)
    Node.objects.filter(name="edge-b").update(cordoned=True)
    assert patient.end_node("edge-a") == 0
    wait_until(lambda: told("node.left"), "it has left")
    assert (
        "Not handed over: power. Nothing of that runs until edge-a is started again" in told("node.left")[0]
    )
    assert "no node can take it (edge-b is cordoned)" in told("node.drain_waits")[0]
    assert not Handover.objects.exists()
    patient.has_swept(deployment)
    assert owners(deployment) == {"edge-a"}, "a node that was stopped is not restored from"

    committed = len(patient.commits(deployment, "power"))
    patient.start_node("edge-a")
    wait_until(lambda: len(patient.commits(deployment, "power")) > committed, "it goes on where it stood")


def test_when_its_time_is_over_it_ends_with_what_could_not_be_moved(running: Running, redis_url: str) -> None:
    with running(redis_url, leave_s=5.0) as cluster:
        deployment = owned(cluster)
        cluster.mark("power.never-arms-on-edge-b")
        assert cluster.end_node("edge-a") == 0
        wait_until(lambda: told("node.left"), "it has left")
        assert "0 elements were handed over. Not handed over: power." in told("node.left")[0]
        said = (cluster.directory / "edge-a.log").read_text()
        assert "1 element is being handed over, for 5 s at most" in said
        assert "1 element could not be handed over in time" in said
        assert {epoch for epoch, _ in cluster.commits(deployment, "power")} == {1}


def test_a_second_signal_ends_it_at_once(patient: Cluster) -> None:
    deployment = owned(patient)
    patient.mark("power.never-arms-on-edge-b")
    patient.signal_node("edge-a", signal.SIGINT)
    wait_until(is_leaving, "it is leaving")
    wait_until(Handover.objects.exists, "its element is being moved")
    committed = len(patient.commits(deployment, "power"))
    wait_until(lambda: len(patient.commits(deployment, "power")) > committed, "it works meanwhile")
    assert patient.end_node("edge-a", signal.SIGINT) == 0
    wait_until(lambda: told("node.left"), "it has left")
    assert not is_leaving()


def test_control_that_is_started_again_goes_on_with_it(patient: Cluster) -> None:
    deployment = owned(patient)
    patient.signal_node("edge-a", signal.SIGTERM)
    wait_until(Handover.objects.exists, "its element is being moved")
    patient.stop_control()
    patient.start_control()
    assert patient.nodes.pop("edge-a").wait() == 0
    wait_until(lambda: told("node.left"), "it has left")
    assert owners(deployment) == {"edge-b"}
    each_seq_was_committed_in_epoch_order(patient, deployment)


def test_one_that_dies_while_it_is_leaving_is_restored_from(patient: Cluster) -> None:
    deployment = owned(patient)
    wait_until(lambda: patient.replicated(deployment, "power", "edge-a"), "a checkpoint")
    patient.mark("power.never-arms-on-edge-b")
    patient.signal_node("edge-a", signal.SIGTERM)
    wait_until(lambda: is_standby(patient, deployment, "edge-b"), "another node follows")
    patient.end_node("edge-a", signal.SIGKILL)
    patient.falls_silent("edge-a")
    wait_until(lambda: owners(deployment) == {"edge-b"}, "it is restored")
    assert not is_leaving()
    assert GroupPlacement.objects.get().node.name == "edge-b"
    each_seq_was_committed_in_epoch_order(patient, deployment)
