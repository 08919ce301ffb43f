"""Changes of what is connected, grouped and there, while control is away: each goes on from its phase."""

from __future__ import annotations

import signal
from datetime import timedelta
from typing import Any

import pytest

from pipeline_runtime.journal.records import ENDED
from tests.chosen import chosen
from tests.integration.workers.cluster import Cluster
from tests.integration.workers.interrupted import (
    RESHAPING,
    has_its_new_shape,
    interrupted,
    reshape,
    reshaping,
    runs,
    stopped_in,
)
from tests.integration.workers.test_deployments import document, ended, undeploy
from tests.waiting import wait_until
from webapp.operations.models import Operation
from webapp.pipelines.models import PipelineVersion
from webapp.placements.models import Deployment, GroupPlacement
from workers.control.operations import driver, effects, limits, reconnecting
from workers.control.operations.model import Fail, Observed, Progress, Step
from workers.control.operations.phases import OperationPhase as P

pytestmark = pytest.mark.integration


def connecting(cluster: Cluster) -> Operation:
    """One comes between the two that run, and begins where the second stops."""
    deployment = runs(cluster)
    content = document("lines")
    params, inputs = {"condition": "value > 0"}, {"in": "numbers"}
    kept = {"id": "kept", "type": "filter", "params": params, "inputs": inputs, "node": "edge-b"}
    numbers, saved = content["spec"]["elements"]
    content["spec"]["elements"] = [numbers, kept, {**saved, "inputs": {"in": "kept"}}]
    before = deployment.version
    deployment.version = PipelineVersion.objects.create(
        pipeline=deployment.pipeline, number=2, document=content
    )
    deployment.save()
    return Operation.objects.create(kind="upgrade", deployment=deployment, replaces=before)


CONNECTING = [P.PLACE, P.TOPICS, P.ORDER, P.OWN, P.START, P.RUN]


@pytest.fixture
def journals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Journals of stand-in nodes: the second element has always read up to 7. test_by_itself has real
    ones."""
    asked: list[str] = []

    def positions(_: object, journal: str) -> dict[str, int]:
        asked.append(journal)
        return {f"{journal.replace('saved.journal', 'numbers.out')}-0": 7}

    monkeypatch.setattr(reconnecting, "read_positions", positions)
    return asked


@pytest.mark.parametrize("phase", chosen(CONNECTING, [P.OWN]))
def test_a_change_of_connections_goes_on_wherever_control_dies(
    cluster: Cluster, topics: list[str], journals: list[str], phase: P
) -> None:
    operation = interrupted(cluster, connecting, phase, away=timedelta(0))
    assert operation.status == "done", operation.message
    deployment = Deployment.objects.get(pk=operation.deployment_id)
    starts = {placement.group: placement.starts for placement in deployment.placements.all()}
    prefix = f"fl.{deployment.pk}"
    assert starts == {
        "numbers": {},
        "kept": {f"{prefix}.numbers.out-0": 7},
        "saved": {f"{prefix}.kept.out-0": 0},
    }
    assert set(journals) == {f"{prefix}.saved.journal"}
    assert deployment.left_over == {}
    [former] = deployment.placements.get(group="saved").former_inputs
    assert former["topic"] == f"{prefix}.numbers.out"
    assert former["until"] is not None


def test_a_node_that_is_cordoned_at_the_last_moment_does_not_change_where_an_element_begins(
    cluster: Cluster, topics: list[str], journals: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ordered, order_owners = list[bool](), effects.order_owners

    def order_at_the_second_try(*given: Any) -> bool:
        left = Deployment.objects.get().left_over["saved"]["spec"]["inputs"]
        assert [stream["source"] for stream in left] == ["numbers.out"], "nobody has taken it over yet"
        ordered.append(bool(ordered) and order_owners(*given))
        return ordered[-1]

    monkeypatch.setattr(effects, "order_owners", order_at_the_second_try)
    operation = ended(connecting(cluster))
    assert operation.status == "done", operation.message
    assert ordered == [False, True]
    placement = GroupPlacement.objects.get(deployment=operation.deployment_id, group="kept")
    assert placement.starts == {f"fl.{operation.deployment_id}.numbers.out-0": 7}


@pytest.mark.parametrize(
    ("phase", "reader"),
    [
        pytest.param(P.ORDER, "saved", marks=pytest.mark.full),
        pytest.param(P.START, "saved", marks=pytest.mark.full),
        (P.RUN, "kept"),
    ],
)
def test_after_a_change_of_connections_that_failed_the_former_version_goes_on_where_it_stopped(
    cluster: Cluster,
    topics: list[str],
    journals: list[str],
    monkeypatch: pytest.MonkeyPatch,
    phase: P,
    reader: str,
) -> None:
    """`reader`: who has read the first element's rows last, or was to."""
    next_step = driver.next_step

    def fails(progress: Progress, seen: Observed, now_ms: int) -> Step:
        fails_now = progress.phase == phase and (phase != P.ORDER or not progress.groups)
        return Fail("No.") if fails_now else next_step(progress, seen, now_ms)

    with monkeypatch.context() as failing:
        failing.setattr(driver, "next_step", fails)
        operation = ended(connecting(cluster))
    assert operation.status == "failed"
    assert "What reads from an element that is missing now waits." in operation.message
    deployment = Deployment.objects.get(pk=operation.deployment_id)
    assert set(deployment.left_over) == {"saved"}
    deployment.version = operation.replaces
    deployment.save()
    operation = ended(Operation.objects.create(kind="upgrade", deployment=deployment))
    assert operation.status == "done", operation.message
    deployment.refresh_from_db()
    assert deployment.left_over == {}
    assert deployment.placements.get(group="saved").starts == {f"fl.{deployment.pk}.numbers.out-0": 7}
    assert (f"fl.{deployment.pk}.kept.journal" in journals) is (reader == "kept")


def regrouping(cluster: Cluster) -> Operation:
    """A source and what reads it are to run as one."""
    content = document("lines")
    params, inputs = {"condition": "value > 0"}, {"in": "numbers"}
    numbers = content["spec"]["elements"][0]
    content["spec"]["elements"] = [
        numbers,
        {"id": "kept", "type": "filter", "params": params, "inputs": inputs},
    ]
    deployment = runs(cluster, content)
    before, groups = deployment.version, [{"id": "both", "elements": ["numbers", "kept"]}]
    deployment.version = PipelineVersion.objects.create(
        pipeline=deployment.pipeline,
        number=2,
        document={**content, "spec": {**content["spec"], "groups": groups}},
    )
    deployment.save()
    return Operation.objects.create(kind="upgrade", deployment=deployment, replaces=before)


REGROUPING = [P.RETIRE, P.STOP, P.READ, P.START]
"""Where it is not what any change of shape does: what goes first, and what goes then."""


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Stand-in nodes: where the source and its reader stand, which reader has read that it has ended, and
    what is after that. The first look for records after that finds some. test_by_itself has real nodes."""
    asked: list[int] = []

    def positions(_: object, journal: str) -> dict[str, Any]:
        stream = ".".join([*journal.split(".")[:2], "numbers", "out-0"])
        stands = {"numbers": {"row": 7, "t0": 1, "shifts": []}}, {stream: 5, ENDED: [stream]}
        return stands[0] if "kept" not in journal else stands[1]

    def unread(_: object, topic: str, offset: int) -> bool:
        assert topic.endswith(".numbers.out")
        asked.append(offset)
        return len(asked) == 1

    class End:
        def __init__(self, *_: object) -> None:
            pass

        def ask(self, *, hidden: bool) -> int:
            assert hidden, "with what is hidden yet"
            return 9

        def close(self) -> None:
            pass

    monkeypatch.setattr(reconnecting, "read_positions", positions)
    monkeypatch.setattr(reconnecting, "has_unread", unread)
    monkeypatch.setattr(reconnecting, "TopicEnd", End)
    return asked


def starts_of(deployment: Deployment) -> dict[str, Any]:
    deployment.refresh_from_db()
    assert deployment.left_over == {}
    assert deployment.removed == [], "no element is gone"
    return {placement.group: placement.starts for placement in deployment.placements.all()}


@pytest.mark.parametrize("phase", chosen(REGROUPING, [P.READ]))
def test_a_regrouping_goes_on_wherever_control_dies(
    cluster: Cluster, topics: list[str], stopped: list[int], phase: P
) -> None:
    operation = interrupted(cluster, regrouping, phase, away=timedelta(0))
    assert operation.status == "done", operation.message
    assert [(step["name"], step["state"]) for step in operation.steps] == [
        ("kept", "done"),
        ("numbers", "done"),
        ("both", "done"),
    ]
    assert "2 of 2 elements were started again. Grouped otherwise: " in operation.message
    assert "did not confirm" not in operation.message
    deployment = operation.deployment
    assert starts_of(deployment) == {"both": {"numbers": {"row": 7, "t0": 1, "shifts": []}}}
    assert deployment.former_groups == ["kept", "numbers"]
    assert deployment.placements.get().node.name == "edge-a", "where its first element was"
    assert stopped[:2] == [5, 5], "it has waited for what was not read"
    for group in ("numbers", "kept", "both"):
        assert {epoch for epoch, _ in cluster.commits(deployment, group)} <= {1}, "ordered once"
    ends = [cluster.commits(deployment, group) for group in ("numbers", "kept")]
    wait_until(lambda: cluster.owns(deployment, "both", "edge-a"), "it runs")
    assert [cluster.commits(deployment, group) for group in ("numbers", "kept")] == ends, "they have ended"


@pytest.mark.parametrize(
    ("phase", "begins"),
    [
        pytest.param(P.READ, {"numbers_2": "numbers", "kept": {}}, marks=pytest.mark.full),
        pytest.param(P.START, {"numbers_2": "numbers", "kept_2": 5}, marks=pytest.mark.full),
        (P.RUN, {"numbers_2": "numbers", "kept_2": 9}),
    ],
)
def test_after_a_regrouping_that_failed_the_former_version_goes_on_where_each_stopped(
    cluster: Cluster,
    topics: list[str],
    stopped: list[int],
    monkeypatch: pytest.MonkeyPatch,
    phase: P,
    begins: dict[str, Any],
) -> None:
    next_step = driver.next_step

    def fails(progress: Progress, seen: Observed, now_ms: int) -> Step:
        return Fail("No.") if progress.phase == phase else next_step(progress, seen, now_ms)

    with monkeypatch.context() as failing:
        failing.setattr(driver, "next_step", fails)
        operation = ended(regrouping(cluster))
    assert operation.status == "failed"
    deployment = Deployment.objects.get(pk=operation.deployment_id)
    deployment.version = operation.replaces
    deployment.save()
    operation = ended(Operation.objects.create(kind="upgrade", deployment=deployment))
    assert operation.status == "done", operation.message
    stream = f"fl.{deployment.pk}.numbers.out-0"
    position = {"numbers": {"row": 7, "t0": 1, "shifts": []}}
    expected = {"numbers": position, 5: {stream: 5, ENDED: [stream]}, 9: {stream: 9}}
    assert starts_of(deployment) == {group: expected[at] if at else {} for group, at in begins.items()}
    wait_until(lambda: cluster.owns(deployment, "numbers_2", "edge-a"), "it goes on where it ran")


@pytest.mark.parametrize("phase", chosen(RESHAPING, [P.OWN]))
def test_a_change_of_shape_goes_on_wherever_control_dies(
    cluster: Cluster, topics: list[str], phase: P
) -> None:
    operation = interrupted(cluster, reshaping, phase, away=timedelta(0))
    assert operation.status == "done", operation.message
    assert [(step["name"], step["change"], step["state"]) for step in operation.steps] == [
        ("saved", "removed", "done"),
        ("numbers", "changed", "done"),
        ("kept", "added", "done"),
    ]
    assert operation.message.endswith("1 of 2 elements were started again. Added: kept. Removed: saved.")
    has_its_new_shape(cluster, operation.deployment)
    assert set(topics) == {"create", "delete"}


def test_what_was_removed_and_did_not_end_is_named(
    cluster: Cluster, topics: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HEARD_MS", 500)
    for phase in (P.RETIRE, P.STOP):
        monkeypatch.setitem(limits.LIMIT_MS, phase, 500)
    deployment = runs(cluster)
    cluster.signal_node("edge-b", signal.SIGSTOP)
    operation = ended(reshape(deployment, "edge-a"))
    assert operation.status == "done", operation.message
    assert operation.message.endswith("They stop when their nodes answer: saved.")
    cluster.signal_node("edge-b", signal.SIGCONT)
    wait_until(lambda: cluster.owns(deployment, "kept", "edge-a"), "what came runs")


@pytest.mark.parametrize("phase", chosen([P.RETIRE, P.STOP, P.ORDER, P.RUN], [P.ORDER]))
def test_a_change_of_shape_that_is_undeployed_halfway_leaves_nothing(
    cluster: Cluster, topics: list[str], phase: P
) -> None:
    operation = stopped_in(phase, cluster, reshaping)
    end = undeploy(operation.deployment)
    cluster.start_control()
    assert ended(end).status == "done", end.message
    assert ended(operation).message.startswith("It was undeployed before it was upgraded.")
    assert operation.deployment.status == "undeployed"
    assert "did not confirm" not in end.message
    assert topics[-1] == "delete"
