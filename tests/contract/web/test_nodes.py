"""Enrolment, cordon, drain, removal."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.utils import timezone

from tests.contract.web.conftest import Caller
from tests.contract.web.test_permissions import assert_problem
from webapp.accounts.tokens import hash_secret
from webapp.audit.models import AuditRecord
from webapp.audit.records import record_event
from webapp.handovers.models import Handover
from webapp.nodes.models import EnrolmentToken, Node
from webapp.placements.models import Deployment, ExtraReplica

Call = Callable[[str | None], Caller]
Commands = Callable[[], list[tuple[str, list[Any]]]]


@pytest.fixture
def invitation(caller: Call) -> dict[str, Any]:
    response = caller("admin").post("/nodes", {"name": "fog-1"})
    assert response.status_code == 201
    found: dict[str, Any] = response.json()
    return found


def join(caller: Call, token: str, **changes: Any) -> Any:
    machine = {
        "name": "fog-1",
        "version": django_settings.FOGLINE_VERSION,
        "cores": 4,
        "url": "http://10.0.0.7:18110",
        **changes,
    }
    return caller(None).post("/nodes/enrol", machine, Authorization=f"Bearer {token}")


def test_a_machine_joins_with_its_token_exactly_once(caller: Call, invitation: dict[str, Any]) -> None:
    assert invitation["token"] in invitation["command"]
    assert "--name fog-1" in invitation["command"]
    assert invitation["version"] == django_settings.FOGLINE_VERSION
    response = join(caller, invitation["token"])
    assert response.status_code == 200
    answer = response.json()
    node = Node.objects.get(name="fog-1")
    assert (node.url, node.cores, node.up) == ("http://10.0.0.7:18110", 4, False)
    assert {"kafka", "redis_url", "cluster_key", "central_url"} <= set(answer)
    problem = assert_problem(join(caller, invitation["token"]), 401)
    assert "used already" in problem["detail"]
    audits = AuditRecord.objects.filter(target="fog-1").values_list("action", flat=True)
    assert set(audits) == {"node.invite", "node.enrol"}


def test_the_token_may_come_in_the_body(caller: Call, invitation: dict[str, Any]) -> None:
    machine = {"name": "fog-1", "version": django_settings.FOGLINE_VERSION, "cores": 1, "url": "http://x:1"}
    assert caller(None).post("/nodes/enrol", {**machine, "token": invitation["token"]}).status_code == 200


def test_who_adds_a_machine_is_told_what_it_could_not_reach(invitation: dict[str, Any]) -> None:
    assert [words.split()[0] for words in invitation["warnings"]] == ["Kafka", "Redis"]


def test_the_token_is_kept_only_as_its_hash(invitation: dict[str, Any]) -> None:
    assert EnrolmentToken.objects.get().hash == hash_secret(invitation["token"])
    assert invitation["token"] not in str(EnrolmentToken.objects.values().get())
    assert invitation["token"] not in str(list(AuditRecord.objects.values()))


def test_a_machine_of_another_version_or_name_is_told_so_and_may_try_again(
    caller: Call, invitation: dict[str, Any]
) -> None:
    problem = assert_problem(join(caller, invitation["token"], version="0.0.9"), 409)
    assert "0.0.9" in problem["detail"]
    assert problem["version"] == django_settings.FOGLINE_VERSION
    assert_problem(join(caller, invitation["token"], name="other"), 409)
    assert not Node.objects.exists()
    assert join(caller, invitation["token"]).status_code == 200


def test_a_token_that_has_expired_or_was_revoked_admits_nobody(
    caller: Call, invitation: dict[str, Any]
) -> None:
    EnrolmentToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert "expired" in assert_problem(join(caller, invitation["token"]), 401)["detail"]
    second = caller("admin").post("/nodes", {"name": "fog-1"}).json()
    assert caller("admin").delete("/nodes/fog-1").status_code == 204
    assert "revoked" in assert_problem(join(caller, second["token"]), 401)["detail"]
    for wrong in ("x", ""):
        assert_problem(join(caller, wrong), 401)
    assert not Node.objects.exists()


@pytest.mark.usefixtures("nodes")
def test_where_a_node_stands_is_said_and_taken_back(caller: Call) -> None:
    operator = caller("operator")
    assert operator.get("/nodes/edge-a").json()["site"] == ""
    assert operator.call("PATCH", "/nodes/edge-a", {"site": "  Hall  1 "}).json()["site"] == "Hall 1"
    assert operator.call("PATCH", "/nodes/edge-a", {"site": "Hall 1"}).json()["site"] == "Hall 1"
    problem = assert_problem(operator.call("PATCH", "/nodes/edge-a", {"site": "<hall>"}), 422)
    assert "is not a name for a site" in problem["detail"]
    assert operator.get("/nodes/edge-a").json()["site"] == "Hall 1"
    assert operator.call("PATCH", "/nodes/edge-a", {"site": ""}).json()["site"] == ""
    found = AuditRecord.objects.filter(action="node.site").order_by("pk").values_list("detail", flat=True)
    assert [(detail["before"], detail["site"]) for detail in found] == [("", "Hall 1"), ("Hall 1", "")]


@pytest.mark.usefixtures("nodes")
def test_cordon_and_drain(caller: Call, commands: Commands) -> None:
    operator = caller("operator")
    assert operator.post("/nodes/edge-a/cordon").json()["cordoned"] is True
    assert operator.post("/nodes/edge-a/cordon").json()["cordoned"] is True
    assert AuditRecord.objects.filter(action="node.cordon").count() == 1
    assert operator.post("/nodes/edge-a/uncordon").json()["cordoned"] is False
    assert commands() == []
    assert operator.post("/nodes/edge-a/drain").status_code == 202
    assert commands() == [("fogline.control.look", [])]
    node = operator.get("/nodes/edge-a").json()
    assert (node["cordoned"], node["draining"], node["drain_blocked"]) == (True, True, None)
    Node.objects.filter(name="edge-a").update(drain_blocked="power: it waits.")
    assert operator.get("/nodes/edge-a").json()["drain_blocked"] == "power: it waits."
    assert operator.post("/nodes/edge-a/drain").json()["drain_blocked"] is None
    node = operator.post("/nodes/edge-a/uncordon").json()
    assert (node["cordoned"], node["draining"], node["draining_since"]) == (False, False, None)
    assert AuditRecord.objects.get(action="node.uncordon", detail={"drain": "cancelled"}).target == "edge-a"
    Node.objects.exclude(name="edge-b").update(up=False)
    assert_problem(operator.post("/nodes/edge-b/drain"), 409)


def test_a_node_that_is_to_run_something_is_not_removed(caller: Call, deployment: Deployment) -> None:
    admin = caller("admin")
    problem = assert_problem(admin.delete("/nodes/cloud"), 409)
    assert "power of machine-power" in problem["detail"]
    offered = admin.get("/nodes/cloud").json()["remove"]
    assert not offered["allowed"]
    assert offered["reason"] in f"{problem['detail']} {problem['next']}", (
        "the button gives the reason that the server would"
    )
    deployment.status = "undeployed"
    deployment.save()
    assert admin.get("/nodes/cloud").json()["remove"]["allowed"]
    assert admin.delete("/nodes/cloud").status_code == 204
    assert not Node.objects.filter(name="cloud").exists()


def test_a_node_that_something_moves_to_is_not_removed(caller: Call, deployment: Deployment) -> None:
    Node.objects.create(name="spare", up=True)
    moving = Handover.objects.create(
        deployment=deployment,
        group="power",
        element="power",
        kind="migration",
        strategy="standby",
        origin="cloud",
        target="spare",
        begun={"start": "warm", "bytes": None, "had": False},
    )
    admin = caller("admin")
    assert "is being moved" in assert_problem(admin.delete("/nodes/spare"), 409)["detail"]
    moving.outcome = "cancelled"
    moving.save()
    assert admin.delete("/nodes/spare").status_code == 204


def test_a_node_that_keeps_the_newest_state_is_not_removed(caller: Call, deployment: Deployment) -> None:
    spare = Node.objects.create(name="spare", up=True)
    # As a stop-and-copy leaves its origin when the target does not come to own.
    copy = ExtraReplica.objects.create(
        deployment=deployment, group="power", node=spare, role="stopped", handover="failed"
    )
    admin = caller("admin")
    offered = admin.get("/nodes/spare").json()["remove"]
    problem = assert_problem(admin.delete("/nodes/spare"), 409)
    assert "keeps the state of power of machine-power" in problem["detail"]
    assert offered["reason"] in f"{problem['detail']} {problem['next']}"
    copy.role = "standby"
    copy.save()
    assert admin.delete("/nodes/spare").status_code == 204


def test_a_node_shows_its_load_and_what_it_runs(caller: Call, deployment: Deployment) -> None:
    node = caller("viewer").get("/nodes/edge-b").json()
    assert node["up"]
    assert node["load"]["cpu_ratio"] == 0.25
    assert [(item["element"], item["role"]) for item in node["elements"]] == [
        ("variation", "owner"),
        ("alerts", "owner"),
    ]


def test_what_a_node_says_is_wrong_is_shown_while_it_says_so(caller: Call, deployment: Deployment) -> None:
    alert = {"message": "Checkpoints do not reach cloud.", "since": timezone.now().isoformat()}
    viewer = caller("viewer")
    for number in range(30):
        record_event("element.dead_letters", f"{number}", severity="warning")
    assert viewer.get("/overview").json()["attention"] == [], "what happened once is in the events"
    Node.objects.filter(name="edge-b").update(alerts=[alert])
    assert viewer.get("/nodes/edge-b").json()["alerts"] == [alert]
    [line] = viewer.get("/overview").json()["attention"]
    assert (line["message"], line["at"]) == (f"edge-b: {alert['message']}", alert["since"])
    assert (line["node"], line["severity"]) == ("edge-b", "warning")


def test_histories_are_read_from_redis_oldest_first(
    caller: Call, deployment: Deployment, real_redis: Any
) -> None:
    for t in (1000, 3000):
        real_redis.rpush("fogline:history:node:cloud", json.dumps({"t": t, "cpu_ratio": 0.5}))
        real_redis.rpush(
            f"fogline:history:element:{deployment.pk}.power", json.dumps({"t": t, "lag_rows": 3})
        )
    viewer = caller("viewer")
    assert [point["t"] for point in viewer.get("/nodes/cloud/history").json()["points"]] == [1000, 3000]
    history = viewer.get("/pipelines/machine-power/elements/power/history").json()
    assert history["points"][0] == {"t": 1000, "lag_rows": 3}
