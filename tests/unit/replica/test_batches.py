"""The end of a batch, without Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pipeline_runtime.batch.decode import TIMESTAMP
from pipeline_runtime.batch.gate_messages import Slice
from pipeline_runtime.batch.output import LETTERS, BatchOutput, packed
from pipeline_runtime.batch.tasks import ROWS_A_TASK, Tasks
from pipeline_runtime.journal.records import Boundary, Claim, Commit
from pipeline_runtime.kafka.transactions import Fenced
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.model.spec import ElementSpec, GroupSpec
from pipeline_runtime.operators.csv_sink import CsvSinkParams, CsvSinkWriter
from pipeline_runtime.replica.batch_commit import NotCommitted, NotDeterministic
from pipeline_runtime.replica.batches import Stopped
from pipeline_runtime.replica.state import ReplicaState
from pipeline_runtime.spark.tagged import TAGGED, output_of
from tests.unit.replica.one_run import OneRun, one_run

SPEC = GroupSpec(
    deployment="d",
    pipeline="p",
    group="g",
    elements=(ElementSpec(id="out", type="csv-sink", inputs={"in": "a.out"}),),
    schemas={"a.out": StreamSchema(fields=(Field(name="n", type=FieldType.INTEGER),))},
)
PATH = "elements/out/power.csv"


class Frame:
    """A group of one CSV sink; handed to foreachBatch, it is the batch as well."""

    sinks = {"out": "a.out"}

    def __init__(self, directory: Path) -> None:
        self._path = directory / PATH
        self.rows = 0

    def open_sink(self, _: str) -> CsvSinkWriter:
        return CsvSinkWriter(self._path, CsvSinkParams(header=False), ("n",))

    def toArrow(self) -> pa.Table:
        values = [f'{{"n": {n}}}' for n in range(self.rows)]
        columns = [["a.out"] * self.rows, [None] * self.rows, range(self.rows), values]
        return pa.table(columns, schema=TAGGED)

    def output(self, rows: pa.Table, _: int) -> BatchOutput:
        return output_of(rows, SPEC)


def follower(directory: Path, lengths: list[int], *, planned: bool = True) -> tuple[OneRun, Frame]:
    """One whose journal has a commit for each length of the sink's file."""
    state = ReplicaState()
    state.view.apply(Claim(Epoch(1), "o", "a"))
    for seq, length in enumerate(lengths, 1):
        marks = {"out": {"length": length, "rows": length // 3}}
        state.view.apply(Commit(Epoch(1), Boundary(Seq(seq), {"in-0": seq}, seq), marks=marks))
    (directory / "spark").mkdir(exist_ok=True)
    made = Frame(directory)
    return one_run(state, spec=SPEC, group=made, directory=directory, tasks=Tasks(1, planned=planned)), made


def grant(state: ReplicaState, seq: int) -> None:
    start = Boundary(Seq(seq - 1), {"in-0": seq - 1}, 0)
    state.grant(start, Boundary(Seq(seq), {"in-0": seq}, seq))


def process(run: OneRun, frame: Frame, seq: int, rows: int) -> None:
    frame.rows = rows
    grant(run.state, seq)
    run.batches.on_spark_batch(frame, seq)  # type: ignore[arg-type]


def test_it_is_known_how_long_the_sinks_files_were_at_each_seq(tmp_path: Path) -> None:
    run, frame = follower(tmp_path, [6, 6, 9])
    run.sinks.restore(Seq(0), {})
    assert run.growing.lengths(Seq(0)) == {PATH: 0}
    for seq, rows in ((1, 2), (2, 0), (3, 1)):
        process(run, frame, seq, rows)
    assert [run.growing.lengths(Seq(seq))[PATH] for seq in (1, 2, 3)] == [6, 6, 9]
    run.batches.close()
    again, _ = follower(tmp_path, [6, 6, 9])
    again.sinks.restore(Seq(2), {"out": {"length": 6, "rows": 2}})
    assert again.growing.lengths(Seq(2)) == {PATH: 6}
    assert (tmp_path / PATH).stat().st_size == 6
    again.batches.close()


def staying(directory: Path) -> tuple[OneRun, Frame]:
    """One whose task stays: Spark's call of the sink has begun, and waits for the task."""
    run, frame = follower(directory, [6, 9], planned=False)
    run.sinks.restore(Seq(0), {})
    run.batches.on_spark_batch(frame, 0)  # type: ignore[arg-type]
    return run, frame


def made(rows: int) -> bytes:
    times = pa.array([0] * rows, TIMESTAMP)
    sinks = {"a.out": pa.table({"n": range(rows), "_time": times})}
    return bytes(packed(BatchOutput({}, sinks, LETTERS.empty_table(), {"a.out": rows})))


def test_what_tasks_that_stay_have_made_ends_a_batch_in_their_order(tmp_path: Path) -> None:
    run, _ = staying(tmp_path)
    assert run.state.local == 0, "Spark's batch has no rows"
    grant(run.state, 1)
    run.batches.part_processed(0, made(2))
    assert run.state.local == 1
    grant(run.state, 2)
    run.batches.part_processed(0, made(1))
    assert (tmp_path / PATH).stat().st_size == 9
    run.batches.close()


def test_a_task_that_stays_longer_than_its_query_is_refused_and_nobody_fails_of_it(tmp_path: Path) -> None:
    run, _ = staying(tmp_path)
    run.batches.close()
    grant(run.state, 1)  # by the query that is on by now
    with pytest.raises(Stopped):
        run.batches.part_processed(0, made(2))
    assert run.state.failure is None
    assert run.state.local == 0


def test_a_task_that_was_let_go_gets_no_batch_a_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its fellow has not processed its own part, so the batch comes to nothing."""
    tasks = Tasks(2)
    tasks.processed(2 * ROWS_A_TASK)
    assert [part.task for part in tasks.planned(1)] == [0, 1]
    run = one_run(ReplicaState(), spec=SPEC, directory=tmp_path, tasks=tasks)
    monkeypatch.setattr(run.planner, "grant_next", lambda: [Slice(0, 1, 0), Slice(0, 1, 1)])
    monkeypatch.setattr(run.batches, "_end", SimpleNamespace(begin=lambda: None, close=lambda: None))
    grant(run.state, 1)
    assert run.batches.slices_of(1, 0) == [Slice(0, 1, 0)]
    assert run.batches.let_go() is False, "a batch was granted"
    run.batches.part_processed(0, made(1))
    assert run.batches.slices_of(1, 0) is None
    assert run.batches.slices_of(1, 1) == [Slice(0, 1, 1)], "its fellow may still end the batch"


def test_the_first_failure_counts(tmp_path: Path) -> None:
    """A task that stays fails of what its batch has raised, and Spark's batch of that."""
    run, frame = staying(tmp_path)
    grant(run.state, 1)
    with pytest.raises(NotDeterministic):
        run.batches.part_processed(0, made(5))

    def toArrow() -> pa.Table:
        raise RuntimeError("the task has failed")

    frame.toArrow = toArrow  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        run.batches.on_spark_batch(frame, 0)  # type: ignore[arg-type]
    assert isinstance(run.state.failure, NotDeterministic)


def test_a_batch_that_was_begun_before_a_rewind_is_not_committed_by_who_has_claimed_behind_it(
    tmp_path: Path,
) -> None:
    """An armed successor had begun what its owner had announced, and then claimed, as did another."""
    run, frame = follower(tmp_path, [6])
    run.sinks.restore(Seq(0), {})
    process(run, frame, 1, 2)
    run.state.view.apply(Claim(Epoch(2), "rewind", "a", rewind=Seq(0)))
    run.state.view.apply(Claim(Epoch(3), "restore", "b"))
    permit: Any = SimpleNamespace(epoch=run.state.view.granted)
    run.state.permit = permit
    with pytest.raises(NotCommitted, match="seq 1 was rewound"):
        process(run, frame, 2, 1)
    run.batches.close()


def test_a_batch_that_was_not_granted_is_no_batch(tmp_path: Path) -> None:
    run, frame = follower(tmp_path, [6])
    run.sinks.restore(Seq(0), {})
    process(run, frame, 1, 2)
    run.state.no_batch_runs()
    run.batches.on_spark_batch(frame, 2)  # type: ignore[arg-type]
    assert run.batches.engine_idle.is_set()
    assert (run.state.local, run.state.failure) == (1, None)
    assert [path.name for path in (tmp_path / "spark" / "ends").iterdir()] == ["1"]
    run.batches.close()


class NotedPermit:
    """Takes note of what is committed by it."""

    epoch = Epoch(2)

    def __init__(self) -> None:
        self.seqs: list[Seq] = []

    def commit(self, records: list[Commit], outputs: object = (), *, written: object) -> int:
        self.seqs += [record.seq for record in records]
        return 1


def test_what_the_journal_has_is_not_committed_again_by_who_has_claimed_meanwhile(tmp_path: Path) -> None:
    run, frame = follower(tmp_path, [6])
    run.sinks.restore(Seq(0), {})
    permit: Any = NotedPermit()
    run.state.permit = permit
    process(run, frame, 1, 2)
    process(run, frame, 2, 1)
    assert run.state.local == 2
    assert permit.seqs == [2]
    run.batches.close()


def test_what_spark_has_planned_is_written_for_topics_only_by_an_owner(tmp_path: Path) -> None:
    """A registry would be told the schema of rows that nobody writes."""
    run, frame = follower(tmp_path, [6])
    run.sinks.restore(Seq(0), {})
    permit: Any = NotedPermit()
    run.state.permit = permit
    written: list[BatchOutput] = []

    def noted(output: BatchOutput) -> BatchOutput:
        written.append(output)
        return output

    run.batches._end.written = noted  # type: ignore[method-assign]
    process(run, frame, 1, 2)
    assert (run.state.local, written) == (1, [])
    process(run, frame, 2, 1)
    assert (run.state.local, len(written)) == (2, 1)
    run.batches.close()


def test_an_owner_that_finds_its_batch_committed_by_another_is_fenced(tmp_path: Path) -> None:
    """Frozen after its batch was granted, it wakes when its successor has committed another one there."""
    run, frame = follower(tmp_path, [])
    run.sinks.restore(Seq(0), {})
    permit: Any = NotedPermit()
    run.state.permit = permit
    grant(run.state, 1)
    run.state.view.apply(Claim(Epoch(3), "successor", "b"))
    run.state.view.apply(Commit(Epoch(3), Boundary(Seq(1), {"in-0": 9}, 1), marks={"out": {}}))
    with pytest.raises(Fenced, match="committed by its new owner"):
        run.batches.on_spark_batch(frame, 1)  # type: ignore[arg-type]
    assert permit.seqs == []
    run.batches.close()


def test_of_a_batch_that_is_not_what_was_committed_nothing_is_known(tmp_path: Path) -> None:
    run, frame = follower(tmp_path, [6])
    run.sinks.restore(Seq(0), {})
    with pytest.raises(NotDeterministic):
        process(run, frame, 1, 1)
    assert run.growing.lengths(Seq(1)) == {}
    run.batches.close()
