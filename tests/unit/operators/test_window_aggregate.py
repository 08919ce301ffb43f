"""Laws of the window aggregate."""

# ruff: noqa: DTZ001 - what a wall clock shows has no zone

import json
import random
import statistics
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from pipeline_runtime.batch.batched import BatchWork
from pipeline_runtime.operators.aggregates import Function, evaluate
from pipeline_runtime.operators.sdk import OperatorContext
from pipeline_runtime.trial import StatesInMemory, at, port_table, processed, trial
from tests.unit.operators.conftest import dicts, schema_of

SCHEMA = schema_of(key="k", k="string", n="integer", x="number", t="timestamp")
ROWS = [(0.0, "a", 1, 1.0), (0.5, "a", 3, 2.0), (0.9, "b", 10, None), (1.0, "a", 5, 4.0)]
COUNT = [{"function": "count", "as": "n"}]


def aggregates(*functions, column="x"):
    return [{"function": function, "column": column, "as": function} for function in functions]


@pytest.fixture
def run(operator):
    def of(params, rows, *, late=0, **options):
        outcome = trial(operator("window-aggregate", params), given(rows), SCHEMA, **options)
        assert len(outcome.rejected) == late
        return outcome.rows

    return of


@pytest.fixture
def stream(operator):
    """(window's start, rows in it) of what is emitted of these batches before the input ends."""

    def of(params, batches, *, ends=False):
        window = operator("window-aggregate", {"size_s": 1, "aggregates": COUNT, **params})
        given_batches = [{"in": given([(second, "a", 1, 1.0) for second in batch])} for batch in batches]
        found = processed(window, given_batches, {"in": SCHEMA}, ends=ends).rows
        return [(row["window_start"], row["n"]) for row in found]

    return of


def given(rows):
    return dicts([(*row, None) if len(row) < 5 else row for row in rows], SCHEMA)


def test_each_window_has_its_rows(run):
    found = run({"size_s": 1, "aggregates": aggregates("sum", "count", column="n")}, ROWS)
    assert [(r["window_start"], r["window_end"], r["sum"], r["count"]) for r in found] == [
        (at(0), at(1), 14, 3),
        (at(1), at(2), 5, 1),
    ]
    assert [row["_time"] for row in found] == [at(1), at(2)]


def test_keys_are_aggregated_apart(operator, run):
    params = {"size_s": 10, "keys": ["k"], "aggregates": aggregates("max")}
    assert {row["k"]: row["max"] for row in run(params, ROWS)} == {"a": 4.0, "b": None}
    assert operator("window-aggregate", params).output_schema({"in": SCHEMA}).key == "k"


def test_sliding_windows_overlap(run):
    found = run({"size_s": 1, "slide_s": 0.5, "aggregates": COUNT}, ROWS)
    assert [(row["window_start"], row["n"]) for row in found] == [
        (at(-0.5), 1),
        (at(0), 3),
        (at(0.5), 3),
        (at(1), 1),
    ]


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_every_function_is_what_it_says(run, seed):
    values = [4.0, 1.0, None, 7.5, 2.0]
    names = ["avg", "min", "max", "sum", "count", "first", "last", "stddev", "relative_variation"]
    rows = [(i / 10, "a", i, value) for i, value in enumerate(values)]
    (row,) = run({"size_s": 10, "aggregates": aggregates(*names)}, rows, seed=seed)
    there = [value for value in values if value is not None]
    assert {name: row[name] for name in names} == {
        "avg": pytest.approx(statistics.mean(there)),
        "min": 1.0,
        "max": 7.5,
        "sum": 14.5,
        "count": 4,
        "first": 4.0,
        "last": 2.0,
        "stddev": pytest.approx(statistics.stdev(there)),
        "relative_variation": pytest.approx(6.5 / statistics.mean(there) * 100),
    }


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_every_function_is_what_it_says_in_windows_that_overlap_however_rows_are_cut(run, seed):
    """There are panes without rows, windows without values, and keys that come and go."""
    chance = random.Random(7)
    rows = [
        (second, chance.choice("ab"), n, chance.choice([None, None, chance.uniform(-9, 9)]))
        for n, second in enumerate(sorted(chance.choices([*range(12), *range(30, 40)], k=40)))
    ]
    asked = [*aggregates(*Function), {"function": "count", "as": "rows"}]
    found = run({"size_s": 7, "slide_s": 2, "keys": ["k"], "aggregates": asked}, rows, seed=seed)
    expected = {}
    for second, key, _, value in rows:
        first = round(at(second).timestamp() - 7) // 2 * 2 + 2
        for start in range(first, round(at(second).timestamp()) + 1, 2):
            expected.setdefault((start, key), []).append(value)
    assert [(row["window_start"].timestamp(), row["k"]) for row in found] == sorted(expected)
    for row, (_, values) in zip(found, sorted(expected.items()), strict=True):
        assert row["rows"] == len(values)
        for function in Function:
            wanted = evaluate(function, values, len(values))
            assert row[function] == (None if wanted is None else pytest.approx(wanted))


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_texts_and_times_have_a_first_and_a_smallest_too(run, seed):
    rows = [(0.2, "b", 1, 1.0, at(9)), (0.1, "c", 1, 1.0, None), (0.3, None, 1, 1.0, at(8))]
    params = {"size_s": 10}
    ordered = ("min", "max", "first", "last", "count")
    (row,) = run({**params, "aggregates": aggregates(*ordered, column="k")}, rows, seed=seed)
    assert [row[name] for name in ordered] == ["b", "c", "c", "b", 2]
    (row,) = run({**params, "aggregates": aggregates(*ordered, column="t")}, rows, seed=seed)
    assert [row[name] for name in ordered] == [at(8), at(9), at(9), at(8), 2]


def test_an_average_of_zero_and_an_overflow_are_null_not_an_error(run):
    params = {"size_s": 10, "aggregates": aggregates("relative_variation", "sum", column="n")}
    (row,) = run(params, [(0, "a", 0, 0.0), (1, "a", 0, 0.0)])
    assert (row["relative_variation"], row["sum"]) == (None, 0)
    (row,) = run(params, [(0, "a", 2**62, 0.0), (1, "a", 2**62, 0.0)])
    assert row["sum"] is None
    # That the sum has been too large on its way is no matter.
    rows = [(0, "a", 2**62, 0.0), (1, "a", 2**62, 0.0), (2, "a", -(2**62), 0.0)]
    (row,) = run(params, rows, seed=1)
    assert row["sum"] == 2**62


@pytest.mark.parametrize("function", ["avg", "sum", "stddev", "relative_variation"])
def test_a_result_too_large_for_a_number_is_null(run, function):
    rows = [(0, "a", 1, 1.7e308), (1, "a", 1, 1.7e308), (2, "a", 1, -1e308)]
    (row,) = run({"size_s": 10, "aggregates": aggregates(function)}, rows)
    assert row[function] is None


def test_a_window_is_emitted_by_the_row_that_completes_it(stream):
    assert stream({}, [[0, 0.9]]) == []
    assert stream({}, [[0, 0.9, 1.0]]) == [(at(0), 2)]
    assert stream({"delay_s": 2}, [[0, 0.9], [2.9]]) == []
    assert stream({"delay_s": 2}, [[0, 0.9], [2.9], [3]]) == [(at(0), 2)]


def test_the_end_of_the_input_closes_what_is_open(stream):
    assert stream({"delay_s": 60}, [[0, 0.5], [1.5]], ends=True) == [(at(0), 2), (at(1), 1)]


def test_a_row_that_no_window_takes_goes_to_the_dead_letters_and_says_why(operator):
    window = operator("window-aggregate", {"size_s": 1, "slide_s": 0.5, "delay_s": 0.5, "aggregates": COUNT})
    rows = given([(0, "a", 1, 1.0), (1.9, "a", 1, 1.0), (0.6, "a", 7, 2.5, at(3)), (0.4, "é", 8, None)])
    rows.append({**rows[0], "_time": None})
    found = letters(window, rows)
    assert found == [
        ("the row has no event time", {"k": "a", "n": 1, "x": 1.0, "t": None}),
        (
            "it came late: a row that is 1.500 s newer came before it, and the delay is 0.5 s",
            {"k": "é", "n": 8, "x": None, "t": None},
        ),
    ]
    # The third is in one of its windows.
    assert letters(window, rows[:3]) == []
    assert letters(window, rows[-1:]) == found[:1]


def test_a_late_row_is_quoted_also_with_a_time_that_python_does_not_have(operator):
    window = operator("window-aggregate", {"size_s": 1, "aggregates": COUNT})
    table = port_table(given([(5, "a", 1, 1.0), (0, "a", 2, 1.0, at(0))]), SCHEMA)
    before_christ = pa.array([0, -62167219200000000], pa.timestamp("us", "UTC"))
    [(_, row)] = letters(window, [], table.set_column(table.schema.names.index("t"), "t", before_christ))
    assert row == {"k": "a", "n": 2, "x": 1.0, "t": "0000-01-01T00:00:00.000000Z"}


def test_a_row_for_windows_that_ended_with_the_input_says_so(operator):
    window, states = operator("window-aggregate", {"size_s": 60, "aggregates": COUNT}), StatesInMemory()
    letters(window, given([(10, "a", 1, 1.0)]), states=states, at_end=True)
    [(reason, _)] = letters(window, given([(30, "a", 1, 1.0)]), states=states)
    assert reason == "it came late: its result had been emitted already"


def letters(window, rows, table=None, states=None, at_end=False):
    output = window.output_schema({"in": SCHEMA})
    context = OperatorContext("w", output, {"in": SCHEMA}, Path(), Path)
    work = BatchWork(window, [("in", SCHEMA)], context)
    ports = {"in": port_table(rows, SCHEMA) if table is None else table}
    made = work.process(ports, states or StatesInMemory(), at_end=at_end)
    return [(letter.reason, json.loads(letter.raw)) for letter in made.letters]


@pytest.mark.parametrize(
    "batches", [[[0], [2.5], [0.1, 9], [9.1], [0.2], [99]], [[0, 2.5, 0.1, 9, 9.1, 0.2, 99]]]
)
def test_a_row_that_comes_behind_the_one_that_completes_its_window_is_left_out(stream, batches):
    assert stream({"delay_s": 2}, batches) == [(at(0), 2), (at(2), 1), (at(9), 2)]


def test_rows_of_other_partitions_do_not_make_those_of_the_same_batch_late(operator):
    window = operator("window-aggregate", {"size_s": 1, "aggregates": COUNT})
    rows = [{**row, "_partition": place} for place in (0, 1) for row in given(ROWS)]
    found = processed(window, [{"in": rows}], {"in": SCHEMA}).rows
    assert [row["n"] for row in found] == [6, 2]


@pytest.mark.parametrize("seed", range(12))
def test_windows_are_those_of_an_oracle_however_rows_are_cut_and_late(run, seed):
    """Row by row, as the page says it; in tenths of a second."""
    chance = random.Random(seed)
    size, slide = chance.choice([(10, 10), (30, 10), (20, 5), (10, 7), (17, 3)])
    delay, offset = chance.choice([0, 15]), chance.choice([0, 4])
    times, clock = [], 0
    for _ in range(120):
        clock += chance.choice([0, 1, 4, 20])
        times.append(max(0, clock - chance.choice([0, 0, 3, 25])))
    rows = [(time / 10, chance.choice("ab"), number, 1.0) for number, time in enumerate(times)]
    expected, newest, late = {}, -1000, 0
    base = round(at(0).timestamp()) * 10
    for time, (_, key, number, _) in zip(times, rows, strict=True):
        start = (base + time - offset) // slide * slide + offset - base
        late += start + size <= newest - delay
        while start + size > time:
            if start + size > newest - delay:
                expected.setdefault((start, key), []).append(number)
            start -= slide
        newest = max(newest, time)

    found = run(
        {
            "size_s": size / 10,
            "slide_s": slide / 10,
            "delay_s": delay / 10,
            "offset_s": offset / 10,
            "keys": ["k"],
            "aggregates": aggregates("sum", "first", "last", "count", column="n"),
        },
        rows,
        seed=seed,
        late=late,
    )

    made = {
        (round((row["window_start"] - at(0)).total_seconds() * 10), row["k"]): (row["sum"], row["count"])
        for row in found
    }
    assert len(made) == len(found), "each window once"
    assert made == {group: (sum(numbers), len(numbers)) for group, numbers in expected.items()}


def test_units_pass_and_variation_is_in_per_cent(operator):
    from pipeline_runtime.model.schema import Field, StreamSchema

    schema = StreamSchema(fields=(Field(name="p", type="integer", unit="kW"),))
    window = operator(
        "window-aggregate",
        {"size_s": 1, "aggregates": aggregates("avg", "max", "count", "relative_variation", column="p")},
    )
    fields = {f.name: (f.type.value, f.unit) for f in window.output_schema({"in": schema}).fields}
    assert fields["avg"] == ("number", "kW")
    assert fields["max"] == ("integer", "kW")
    assert fields["count"] == ("integer", None)
    assert fields["relative_variation"] == ("number", "%")


def test_names_that_clash_and_columns_that_are_missing_are_told(operator, mismatch):
    params = {
        "size_s": 1,
        "aggregates": [
            {"function": "avg", "column": "x", "as": "v"},
            {"function": "min", "column": "x", "as": "V"},
            {"function": "avg", "column": "k"},
        ],
    }
    assert mismatch(operator("window-aggregate", params), **{"in": SCHEMA}) == [
        "params.aggregates[2].column",
        "params.aggregates",
    ]


def test_a_slide_longer_than_the_window_is_refused(operator):
    with pytest.raises(ValueError, match="would be lost"):
        operator("window-aggregate", {"size_s": 1, "slide_s": 2, "aggregates": aggregates("avg")})


def test_the_demo_recording_has_three_windows_above_30_per_cent(operator, context, registry, tmp_path):
    """Known facts of the recording: 3 one-second windows each of mf01 and mf02."""
    source = operator(
        "csv-replay", {"path": "demo:debs2012", "keep": ["mf01", "mf02", "mf03"], "restamp": False}
    )
    reader = source.open(context(source))
    start = reader.initial(0)
    end = reader.advance(start, 10**9, 10**6)
    windows = {}
    for batch in reader.read(start, end):
        for row in batch.to_pylist():
            second = int(row["_time"].timestamp())
            windows.setdefault(second, []).append((row["mf01"], row["mf02"], row["mf03"]))
    above = [0, 0, 0]
    for rows in windows.values():
        for phase in range(3):
            values = [row[phase] for row in rows]
            above[phase] += (max(values) - min(values)) / statistics.mean(values) > 0.30
    assert above[:2] == [3, 3]


def test_a_late_row_of_a_stream_without_columns_is_a_dead_letter(operator):
    schema = schema_of()
    rows = [{"_time": at(second)} for second in (5, 0)]
    found = processed(
        operator("window-aggregate", {"size_s": 1, "aggregates": COUNT}), [{"in": rows}], {"in": schema}
    )
    assert len(found.rejected) == 1
    assert [row["n"] for row in found.rows] == [1]


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("size_h", "begins_h", "day"),
    [
        (24, 0, datetime(2026, 3, 29)),
        (24, 6, datetime(2026, 3, 28)),
        (24, 0, datetime(2026, 10, 25)),
        (8, 6, datetime(2026, 10, 25)),
        (1, 0, datetime(2026, 3, 29)),
        (1, 0, datetime(2026, 10, 25)),
        (24, 6, datetime(2026, 7, 1)),
    ],
)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_windows_of_a_zone_begin_when_its_clocks_show_the_time(run, size_h, begins_h, day, seed):
    """A row every 10 minutes of three days: the clocks are asked for each."""
    first = day.replace(tzinfo=BERLIN).astimezone(UTC)
    moments = [first + timedelta(minutes=10 * number) for number in range(3 * 24 * 6)]
    rows = [((moment - at(0)).total_seconds(), "a", 1, 1.0) for moment in moments]
    found = run(
        {
            "size_s": size_h * 3600,
            "offset_s": begins_h * 3600,
            "zone": "Europe/Berlin",
            "aggregates": COUNT,
        },
        rows,
        seed=seed,
    )
    counted = Counter()
    for moment in moments:
        wall = moment.astimezone(BERLIN).replace(tzinfo=None) - timedelta(hours=begins_h)
        hours = (wall - datetime(1970, 1, 1)) // timedelta(hours=size_h) * size_h
        counted[datetime(1970, 1, 1) + timedelta(hours=hours + begins_h)] += 1
    told = {row["window_start"].astimezone(BERLIN).replace(tzinfo=None): row["n"] for row in found}
    assert told == counted
    assert sum(told.values()) == len(rows)
    assert all(one["window_end"] <= other["window_start"] for one, other in pairwise(found))


def test_a_day_in_which_the_clocks_are_changed_has_23_or_25_hours(run):
    params = {"size_s": 86400, "zone": "Europe/Berlin", "aggregates": COUNT}
    for day, hours in ((datetime(2026, 3, 29), 23), (datetime(2026, 10, 25), 25), (datetime(2026, 5, 1), 24)):
        noon = day.replace(hour=12, tzinfo=BERLIN)
        (row,) = run(params, [((noon - at(0)).total_seconds(), "a", 1, 1.0)])
        assert row["window_end"] - row["window_start"] == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"zone": "Europe/Atlantis", "size_s": 86400}, "no time zone"),
        ({"zone": "../../etc/passwd", "size_s": 86400}, "no time zone"),
        ({"zone": "Europe/Berlin", "size_s": 600}, "full hours"),
        ({"zone": "Europe/Berlin", "size_s": 5 * 3600}, "full hours"),
        ({"zone": "Europe/Berlin", "size_s": 7200, "slide_s": 3600}, None),
        ({"zone": "Europe/Berlin", "size_s": 7 * 86400}, None),
        ({"size_s": 86400, "slide_s": 1}, "a window of 86400 s every 1 s costs too much: 86,400 windows"),
        ({"size_s": 86400, "slide_s": 7}, "86,400 parts"),
        ({"size_s": 86400, "slide_s": 5}, None),
        ({"size_s": 1, "slide_s": 0.001}, "1,000,000 in a second"),
        ({"size_s": 3600, "slide_s": 1}, None),
    ],
)
def test_what_cannot_be_cut_or_costs_too_much_is_refused(operator, params, says):
    given = {**params, "aggregates": COUNT}
    if says is None:
        operator("window-aggregate", given)
        return
    with pytest.raises(ValueError, match=says):
        operator("window-aggregate", given)


@pytest.mark.parametrize("size_s", [86400, 100, 100_000, 366 * 86400, 90.5])
def test_a_slide_that_is_advised_is_taken(operator, size_s):
    with pytest.raises(ValueError, match="costs too much") as refused:
        operator("window-aggregate", {"size_s": size_s, "slide_s": 0.001, "aggregates": COUNT})
    advised = float(str(refused.value).split("begin every ")[1].split(" ")[0])
    operator("window-aggregate", {"size_s": size_s, "slide_s": advised, "aggregates": COUNT})


def test_each_row_is_kept_once_in_however_many_windows_it_is(operator):
    """3,600 windows are open at once, and what is kept is one pane for each second with rows."""
    window, states = (
        operator("window-aggregate", {"size_s": 3600, "slide_s": 1, "aggregates": COUNT}),
        StatesInMemory(),
    )
    letters(window, given([(second / 2, "a", 1, 1.0) for second in range(100)]), states=states)
    assert len(states.kept) == 50 + 1
