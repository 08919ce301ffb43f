"""Why an element is where it is: as recorded when it came there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from tests.contract.web.conftest import PIPELINE, Caller
from tests.contract.web.test_moves import moved
from tests.contract.web.test_permissions import assert_problem
from webapp.accounts.models import User
from webapp.handovers.draining import drain_reason, leave_reason
from webapp.handovers.models import Handover
from webapp.placements.models import Deployment, GroupPlacement
from webapp.policies.facts import REASON
from webapp.policies.models import Decision

Call = Callable[[str | None], Caller]


def why(caller: Call, element: str = "power") -> dict[str, Any]:
    response = caller("viewer").get(f"/pipelines/{PIPELINE}/elements/{element}/why")
    assert response.status_code == 200, response.content
    found: dict[str, Any] = response.json()
    return found


def moved_by(deployment: Deployment, **fields: Any) -> Handover:
    handover = moved(deployment, "power", "cloud", "edge-b", **fields)
    placement = GroupPlacement.objects.get(deployment=deployment, group="power")
    placement.note_placed(handover=str(handover.pk))
    placement.save()
    return handover


def test_what_was_chosen_says_by_what_and_what_was_placed_before_says_that_it_is_not_known(
    caller: Call, deployment: Deployment
) -> None:
    found = why(caller)
    assert (found["node"], found["at"], found["handover"]) == ("cloud", None, None)
    assert "earlier version" in found["sentence"]
    placement = GroupPlacement.objects.get(group="watch")
    placement.note_placed(why="it had the fewest elements (none) of the 3 nodes that could take it")
    placement.save()
    for element in ("variation", "alerts"):
        found = why(caller, element)
        assert found["sentence"] == (
            "Placed on edge-b when it was deployed: it had the fewest elements (none) of the 3 nodes that "
            "could take it."
        )
        assert placement.placed_at is not None
        assert found["at"] == placement.placed_at.isoformat()


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        (drain_reason("cloud"), "Moved here from cloud when that was drained."),
        (leave_reason("cloud"), "Moved here from cloud when that was told to stop."),
        ("", "Moved here from cloud by a user who was removed since."),
    ],
)
def test_what_was_moved_by_itself_says_for_what(
    caller: Call, deployment: Deployment, reason: str, sentence: str
) -> None:
    handover = moved_by(deployment, reason=reason)
    found = why(caller)
    assert (found["sentence"], found["handover"], found["node"]) == (sentence, str(handover.pk), "edge-b")


def test_who_has_moved_it_is_named_and_what_a_policy_has_found(
    caller: Call, deployment: Deployment, users: dict[str, User]
) -> None:
    moved_by(deployment, created_by=users["operator"])
    assert why(caller)["sentence"] == "Moved here from cloud by operator-user."
    Handover.objects.all().delete()
    assert why(caller)["sentence"] == "It was moved there; of that move nothing is kept."
    handover = moved_by(deployment, reason=f"{REASON}busy")
    Decision.objects.create(
        at=timezone.now(), policy="busy", node="cloud", code="move", why="It was hot.", handover=handover.pk
    )
    found = why(caller)
    assert (found["sentence"], found["policy"]) == (
        "Moved here from cloud by the policy busy: It was hot.",
        "busy",
    )


def test_a_restoration_says_after_what(caller: Call, deployment: Deployment, users: dict[str, User]) -> None:
    handover = moved_by(deployment, reason="automatically, 5.2 s after cloud fell silent")
    Handover.objects.update(kind="restoration", strategy="checkpoint")
    assert why(caller)["sentence"] == (
        "Restored on edge-b, from cloud, automatically, 5.2 s after cloud fell silent."
    )
    Handover.objects.filter(pk=handover.pk).update(reason="", created_by=users["operator"])
    assert why(caller)["sentence"] == "Restored on edge-b, from cloud, by operator-user."


def test_what_has_no_node_says_so_and_what_is_not_there_is_missing(
    caller: Call, deployment: Deployment
) -> None:
    assert "The dashboard" in why(caller, "chart")["sentence"]
    assert_problem(caller("viewer").get(f"/pipelines/{PIPELINE}/elements/nothing/why"), 404)
    assert_problem(caller("viewer").get("/pipelines/nothing/elements/power/why"), 404)
    assert_problem(caller(None).get(f"/pipelines/{PIPELINE}/elements/power/why"), 401)
    Deployment.objects.update(status="undeployed")
    found = why(caller)
    assert (found["node"], found["sentence"]) == (None, "It is not deployed.")
