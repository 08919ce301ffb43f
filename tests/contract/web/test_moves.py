"""Tests what the web shows of moves: the forecast before, the figures after, and the draft, which follows a
move.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.contract.web.conftest import PIPELINE, Caller, report
from webapp.accounts.models import User
from webapp.audit.models import AuditRecord
from webapp.handovers.following import draft_follows
from webapp.handovers.models import Handover
from webapp.nodes.models import Node
from webapp.pipelines.models import Pipeline
from webapp.placements.models import Deployment, GroupPlacement, Replica

P = f"/pipelines/{PIPELINE}"
E = f"{P}/elements/power"
Call = Callable[[str | None], Caller]
MEASURED = {
    "last_commit_at_ms": 10_050,
    "first_commit_at_ms": 10_400,
    "first_wait_ms": 11_600,
    "usual_wait_ms": 100,
}


def moved(deployment: Deployment, group: str, origin: str, target: str, **fields: Any) -> Handover:
    """A live migration that is done, as control leaves it."""
    node = Node.objects.get(name=target)
    GroupPlacement.objects.filter(deployment=deployment, group=group).update(node=node)
    Replica.objects.filter(deployment=deployment, group=group).delete()
    report(deployment, group, node)
    return Handover.objects.create(
        deployment=deployment,
        group=group,
        element=group,
        kind="migration",
        strategy="standby",
        origin=origin,
        target=target,
        outcome="done",
        ended_at=timezone.now(),
        **({"begun": {"start": "warm", "bytes": None, "had": False}} | fields),
    )


def pins(pipeline: Pipeline) -> dict[str, str]:
    pipeline.refresh_from_db()
    return {item["id"]: item["node"] for item in pipeline.draft["spec"]["elements"] if "node" in item}


def test_a_handover_tells_its_pause_and_what_it_was_computed_from(
    caller: Call, deployment: Deployment
) -> None:
    handover = moved(deployment, "power", "cloud", "edge-b", gap_ms=350, measured=MEASURED)
    shown = caller("viewer").get(f"/handovers/{handover.pk}").json()
    expected = {"ms": 250, "at_most": False, "gap_ms": 350, "waited_ms": 350, "usual_ms": 100}
    assert shown["pause"] == expected
    assert (shown["gap_ms"], shown["measured"]) == (350, MEASURED)
    Handover.objects.update(measured={})  # it was not measured
    assert caller("viewer").get(f"/handovers/{handover.pk}").json()["pause"] is None


def test_a_handovers_page_has_the_batches_and_how_former_moves_went(
    caller: Call, deployment: Deployment
) -> None:
    former = [
        moved(
            deployment,
            "power",
            "cloud",
            "edge-b",
            bytes_copied=n,
            measured=MEASURED | {"first_wait_ms": 100 + n},
        )
        for n in (30, 10, 20)
    ]
    written = {
        "marks": [{"what": "released", "at_ms": 10_050}],
        "batches": [{"at_ms": 10_050, "node": "cloud", "rows": 4, "wait_ms": None}],
    }
    newest = moved(deployment, "power", "edge-b", "cloud", written=written)
    other = moved(deployment, "power", "cloud", "edge-b")
    Handover.objects.filter(pk=other.pk).update(strategy="stop-and-copy", created_at=newest.created_at)
    shown = caller("viewer").get(f"/handovers/{newest.pk}/details").json()
    assert (shown["written"], shown["ready_ms"]) == (written, None)
    assert [move["id"] for move in shown["former"]["moves"]] == [str(row.pk) for row in reversed(former)]
    expected = {"n": 3, "least": 10, "p50": 20, "p95": 30, "most": 30}
    assert shown["former"]["pause_ms"] == shown["former"]["bytes"] == expected
    assert shown["former"]["ready_ms"] is None
    first = caller("viewer").get(f"/handovers/{former[0].pk}/details").json()
    assert first["former"] == {"moves": [], "pause_ms": None, "ready_ms": None, "bytes": None}


def test_what_a_move_will_take_is_told_before_from_what_earlier_ones_took(
    caller: Call, deployment: Deployment, nodes: dict[str, Node]
) -> None:
    viewer = caller("viewer")
    Replica.objects.filter(node=nodes["edge-b"]).delete()  # nothing runs there
    found = viewer.get(f"{E}/forecast").json()["nodes"]
    assert sorted(found) == ["edge-a", "edge-b"]
    assert (found["edge-a"]["start"], found["edge-b"]["start"]) == ("warm", "cold")
    assert found["edge-a"]["standby"]["ready"]["basis"] == "typical"
    assert found["edge-b"]["standby"]["ready"]["ms"] > found["edge-a"]["standby"]["ready"]["ms"]
    assert found["edge-a"]["stop-and-copy"]["ready"] is None

    # one that took 8 s to get ready, and paused for 250 ms
    handover = moved(
        deployment,
        "power",
        "cloud",
        "edge-a",
        measured=MEASURED,
        begun={"start": "warm", "bytes": None, "had": False},
        timeline=[],
    )
    ordered_ms = int(handover.created_at.timestamp() * 1000)
    cut = {"phase": "CUT", "start_ms": ordered_ms + 8_000, "end_ms": None, "bytes": 0, "note": ""}
    Handover.objects.update(timeline=[cut])
    GroupPlacement.objects.filter(group="power").update(node=nodes["cloud"])
    expected = viewer.get(f"{E}/forecast").json()["nodes"]["edge-a"]["standby"]
    assert expected["ready"] == {"ms": 8_000, "least_ms": 8_000, "most_ms": 8_000, "basis": "group", "n": 1}
    assert expected["pause"] == {"ms": 250, "least_ms": 250, "most_ms": 250, "basis": "group", "n": 1}
    # how long its rows waited is not known: nothing is learnt from that
    Handover.objects.update(measured=MEASURED | {"first_wait_ms": None})
    expected = viewer.get(f"{E}/forecast").json()["nodes"]["edge-a"]["standby"]
    assert expected["pause"]["basis"] == "typical"

    # a restoration counts until the target owns, not until it is ordered to
    owns = cut | {"phase": "FINISH", "start_ms": ordered_ms + 2_500}
    Handover.objects.update(
        kind="restoration", strategy="checkpoint", timeline=[cut | {"phase": "CLAIM"}, owns]
    )
    found = viewer.get(f"{E}/forecast").json()["nodes"]["edge-a"]
    assert found["restore"]["checkpoint"] == {
        "ms": 2_500,
        "least_ms": 2_500,
        "most_ms": 2_500,
        "basis": "group",
        "n": 1,
    }
    assert found["standby"]["ready"]["basis"] == "typical"


@pytest.mark.usefixtures("deployment")
def test_an_order_keeps_what_its_target_had(caller: Call, deployment: Deployment) -> None:
    cloud = Node.objects.get(name="cloud")
    where = ("cloud", "edge-b")
    report(deployment, "power", cloud, checkpoint_seq=7, checkpoint_bytes=79_700, checkpoint_where=where)
    shown = caller("operator").post(f"{E}/migrate", {"target": "edge-b"}).json()["handover"]
    assert shown["begun"] == {"start": "warm", "bytes": 79_700, "had": True}


@pytest.mark.usefixtures("deployment")
def test_of_what_does_not_run_nothing_is_foretold(caller: Call) -> None:
    Deployment.objects.update(status="undeployed")
    assert caller("viewer").get(f"{E}/forecast").json() == {"nodes": {}}
    assert caller("viewer").get(f"{P}/elements/nothing/forecast").status_code == 404
    assert caller(None).get(f"{E}/forecast").status_code == 401


def test_the_draft_follows_what_was_moved_from_exactly_where_it_pinned_it(
    caller: Call, deployment: Deployment, pipeline: Pipeline, users: dict[str, User]
) -> None:
    editor = caller("editor")
    before = editor.get(P).json()
    operator = users["operator"]
    handover = moved(deployment, "power", "cloud", "edge-b", created_by=operator)
    (gone,) = editor.get(P).json()["elsewhere"]
    assert (gone["element"], gone["home"], gone["node"]) == ("power", "cloud", "edge-b")
    assert gone["why"] == f"{operator.username} moved it"
    assert draft_follows(handover) == ["power"]
    now = editor.get(P).json()
    assert pins(pipeline)["power"] == "edge-b"
    assert pins(pipeline)["archive"] == "cloud", "another group, which stays"
    assert (now["revision"], now["updated_by"]) == (before["revision"] + 1, operator.username)
    assert (now["differs"], now["elsewhere"]) == (False, []), "nothing is to be deployed"
    [line] = AuditRecord.objects.filter(action="pipeline.follow_move")
    assert (line.username, line.target) == (operator.username, PIPELINE)
    assert line.detail["elements"] == ["power"]

    # who saves over an older revision is told of it, as of any other
    mine = copy.deepcopy(before["document"])
    answer = editor.put(P, {"document": mine}, **{"If-Match": f'"{before["revision"]}"'})
    assert answer.status_code == 409
    assert answer.json()["theirs"] == now["document"]
    # and it is what runs already
    assert "already runs the version" in editor.post(f"{P}/deploy").json()["detail"]

    assert draft_follows(moved(deployment, "power", "edge-b", "cloud", created_by=operator)) == ["power"]
    assert editor.get(P).json()["document"] == before["document"]


def test_a_draft_that_means_another_place_stays_and_the_difference_is_shown(
    caller: Call, deployment: Deployment, pipeline: Pipeline
) -> None:
    other = copy.deepcopy(pipeline.draft)
    next(item for item in other["spec"]["elements"] if item["id"] == "power")["node"] = "edge-a"
    Pipeline.objects.update(draft=other)
    assert draft_follows(moved(deployment, "power", "cloud", "edge-b")) == []
    item = caller("viewer").get(P).json()
    assert (item["revision"], item["document"]) == (pipeline.draft_revision, other)
    assert item["differs"] is False, "deploying moves nothing that runs"
    assert [(each["element"], each["home"]) for each in item["elsewhere"]] == [("power", "edge-a")]
    assert not AuditRecord.objects.filter(action="pipeline.follow_move").exists()


def test_a_group_follows_as_one(caller: Call, deployment: Deployment, pipeline: Pipeline) -> None:
    assert draft_follows(moved(deployment, "watch", "edge-b", "cloud")) == ["variation", "alerts"]
    assert caller("viewer").get(P).json()["elsewhere"] == []


def test_what_is_being_moved_is_not_called_elsewhere(caller: Call, deployment: Deployment) -> None:
    moved(deployment, "power", "cloud", "edge-b")
    Handover.objects.update(outcome=None, ended_at=None, phase="FINISH")
    assert caller("viewer").get(P).json()["elsewhere"] == []


def test_a_drain_says_how_far_it_is(caller: Call, deployment: Deployment, nodes: dict[str, Node]) -> None:
    operator = caller("operator")
    assert operator.get("/nodes/cloud").json()["drain"] is None
    moved(deployment, "power", "edge-a", "cloud")  # before it began
    assert operator.post("/nodes/cloud/drain").json()["drain"] == {"moved": 0, "total": 2, "moving": None}
    going = moved(deployment, "power", "cloud", "edge-b")
    Handover.objects.filter(pk=going.pk).update(outcome=None, ended_at=None)
    drain = operator.get("/nodes/cloud").json()["drain"]
    moving = {"pipeline": PIPELINE, "element": "power", "target": "edge-b"}
    assert drain == {"moved": 0, "total": 2, "moving": moving}
    Handover.objects.filter(pk=going.pk).update(
        outcome="done", ended_at=timezone.now() + timedelta(seconds=1)
    )
    assert operator.get("/nodes/cloud").json()["drain"] == {"moved": 1, "total": 2, "moving": None}
    operator.post("/nodes/cloud/uncordon")
    assert operator.get("/nodes/cloud").json()["drain"] is None
