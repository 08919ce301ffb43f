"""A replica's shared state changes by its own methods alone, and they say the right thing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pipeline_runtime.journal.records import Boundary, Commit
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.replica import state as state_module
from pipeline_runtime.replica.state import ReplicaState

REPLICA = Path(state_module.__file__).parent
FIELDS = {field.name for field in fields(ReplicaState)}


def assigned(tree: ast.AST) -> Iterator[ast.expr]:
    """Every target of an assignment; of `a, b = ...` both."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                yield from (each for target in targets for each in ast.walk(target))
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target) | ast.For(target=target):
                yield from ast.walk(target)
            case ast.withitem(optional_vars=target) if target is not None:
                yield from ast.walk(target)


def is_of_a_state(target: ast.expr) -> bool:
    """Whether an assignment changes an attribute of a ReplicaState, under whatever name it is known."""
    if isinstance(target, ast.Subscript):
        return isinstance(target.value, ast.Attribute) and is_of_a_state(target.value)
    if not isinstance(target, ast.Attribute):
        return False
    owner = target.value
    if isinstance(owner, ast.Name):
        return owner.id != "self" and target.attr in FIELDS
    return isinstance(owner, ast.Attribute) and (
        (owner.attr in ("state", "_state") and target.attr in FIELDS) or is_of_a_state(owner)
    )


def changes_from_outside(source: str) -> list[str]:
    tree = ast.parse(source)
    targets = [each for each in assigned(tree) if isinstance(getattr(each, "ctx", None), ast.Store | ast.Del)]
    return [ast.unparse(target) for target in targets if is_of_a_state(target)]


def test_nobody_but_the_state_itself_assigns_to_its_attributes() -> None:
    found = {
        path.name: changes
        for path in sorted(REPLICA.glob("*.py"))
        if path.name != "state.py" and (changes := changes_from_outside(path.read_text()))
    }
    assert found == {}


@pytest.mark.parametrize(
    "line",
    [
        "self._state.permit = None",
        "state.granted, other = 1, 2",
        "made.pause_shift_ms += 1",
        "self._state.reads.rows[key] = 3",
        "run.state.view.ended['in-0'] = 1",
        "with lock as self._state.permit: pass",
    ],
)
def test_the_check_finds_such_an_assignment(line: str) -> None:
    assert changes_from_outside(line)


@pytest.mark.parametrize("line", ["self.ended = 1", "rows = state.local", "self._state = state"])
def test_the_check_leaves_other_assignments_alone(line: str) -> None:
    assert not changes_from_outside(line)


def at(seq: int) -> Boundary:
    return Boundary(Seq(seq), {"in-0": seq}, seq)


def test_an_owners_batch_takes_the_pause_that_it_shifts_by_and_a_follower_all_of_it() -> None:
    state = ReplicaState()
    state.pause_since(1_000)
    state.pause_since(2_000)  # it is paused already
    state.resume_at(1_500)
    assert state.pause_shift_ms == 500
    state.grant(at(0), at(1), shifted_ms=300)
    assert state.pause_shift_ms == 200, "the pause went on while its end was decided"
    state.grant(at(1), at(2))
    assert state.pause_shift_ms == 0, "the owner's batch contains it"


def test_a_group_has_paused_only_when_the_batch_that_ran_has_ended() -> None:
    state = ReplicaState()
    state.grant(at(0), at(1))
    state.pause_since(1_000)
    assert (state.paused, state.has_paused) == (True, False)
    state.no_batch_runs()
    assert (state.paused, state.has_paused) == (True, True)


def test_a_batch_that_begins_while_another_is_committed_is_tentative_until_that_is_over() -> None:
    state = ReplicaState()
    state.grant(at(0), at(1))
    state.task_has_read((0, 0), 10, [], [])
    state.begin_commit()
    state.grant(at(1), at(2))
    state.task_has_read((0, 0), 20, [], ["in-0"])
    assert (state.granted, state.reads.all_rows, state.reads.ended) == (1, 10, set())
    assert state.newest_span is not None
    assert state.newest_span.end == at(2)
    state.processed(at(1), ended=False)
    state.batch_is_over()
    assert (state.granted, state.reads.all_rows, state.reads.ended) == (2, 20, {"in-0"})
    assert (state.committing, state.tentative, state.ahead) == (False, None, True)
    state.batch_is_over()
    assert state.granted is None


def test_with_a_batch_that_comes_to_nothing_goes_what_has_begun_behind_it() -> None:
    state = ReplicaState()
    for over in (state.no_batch_runs, lambda: state.begin_following(state.view, Seq(0))):
        state.grant(at(0), at(1))
        state.begin_commit()
        state.grant(at(1), at(2))
        over()
        assert (state.granted, state.committing, state.tentative) == (None, False, None)


def test_a_batch_is_ahead_where_the_journal_did_not_have_it_when_it_was_granted() -> None:
    state = ReplicaState()
    state.view.apply(Commit(Epoch(1), at(1)))
    state.grant(at(0), at(1))
    assert (state.granted, state.ahead) == (1, False)
    state.grant(at(1), at(2))
    assert (state.granted, state.ahead) == (2, True)
    state.processed(at(2), ended=False)
    assert (state.local, state.caught_up) == (2, True)


def test_only_the_first_commit_by_a_permit_is_the_first() -> None:
    state = ReplicaState()
    permit: Any = object()
    commit = Commit(Epoch(1), at(1))
    for _ in range(2):
        state.own(permit)
        assert [state.committed(3, commit), state.committed(9, commit)] == [True, False]
        assert state.first_commit_requests == 3


def test_the_first_failure_counts_until_the_next_run() -> None:
    state = ReplicaState()
    first = ValueError("first")
    state.fail(first)
    state.fail(ValueError("second"))
    assert state.failure is first
    state.begin_run(ended=False)
    assert state.failure is None


def test_whoever_waits_is_woken_by_each_change_that_matters() -> None:
    state = ReplicaState()
    for change in (
        state.drain,
        state.end_claim,
        lambda: state.set_armed(True),
        state.released,
        state.no_batch_runs,
        state.batch_is_over,
        lambda: state.processed(at(1), ended=False),
        lambda: state.fail(ValueError("it")),
    ):
        seen = state.version
        change()
        assert state.version != seen
