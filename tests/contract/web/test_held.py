"""Tests a group that is held because it ended the Java process of its nodes: what users see and can do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.contract.web.conftest import PIPELINE, Caller, report
from webapp.nodes.models import Node
from webapp.placements.models import Deployment, GroupPlacement, Replica

E = f"/pipelines/{PIPELINE}/elements/power"
ENDS = [{"node": "cloud", "at_ms": at_ms, "alone": True} for at_ms in (1, 2)]
ERROR = {"message": "power is held: it has ended Java", "safe": "-", "next": "-", "at_ms": 2}


@pytest.fixture
def held(deployment: Deployment, nodes: dict[str, Node]) -> GroupPlacement:
    report(deployment, "power", nodes["cloud"], "stopped")
    replica = Replica.objects.get(deployment=deployment, group="power", node=nodes["cloud"])
    replica.status |= {"phase": "held", "error": ERROR}
    replica.save()
    placement = GroupPlacement.objects.get(deployment=deployment, group="power")
    placement.java_ends = ENDS
    placement.save()
    return placement


def test_its_element_says_why(caller: Callable[[str | None], Caller], held: GroupPlacement) -> None:
    shown = caller("viewer").get(E).json()
    assert shown["status"] == "failed"
    assert "It is held: it has ended Spark's Java process 2 times (on cloud)" in shown["error"]["message"]
    assert shown["replicas"][0]["phase"] == "held"
    assert shown["actions"]["restore"]["allowed"]


@pytest.mark.parametrize(
    "calls", [[("restore", {"target": "edge-b"})], [("pause", None), ("resume", None)]], ids=str
)
def test_restoring_it_or_resuming_it_has_it_started_again(
    calls: list[tuple[str, object]], caller: Callable[[str | None], Caller], held: GroupPlacement
) -> None:
    operator = caller("operator")
    for action, body in calls:
        held.refresh_from_db()
        assert (held.java_ends, held.vouched) == (ENDS, "")
        assert operator.post(f"{E}/{action}", body).status_code in (200, 202)
    held.refresh_from_db()
    assert held.java_ends == []
    assert held.vouched


def test_a_refused_action_releases_nothing(
    caller: Callable[[str | None], Caller], held: GroupPlacement
) -> None:
    assert caller("operator").post(f"{E}/restore", {"target": "cloud"}).status_code == 409
    assert caller("viewer").post(f"{E}/resume").status_code == 403
    assert caller("operator").post(f"{E}/resume").status_code == 200  # it is not paused: nothing is done
    held.refresh_from_db()
    assert held.java_ends == ENDS
