"""How many rows wait for a group that does not process."""

from __future__ import annotations

from pipeline_runtime.journal.backlog import Input, processed, waiting_rows
from pipeline_runtime.journal.records import Boundary, Claim, Commit
from pipeline_runtime.kafka.clients import TopicPartition
from pipeline_runtime.model.ids import Epoch, Seq

OURS = Input("in-0", TopicPartition("in", 0), ours=True)
THEIRS = Input("outside-0", TopicPartition("outside", 0), ours=False)


def commit(seq: int, end: int, rows: int, key: str = "in-0") -> Commit:
    return Commit(Epoch(1), Boundary(Seq(seq), {key: end}, seq), rows_in=rows)


def test_what_lies_behind_the_last_batch_waits_but_for_the_markers() -> None:
    # Each transaction has 9 rows and a marker. The last marker of a batch is read with the next one.
    commits = [commit(seq, 10 * seq - 1, 9) for seq in range(1, 11)]
    known = processed(7, [Claim(Epoch(1), "o", "a", {"in-0": 0}), *commits], [OURS])
    assert waiting_rows(known, [OURS], {OURS.at: 100}) == 0, "only the last marker is left"
    assert waiting_rows(known, [OURS], {OURS.at: 1_100}) == 900


def test_a_topic_of_others_has_no_markers() -> None:
    known = processed(3, [commit(1, 50, 50, "outside-0"), commit(2, 90, 40, "outside-0")], [THEIRS])
    assert waiting_rows(known, [THEIRS], {THEIRS.at: 90}) == 0
    assert waiting_rows(known, [THEIRS], {THEIRS.at: 1_090}) == 1_000


def test_a_group_that_has_processed_nothing_waits_from_where_its_journal_begins() -> None:
    known = processed(1, [Claim(Epoch(1), "o", "a", {"outside-0": 20})], [THEIRS])
    assert waiting_rows(known, [THEIRS], {THEIRS.at: 120}) == 100


def test_it_is_unknown_how_many_rows_wait_if_the_journal_does_not_say_where_an_input_was_read_last() -> None:
    assert waiting_rows(processed(0, [], [THEIRS]), [THEIRS], {THEIRS.at: 120}) is None
    known = processed(1, [Claim(Epoch(1), "o", "a", {"outside-0": 20})], [THEIRS, OURS])
    assert waiting_rows(known, [THEIRS, OURS], {THEIRS.at: 120, OURS.at: 1}) is None
