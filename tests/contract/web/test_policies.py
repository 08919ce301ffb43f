"""Policies over REST: made, changed, removed; their advice, their log, a dry run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.conf import settings
from django.utils import timezone

from pipeline_runtime.placement.policy.facts import Latency
from pipeline_runtime.wire import keys
from tests.contract.web.conftest import PIPELINE, Caller, audited
from webapp.nodes.links import latencies
from webapp.nodes.models import GivenLatency, Node
from webapp.placements.fleet import Fleet
from webapp.placements.models import Deployment
from webapp.policies.facts import groups_now, pure, with_latencies
from webapp.policies.models import Decision, Policy

Call = Callable[[str | None], Caller]
RULE = {"kind": "cpu", "threshold": 0.8, "for_s": 60}
BUSY: dict[str, Any] = {"name": "busy edge", "rule": RULE}


def made(caller: Call, **changes: Any) -> dict[str, Any]:
    response = caller("operator").post("/policies", BUSY | changes)
    assert response.status_code == 201, response.content
    found: dict[str, Any] = response.json()
    return found


def test_a_policy_advises_unless_it_is_said_otherwise(caller: Call) -> None:
    policy = made(caller)
    assert policy | {"id": 0, "created_at": ""} == {
        **BUSY,
        "id": 0,
        "mode": "advice",
        "moves_per_hour": 6,
        "enabled": True,
        "standing": [],
        "created_by": "operator-user",
        "created_at": "",
    }
    assert caller("viewer").get("/policies").json() == [policy]
    assert caller("viewer").get(f"/policies/{policy['id']}").json() == policy
    assert audited("policy.create") == 1


def test_a_name_is_taken_once(caller: Call) -> None:
    made(caller)
    refused = caller("operator").post("/policies", BUSY | {"name": " busy  edge "})
    assert refused.status_code == 409
    assert audited("policy.create") == 1


def test_a_change_is_made_once_and_ends_what_was_advised(caller: Call) -> None:
    id = made(caller)["id"]
    Policy.objects.update(standing=[advised("x", "power")])
    for _ in range(2):
        changed = caller("operator").call(
            "PATCH", f"/policies/{id}", {"rule": RULE | {"threshold": 0.9}, "mode": "automatic"}
        )
        assert (changed.json()["rule"]["threshold"], changed.json()["mode"]) == (0.9, "automatic")
        assert changed.json()["standing"] == []
    assert audited("policy.change") == 1
    # Fit for a battery alone.
    wrong = caller("operator").call("PATCH", f"/policies/{id}", {"rule": RULE | {"threshold": 0.05}})
    assert wrong.status_code == 422
    assert [fault["path"] for fault in wrong.json()["faults"]] == ["rule.cpu.threshold"]


def test_its_log_outlives_it(caller: Call) -> None:
    id = made(caller)["id"]
    Decision.objects.create(policy="busy edge", node="edge-a", code="not-yet", why="Not yet.")
    Decision.objects.create(policy="other", node="edge-a", code="calm", why="Calm.")
    assert caller("operator").delete(f"/policies/{id}").status_code == 204
    assert caller("operator").delete(f"/policies/{id}").status_code == 404
    [line] = caller("viewer").get("/policies/log?policy=busy%20edge").json()
    assert (line["node"], line["code"], line["why"], line["element"]) == (
        "edge-a",
        "not-yet",
        "Not yet.",
        None,
    )
    assert [each["policy"] for each in caller("viewer").get("/policies/log").json()] == ["other", "busy edge"]
    assert audited("policy.delete") == 1


def advised(deployment: str, element: str) -> dict[str, Any]:
    return {
        "node": "edge-a",
        "code": "move",
        "why": "It is busy.",
        "since": "2026-11-20T12:00:00+00:00",
        "group": f"{deployment}.{element}",
        "pipeline": PIPELINE,
        "element": element,
        "title": f"{element} of {PIPELINE}",
        "target": "edge-b",
    }


def test_advice_needs_attention_and_is_followed_by_a_migration(caller: Call, deployment: Deployment) -> None:
    id = made(caller)["id"]
    Policy.objects.update(standing=[advised(deployment.pk, "power")])

    def lines() -> list[dict[str, Any]]:
        found = caller("viewer").get("/overview").json()["attention"]
        return [line for line in found if line["kind"] == "policy.advice"]

    [line] = lines()
    assert line["message"] == f"busy edge advises to move power of {PIPELINE} to edge-b. It is busy."
    assert (line["pipeline"], line["element"], line["move_to"]) == (PIPELINE, "power", "edge-b")
    path = f"/pipelines/{PIPELINE}/elements/power/migrate"
    assert caller("operator").post(path, {"target": line["move_to"]}).status_code == 202
    caller("operator").call("PATCH", f"/policies/{id}", {"enabled": False})
    assert lines() == []


@pytest.mark.usefixtures("deployment")
def test_a_dry_run_says_what_would_have_moved(caller: Call, real_redis: redis.Redis) -> None:
    now_ms = int(time.time() * 1000)

    def measured(node: str, cpu: float, back_h: float = 0.0) -> None:
        for i in range(20):
            at_ms = now_ms - int(back_h * 3_600_000) - 30_000 * (20 - i)
            real_redis.rpush(keys.node_samples(node), json.dumps({"t": at_ms, "cpu_ratio": cpu}))

    measured("edge-a", 1.0, back_h=25)  # longer ago than a day
    measured("edge-a", 0.9)
    measured("edge-b", 0.9)
    measured("cloud", 0.05)
    body = {"rule": RULE}
    response = caller("operator").post("/policies/dry-run", body)
    assert response.status_code == 200, response.content
    found = response.json()
    assert found["acts"] == []
    assert {held["code"] for held in found["held"]} == {"no-target"}  # each is alone on its busy node

    real_redis.flushall()
    measured("edge-a", 0.1)
    measured("edge-b", 0.6)
    measured("cloud", 0.9)  # power and archive are there
    found = caller("operator").post("/policies/dry-run", body).json()
    assert [(m["element"], m["origin"], m["target"]) for m in found["acts"]] == [
        ("archive", "cloud", "edge-a")
    ]
    assert found["since"] < found["acts"][0]["at"] < found["until"]
    assert not Decision.objects.exists()


def test_a_dry_run_without_samples_says_so(caller: Call) -> None:
    body = {"rule": {"kind": "battery", "threshold": 0.2, "for_s": 0}}
    found = caller("operator").post("/policies/dry-run", body).json()
    assert found == {"since": None, "until": None, "acts": [], "held": []}


WINDOW = {
    "kind": "maintenance",
    "of": "node",
    "name": "edge-a",
    "begins": "2026-11-26T03:00:00+01:00",
    "minutes": 120,
    "weekly": False,
    "lead_minutes": 30,
}


@pytest.mark.usefixtures("deployment")
def test_a_maintenance_window_is_of_a_node_that_is_there(caller: Call) -> None:
    policy = made(caller, name="night", rule=WINDOW)
    assert policy["rule"] == WINDOW | {"begins": "2026-11-26T02:00:00Z"}
    assert made(caller, name="alone", rule=WINDOW | {"of": "site"})  # a node without a site is one of its own
    for wrong, path in (
        ({"name": "nobody"}, "rule.maintenance.name"),
        ({"of": "site", "name": "nowhere"}, "rule.maintenance.name"),
        ({"begins": "2026-11-26T03:00:00"}, "rule.maintenance.begins"),
        ({"begins": "0001-01-01T00:00:00+14:00"}, "rule.maintenance.begins"),
        ({"weekly": True, "minutes": 10080}, "rule.maintenance"),
    ):
        refused = caller("operator").post("/policies", BUSY | {"name": "x", "rule": WINDOW | wrong})
        assert refused.status_code == 422
        assert [fault["path"] for fault in refused.json()["faults"]] == [path]
    path = f"/policies/{policy['id']}"
    refused = caller("operator").call("PATCH", path, {"rule": WINDOW | {"name": "nobody"}})
    assert refused.status_code == 422
    assert "there is no node nobody" in refused.json()["detail"]


@pytest.mark.usefixtures("deployment")
def test_a_window_is_tried_as_if_it_had_been_in_the_last_day(caller: Call, real_redis: redis.Redis) -> None:
    now = timezone.now()
    for node in ("edge-a", "edge-b", "cloud"):
        for i in range(20):
            point = {"t": int(now.timestamp() * 1000) - 30_000 * (20 - i), "cpu_ratio": 0.1}
            real_redis.rpush(keys.node_samples(node), json.dumps(point))
    begins = (now + timedelta(days=2, minutes=-5)).isoformat()
    rule = WINDOW | {"begins": begins, "lead_minutes": 0, "minutes": 4}
    found = caller("operator").post("/policies/dry-run", {"rule": rule}).json()
    assert [(act["element"], act["code"], act["origin"]) for act in found["acts"]] == [
        ("readings", "move", "edge-a")
    ]
    refused = caller("operator").post("/policies/dry-run", {"rule": rule | {"name": "nobody"}})
    assert refused.status_code == 422


def test_a_node_in_maintenance_takes_nothing_new(caller: Call, deployment: Deployment) -> None:
    def move() -> Any:
        path = f"/pipelines/{PIPELINE}/elements/power/migrate"
        return caller("operator").post(path, {"target": "edge-b"})

    ends = timezone.now() + timedelta(hours=1)
    Node.objects.filter(name="edge-b").update(maintenance_until=ends)
    node = caller("viewer").get("/nodes/edge-b").json()
    assert node["maintenance_until"] == ends.isoformat()
    refused = move()
    assert refused.status_code == 409
    assert "edge-b is in maintenance: it takes no new elements" in refused.json()["detail"]
    assert {each.name: each.refusal for each in Fleet().nodes}["edge-b"] == "is in maintenance"
    # Nor does it count as one that could take what leaves another.
    Node.objects.exclude(name__in=["edge-a", "edge-b"]).update(up=False)
    assert "no other node" in caller("operator").post("/nodes/edge-a/drain").json()["detail"]
    Node.objects.update(up=True)
    # By the clock, also while control is away.
    Node.objects.filter(name="edge-b").update(maintenance_until=timezone.now())
    assert caller("viewer").get("/nodes/edge-b").json()["maintenance_until"] is None
    assert move().status_code == 202


LATE = {"kind": "latency", "pipeline": PIPELINE, "element": "power", "ms": 500, "for_s": 60}


def test_a_budget_of_latency_is_of_an_element_that_is_there(caller: Call, deployment: Deployment) -> None:
    assert made(caller, name="late", rule=LATE)["rule"] == LATE
    assert made(caller, name="any", rule=LATE | {"element": ""})
    for wrong, path in (
        ({"pipeline": "nothing"}, "rule.latency.pipeline"),
        ({"element": "nothing"}, "rule.latency.element"),
        ({"ms": 0}, "rule.latency.ms"),
        ({"for_s": 5}, "rule.latency.for_s"),
    ):
        refused = caller("operator").post("/policies", BUSY | {"name": "x", "rule": LATE | wrong})
        assert refused.status_code == 422
        assert [fault["path"] for fault in refused.json()["faults"]] == [path]


def test_what_the_latency_is_decided_by(deployment: Deployment, real_redis: redis.Redis) -> None:
    """Points of its elements as control keeps them; what it reads; how far the sites are."""
    power, archive = f"{deployment.pk}.power", f"{deployment.pk}.archive"
    for t, rows in ((1000, 5.0), (3000, 0.0)):
        point = {"t": t, "rows_in_per_s": rows, "latency_ms_p95": 700.5}
        real_redis.rpush(keys.element_history(deployment.pk, "power"), json.dumps(point))
    groups = groups_now()
    policy = Policy(name="late", rule=LATE, mode="advice")
    found = {each.id: each for each in with_latencies(groups, [pure(policy)], settings.FOGLINE.redis_url)}
    assert found[power].latencies == [Latency(1.0, 700.5), Latency(3.0, None)]  # nothing flowed then
    assert found[archive].latencies == ()
    assert found[archive].inputs == (power,)
    assert found[power].pipeline == PIPELINE
    GivenLatency.objects.create(origin="edge-a", target="cloud", ms=20.0)
    assert latencies()["edge-a", "cloud"] == 20.0


def test_a_budget_of_latency_is_tried_on_the_last_day(
    caller: Call, deployment: Deployment, real_redis: redis.Redis
) -> None:
    now_ms = int(time.time() * 1000)
    GivenLatency.objects.create(origin="edge-a", target="edge-b", ms=10.0)
    GivenLatency.objects.create(origin="edge-a", target="cloud", ms=40.0)
    for i in range(20):
        at = {"t": now_ms - 30_000 * (20 - i)}
        for node in ("edge-a", "edge-b", "cloud"):
            real_redis.rpush(keys.node_samples(node), json.dumps(at | {"cpu_ratio": 0.1}))
        sample = json.dumps(at | {"rows_in_per_s": 5.0, "latency_ms_p95": 700.5})
        real_redis.rpush(keys.group_samples(deployment.pk, "power"), sample)
    found = caller("operator").post("/policies/dry-run", {"rule": LATE}).json()
    assert [(act["element"], act["origin"], act["target"]) for act in found["acts"]] == [
        ("power", "cloud", "edge-a")
    ]


def test_what_spreads_and_what_packs_are_not_on_at_once(caller: Call) -> None:
    spread = made(caller, name="even", rule={"kind": "spread", "difference": 0.4, "for_s": 60})
    pack = {"name": "few", "rule": {"kind": "pack", "threshold": 0.8, "for_s": 60}}
    refused = caller("operator").post("/policies", pack)
    assert refused.status_code == 409
    assert '"even" already spreads the elements' in refused.json()["detail"]
    off = made(caller, **pack, enabled=False)
    path = f"/policies/{off['id']}"
    assert caller("operator").call("PATCH", path, {"enabled": True}).status_code == 409
    assert caller("operator").delete(f"/policies/{spread['id']}").status_code == 204
    assert caller("operator").call("PATCH", path, {"enabled": True}).json()["enabled"] is True
    # Whether it would have acted: it decides by samples of which a day is kept.
    tried = caller("operator").post("/policies/dry-run", {"rule": pack["rule"]})
    assert (tried.status_code, tried.json()["acts"]) == (200, [])
