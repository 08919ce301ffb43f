"""A slot whose group comes into question for the end of Java: it waits for its turn, or is held."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline_runtime.model.desired import DesiredReplica, Role
from tests.unit.workers.test_slot import Node, owner
from tests.waiting import wait_until
from workers.node.java_ends import JavaEnds
from workers.node.runtime import NodeRuntime
from workers.node.slot import AT_WORK_MS, Slot

Place = Callable[[str], "GroupsNode"]


class GroupsNode(Node):
    """One of several groups on the same node."""

    def __init__(self, directory: Path, group: str, ends: JavaEnds) -> None:
        self.ends = ends
        super().__init__(directory)
        self.slot = Slot(f"d.{group}", self.runtime())

    def runtime(self) -> NodeRuntime:
        return dataclasses.replace(super().runtime(), java_ends=self.ends)

    def tell(self, **status: object) -> None:
        self.replicas[-1].now = self.replicas[-1].now.model_copy(update=status)
        self.slot.wake()


@pytest.fixture
def ends(tmp_path: Path) -> JavaEnds:
    return JavaEnds(tmp_path / "java-ends.json", "edge-a")


@pytest.fixture
def place(tmp_path: Path, ends: JavaEnds) -> Iterator[Place]:
    made: list[GroupsNode] = []

    def make(group: str) -> GroupsNode:
        made.append(GroupsNode(tmp_path, group, ends))
        return made[-1]

    yield make
    for node in made:
        node.slot.close(1)


def java_ended(ends: JavaEnds, *at_work: Node, want: DesiredReplica | None = None) -> None:
    ends.note({node.slot.group: want or owner() for node in at_work}, at_work[0].clock_ms)


def test_those_in_question_start_one_after_another_and_the_others_at_once(
    place: Place, ends: JavaEnds
) -> None:
    first, second, other = place("a"), place("b"), place("c")
    java_ended(ends, first, second)
    first.want(owner())
    wait_until(lambda: first.replicas)
    second.want(owner())
    other.want(owner())
    wait_until(lambda: other.replicas)
    first.tell(at_work=True)
    second.slot.wake()
    assert not second.replicas
    first.tell(at_work=False, batch_ms_p50=50.0)
    wait_until(lambda: second.replicas)


def test_one_that_is_down_again_gives_its_turn_on(place: Place, ends: JavaEnds) -> None:
    first, second = place("a"), place("b")
    java_ended(ends, first, second)
    first.want(owner())
    wait_until(lambda: first.replicas)
    second.want(owner())
    first.replicas[0].end("failed")
    first.slot.wake()
    wait_until(lambda: second.replicas)


def test_one_that_is_held_is_not_started_and_says_why_until_a_user_vouches_for_it(
    place: Place, ends: JavaEnds
) -> None:
    node = place("power")
    java_ended(ends, node)
    java_ended(ends, node)
    node.clock_ms += 1
    java_ended(ends, node)
    node.want(owner())
    status = node.slot.status()
    assert (status.role, status.phase) == (Role.STOPPED, "held")
    assert status.error is not None
    assert "It is held: it has ended Spark's Java process 2 times (on edge-a)" in status.error.message
    assert len(status.java_ends) == 2
    # A new order alone, such as a restoration by itself gives, changes nothing.
    node.want(owner("o2"))
    assert node.slot.status().phase == "held"
    assert not node.replicas
    node.want(owner("o2", vouched="by ada"))
    wait_until(lambda: node.slot.status().role is Role.OWNER)
    assert node.slot.status().error is None
    assert node.replicas[0].orders == ["o2"]


def test_one_that_is_to_stay_stopped_is_not_shown_as_held(place: Place, ends: JavaEnds) -> None:
    node = place("power")
    java_ended(ends, node)
    node.clock_ms += 1
    java_ended(ends, node)
    node.want(owner().model_copy(update={"role": Role.STOPPED, "order": None}))
    assert node.slot.status().error is None


def test_it_was_at_work_if_it_is_or_fell_in_a_batch_just_now(place: Place) -> None:
    node = place("power")
    node.want(owner())
    wait_until(lambda: node.slot.status().role is Role.OWNER)
    assert node.slot.wanted_at_work() is None
    node.tell(at_work=True)
    assert node.slot.wanted_at_work() == owner()
    node.tell(reads="t, partition 0, offset 7")
    node.replicas[-1].end("failed")
    node.slot.wake()
    wait_until(lambda: node.slot.failures.at_ms)
    assert node.slot.last_read() == ("t, partition 0, offset 7", None), "also when it has ended"
    assert node.slot.wanted_at_work() == owner()
    node.clock_ms += AT_WORK_MS
    assert node.slot.wanted_at_work() is None
