"""Elements: where they run, what they are doing, pause, checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from pipeline_runtime.model.desired import ReplicaError, Stalled, WayOn
from tests.contract.web.conftest import PIPELINE, Caller, audited, report
from tests.contract.web.test_permissions import assert_problem
from webapp.nodes.models import Node
from webapp.pipelines.models import Pipeline
from webapp.placements.models import Deployment, GroupPlacement

P = f"/pipelines/{PIPELINE}"
Call = Callable[[str | None], Caller]
Commands = Callable[[], list[tuple[str, list[Any]]]]

PERCENTILES = tuple(f"{what}_ms_{p}" for what in ("batch", "latency") for p in ("p50", "p95", "p99"))


@pytest.mark.usefixtures("deployment")
def test_an_element_shows_where_it_runs_how_fast_and_what_may_be_done(caller: Call) -> None:
    elements = {item["id"]: item for item in caller("viewer").get(f"{P}/elements").json()}
    power = elements["power"]
    assert (power["status"], power["node"], power["epoch"], power["seq"]) == ("running", "cloud", 1, 7)
    assert (power["rows_in_per_s"], power["rows_in_total"]) == (100.0, 700)
    assert power["actions"]["migrate"]["allowed"]
    owner = {"node": "cloud", "role": "owner", "phase": "owning", "epoch": 1, "seq": 7}
    assert power["replicas"] == [owner | {"behind": 0, "armed": None}]
    assert (power["follow"], power["standby"]) == ("exact", None)
    assert "batch by batch" in power["follow_note"]
    assert power["actions"]["keep_standby"]["allowed"]
    assert not power["actions"]["drop_standby"]["allowed"]
    assert "written again" in power["actions"]["rewind"]["note"]
    assert elements["variation"]["group"] == elements["alerts"]["group"] == "watch"
    assert elements["chart"]["status"] == "view"
    assert not elements["chart"]["actions"]["migrate"]["allowed"]


def test_an_element_of_a_node_that_is_gone_is_silent_and_can_be_restored(
    caller: Call, deployment: Deployment, nodes: dict[str, Node]
) -> None:
    Node.objects.filter(name="cloud").update(up=False)
    power = caller("viewer").get(f"{P}/elements/power").json()
    assert power["status"] == "silent"
    assert not power["actions"]["migrate"]["allowed"]
    assert power["actions"]["restore"]["allowed"]
    assert caller("viewer").get(P).json()["status"] == "attention"
    now = {"rows_in_per_s", "rows_out_per_s", "bytes_out_per_s", "lag_rows", "cost", *PERCENTILES}
    assert {power[figure] for figure in now} == {None}, "what was told last is not what is"
    assert power["rows_in_total"] == 700
    GroupPlacement.objects.filter(group="power").update(backlog_rows=96)
    assert caller("viewer").get(f"{P}/elements/power").json()["lag_rows"] == 96, "control counts meanwhile"


def test_rows_that_wait_are_the_owners_count_also_while_it_is_paused_and_controls_when_it_has_failed(
    caller: Call, deployment: Deployment, nodes: dict[str, Node]
) -> None:
    def lag(**status: Any) -> Any:
        report(deployment, "power", nodes["cloud"], **status)
        return caller("viewer").get(f"{P}/elements/power").json()["lag_rows"]

    GroupPlacement.objects.filter(group="power").update(backlog_rows=96)
    assert lag(lag_rows=50) == 50
    assert lag(lag_rows=51, paused=True) == 51
    broken = ReplicaError(message="It broke.", safe="All.", next="Mend it.")
    assert lag(lag_rows=0, error=broken) == 96


def test_no_total_falls_while_another_node_begins_to_read_the_journal(
    caller: Call, deployment: Deployment, nodes: dict[str, Node]
) -> None:
    Node.objects.filter(name="cloud").update(up=False)
    GroupPlacement.objects.filter(group="power").update(node=nodes["edge-a"])
    starts = report(deployment, "power", nodes["edge-a"], role="standby")
    starts.status |= {"rows_in_total": 3, "rows_out_total": 0}
    starts.save()
    power = caller("viewer").get(f"{P}/elements/power").json()
    assert (power["node"], power["rows_in_total"], power["rows_out_total"]) == ("edge-a", 700, 70)


def test_who_does_not_know_how_many_rows_wait_says_so_and_never_none(
    caller: Call, deployment: Deployment, nodes: dict[str, Node]
) -> None:
    def said(**status: Any) -> tuple[Any, Any]:
        report(deployment, "power", nodes["cloud"], **status)
        power = caller("viewer").get(f"{P}/elements/power").json()
        return power["lag_rows"], power["lag_unknown"]

    assert said(lag_rows=0) == (0, None)
    rows, why = said(lag_rows=None)
    assert rows is None
    assert "does not know yet where" in why
    rows, why = said(lag_rows=0, stalled=Stalled(why="it waits for Kafka", since_ms=1))
    assert rows is None
    assert "control could not ask Kafka" in why
    report(deployment, "power", nodes["cloud"], lag_rows=None)
    metrics = Client().get("/metrics").content.decode()
    assert not [line for line in metrics.splitlines() if "lag_rows{" in line and '"power"' in line]
    GroupPlacement.objects.filter(group="power").update(backlog_rows=0)
    assert said(lag_rows=7, stalled=Stalled(why="it waits for Kafka", since_ms=1)) == (0, None)


def test_an_element_tells_three_percentiles_of_its_latency_and_batch_time(
    caller: Call, deployment: Deployment, nodes: dict[str, Node]
) -> None:
    told = {figure: float(index) for index, figure in enumerate(PERCENTILES)}
    assert len(told) == 6
    report(deployment, "power", nodes["cloud"], **told)
    power = caller("viewer").get(f"{P}/elements/power").json()
    assert {figure: power[figure] for figure in told} == told
    report(deployment, "power", nodes["cloud"], paused=True, **told)
    power = caller("viewer").get(f"{P}/elements/power").json()
    assert {power[figure] for figure in told} == {None}, "what former batches took is not of now"


def test_an_element_tells_what_it_costs_once_that_is_measured(
    caller: Call, deployment: Deployment, nodes: dict[str, Node]
) -> None:
    assert caller("viewer").get(f"{P}/elements/power").json()["cost"] is None
    cost = {"cpu_cores": 0.12, "batches_per_s": 2.1, "rows_per_s": 200.0, "wait_ms_max": None}
    report(deployment, "power", nodes["cloud"], **cost)
    assert caller("viewer").get(f"{P}/elements/power").json()["cost"] == cost
    Node.objects.filter(name="cloud").update(up=False)
    assert caller("viewer").get(f"{P}/elements/power").json()["cost"] is None


def test_while_it_is_restored_the_figures_of_its_silent_node_are_not_shown(
    caller: Call, deployment: Deployment, nodes: dict[str, Node]
) -> None:
    Node.objects.filter(name="cloud").update(up=False)
    GroupPlacement.objects.filter(group="power").update(node=nodes["edge-a"])
    power = caller("viewer").get(f"{P}/elements/power").json()
    assert (power["node"], power["rows_in_per_s"], power["lag_rows"]) == ("edge-a", None, None)
    report(deployment, "power", nodes["edge-a"])
    assert caller("viewer").get(f"{P}/elements/power").json()["rows_in_per_s"] == 100.0
    report(deployment, "power", nodes["edge-a"], role="standby", state_bytes=0)
    assert caller("viewer").get(f"{P}/elements/power").json()["state_bytes"] is None, "it has yet to open it"


def test_an_error_is_shown_where_it_happened(
    caller: Call, deployment: Deployment, nodes: dict[str, Node]
) -> None:
    error = ReplicaError.of("operator-failed", "boom", 1000, traceback="Traceback").model_dump()
    report(deployment, "power", nodes["cloud"], error=error)
    power = caller("viewer").get(f"{P}/elements/power").json()
    assert power["status"] == "failed"
    assert (power["error"]["code"], power["error"]["message"]) == ("operator-failed", "boom")
    assert power["error"]["at"] == "1970-01-01T00:00:01+00:00"


@pytest.mark.usefixtures("deployment")
def test_pause_is_kept_and_told_to_the_node_once(caller: Call, commands: Commands) -> None:
    operator = caller("operator")
    for _ in range(2):
        assert operator.post(f"{P}/elements/alerts/pause").json()["paused"] is True
    assert commands() == [("fogline.control.desired_changed", [])]
    assert GroupPlacement.objects.get(group="watch").paused_at is not None
    assert audited("element.pause") == 1
    resumed = operator.post(f"{P}/elements/variation/resume").json()
    assert (resumed["paused"], resumed["resumed_at"] is not None) == (False, True)
    assert commands() == [("fogline.control.desired_changed", [])]


def test_a_checkpoint_is_asked_for(caller: Call, deployment: Deployment, commands: Commands) -> None:
    assert caller("operator").post(f"{P}/elements/power/checkpoints").status_code == 202
    assert commands() == [("fogline.control.checkpoint", [deployment.pk, "power"])]
    assert audited("element.checkpoint") == 1


def test_a_checkpoint_that_cannot_be_ordered_is_not_said_to_be(
    caller: Call, deployment: Deployment, nodes: dict[str, Node], settings: Any
) -> None:
    path, there = f"{P}/elements/power/checkpoints", settings.FOGLINE
    settings.FOGLINE = there.model_copy(update={"redis_url": "redis://127.0.0.1:1/0"})
    assert_problem(caller("operator").post(path), 503)
    settings.FOGLINE = there
    error = {"message": "boom", "safe": "all", "next": "mend it", "traceback": "", "at_ms": 1}
    report(deployment, "power", nodes["cloud"], error=error)
    assert "has failed on cloud" in assert_problem(caller("operator").post(path), 409)["detail"]


def test_nothing_can_be_paused_that_is_not_deployed(caller: Call, pipeline: Pipeline) -> None:
    assert_problem(caller("operator").post(f"{P}/elements/power/pause"), 409)


def test_an_element_that_stands_goes_on_in_a_way_that_its_error_offers_and_in_no_other(
    caller: Call, commands: Commands, deployment: Deployment, nodes: dict[str, Node]
) -> None:
    way = WayOn(id="t is new", title="From the new beginning", cost="4 records wait.")
    error = ReplicaError.of("topic-recreated", "It is another one.", 1000, ways=(way,)).model_dump()
    report(deployment, "power", nodes["cloud"], error=error, left_out_total=7)
    power = caller("viewer").get(f"{P}/elements/power").json()
    assert (power["status"], power["left_out_total"]) == ("failed", 7)
    assert power["error"]["ways"] == [way.model_dump()]
    go_on = f"{P}/elements/power/go-on"
    assert_problem(caller("viewer").post(go_on, {"way": way.id}), 403)
    assert_problem(caller("operator").post(go_on, {"way": "another"}), 409)
    assert commands() == []
    for _ in range(2):
        assert caller("operator").post(go_on, {"way": way.id}).status_code == 200
    placement = GroupPlacement.objects.get(group="power")
    assert placement.accepts == [way.id]
    assert placement.vouched
    assert audited("element.go_on") == 1
    assert commands() == [("fogline.control.desired_changed", [])]
