"""A queue of moves is rows: it is carried out look by look, whoever died in between.

No handover is carried out here: the tests say what becomes of those that are ordered.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipeline_runtime.model.desired import Role
from pipeline_runtime.model.spec import ElementSpec, GroupSpec
from tests.contract.control.conftest import end, move_ordered, report
from webapp.accounts.models import User
from webapp.audit.models import AuditRecord, Event
from webapp.handovers.models import Handover
from webapp.handovers.queues import Wanted, cancel_queued, open_queues, queue_moves
from webapp.nodes.models import Node
from webapp.placements.models import Deployment, GroupPlacement
from workers.control.bulkhead import Bulkhead
from workers.control.handovers.queues import tend_queues

NAME = "line"
States = list[tuple[str, str]]


@pytest.fixture
def operator() -> User:
    return User.objects.create_user("ada", role="operator")


@pytest.fixture
def deployment(deployed: Callable[..., GroupPlacement]) -> Deployment:
    """Three elements on edge-a: first, second and third."""
    deployment = deployed("first", "edge-a").deployment
    ids = ("first", "second", "third")
    deployment.pipeline.name = NAME
    deployment.pipeline.save()
    elements = [{"id": id, "type": "filter", "params": {}} for id in ids]
    deployment.version.document = {"metadata": {"name": NAME}, "spec": {"elements": elements}}
    deployment.version.save()
    for id in ids[1:]:
        spec = GroupSpec(
            deployment=deployment.pk, pipeline=NAME, group=id, elements=(ElementSpec(id=id, type="filter"),)
        )
        placement = GroupPlacement.objects.create(
            deployment=deployment,
            group=id,
            spec=spec.model_dump(mode="json"),
            node=Node.objects.get(name="edge-a"),
        )
        report(placement)
    return deployment


@pytest.fixture
def queued(deployment: Deployment, operator: User) -> Deployment:
    """All three are to move to edge-b."""
    queue_moves(operator, NAME, [Wanted(id, "edge-b") for id in ("first", "second", "third")])
    return deployment


def look() -> States:
    """One look of a control process that remembers nothing; what it leaves of the queue."""
    tend_queues(Bulkhead())
    return [(each["element"], each["state"]) for each in open_queues()]


def states(*found: str) -> States:
    return list(zip(("first", "second", "third"), found, strict=True))


def told() -> list[str]:
    return list(Event.objects.filter(kind="move.left_out").order_by("id").values_list("message", flat=True))


def messages() -> list[str]:
    return [each["message"] for each in open_queues()]


@pytest.mark.usefixtures("queued")
def test_each_is_ordered_by_who_queued_it_when_the_one_before_it_is_done(operator: User) -> None:
    for _ in range(2):
        assert look() == states("moving", "waits", "waits")
    assert [(each["place"], each["of"], each["waits_for"]) for each in open_queues()] == [
        (1, 3, None),
        (2, 3, "first"),
        (3, 3, "second"),
    ]
    end("first")
    assert look() == states("done", "moving", "waits")
    end("second")
    assert look() == states("done", "done", "moving")
    end("third")
    assert look() == states("done", "done", "done")
    assert {handover.created_by for handover in Handover.objects.all()} == {operator}
    ordered = AuditRecord.objects.filter(action="element.migrate").order_by("id")
    assert [(each.username, each.target) for each in ordered] == [
        ("ada", f"{NAME}/{id}") for id in ("first", "second", "third")
    ]
    assert told() == []


@pytest.mark.parametrize("outcome", ["failed", "cancelled"])
@pytest.mark.usefixtures("queued")
def test_behind_a_move_that_is_not_done_nothing_moves(outcome: str) -> None:
    look()
    end("first", outcome)
    for _ in range(2):
        assert look() == states(outcome, "left-out", "left-out")
    assert Handover.objects.count() == 1
    assert told() == [
        "first was not moved to edge-b. 2 moves that waited after it will not be made. Order again the moves "
        "that you still want."
    ]
    assert messages()[2] == "It stays where it is: first was not moved to edge-b."


@pytest.mark.usefixtures("queued")
def test_one_that_is_cancelled_while_it_waits_is_passed_over(operator: User) -> None:
    look()
    cancel_queued(operator, NAME, open_queues()[1]["id"])
    assert look() == states("moving", "cancelled", "waits")
    end("first")
    assert look() == states("done", "cancelled", "moving")


@pytest.mark.usefixtures("queued")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cordoned": True}, "second cannot move to edge-b: edge-b is cordoned"),
        ({"up": False}, "second cannot move to edge-b: edge-b does not answer"),
    ],
)
def test_a_target_that_takes_nothing_new_ends_the_queue(change: dict[str, bool], words: str) -> None:
    look()
    end("first")
    Node.objects.filter(name="edge-b").update(**change)
    assert look() == states("done", "failed", "left-out")
    [event] = told()
    assert words in event
    assert "Choose a node that answers and takes new elements, or start or add one." in event
    assert "1 move that waited after it will not be made" in event
    assert messages()[1] in event


@pytest.mark.usefixtures("queued")
@pytest.mark.parametrize("change", [{"role": "viewer"}, {"is_active": False}])
def test_who_may_no_longer_move_elements_moves_nothing(operator: User, change: dict[str, object]) -> None:
    User.objects.filter(pk=operator.pk).update(**change)
    assert look() == states("failed", "left-out", "left-out")
    assert not Handover.objects.exists()
    assert "ada may no longer move elements. Somebody who may has to order it again." in told()[0]


def test_an_account_that_was_deleted_moves_nothing(queued: Deployment, operator: User) -> None:
    operator.delete()
    assert look() == states("failed", "left-out", "left-out")
    assert "whoever ordered it may no longer move elements" in told()[0]


def test_what_moves_by_another_order_or_starts_is_waited_for(queued: Deployment, operator: User) -> None:
    other = move_ordered(GroupPlacement.objects.get(group="first"), "edge-a", "edge-c")
    assert look() == states("waits", "waits", "waits")
    assert messages()[0] == "Another order moves it now. It waits for the end of that."
    end("first")
    report(GroupPlacement.objects.get(group="first"), Role.STANDBY)
    assert look() == states("waits", "waits", "waits")
    assert messages()[0] == "It has not started on its node yet."
    report(GroupPlacement.objects.get(group="first"))
    assert look() == states("moving", "waits", "waits")
    assert (messages()[0], Handover.objects.exclude(pk=other.pk).get().origin) == ("", "edge-c")


@pytest.mark.usefixtures("queued")
def test_what_has_come_to_the_target_otherwise_needs_no_move() -> None:
    placement = GroupPlacement.objects.get(group="first")
    placement.node = Node.objects.get(name="edge-b")
    placement.save()
    report(placement)
    assert look() == states("done", "moving", "waits")
    assert messages()[0] == "It ran on edge-b already."


def test_an_undeployed_pipeline_moves_nothing_more(queued: Deployment) -> None:
    look()
    end("first")
    Deployment.objects.filter(pk=queued.pk).update(status="undeploying")
    assert look() == states("done", "failed", "left-out")
    assert "was undeployed before its turn came" in told()[0]
    Deployment.objects.filter(pk=queued.pk).update(status="undeployed")
    assert look() == [], "another deployment has a queue of its own"


def test_an_element_that_an_upgrade_removed_ends_the_queue(queued: Deployment) -> None:
    look()
    end("first")
    GroupPlacement.objects.filter(group="second").delete()
    document = queued.version.document
    document["spec"]["elements"] = [each for each in document["spec"]["elements"] if each["id"] != "second"]
    queued.version.save()
    assert look() == states("done", "failed", "left-out")
    assert 'There is no element "second"' in told()[0]
