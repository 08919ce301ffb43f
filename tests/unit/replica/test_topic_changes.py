"""Changes of a user's topic: how they are found, and where a group continues."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline_runtime.batch.inputs import GroupInput
from pipeline_runtime.journal.records import LEFT_OUT, TOPIC_IDS
from pipeline_runtime.kafka.topics import TopicSeen
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.replica.topic_changes import NOTHING_LEFT, oldest_left, renewed, topic_changes

STOOD = {"t-0": 40, "t-1": 7, TOPIC_IDS: {"t": "old"}}


def reading(partitions: int = 2, **options: Any) -> GroupInput:
    return GroupInput(0, "a.out", StreamSchema(fields=()), "t", partitions, "a", external=True, **options)


def kinds(ends: dict[str, Any], seen: TopicSeen | None, **options: Any) -> list[str]:
    return [change.kind for change in topic_changes([reading(**options)], ends, {"t": seen})]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (TopicSeen("old", (0, 0), (40, 7)), []),
        (TopicSeen("old", (40, 7), (90, 90)), []),
        (None, ["missing"]),
        (TopicSeen("new", (0, 0), (90, 90)), ["another"]),
        (TopicSeen("", (0, 0), (90, 90)), []),
        (TopicSeen("old", (0, 0), (39, 7)), ["another"]),
        (TopicSeen("old", (0,), (40,)), ["another"]),
        (TopicSeen("old", (0, 0, 0), (40, 7, 3)), ["partitions"]),
        (TopicSeen("old", (41, 0), (50, 7)), ["gap"]),
        (TopicSeen("old", (41, 8, 0), (50, 8, 0)), ["partitions", "gap", "gap"]),
    ],
)
def test_what_has_happened_to_a_topic(seen: TopicSeen | None, expected: list[str]) -> None:
    assert kinds(STOOD, seen) == expected


def test_a_topic_that_was_not_seen_or_not_read_has_not_changed() -> None:
    assert topic_changes([reading()], STOOD, {}) == []
    assert kinds({}, None) == []


@pytest.mark.parametrize(
    ("seen", "left"),
    [
        (TopicSeen("old", (3, 0), (40, 7)), [3, 0]),
        (TopicSeen("", (3, 0), (40, 7)), [3, 0]),
        (TopicSeen("new", (3, 0), (40, 7)), [NOTHING_LEFT, NOTHING_LEFT]),
        (None, [NOTHING_LEFT, NOTHING_LEFT]),
    ],
)
def test_nothing_that_was_read_is_left_of_a_topic_that_is_another_one(
    seen: TopicSeen | None, left: list[int]
) -> None:
    found = oldest_left(STOOD, {"t": seen})
    assert [found[key] for key in ("t-0", "t-1")] == left


def test_behind_a_gap_a_group_goes_on_by_itself_and_counts_what_it_leaves_out() -> None:
    seen = {"t": TopicSeen("old", (100, 0), (200, 9))}
    ends, passed = renewed([reading()], STOOD, seen, ())
    assert [change.kind for change in passed] == ["gap"]
    assert ends == {**STOOD, "t-0": 100, LEFT_OUT: {"t-0": 60}}
    later, _ = renewed([reading()], ends, {"t": TopicSeen("old", (105, 0), (200, 9))}, ())
    assert later[LEFT_OUT] == {"t-0": 65}


def test_a_group_that_stops_at_gaps_goes_on_once_a_person_has_said_so() -> None:
    seen, stops = {"t": TopicSeen("old", (100, 0), (200, 9))}, [reading(gap="stop")]
    assert renewed(stops, STOOD, seen, ()) == (STOOD, [])
    [change] = topic_changes(stops, STOOD, seen)
    assert change.way is not None
    ends, _ = renewed(stops, STOOD, seen, (change.way.id,))
    assert ends["t-0"] == 100
    next_gap = {"t": TopicSeen("old", (150, 0), (200, 9))}
    assert renewed(stops, ends, next_gap, (change.way.id,)) == (ends, []), "another gap is another question"


def test_a_topic_that_was_created_again_is_read_from_its_first_record() -> None:
    seen = {"t": TopicSeen("new", (3,), (10,))}
    assert renewed([reading()], STOOD, seen, ()) == (STOOD, [])
    [change] = topic_changes([reading()], STOOD, seen)
    assert change.way is not None
    ends, _ = renewed([reading()], {**STOOD, LEFT_OUT: {"t-1": 5}}, seen, (change.way.id,))
    assert ends == {"t-0": 3, TOPIC_IDS: {"t": "new"}, LEFT_OUT: {"t-1": 5}}
    third = {"t": TopicSeen("third", (0,), (2,))}
    assert renewed([reading()], ends, third, (change.way.id,)) == (ends, [])


def test_more_partitions_are_read_from_their_first_record() -> None:
    seen = {"t": TopicSeen("old", (0, 0, 2), (40, 7, 9))}
    assert renewed([reading()], STOOD, seen, ()) == (STOOD, [])
    ends, _ = renewed([reading(all_partitions=True)], STOOD, seen, ())
    assert ends == {**STOOD, "t-2": 2}


def test_what_one_look_may_have_got_wrong_is_not_sure() -> None:
    def sure(seen: TopicSeen | None) -> bool:
        [change] = topic_changes([reading()], STOOD, {"t": seen})
        return change.sure

    assert sure(TopicSeen("new", (0, 0), (90, 90)))
    assert not sure(None), "a broker that has just started may not know its topics yet"
    assert not sure(TopicSeen("old", (0, 0), (39, 7))), "a new leader may say less for a moment"
