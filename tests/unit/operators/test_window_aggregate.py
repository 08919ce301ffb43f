"""Laws of the window aggregate. That a window is emitted once and late rows are left out is Spark's own
part; here are values, schemas and the rows that only move the watermark."""

import statistics

import pytest

from tests.unit.operators.conftest import at, schema_of

SCHEMA = schema_of(key="k", k="string", n="integer", x="number")
ROWS = [(0.0, "a", 1, 1.0), (0.5, "a", 3, 2.0), (0.9, "b", 10, None), (1.0, "a", 5, 4.0)]


def aggregates(*functions, column="x"):
    return [{"function": function, "column": column, "as": function} for function in functions]


def test_each_window_has_its_rows(operator, run):
    window = operator("window-aggregate", {"size_s": 1, "aggregates": aggregates("sum", "count", column="n")})
    found = run(window, ROWS, SCHEMA)
    assert [(r["window_start"], r["window_end"], r["sum"], r["count"]) for r in found] == [
        (at(0), at(1), 14, 3),
        (at(1), at(2), 5, 1),
    ]
    assert [row["_time"] for row in found] == [at(1), at(2)]


def test_keys_are_aggregated_apart(operator, run):
    window = operator("window-aggregate", {"size_s": 10, "keys": ["k"], "aggregates": aggregates("max")})
    assert {row["k"]: row["max"] for row in run(window, ROWS, SCHEMA)} == {"a": 4.0, "b": None}
    assert window.output_schema({"in": SCHEMA}).key == "k"


def test_sliding_windows_overlap(operator, run):
    params = {"size_s": 1, "slide_s": 0.5, "aggregates": [{"function": "count", "as": "n"}]}
    found = run(operator("window-aggregate", params), ROWS, SCHEMA)
    assert [(row["window_start"], row["n"]) for row in found] == [
        (at(-0.5), 1),
        (at(0), 3),
        (at(0.5), 3),
        (at(1), 1),
    ]


def test_every_function_is_what_it_says(operator, run):
    values = [4.0, 1.0, None, 7.5, 2.0]
    names = ["avg", "min", "max", "sum", "count", "first", "last", "stddev", "relative_variation"]
    window = operator("window-aggregate", {"size_s": 10, "aggregates": aggregates(*names)})
    (row,) = run(window, [(i / 10, "a", i, value) for i, value in enumerate(values)], SCHEMA)
    given = [value for value in values if value is not None]
    assert {name: row[name] for name in names} == {
        "avg": pytest.approx(statistics.mean(given)),
        "min": 1.0,
        "max": 7.5,
        "sum": 14.5,
        "count": 4,
        "first": 4.0,
        "last": 2.0,
        "stddev": pytest.approx(statistics.stdev(given)),
        "relative_variation": pytest.approx(6.5 / statistics.mean(given) * 100),
    }


def test_an_average_of_zero_and_an_overflow_are_null_not_an_error(operator, run):
    window = operator(
        "window-aggregate", {"size_s": 10, "aggregates": aggregates("relative_variation", "sum", column="n")}
    )
    (row,) = run(window, [(0, "a", 0, 0.0), (1, "a", 0, 0.0)], SCHEMA)
    assert (row["relative_variation"], row["sum"]) == (None, 0)
    (row,) = run(window, [(0, "a", 2**62, 0.0), (1, "a", 2**62, 0.0)], SCHEMA)
    assert row["sum"] is None


@pytest.mark.parametrize("function", ["avg", "sum", "stddev", "relative_variation"])
def test_a_result_too_large_for_a_number_is_null(operator, run, function):
    window = operator("window-aggregate", {"size_s": 10, "aggregates": aggregates(function)})
    (row,) = run(window, [(0, "a", 1, 1.7e308), (1, "a", 1, 1.7e308), (2, "a", 1, -1e308)], SCHEMA)
    assert row[function] is None


def test_a_row_that_only_moves_the_watermark_is_in_no_window(operator, run):
    window = operator("window-aggregate", {"size_s": 1, "aggregates": [{"function": "count", "as": "n"}]})
    found = run(window, [(0, "a", 1, 1.0), (1e6, None, None, None)], SCHEMA, _flush=[None, True])
    assert [row["n"] for row in found] == [1]


def test_a_row_that_only_moves_the_watermark_closes_the_windows_of_a_stream(operator, stream):
    window = operator("window-aggregate", {"size_s": 1, "aggregates": [{"function": "count", "as": "n"}]})
    batches = [[(0, "a", 1, 1.0), (0.5, "a", 1, 1.0), (1.5, "a", 1, 1.0)], [(1e6, None, None, None)]]
    assert [row["n"] for row in stream(window, SCHEMA, batches)] == [2, 1]
    # The optimizer must not push the filter below the watermark, or the second batch would be lost on it.
    assert [row["n"] for row in stream(window, SCHEMA, batches, flush=[False, True])] == [2, 1]


def test_a_row_that_comes_too_late_is_left_out(operator, stream):
    params = {"size_s": 1, "delay_s": 2, "aggregates": [{"function": "count", "as": "n"}]}
    times = [[0], [2.5], [0.1, 9], [9.1], [0.2], [99]]
    batches = [[(second, "a", 1, 1.0) for second in batch] for batch in times]
    found = stream(operator("window-aggregate", params), SCHEMA, batches)
    assert [(row["window_start"], row["n"]) for row in found] == [(at(0), 2), (at(2), 1), (at(9), 2)]


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
