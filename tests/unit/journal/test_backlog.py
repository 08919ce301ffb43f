"""Tests the count of the rows that wait for a group that does not process."""

from __future__ import annotations

import pytest

from pipeline_runtime.journal.backlog import Input, processed, waiting_rows
from pipeline_runtime.journal.records import TOPIC_IDS, Boundary, Claim, Commit
from pipeline_runtime.kafka.clients import TopicPartition
from pipeline_runtime.kafka.topics import TopicSeen
from pipeline_runtime.model.ids import Epoch, Seq

OURS = Input("in-0", TopicPartition("in", 0))


def commit(seq: int, end: int, rows: int, key: str = "in-0") -> Commit:
    return Commit(Epoch(1), Boundary(Seq(seq), {key: end}, seq), rows_in=rows)


def test_what_lies_behind_the_last_batch_waits_but_for_the_markers() -> None:
    # Each transaction has 9 rows and a marker. The last marker of a batch is read with the next one.
    commits = [commit(seq, 10 * seq - 1, 9) for seq in range(1, 11)]
    known = processed(7, [Claim(Epoch(1), "o", "a", {"in-0": 0}), *commits], ["in"])
    assert waiting_rows(known, [OURS], {OURS.at: 100}, {}) == 0, "only the last marker is left"
    assert waiting_rows(known, [OURS], {OURS.at: 1_100}, {}) == 900


def test_a_topic_of_others_has_no_markers() -> None:
    known = processed(3, [commit(1, 50, 50, "outside-0"), commit(2, 90, 40, "outside-0")], ["outside"])
    assert waiting_rows(known, [], {}, {"outside": TopicSeen("", (0,), (90,))}) == 0
    assert waiting_rows(known, [], {}, {"outside": TopicSeen("", (0,), (1_090,))}) == 1_000


@pytest.mark.parametrize(
    ("seen", "waiting"),
    [
        (TopicSeen("old", (0, 0), (40, 7)), 0),
        (TopicSeen("old", (0, 0), (50, 7)), 10),
        (TopicSeen("old", (45, 0), (50, 7)), 5),  # retention has deleted 5 of the 10
        (TopicSeen("old", (60, 0), (60, 7)), 0),
        (TopicSeen("old", (0, 0, 2), (40, 7, 9)), 7),  # it has one more partition
        (TopicSeen("new", (0, 0), (4, 3)), 7),  # it was created again
        (TopicSeen("new", (0, 0), (90, 90)), 180),
        (TopicSeen("new", (0,), (4,)), 4),
        (TopicSeen("", (0, 0), (4, 7)), 4),  # a broker without ids: it ends before what was read
        (None, None),
    ],
)
def test_what_is_left_of_a_topic_of_others_waits(seen: TopicSeen | None, waiting: int | None) -> None:
    position = {"t-0": 40, "t-1": 7, TOPIC_IDS: {"t": "old"}}
    known = processed(1, [Claim(Epoch(1), "o", "a", position)], ["t"])
    assert waiting_rows(known, [], {}, {"t": seen}) == waiting


def test_a_group_that_has_processed_nothing_waits_from_where_its_journal_begins() -> None:
    known = processed(1, [Claim(Epoch(1), "o", "a", {"outside-0": 20})], ["outside"])
    assert waiting_rows(known, [], {}, {"outside": TopicSeen("", (0,), (120,))}) == 100


def test_it_is_unknown_how_many_rows_wait_if_the_journal_does_not_say_where_an_input_was_read_last() -> None:
    outside = {"outside": TopicSeen("", (0,), (120,))}
    assert waiting_rows(processed(0, [], ["outside"]), [], {}, outside) is None
    known = processed(1, [Claim(Epoch(1), "o", "a", {"outside-0": 20})], ["outside", "in"])
    assert waiting_rows(known, [OURS], {OURS.at: 1}, outside) is None
