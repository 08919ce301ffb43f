"""A replica's directory as Spark leaves it when it dies at any step of a batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline_runtime.checkpoint.keyed_state import KeyedState
from pipeline_runtime.journal.records import Boundary, Claim, Commit
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.replica.local_state import (
    JournalMark,
    KeptBySpark,
    LocalStateDamaged,
    begin_fresh,
    beginning,
    drop_unfinished,
    last_committed,
    open_keyed,
    open_state,
    read_mark,
    size_bytes,
    write_mark,
)


def plan(directory: Path, batch: int) -> None:
    offsets = directory / "spark" / "offsets"
    offsets.mkdir(parents=True, exist_ok=True)
    (offsets / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{{"token":{batch + 1}}}')
    (offsets / f".{batch}.crc").write_bytes(b"crc")


def end(directory: Path, batch: int, seq: int) -> None:
    KeptBySpark(directory).commit(batch, Boundary(Seq(seq), {"in-0": seq * 10}, seq * 1000))


def done(directory: Path, batch: int, seq: int) -> None:
    plan(directory, batch)
    end(directory, batch, seq)
    finish(directory, batch)


def finish(directory: Path, batch: int) -> None:
    commits = directory / "spark" / "commits"
    commits.mkdir(parents=True, exist_ok=True)
    (commits / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    (commits / f".{batch}.crc").write_bytes(b"crc")


def view(last_seq: int) -> JournalView:
    found = JournalView()
    found.apply(Claim(Epoch(1), "o", "a", {"in-0": 0}))
    for seq in range(1, last_seq + 1):
        found.apply(Commit(Epoch(1), Boundary(Seq(seq), {"in-0": seq * 10}, 0), marks={"file": seq}))
    return found


def test_an_empty_directory_has_nothing(tmp_path: Path) -> None:
    assert last_committed(tmp_path) is None
    assert drop_unfinished(tmp_path) == []
    assert read_mark(tmp_path, Seq(0)) is None
    assert size_bytes(tmp_path) == 0


def test_the_newest_finished_batch_counts_by_number_not_by_text(tmp_path: Path) -> None:
    for batch in (8, 9, 10):
        done(tmp_path, batch, batch + 1)
    assert last_committed(tmp_path) == Boundary(Seq(11), {"in-0": 110}, 11_000)


def test_a_plan_without_its_commit_is_dropped_and_nothing_else(tmp_path: Path) -> None:
    for batch in (3, 4):
        done(tmp_path, batch, batch)
    plan(tmp_path, 5)
    assert last_committed(tmp_path) == Boundary(Seq(4), {"in-0": 40}, 4000)
    assert drop_unfinished(tmp_path) == [5]
    left = sorted(path.name for path in (tmp_path / "spark" / "offsets").iterdir() if path.name.isdigit())
    assert left == ["3", "4"]
    assert drop_unfinished(tmp_path) == []


def test_a_plan_of_the_very_first_batch_is_dropped(tmp_path: Path) -> None:
    plan(tmp_path, 0)
    assert last_committed(tmp_path) is None
    assert drop_unfinished(tmp_path) == [0]


def test_a_batch_that_spark_has_finished_without_rows_being_granted_is_dropped(tmp_path: Path) -> None:
    done(tmp_path, 3, 7)
    plan(tmp_path, 4)
    finish(tmp_path, 4)
    assert last_committed(tmp_path) == Boundary(Seq(7), {"in-0": 70}, 7000)
    assert drop_unfinished(tmp_path) == [4]
    for log in ("offsets", "commits"):
        left = [path.name for path in (tmp_path / "spark" / log).iterdir() if path.name.isdigit()]
        assert left == ["3"]


def test_an_end_that_was_noted_of_a_batch_that_did_not_finish_is_not_taken_for_the_next_one(
    tmp_path: Path,
) -> None:
    done(tmp_path, 3, 7)
    plan(tmp_path, 4)
    end(tmp_path, 4, 8)
    assert last_committed(tmp_path) == Boundary(Seq(7), {"in-0": 70}, 7000)
    assert drop_unfinished(tmp_path) == [4]
    plan(tmp_path, 4)
    finish(tmp_path, 4)
    assert last_committed(tmp_path) == Boundary(Seq(7), {"in-0": 70}, 7000)


@pytest.mark.parametrize("content", ["", "[]", "not json", '{"seq": 1}'])
def test_an_end_that_cannot_be_read_is_named(tmp_path: Path, content: str) -> None:
    done(tmp_path, 0, 1)
    (tmp_path / "spark" / "ends" / "0").write_text(content)
    with pytest.raises(LocalStateDamaged, match="ends/0 cannot be read"):
        last_committed(tmp_path)


def test_a_mark_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write_mark(tmp_path, JournalMark(17, view(3)))
    found = read_mark(tmp_path, Seq(3))
    assert found is not None
    assert found.offset == 17
    assert found.view.to_json() == view(3).to_json()
    assert found.view.marks == {"file": 3}


def test_a_mark_ahead_of_the_local_state_is_not_used(tmp_path: Path) -> None:
    write_mark(tmp_path, JournalMark(17, view(3)))
    assert read_mark(tmp_path, Seq(2)) is None
    assert read_mark(tmp_path, Seq(5)) is not None


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"journal_offset": 1}', '{"journal_offset": 1, "view": {}}']
)
def test_a_mark_that_cannot_be_read_is_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "replica.json").write_text(content)
    assert read_mark(tmp_path, Seq(9)) is None


def test_the_size_is_that_of_the_state(tmp_path: Path) -> None:
    state = tmp_path / "spark" / "state" / "0" / "0"
    state.mkdir(parents=True)
    (state / "1.changelog").write_bytes(b"x" * 100)
    (state / "2.zip").write_bytes(b"x" * 11)
    plan(tmp_path, 0)
    assert size_bytes(tmp_path) == 111


def test_a_state_that_is_begun_anew_stands_where_the_former_one_ended(tmp_path: Path) -> None:
    for batch in (3, 4):
        done(tmp_path, batch, batch)
    at = open_state(tmp_path)
    assert (at.seq, beginning(tmp_path).seq) == (4, 0)
    begin_fresh(tmp_path, at)
    assert not (tmp_path / "spark").exists()
    assert open_state(tmp_path) == beginning(tmp_path) == at
    # Spark begins to count again, and its batches count from there on.
    plan(tmp_path, 0)
    finish(tmp_path, 0)
    assert open_state(tmp_path) == at, "a first batch that was not granted is none"
    done(tmp_path, 0, 5)
    assert open_state(tmp_path).seq == 5
    assert (tmp_path / "spark" / "commits" / "0").exists()


@pytest.mark.parametrize("cut", ["before", "between", "after"])
def test_a_crash_while_a_state_is_begun_anew_leaves_none_of_the_former_one(tmp_path: Path, cut: str) -> None:
    done(tmp_path, 4, 4)
    at = open_state(tmp_path)
    (tmp_path / "fresh.json").write_text(json.dumps(at.to_json()))
    if cut != "before":  # it was set aside
        (tmp_path / "spark").rename(tmp_path / ".spark.former.tmp")
    if cut == "after":  # and half of it was removed
        (tmp_path / ".spark.former.tmp" / "offsets" / "4").unlink()
    assert open_state(tmp_path) == at
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fresh.json"]


def keyed(directory: Path, seq: int | None) -> None:
    end = None if seq is None else Boundary(Seq(seq), {"in-0": seq * 10}, seq * 1000).to_json()
    KeyedState.create(directory / "keyed", end)


def test_with_a_keyed_state_that_alone_says_where_it_stands(tmp_path: Path) -> None:
    done(tmp_path, 0, 3)
    keyed(tmp_path, 5)
    assert last_committed(tmp_path) == Boundary(Seq(5), {"in-0": 50}, 5000)
    assert open_state(tmp_path).seq == 5
    assert not (tmp_path / "spark").exists(), "what Spark has kept would be gone on from"
    assert size_bytes(tmp_path) == 0, "what Spark keeps is no more there"


def test_a_keyed_state_without_a_batch_is_none(tmp_path: Path) -> None:
    keyed(tmp_path, None)
    assert open_state(tmp_path) == Boundary(Seq(0), {}, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_keyed_state_is_left_behind_where_it_is_begun_anew(tmp_path: Path) -> None:
    keyed(tmp_path, 5)
    at = open_state(tmp_path)
    begin_fresh(tmp_path, at)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fresh.json"]
    keyed(tmp_path, None)
    assert open_state(tmp_path) == at
    keyed(tmp_path, 6)
    assert open_state(tmp_path).seq == 6


def test_a_damaged_keyed_state_says_so(tmp_path: Path) -> None:
    keyed(tmp_path, 5)
    (tmp_path / "keyed" / "CURRENT").unlink()
    with pytest.raises(LocalStateDamaged, match="CURRENT"):
        last_committed(tmp_path)


def test_a_group_without_a_processor_goes_on_from_where_spark_has_ended(tmp_path: Path) -> None:
    """Its definition before had its batches planned by Spark."""
    done(tmp_path, 0, 3)
    at = open_state(tmp_path)
    open_keyed(tmp_path, at, stateful=False).close()
    assert last_committed(tmp_path) == at
    assert sorted(path.name for path in tmp_path.iterdir()) == ["keyed"]


def test_a_processor_whose_state_is_missing_does_not_begin_with_an_empty_one(tmp_path: Path) -> None:
    done(tmp_path, 0, 3)
    with pytest.raises(LocalStateDamaged, match="keyed is missing"):
        open_keyed(tmp_path, open_state(tmp_path), stateful=True)
    assert not (tmp_path / "keyed").exists()


def test_before_the_first_batch_of_a_state_it_is_empty(tmp_path: Path) -> None:
    done(tmp_path, 0, 3)
    begin_fresh(tmp_path, open_state(tmp_path))
    open_keyed(tmp_path, open_state(tmp_path), stateful=True).close()
    assert last_committed(tmp_path) is None


def test_once_a_batch_of_spark_counts_it_says_where_a_group_stands_that_the_replica_kept_before(
    tmp_path: Path,
) -> None:
    keyed(tmp_path, 4)
    KeptBySpark(tmp_path).begin()
    plan(tmp_path, 0)
    end(tmp_path, 0, 5)
    assert open_state(tmp_path) == Boundary(Seq(4), {"in-0": 40}, 4000), "the batch of Spark did not finish"

    done(tmp_path, 0, 5)
    KeptBySpark(tmp_path).begin()
    assert open_state(tmp_path) == Boundary(Seq(5), {"in-0": 50}, 5000)
    assert not (tmp_path / "keyed").exists()
