"""How an owner waits for a schema registry, and how it goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from time import monotonic
from typing import Any

import pytest

from pipeline_runtime.formats.schema_registry import NoSuchSchema, SchemaRegistryError
from pipeline_runtime.model.desired import Directive, ReplicaError, WayOn
from pipeline_runtime.replica import registry_wait
from pipeline_runtime.replica.registry_wait import RegistryWait, places_of, ways_on
from pipeline_runtime.replica.run_registries import Needed, Place
from pipeline_runtime.replica.stalls import skipped
from pipeline_runtime.replica.state import ReplicaState
from tests.waiting import PATIENCE_S, wait_until

FAILED = ReplicaError.of("schema-registry", "The rows for the topic u wait: it is away.", 1)
SECRET = "hunter2-is-secret"
HERE = {"t-0": 57, "t-1": 3}
NEW = WayOn(id="schema 7 new plant", title="Read by the new schema", cost="...")


class Registry:
    """What is said of a question, until it is answered."""

    def __init__(self, error: SchemaRegistryError | None) -> None:
        self.error = error

    def ask(self) -> None:
        if self.error is not None:
            raise self.error


def needed(
    offset: int | None, *, unknown: bool = False, partition: int = 0, ask: Callable[[], object] = lambda: None
) -> Needed:
    place = None if offset is None else Place("t", partition, offset)
    return Needed("it is away.", ask, place, unknown)


def begun(*parts: Needed, end: int | None = None) -> tuple[RegistryWait, ReplicaState]:
    state = ReplicaState()
    permit: Any = object()
    state.own(permit)
    wait = RegistryWait(state, lambda *_: end, lambda: None)
    wait.begin(FAILED, parts)
    return wait, state


def test_what_lies_before_the_first_record_that_waits_is_processed() -> None:
    assert places_of([needed(57), needed(3, partition=1)]) == {"t-0": 57, "t-1": 3}
    assert places_of([needed(57), needed(None)]) == {}, "no row can be written"


def test_records_are_left_out_only_if_the_registry_has_no_such_schema() -> None:
    assert ways_on([needed(57)], lambda *_: 100) == ()
    one, all_ = ways_on([needed(57, unknown=True), needed(3, partition=1)], lambda *_: 100)
    assert (one.id, one.title) == ("leave t-0 57 58", "Skip 1 record")
    assert (all_.id, all_.title) == ("leave t-0 57 100", "Skip 43 records")
    assert len(ways_on([needed(57, unknown=True)], lambda *_: None)) == 1, "nobody knows the end"
    assert len(ways_on([needed(57, unknown=True)], lambda *_: 58)) == 1
    assert ways_on([replace(needed(None), way=NEW)], lambda *_: None) == (NEW,)


def test_an_owner_goes_on_when_the_registry_has_answered_and_says_what_it_says_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry_wait, "ASK_S_MAX", 0.0)
    registry = Registry(SchemaRegistryError("it is away."))
    wait, state = begun(needed(57, ask=registry.ask), end=60)
    assert state.waits == {"t-0": 57}
    assert wait.error is not None
    assert (
        wait.error.message == "The records of the topic t, partition 0, from offset 57 on wait: it is away."
    )
    assert wait.error.ways == ()

    def looks(condition: Callable[[], Any], what: str) -> None:
        wait_until(lambda: not wait.look(HERE) and condition(), what)

    registry.error = NoSuchSchema("it has no schema 9.")
    looks(lambda: wait.error and len(wait.error.ways) == 2, "the new words")
    assert wait.error.message.endswith("it has no schema 9.")
    assert wait.error.at_ms == 1, "since when it waits"
    registry.error = None
    looks(lambda: wait.error is None, "the answer")
    assert state.waits is None


def test_rows_that_cannot_be_written_wait_with_the_words_of_their_batch() -> None:
    wait, state = begun(needed(None))
    assert state.waits == {}
    assert wait.error == FAILED


def test_who_chooses_a_way_lets_it_go_on_at_once() -> None:
    wait, state = begun(needed(57, unknown=True, ask=Registry(NoSuchSchema("no")).ask))
    assert not wait.look(HERE)
    assert wait.error is not None
    state.direct(Directive(accepts=("leave t-0 56 57",)), exact=True)
    assert not wait.look(HERE), "that is another one"
    state.direct(Directive(accepts=(wait.error.ways[0].id,)), exact=True)
    assert not wait.look({"t-0": 40}), "what lies before is processed first"
    assert wait.look(HERE)
    assert (wait.error, state.waits) == (None, None)
    assert list(wait.chosen) == ["skip t-0 57 58"], "for the CLAIM"
    assert not wait.look(HERE)
    assert list(wait.chosen) == [], "the CLAIM has acted"


def test_a_choice_to_skip_does_not_act_when_the_registry_has_answered() -> None:
    registry = Registry(NoSuchSchema("no"))
    wait, state = begun(needed(57, unknown=True, ask=registry.ask), end=100)
    assert wait.error is not None
    accepted = tuple(way.id for way in wait.error.ways)
    state.direct(Directive(accepts=accepted), exact=True)
    state.wait_for_registry(None)  # the registry has answered before the group has come there
    for at in (57, 71):
        assert not wait.look({"t-0": at})
    assert (wait.chosen, skipped({"t-0": 71}, accepted)) == ((), ({"t-0": 71}, 0))
    wait.begin(FAILED, [needed(57, unknown=True, ask=registry.ask)])
    assert wait.look(HERE), "it waits there again"
    assert wait.chosen == ("skip t-0 57 100", "skip t-0 57 58")


def test_each_partition_leaves_out_its_records_when_it_has_come_to_them() -> None:
    both = needed(57, unknown=True), needed(3, unknown=True, partition=1)
    wait, state = begun(*both)
    assert wait.error is not None
    state.direct(Directive(accepts=(wait.error.ways[0].id,)), exact=True)
    assert wait.look({"t-0": 57, "t-1": 1})
    assert wait.chosen == ("skip t-0 57 58",)
    wait.begin(FAILED, both[1:])
    assert not wait.look({"t-0": 80, "t-1": 2})
    assert wait.look({"t-0": 80, "t-1": 3}), "nobody is asked again"
    assert wait.chosen == ("skip t-1 3 4",)


def test_a_choice_waits_until_its_records_are_reached_also_if_rows_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry_wait, "ASK_S_MAX", 0.0)
    output = Registry(SchemaRegistryError("it is away."))
    never = Registry(NoSuchSchema("no"))
    wait, state = begun(needed(57, unknown=True, ask=never.ask), needed(None, ask=output.ask))
    assert wait.error is not None
    state.direct(Directive(accepts=(wait.error.ways[0].id,)), exact=True)
    assert state.waits == {}, "nothing is processed"
    assert not wait.look({"t-0": 40})
    assert wait.error is not None
    output.error = None
    wait_until(lambda: not wait.look({"t-0": 40}) and state.waits == {"t-0": 57}, "rows to be written")
    assert wait.look(HERE)


def test_a_fault_of_the_asker_is_told_without_its_text_and_it_asks_again_after_its_pauses(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(registry_wait, "_pause_s", lambda tries: 1_000.0 * tries)
    asked, text = 0, "the password is " + SECRET

    def ask() -> None:
        nonlocal asked
        asked += 1
        raise ValueError(text)

    wait, _ = begun(needed(57, ask=ask))

    def told() -> bool:
        assert not wait.look(HERE)
        return wait.error is not None and "a fault of its own (ValueError)" in wait.error.message

    wait_until(told, "the words")
    assert wait._due_s > monotonic(), "the pause after a second try"
    assert not wait.look(HERE)
    assert asked == 1, "not at each look"
    assert "ValueError" in caplog.text
    assert SECRET not in caplog.text + str(wait.error)


def test_the_asking_thread_does_not_see_half_of_what_a_batch_lacks() -> None:
    state, entered = ReplicaState(), []

    def end_of(*_: Any) -> None:
        """Is asked while `begin` writes down what is lacked."""

        def enter() -> None:
            entered.append(state.changed.acquire(blocking=False))

        other = threading.Thread(target=enter)
        other.start()
        other.join(PATIENCE_S)

    RegistryWait(state, end_of, lambda: None).begin(FAILED, [needed(57, unknown=True)])
    assert entered == [False]


def test_another_batch_that_waits_is_waited_for_as_well() -> None:
    wait, state = begun(needed(57))
    wait.begin(FAILED, [needed(3, partition=1)])
    assert state.waits == {"t-0": 57, "t-1": 3}


def test_who_has_released_its_group_waits_for_nothing() -> None:
    wait, state = begun(needed(57))
    state.released()
    assert not wait.look(HERE)
    assert (wait.error, state.waits) == (None, None)
