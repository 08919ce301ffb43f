"""Who is held for ending Java, and who is not: decided by what was at work each time it ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline_runtime.model.desired import (
    ENDS_WITHIN_MS,
    CheckpointSource,
    ClaimOrder,
    DesiredReplica,
    JavaEnd,
    Role,
    WayOn,
    held_error,
    is_held,
    joined_ends,
)
from pipeline_runtime.model.ids import Epoch
from pipeline_runtime.model.spec import GroupSpec
from workers.node.java_ends import TRIED_MS, JavaEnds, has_come_through, is_suspect
from workers.node.reconcile import Fetch, Have, Idle, Start, next_action

HOUR_MS = ENDS_WITHIN_MS


def wanted(group: str, vouched: str = "", *ends: JavaEnd) -> DesiredReplica:
    spec = GroupSpec(deployment="d", pipeline="p", group=group, elements=())
    order = ClaimOrder(id="o1", over=Epoch(0))
    return DesiredReplica(spec=spec, role=Role.OWNER, order=order, vouched=vouched, java_ends=ends)


A, B, C = (wanted(name) for name in "abc")


class Machine:
    """A node's memory of its Java processes. Each start of the node begins with an empty one."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "java-ends.json"
        self.now_ms = 1_000_000
        self.start()

    def start(self) -> None:
        self.ends = JavaEnds(self._path, "edge-a")

    def end(self, *at_work: DesiredReplica) -> None:
        """Java ends while these are at work, and the node is started again."""
        self.now_ms += 1000
        self.ends.note({want.spec.id: want for want in at_work}, self.now_ms)
        self.start()

    def held(self, *wants: DesiredReplica) -> str:
        return "".join(want.spec.group for want in wants if is_held(self.ends.of(want.spec.id, want)))

    def suspected(self, *wants: DesiredReplica) -> str:
        return "".join(
            want.spec.group for want in wants if is_suspect(self.ends.of(want.spec.id, want), self.now_ms)
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_one_that_ends_java_twice_is_held_and_no_other(machine: Machine) -> None:
    machine.end(A)
    assert machine.held(A, B) == ""
    machine.end(A)
    assert machine.held(A, B) == "a"
    assert "2 times (on edge-a)" in held_error(machine.ends.of(A.spec.id, A)).message


def test_one_that_is_held_says_what_it_was_reading_and_how_to_skip_that(machine: Machine) -> None:
    skip = WayOn(id="skip t-0 7 8", title="Skip 1 record", cost="1 record is left out for good.")
    machine.ends.note({A.spec.id: A}, machine.now_ms, {A.spec.id: ("t, partition 0, offset 7", skip)})
    machine.start()
    machine.end(A)  # while it starts: it is in no batch yet
    error = held_error(machine.ends.of(A.spec.id, A))
    assert error.message.endswith("Its batch was reading t, partition 0, offset 7.")
    assert error.ways == (skip,)


def test_whoever_was_idle_does_not_come_into_question(machine: Machine) -> None:
    machine.end()
    machine.end()
    assert machine.suspected(A, B) == ""


def test_where_several_were_at_work_none_is_held_until_it_was_one_beyond_doubt(machine: Machine) -> None:
    machine.end(A, B)
    assert (machine.held(A, B), machine.suspected(A, B, C)) == ("", "ab")
    # `a` is tried first and comes through; then `b` is, beside `a` and `c` in their batches.
    assert machine.ends.try_(A.spec.id)
    assert not machine.ends.try_(B.spec.id)
    assert not machine.ends.may_try(B.spec.id)
    machine.ends.tried(A.spec.id)
    assert machine.ends.try_(B.spec.id)
    machine.end(A, B, C)
    assert (machine.held(A, B, C), machine.suspected(A, B, C)) == ("b", "ab")


def test_one_that_comes_into_question_again_counts_before_those_that_do_not(machine: Machine) -> None:
    machine.end(A)
    machine.end(A, B, C)
    assert machine.held(A, B, C) == "a"


def test_two_that_come_into_question_again_are_not_held_together(machine: Machine) -> None:
    machine.end(A, B)
    machine.end(A, B)
    assert (machine.held(A, B), machine.suspected(A, B)) == ("", "ab")
    machine.ends.try_(A.spec.id)
    machine.end(A, B)
    assert machine.held(A, B) == "a"


def test_one_that_waits_for_its_turn_does_not_lose_it_to_a_third_by_somebody_elses_end(
    machine: Machine,
) -> None:
    assert machine.ends.try_(A.spec.id)
    machine.ends.tried(B.spec.id)
    assert not machine.ends.may_try(C.spec.id)


def test_what_lies_long_apart_does_not_count_together(machine: Machine) -> None:
    machine.end(A)
    machine.now_ms += HOUR_MS
    assert machine.suspected(A) == ""
    machine.end(A)
    assert machine.held(A) == ""


def test_what_is_held_stays_so_until_a_user_vouches_for_it(machine: Machine) -> None:
    machine.end(A)
    machine.end(A)
    machine.now_ms += 10 * HOUR_MS
    machine.end(B)
    assert machine.held(A, B) == "a"
    assert machine.held(wanted("a", "by-ada")) == ""
    machine.end(wanted("a", "by-ada"))
    assert machine.held(wanted("a", "by-ada")) == ""
    machine.end(wanted("a", "by-ada"))
    assert machine.held(wanted("a", "by-ada")) == "a"


def test_what_it_did_on_another_node_counts(machine: Machine) -> None:
    moved = wanted("a", "", JavaEnd(node="cloud", at_ms=machine.now_ms, alone=False))
    assert machine.suspected(moved) == "a"
    machine.end(moved, B)
    assert machine.held(moved, B) == "a"
    assert "(on cloud and edge-a)" in held_error(machine.ends.of(moved.spec.id, moved)).message


def test_told_again_what_it_has_reported_it_counts_once(machine: Machine) -> None:
    machine.end(A)
    told = wanted("a", "", *machine.ends.of(A.spec.id, A))
    assert machine.held(told) == ""
    assert len(machine.ends.of(told.spec.id, told)) == 1


def test_ends_are_in_order_whoever_tells_them() -> None:
    first, second = (JavaEnd(node="cloud", at_ms=at_ms, alone=True) for at_ms in (1, 2))
    assert joined_ends((second,), (first, second)) == (first, second)


def test_one_comes_through_by_a_batch_or_by_time() -> None:
    once = (JavaEnd(node="cloud", at_ms=1, alone=False),)
    twice = (*once, JavaEnd(node="cloud", at_ms=2, alone=False))
    assert has_come_through(once, True, 0)
    assert not has_come_through(once, False, TRIED_MS - 1)
    assert has_come_through(once, False, TRIED_MS)
    assert not has_come_through(twice, True, 2 * TRIED_MS - 1)
    assert has_come_through(twice, True, 2 * TRIED_MS)


@pytest.mark.parametrize("text", ["", "[]", '{"d.a": 1}', '{"d.a": {"vouched": "", "ends": [{}]}}', "\xff"])
def test_a_memory_that_cannot_be_read_stops_nobody(tmp_path: Path, text: str) -> None:
    path = tmp_path / "java-ends.json"
    path.write_text(text, encoding="latin-1")
    ends = JavaEnds(path, "edge-a")
    assert ends.of(A.spec.id, A) == ()
    ends.note({A.spec.id: A}, 1)
    assert len(JavaEnds(path, "edge-a").of(A.spec.id, A)) == 1


def test_what_is_held_is_neither_fetched_nor_started_and_one_out_of_turn_is_fetched() -> None:
    source = CheckpointSource(url="http://edge-a:1", token="t")
    moved = A.model_copy(update={"source": source})
    assert next_action(A, Have(A.spec.id, held=True), 0) == Idle()
    assert next_action(moved, Have(A.spec.id, held=True), 0) == Idle()
    assert next_action(A, Have(A.spec.id, in_turn=False), 0) == Idle()
    assert next_action(moved, Have(A.spec.id, in_turn=False), 0) == Fetch(source, 1)
    assert isinstance(next_action(A, Have(A.spec.id), 0), Start)
