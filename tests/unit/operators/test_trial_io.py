"""The harness for sources and sinks: those of Fogline pass it, and it finds the ones that break a rule."""

import csv
import io
import itertools
import json

import pyarrow as pa
import pytest

from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.operators.sdk import Params, SinkOperator, SinkWriter, SourceOperator, SourceReader
from pipeline_runtime.trial import at
from pipeline_runtime.trial_io import RuleBroken, trial_sink, trial_source
from tests.tables import as_table
from tests.unit.operators.conftest import schema_of
from tests.unit.operators.templates import recorded

SEEDS = range(4)
SCHEMA = schema_of(n="integer", s="string")
ROWS = [{"_time": at(n), "n": n, "s": f"row {n}"} for n in range(60)]
TEXT = "at,n,x\n" + "".join(f"2024-01-01T00:{n // 60:02}:{n % 60:02}Z,{n},{n / 2}\n" for n in range(200))


# -- Fogline's own -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("pace", [{"rate": 50}, {"rate": None, "speed": 30}, {"rate": 5, "catch_up": False}])
def test_a_replay_gives_each_row_once_and_the_same_again(operator, tmp_path, seed, pace):
    columns = {"at": "timestamp", "n": "integer", "x": "number"}
    facts = as_table(TEXT + "no,200,1\n", tmp_path / "upload:f", columns, time="at")
    params = {"path": "upload:f", "restamp": False, "loops": 2, **pace}
    replay = operator("csv-replay", params, describe_file=lambda reference: facts.model_dump_json().encode())
    found = trial_source(replay, seed=seed, resolve_file=lambda reference: tmp_path / reference)
    assert [row["n"] for row in found.rows] == [*range(200), *range(200)]
    assert found.rows[3] == {"at": found.rows[3]["_time"], "n": 3, "x": 1.5, "_time": found.rows[3]["_time"]}
    assert found.rejected == ['column "at" holds no time'] * 2


@pytest.mark.parametrize("name", ["wind-turbine", "household-power"])
def test_a_shipped_recording_is_replayed_as_its_file_has_it(operator, name):
    replay = operator("csv-replay", {"path": f"demo:{name}", "rate": 5000, "restamp": False})
    found = trial_source(replay, rows_max=20_000)
    assert found.rejected == []
    assert found.rows == recorded(replay, replay.output_schema({}))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_generator_that_pauses_gives_each_row_once_and_the_same_again(operator, seed):
    found = trial_source(operator("generator", {"rate": 20, "rows": 300, "keys": 3}), seed=seed)
    assert [row["n"] for row in found.rows] == list(range(300))
    times = [row["_time"] for row in found.rows]
    assert times == sorted(times)


def test_an_endless_source_is_read_as_far_as_asked(operator):
    assert len(trial_source(operator("generator", {"rate": 1000}), rows_max=700).rows) == 700


@pytest.mark.parametrize("seed", range(10))
def test_a_csv_file_has_each_row_once_whatever_happens_to_its_sink(operator, seed):
    files = trial_sink(operator("csv-sink", {"file": "a.csv"}), ROWS, SCHEMA, seed=seed)
    assert list(files) == ["a.csv"]
    lines = csv.DictReader(io.StringIO(files["a.csv"].decode(), newline=""))
    assert [(int(line["n"]), line["s"]) for line in lines] == [(row["n"], row["s"]) for row in ROWS]


# -- sources that break a rule -----------------------------------------------------------------------


class Counting(SourceReader):
    """Numbers, 100 in all."""

    def __init__(self):
        self.calls = 0

    def initial(self, now_ms):
        return {"row": 0}

    def advance(self, start, now_ms, rows_max):
        return {"row": min(start["row"] + rows_max, 100)}

    def read(self, start, end):
        self.calls += 1
        numbers = range(start["row"], end["row"])
        yield pa.record_batch(
            {
                "n": pa.array(self.values(numbers), pa.int64()),
                "_time": pa.array([at(n) for n in numbers], pa.timestamp("us", "UTC")),
                "_offset": pa.array(self.offsets(numbers), pa.int64()),
            }
        )

    def values(self, numbers):
        return list(numbers)

    def offsets(self, numbers):
        return list(numbers)

    def rows_between(self, start, end):
        return end["row"] - start["row"]

    def ended(self, position):
        return position["row"] >= 100


class CountsCalls(Counting):
    def values(self, numbers):
        return [n + self.calls for n in numbers]


class CountsFromThePiece(Counting):
    """The same for the same two positions, but not for the rows in one piece."""

    def values(self, numbers):
        return list(range(len(numbers)))


class GivesTooMuch(Counting):
    def advance(self, start, now_ms, rows_max):
        return {"row": min(start["row"] + rows_max + 1, 100)}


class ForgetsOffsets(Counting):
    def offsets(self, numbers):
        return [0 for _ in numbers]


class ForgetsTypes(Counting):
    def read(self, start, end):
        for batch in super().read(start, end):
            index = batch.schema.names.index("n")
            yield batch.set_column(index, "n", batch.column(index).cast(pa.float64()))


class KeepsAnObject(Counting):
    def initial(self, now_ms):
        return {"row": 0, "since": at(0)}


def source_of(reader):
    class Source(SourceOperator):
        type, title, summary, category, icon = "counting", "Counting", "", "sources", "sigma"
        Params = Params

        def output_schema(self, inputs):
            return StreamSchema(fields=(Field(name="n", type=FieldType.INTEGER),))

        def open(self, ctx):
            return reader()

    return Source(Params())


def test_what_the_faulty_ones_are_made_of_passes():
    assert [row["n"] for row in trial_source(source_of(Counting)).rows] == list(range(100))


@pytest.mark.parametrize(
    ("reader", "why"),
    [
        (CountsCalls, r"read again, the source gives other rows from {'row': \d+} to {'row': \d+}"),
        (CountsFromThePiece, "read again, the source gives other rows"),
        (GivesTooMuch, "at most [0-9]+ rows were asked for"),
        (ForgetsOffsets, "_offset does not rise: 0, then 0"),
        (ForgetsTypes, "the column n is double, but has to be int64"),
        (KeepsAnObject, "the initial position is no JSON"),
    ],
)
def test_a_source_that_breaks_a_rule_is_found(reader, why):
    with pytest.raises(RuleBroken, match=why):
        trial_source(source_of(reader))


# -- sinks that break a rule -------------------------------------------------------------------------


class Lines(SinkWriter):
    """Numbers as lines of a file; the mark is its length."""

    def __init__(self, path):
        self.path = path
        self.file = None

    def restore(self, mark):
        self.file = self.path.open("r+b" if self.path.exists() else "w+b", buffering=self.buffering())
        self.file.truncate(mark or 0)
        self.file.seek(mark or 0)

    def buffering(self):
        return 0

    def write(self, rows, seq):
        self.file.write("".join(f"{n}\n" for n in rows["n"].to_pylist()).encode())
        return self.file.tell()

    def lengths(self, mark):
        return {self.path.name: mark or 0}

    def close(self):
        self.file.close()


class NeverUndoes(Lines):
    def restore(self, mark):
        self.file = self.path.open("ab", buffering=0)


class ForgetsToFlush(Lines):
    def buffering(self):
        return 1 << 20


class CountsWrites(Lines):
    writes = itertools.count()

    def write(self, rows, seq):
        super().write(rows, seq)
        return [self.file.tell(), next(self.writes)]

    def restore(self, mark):
        super().restore(mark and mark[0])

    def lengths(self, mark):
        return super().lengths(mark and mark[0])


class TellsTooShortLengths(Lines):
    """And a file that lacks what was committed is filled with zeros by `truncate`."""

    def lengths(self, mark):
        return {self.path.name: (mark or 0) // 2}


class SkipsWhatItHasSeen(Lines):
    """By Seq alone: a batch that was not committed comes again with other rows."""

    def restore(self, mark):
        self.file = self.path.open("ab", buffering=0)
        seen = self.path.with_suffix(".seq")
        self.seen = json.loads(seen.read_text()) if seen.exists() else {}

    def write(self, rows, seq):
        if str(seq) not in self.seen:
            self.seen[str(seq)] = super().write(rows, seq)
            self.path.with_suffix(".seq").write_text(json.dumps(self.seen))
        return self.seen[str(seq)]

    def lengths(self, mark):
        return {}


def sink_of(writer):
    class Sink(SinkOperator):
        type, title, summary, category, icon = "lines", "Lines", "", "sinks", "sigma"
        Params = Params

        def output_schema(self, inputs):
            return inputs["in"]

        def open(self, ctx):
            return writer(ctx.directory / "lines")

    return Sink(Params())


WANTED = "".join(f"{row['n']}\n" for row in ROWS).encode()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_sink_that_the_faulty_ones_are_made_of_passes(seed):
    assert trial_sink(sink_of(Lines), ROWS, SCHEMA, seed=seed) == {"lines": WANTED}


@pytest.mark.parametrize(
    "writer", [NeverUndoes, ForgetsToFlush, CountsWrites, TellsTooShortLengths, SkipsWhatItHasSeen]
)
def test_a_sink_that_breaks_a_rule_is_found(writer):
    def holds(seed):
        try:
            return trial_sink(sink_of(writer), ROWS, SCHEMA, seed=seed)["lines"] == WANTED
        except RuleBroken:
            return False

    assert [holds(seed) for seed in SEEDS] == [False] * len(SEEDS)


def test_a_mark_that_is_another_one_the_second_time_is_told():
    with pytest.raises(RuleBroken, match=r"written again, seq \d+ has another mark: \[\d+, \d+\]; the first"):
        trial_sink(sink_of(CountsWrites), ROWS, SCHEMA)
