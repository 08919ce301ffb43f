"""When a node that was told to stop ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipeline_runtime.model.desired import (
    ClaimOrder,
    DesiredReplica,
    NodeDesired,
    RefusedReplica,
    ReplicaStatus,
    Role,
)
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import ElementSpec, GroupSpec
from tests.waiting import PATIENCE_S
from workers.node import leaving
from workers.node.leaving import Seen, elements_held, leave, why_end
from workers.stopping import Stopping

WAITS = Seen(elements=2, stuck=False, away_s=0.0, over=False)


def wanted(group: str, role: Role, *elements: str, succeed: str | None = None) -> DesiredReplica:
    specs = tuple(ElementSpec(id=id, type="filter") for id in elements or (group,))
    spec = GroupSpec(deployment="d", pipeline="p", group=group, elements=specs)
    order = ClaimOrder(id="first", over=Epoch(0)) if role is Role.OWNER else None
    return DesiredReplica(spec=spec, role=role, order=order, succeed=succeed)


def desired(*replicas: DesiredReplica, refused: tuple[RefusedReplica, ...] = ()) -> NodeDesired:
    return NodeDesired(node="a", revision=1, replicas=replicas, refused=refused)


def status(group: str, role: Role) -> ReplicaStatus:
    return ReplicaStatus(group=f"d.{group}", role=role, phase="", epoch=Epoch(1), seq=Seq(1))


def test_what_would_stand_without_the_node_is_held() -> None:
    assert elements_held(desired(), []) == 0
    assert elements_held(desired(wanted("g", Role.OWNER, "x", "y")), []) == 2
    assert elements_held(desired(wanted("g", Role.STOPPED)), []) == 1, "its state may be the only one"
    assert elements_held(desired(wanted("g", Role.STANDBY)), [status("g", Role.STANDBY)]) == 0
    assert elements_held(desired(wanted("g", Role.STANDBY, succeed="h")), []) == 1, "it is about to own"
    assert elements_held(desired(wanted("g", Role.STANDBY)), [status("g", Role.OWNER)]) == 1, "it does"
    assert elements_held(desired(), [status("g", Role.OWNER)]) == 1, "until it has let go"
    assert elements_held(desired(refused=(RefusedReplica(group="d.g", reason="?"),)), []) == 1


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (WAITS, None),
        (Seen(2, stuck=False, away_s=leaving.AWAY_S - 0.1, over=False), None),
        (Seen(0, stuck=False, away_s=0.0, over=False), "nothing is left"),
        (Seen(1, stuck=True, away_s=0.0, over=False), "1 element could not be handed over: control finds no"),
        (Seen(2, stuck=False, away_s=leaving.AWAY_S, over=False), "control or Redis does not answer"),
        (Seen(2, stuck=False, away_s=0.0, over=True), "2 elements could not be handed over in time"),
    ],
)
def test_it_waits_for_what_can_still_come_alone(seen: Seen, why: str | None) -> None:
    told = why_end(seen)
    assert told == why if why is None else why in str(told)


def test_it_ends_when_the_last_element_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "LOOK_S", 0.001)
    left: Iterator[int] = iter((2, 2, 1, 1, 0))
    stopping = Stopping()
    leave("a", PATIENCE_S, stopping, lambda: next(left), lambda: False, lambda: True)
    assert stopping.is_set()
    assert next(left, None) is None


def test_it_does_not_wait_for_a_control_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "LOOK_S", 0.001)
    monkeypatch.setattr(leaving, "AWAY_S", 0.01)
    stopping = Stopping()
    leave("a", PATIENCE_S, stopping, lambda: 1, lambda: False, lambda: False)
    assert stopping.is_set()


def test_a_second_signal_ends_the_wait() -> None:
    stopping = Stopping()

    def second_signal() -> bool:
        stopping.set()
        return True

    leave("a", PATIENCE_S, stopping, lambda: 1, lambda: False, second_signal)
    assert stopping.failure is None
