"""A look at topics counts only for where the group stood when it was taken."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pipeline_runtime.batch.inputs import GroupInput
from pipeline_runtime.journal.records import TOPIC_IDS
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.topics import TopicSeen
from pipeline_runtime.model.ids import Epoch
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.replica.state import ReplicaState
from pipeline_runtime.replica.topic_guard import TopicGuard

READS = GroupInput(
    index=0, source="a.out", schema=StreamSchema(fields=()), topic="t", consumer="a", external=True
)


def looked(guard: TopicGuard, *ends: int, id: str = "same") -> None:
    for end in ends:
        guard._found({"t": TopicSeen(id, (0,), (end,))})


def stands_at(offset: int) -> dict[str, Any]:
    return {"t-0": offset, TOPIC_IDS: {"t": "same"}}


def made() -> tuple[TopicGuard, ReplicaState]:
    state = ReplicaState()
    permit: Any = SimpleNamespace(epoch=Epoch(1))
    state.permit = permit
    guard = TopicGuard("g", KafkaSettings("none:1"), state)
    guard._inputs = (READS,)
    return guard, state


def test_rows_that_came_since_the_last_looks_are_no_other_topic() -> None:
    guard, state = made()
    looked(guard, 0, 0)
    guard.judge(stands_at(0), ())
    for offset in (1, 7, 40):
        guard.judge(stands_at(offset), ())
        assert (guard.error, state.held) == (None, False)
        looked(guard, offset - 1)
    looked(guard, 40, 40)
    guard.judge(stands_at(40), ())
    assert guard.error is None


def test_a_topic_that_stays_too_short_has_lost_records() -> None:
    guard, state = made()
    looked(guard, 40, 40)
    guard.judge(stands_at(40), ())
    looked(guard, 30, 30)
    guard.judge(stands_at(40), ())
    assert guard.error is not None
    assert (guard.error.code, state.held) == ("topic-recreated", True)


def test_another_id_counts_at_once() -> None:
    guard, _ = made()
    looked(guard, 40)
    guard.judge(stands_at(40), ())
    looked(guard, 0, id="new")
    guard.judge(stands_at(40), ())
    assert guard.error is not None


def test_an_owner_is_judged_by_each_look_once() -> None:
    guard, state = made()
    looked(guard, 40, 40)
    guard.claims_because(stands_at(40))
    looked(guard, 0, id="new")
    # What the guard would say of the look stays unsaid until it is asked, and is said from then on.
    assert guard.error is None
    for _ in range(2):
        guard.claims_because(stands_at(40))
        assert (guard.error is None, state.held) == (False, True)
    looked(guard, 40)
    guard.claims_because(stands_at(40))
    assert (guard.error, state.held) == (None, False)


def test_a_look_is_judged_again_by_the_next_owner() -> None:
    guard, state = made()
    looked(guard, 0, id="new")
    permit, state.permit = state.permit, None
    guard.claims_because(stands_at(40))
    assert guard.error is None
    state.permit = permit
    guard.claims_because(stands_at(40))
    assert guard.error is not None


def test_a_topic_is_gone_for_a_batch_that_reads_it_when_two_looks_did_not_find_it() -> None:
    guard, _ = made()
    looked(guard, 40)
    guard._found({"t": None})
    assert guard.gone(stands_at(0), stands_at(3)) is None, "a broker may have just started"
    guard._found({"t": None})
    assert guard.gone(stands_at(0), stands_at(3)) == "t"
    assert guard.gone(stands_at(3), stands_at(3)) is None, "it reads nothing of it"
    looked(guard, 0, id="new")
    assert guard.gone(stands_at(0), stands_at(3)) is None
