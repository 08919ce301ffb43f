"""Tests how an upgrade orders groups to own, and how each report of their nodes ends its wait."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from pipeline_runtime.model.desired import Role
from pipeline_runtime.model.spec import GroupSpec
from tests.contract.control.conftest import report
from tests.contract.control.test_deploying import document
from webapp.nodes.models import Node
from webapp.operations.models import Operation
from webapp.pipelines.models import Pipeline, PipelineVersion
from webapp.placements.models import Deployment, GroupPlacement
from webapp.placements.selectors import planned_for
from workers.control.context import ControlContext
from workers.control.desired import replicas_of
from workers.control.operations import driver
from workers.control.operations.driver import _Driver
from workers.control.operations.effects import groups_to_upgrade, order_group
from workers.control.operations.model import Fail
from workers.control.operations.record import end_failed
from workers.control.operations.steps import ORDERS_MAX

Deployed = Callable[..., GroupPlacement]


@pytest.fixture
def upgraded(deployed: Deployed) -> GroupPlacement:
    """Ordered to own its new version over epoch 4."""
    placement = deployed("power", "edge-a")
    placement.order_id, placement.order_over = "of-the-upgrade", 4
    placement.save()
    report(placement, Role.STANDBY, epoch=4, order_id="first")
    return placement


def wait(placement: GroupPlacement, context: ControlContext, *script: Callable[[], object]) -> Operation:
    """An upgrade that waits for it looks once before each report of the script, and once after the last."""
    operation = placement.deployment.operations.create(
        kind="upgrade",
        status="running",
        phase="OWN",
        deadline=timezone.now() + timedelta(minutes=3),
        orders=1,
        steps=[{"name": placement.group, "change": "changed", "state": "running", "at": None}],
    )
    driver = _Driver(str(operation.pk), context)
    for told in script:
        driver.advance()
        told()
    driver.advance()
    operation.refresh_from_db()
    return operation


def refused(placement: GroupPlacement, epoch: int, order_id: str | None = None) -> None:
    placement.refresh_from_db()
    why = "epoch 5 was granted to edge-b"
    report(placement, Role.STANDBY, epoch=epoch, order_id=order_id or placement.order_id, order_refused=why)


def owns(placement: GroupPlacement) -> None:
    placement.refresh_from_db()
    report(placement, epoch=6, order_id=placement.order_id)


def test_what_was_to_end_and_has_not_runs_on_when_the_upgrade_failed(deployed: Deployed) -> None:
    """Or nobody could restore it where its node is lost."""
    silent, ended = deployed("power", "edge-a"), deployed("saved", "edge-b")
    deployment = silent.deployment
    GroupPlacement.objects.filter(pk=ended.pk).update(deployment=deployment)
    ended.refresh_from_db()
    report(silent)
    report(ended, Role.STOPPED, retired=True)
    deployment.placements.update(retire=True, role="stopped")
    deployment.left_over = {group: {"spec": {}, "starts": {}} for group in ("power", "saved")}
    deployment.save()
    operation = deployment.operations.create(kind="upgrade", status="running", phase="STOP")
    end_failed(operation, Fail("It may still run."))
    silent.refresh_from_db()
    ended.refresh_from_db()
    assert [(each.retire, each.role) for each in (silent, ended)] == [(False, "owner"), (True, "stopped")]
    deployment.refresh_from_db()
    assert list(deployment.left_over) == ["saved"], "nobody goes on from where the other one goes on itself"


@pytest.mark.parametrize("epoch", [3, 4, 5])
def test_a_refusal_is_ordered_again_whatever_epoch_the_report_shows(
    upgraded: GroupPlacement, context: ControlContext, epoch: int
) -> None:
    operation = wait(upgraded, context, lambda: refused(upgraded, epoch), lambda: owns(upgraded))
    assert [step["state"] for step in operation.steps] == ["done"]
    upgraded.refresh_from_db()
    assert upgraded.order_id != "of-the-upgrade"


@pytest.mark.parametrize(("order_id", "again"), [("first", False), ("of-the-upgrade", True)])
def test_who_takes_an_upgrade_up_again_orders_again_only_what_was_refused_since(
    upgraded: GroupPlacement, order_id: str, again: bool
) -> None:
    refused(upgraded, 5, order_id)
    order_group(GroupSpec.model_validate(upgraded.spec), upgraded.deployment, restart=[], starts={})
    upgraded.refresh_from_db()
    assert (upgraded.order_id != "of-the-upgrade") is again


@pytest.mark.parametrize("fresh", [False, True])
def test_the_loss_that_was_agreed_to_stays_with_the_definition_that_it_was_for(
    upgraded: GroupPlacement, fresh: bool
) -> None:
    spec = GroupSpec.model_validate(upgraded.spec).model_copy(update={"version": "other"})
    order_group(spec, upgraded.deployment, restart=["power"] if fresh else [], starts={})
    upgraded.refresh_from_db()
    assert (upgraded.spec["version"], upgraded.order_fresh) == ("other", fresh)
    # Refused, and ordered once more: by an upgrade that has nothing to ask for any more.
    refused(upgraded, 5)
    order_group(spec, upgraded.deployment, restart=[], starts={})
    upgraded.refresh_from_db()
    assert upgraded.order_fresh is fresh
    [wanted] = replicas_of(upgraded.node, "key", lambda group: False)
    assert wanted.order is not None
    assert wanted.order.fresh is fresh


def test_a_definition_that_never_owned_leaves_the_agreed_loss_to_the_one_after_it(
    upgraded: GroupPlacement, context: ControlContext
) -> None:
    spec = GroupSpec.model_validate(upgraded.spec)
    second, third = (spec.model_copy(update={"version": version}) for version in ("v2", "v3"))
    order_group(second, upgraded.deployment, restart=["power"], starts={})
    # It could go on with what v2 would have left.
    order_group(third, upgraded.deployment, restart=[], starts={})
    [wanted] = replicas_of(upgraded.node, "key", lambda group: False)
    assert wanted.order is not None
    assert (wanted.order.fresh, wanted.order.keeps_state_of) == (True, ("v2",))
    # It owns: what is changed from now on goes on with its state.
    wait(upgraded, context, lambda: owns(upgraded))
    order_group(second, upgraded.deployment, restart=[], starts={})
    [wanted] = replicas_of(upgraded.node, "key", lambda group: False)
    assert wanted.order is not None
    assert (wanted.order.fresh, wanted.order.keeps_state_of) == (False, ())


@pytest.mark.parametrize("epoch", [4, 5])
def test_the_refusal_of_an_earlier_order_changes_nothing(
    upgraded: GroupPlacement, context: ControlContext, epoch: int
) -> None:
    earlier = [lambda: refused(upgraded, epoch, "of-an-earlier-upgrade")] * (ORDERS_MAX + 1)
    wait(upgraded, context, *earlier, lambda: owns(upgraded))
    upgraded.refresh_from_db()
    assert upgraded.order_id == "of-the-upgrade"


def test_who_is_refused_every_time_fails_with_the_reason(
    upgraded: GroupPlacement, context: ControlContext
) -> None:
    orders = set()

    def refuse() -> None:
        refused(upgraded, 4)
        orders.add(upgraded.order_id)

    operation = wait(upgraded, context, *[refuse] * ORDERS_MAX)
    assert operation.status == "failed"
    assert "edge-a was not allowed to own power: epoch 5 was granted to edge-b" in operation.message
    assert [step["state"] for step in operation.steps] == ["failed"]
    assert len(orders) == ORDERS_MAX


@pytest.mark.parametrize(
    ("state", "runs", "again"),
    [("done", True, False), ("failed", True, True), ("pending", True, False), ("pending", False, True)],
)
def test_what_the_upgrade_before_did_not_bring_to_run_is_part_of_the_next(
    state: str, runs: bool, again: bool, deployed: Deployed
) -> None:
    placement = deployed("power", "edge-a")
    if not runs:  # an upgrade before that one had failed at it
        refused(placement, 5)
    steps = [{"name": "power", "change": "changed", "state": state, "at": None}]
    make = placement.deployment.operations.create
    make(kind="upgrade", status="failed", steps=steps)
    found = groups_to_upgrade(make(kind="upgrade"), (GroupSpec.model_validate(placement.spec),))
    assert found == (["power"] if again else [])


def test_what_an_upgrade_made_for_what_it_never_placed_is_left_to_be_cleared_away(
    deployed: Deployed, context: ControlContext
) -> None:
    deployment = deployed("power", "edge-a").deployment
    PipelineVersion.objects.filter(pk=deployment.version_id).update(document=document())
    step = {"name": "readings", "title": "readings", "change": "added", "state": "pending", "at": None}
    operation = deployment.operations.create(
        kind="upgrade",
        status="running",
        phase="START",
        deadline=timezone.now() + timedelta(minutes=3),
        steps=[step],
    )
    Node.objects.update(cordoned=True)
    driver.drive_operation(str(operation.pk), context)
    operation.refresh_from_db()
    assert operation.status == "failed"
    assert operation.obsolete == [
        f"fl.{deployment.pk}.readings.{part}" for part in ("dead", "journal", "journal.released", "out")
    ]


def test_of_two_groups_that_are_called_the_same_each_says_why_it_cannot() -> None:
    """One of an id that is spent, and the one that came after it."""
    refused = {"watch": "it stands behind «power»", "watch_2": "it is new in it"}
    said = driver._said(refused, {"watch": "Watch", "power": "Mains power"})
    assert said == "Watch: it stands behind Mains power; Watch: it is new in it"


def test_what_nobody_foresaw_ends_an_upgrade_and_is_told(
    deployed: Deployed, context: ControlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(driver, "planned_for", breaks)
    placement = deployed("power", "edge-a")
    operation = placement.deployment.operations.create(kind="upgrade")
    driver.drive_operation(str(operation.pk), context)
    operation.refresh_from_db()
    assert operation.status == "failed"
    assert operation.message.startswith("ZeroDivisionError: division by zero. ")


def test_another_latency_target_is_told_to_what_runs_and_starts_nothing_again(
    nodes: dict[str, Node], context: ControlContext
) -> None:
    pipeline = Pipeline.objects.create(name="p", draft={})
    former = document()
    changed = document()
    changed["spec"]["elements"][0]["latency_ms"] = 100
    versions = [
        PipelineVersion.objects.create(pipeline=pipeline, number=number, document=each)
        for number, each in enumerate((former, changed), 1)
    ]
    deployment = Deployment.objects.create(
        pipeline=pipeline, version=versions[0], status=Deployment.Status.RUNNING
    )
    [spec] = planned_for(deployment, former)
    placement = GroupPlacement.objects.create(
        deployment=deployment,
        group=spec.group,
        spec=spec.model_dump(mode="json"),
        node=nodes["edge-a"],
        order_id="first",
    )
    report(placement, order_id="first")
    deployment.version = versions[1]
    deployment.save()
    operation = Operation.objects.create(kind="upgrade", deployment=deployment, replaces=versions[0])
    driver = _Driver(str(operation.pk), context)
    while operation.status in (Operation.Status.PENDING, Operation.Status.RUNNING):
        driver.advance()
        operation.refresh_from_db()
    assert (operation.status, operation.steps) == (Operation.Status.DONE, [])
    [wanted] = replicas_of(nodes["edge-a"], "key", lambda group: False)
    assert wanted.directive.latency_ms == 100
    assert wanted.order is not None
    assert (wanted.order.id, wanted.spec.version) == ("first", spec.version)
