"""Where the users of elements are, over REST; and what policies that follow them decide by."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from pipeline_runtime.placement.policy.facts import UserAt
from tests.contract.web.conftest import PIPELINE, Caller, audited
from webapp.nodes.links import latencies
from webapp.nodes.models import GivenLatency, Node
from webapp.placements.models import Deployment
from webapp.policies.facts import groups_now, pure, with_latencies
from webapp.policies.models import Policy, UserPlace, UserStay
from webapp.policies.places import (
    AUDITED_EACH,
    CHANGE_EACH,
    STAYS_KEPT,
    TOLD_EACH,
    stays_of,
    with_users,
)

Call = Callable[[str | None], Caller]
E = f"/pipelines/{PIPELINE}/elements/readings"
PLACE = f"{E}/place"
FOLLOW = {"kind": "follow", "pipeline": PIPELINE, "element": "readings", "along": True, "for_s": 60}
APART = {"kind": "apart", "pipeline": PIPELINE, "most": None}


@pytest.fixture(autouse=True)
def halls(deployment: Deployment) -> None:
    Node.objects.filter(name="edge-a").update(site="hall 1")


def told(caller: Call, site: str, role: str = "operator") -> Any:
    return caller(role).put(PLACE, {"site": site})


def passes(time: timedelta) -> None:
    """As if all had been told so much earlier."""
    row = UserPlace.objects.get()
    for field in ("since", "told_at", "audited_at"):
        setattr(row, field, getattr(row, field) - time)
    row.save()


def test_a_place_is_told_and_shown_until_another_one_is(caller: Call) -> None:
    assert caller("viewer").get(E).json()["user"] is None
    place = told(caller, "  hall   1 ").json()
    assert (place["site"], place["told_by"], place["since"]) == ("hall 1", "operator-user", place["told_at"])
    assert caller("viewer").get(E).json()["user"] == {"site": "hall 1", "since": place["since"]}

    assert told(caller, "hall 1").json() == place  # nothing new
    passes(TOLD_EACH)
    again = told(caller, "hall 1").json()
    assert again["told_at"] > place["told_at"]
    assert again["since"] < place["since"]  # as it was, so much earlier

    other = told(caller, "edge-b").json()  # a node without a site is one of its own
    assert (other["site"], other["since"]) == ("edge-b", other["told_at"])
    assert UserPlace.objects.count() == 1


def test_another_place_is_not_taken_at_once(caller: Call) -> None:
    told(caller, "hall 1")
    refused = told(caller, "edge-b")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "2")
    assert refused.json()["retry_after_s"] == 2
    assert UserPlace.objects.get().site == "hall 1"
    passes(CHANGE_EACH)
    assert told(caller, "edge-b").status_code == 200


def test_it_is_audited_once_an_hour_and_when_somebody_else_tells(caller: Call) -> None:
    for site in ("hall 1", "edge-b", "hall 1", "hall 1"):
        assert told(caller, site).status_code == 200
        passes(CHANGE_EACH)
    assert audited("element.place") == 1
    assert told(caller, "edge-b", "admin").status_code == 200
    assert audited("element.place") == 2
    passes(AUDITED_EACH)
    assert told(caller, "hall 1", "admin").status_code == 200
    assert audited("element.place") == 3


@pytest.mark.parametrize(
    ("path", "site", "status"),
    [
        ("readings", "nowhere", 422),
        ("readings", "", 422),
        ("readings", "x" * 41, 422),
        ("nothing", "hall 1", 404),
        ("chart", "hall 1", 409),  # the dashboard itself shows it
    ],
)
def test_what_is_no_place_is_refused(caller: Call, path: str, site: str, status: int) -> None:
    refused = caller("operator").put(f"/pipelines/{PIPELINE}/elements/{path}/place", {"site": site})
    assert refused.status_code == status
    if status == 422:
        assert [fault["path"] for fault in refused.json()["faults"]] == ["site"]
    assert not UserPlace.objects.exists()
    assert audited("element.place") == 0


def test_it_is_forgotten_once(caller: Call) -> None:
    told(caller, "hall 1")
    for _ in range(2):
        assert caller("operator").delete(PLACE).status_code == 204
    assert caller("viewer").get(E).json()["user"] is None
    assert audited("element.place") == 2


def test_where_they_were_is_kept_for_a_day(caller: Call) -> None:
    for site in ("hall 1", "edge-b"):
        told(caller, site)
        passes(CHANGE_EACH)
    caller("operator").delete(PLACE)
    told(caller, "cloud")
    [stays] = [each for each in stays_of(PIPELINE, groups_now()).values() if each]
    assert [stay.user.site for stay in stays] == ["hall 1", "edge-b", "cloud"]
    assert stays[0].until_s <= stays[1].until_s < stays[2].until_s == float("inf")

    UserStay.objects.filter(site="hall 1").update(until=timezone.now() - STAYS_KEPT)
    passes(CHANGE_EACH)
    told(caller, "edge-b")
    assert [stay.site for stay in UserStay.objects.all()] == ["edge-b", "cloud"]


def test_a_site_without_a_node_is_one_if_latencies_to_it_are_given(caller: Call) -> None:
    assert told(caller, "yard").status_code == 422
    GivenLatency.objects.create(origin="yard", target="hall 1", ms=12.0)
    assert told(caller, "yard").status_code == 200
    assert latencies()["yard", "hall 1"] == 12.0


def test_what_is_decided_by(caller: Call, deployment: Deployment) -> None:
    told(caller, "hall 1")
    since_s = UserPlace.objects.get().since.timestamp()

    def read(*rules: dict[str, Any]) -> dict[str, Any]:
        policies = [pure(Policy(name=str(i), rule=rule, mode="advice")) for i, rule in enumerate(rules)]
        groups = groups_now()
        measured = with_latencies(groups, policies, settings.FOGLINE.redis_url)
        return {each.id.partition(".")[2]: each for each in with_users(measured, groups, policies)}

    found = read(FOLLOW)
    assert found["readings"].users == (UserAt("readings", "hall 1", since_s),)
    assert found["power"].users == ()
    assert found["power"].inputs == (f"{deployment.pk}.readings",)
    assert found["power"].pinned
    assert read(FOLLOW | {"along": False})["power"].inputs == ()
    assert read(APART)["readings"].users == ()


def test_policies_are_of_what_is_there(caller: Call) -> None:
    def made(rule: dict[str, Any], name: str = "x") -> Any:
        return caller("operator").post("/policies", {"name": name, "rule": rule})

    for rule, path in (
        (FOLLOW | {"pipeline": "nothing"}, "rule.follow.pipeline"),
        (FOLLOW | {"element": "nothing"}, "rule.follow.element"),
        (FOLLOW | {"for_s": 1801}, "rule.follow.for_s"),
        (APART | {"pipeline": "nothing"}, "rule.apart.pipeline"),
        (APART | {"most": 0}, "rule.apart.most"),
    ):
        refused = made(rule)
        assert refused.status_code == 422
        assert [fault["path"] for fault in refused.json()["faults"]] == [path]
    assert made(FOLLOW, "near").json()["rule"] == FOLLOW
    assert made(APART, "apart").json()["rule"] == APART
    refused = made({"kind": "pack", "threshold": 0.8, "for_s": 60})
    assert refused.status_code == 409
    assert '"apart" already keeps the elements apart' in refused.json()["detail"]
    for rule in (FOLLOW, APART):
        tried = caller("operator").post("/policies/dry-run", {"rule": rule})
        assert (tried.status_code, tried.json()["acts"]) == (200, [])
