"""Laws of peak detection."""

from itertools import groupby

from hypothesis import example, given, strategies as st

from pipeline_runtime.operators.peak_detection import PeakDetection, PeakDetectionParams
from pipeline_runtime.trial import StatesInMemory, processed
from tests.unit.operators.conftest import at, keyed_output, schema_of

SCHEMA = schema_of(key="k", k="string", x="number")


def rows(*values):
    return [(second, {"k": "a", "x": value}) for second, value in enumerate(values)]


def test_a_peak_is_told_with_its_own_time_and_the_time_since_the_last(operator, process):
    found = process(
        operator("peak-detection", {"column": "x", "height": 3}),
        rows(0.0, 5.0, 1.0, 2.0, 0.0, None, 4.0, 4.0, 1.0),
    )
    assert [(row["x"], row["_time"], row["since_last_s"]) for row in found] == [
        (5.0, at(1), None),
        (4.0, at(6), 5.0),
    ]


def test_of_peaks_that_are_near_the_highest_counts(operator, process):
    chosen = operator("peak-detection", {"column": "x", "height": 1, "distance_s": 3})
    found = process(chosen, rows(0.0, 4.0, 0.0, 6.0, 0.0, 5.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0))
    assert [(row["x"], row["_time"]) for row in found] == [(6.0, at(3)), (3.0, at(8))]


def test_further_columns_are_those_of_the_peaks_own_row(operator, process):
    chosen = operator("peak-detection", {"column": "x", "height": 1, "distance_s": 2, "also": ["raw", "t"]})
    schema = schema_of(key="k", k="string", x="number", raw="integer", t="timestamp")
    assert chosen.output_schema({"in": schema}).names == ("k", "x", "since_last_s", "raw", "t")
    heights = [0.0, 4.0, 0.0, 6.0, 6.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0]
    given = [
        (second, {"k": "a", "x": x, "raw": None if x == 2 else second * 10, "t": at(second)})
        for second, x in enumerate(heights)
    ]
    assert [(row["x"], row["raw"], row["t"]) for row in process(chosen, given)] == [
        (6.0, 30, at(3)),  # of a flat top, its first row
        (2.0, None, at(7)),
    ]


def test_a_peak_that_was_kept_before_an_upgrade_added_a_column_has_none(operator):
    former = operator("peak-detection", {"column": "x", "height": 1, "distance_s": 2})
    chosen = operator("peak-detection", {"column": "x", "height": 1, "distance_s": 2, "also": ["raw"]})
    rows = [
        {"k": "a", "x": x, "raw": second, "_time": at(second)}
        for second, x in enumerate([0.0, 4.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0])
    ]
    states, schema = StatesInMemory(), schema_of(key="k", k="string", x="number", raw="integer")
    assert processed(former, [{"in": rows[:3]}], {"in": schema}, states=states).rows == []
    found = processed(chosen, [{"in": rows[3:]}], {"in": schema}, states=states).rows
    assert [(row["x"], row["raw"]) for row in found] == [(4.0, None), (5.0, 4)]


def test_what_does_not_fit_is_told(operator, mismatch):
    also = operator("peak-detection", {"column": "x", "height": 1, "also": ["y", "x"]})
    assert mismatch(also, **{"in": SCHEMA}) == ["params.also[0]", "params.also"]
    chosen = operator("peak-detection", {"column": "x", "height": 1})
    assert chosen.output_schema({"in": SCHEMA}).names == ("k", "x", "since_last_s")
    assert mismatch(operator("peak-detection", {"column": "k", "height": 1, "key": "y"}), **{"in": SCHEMA})[
        :2
    ] == [
        "params.column",
        "params.key",
    ]


def oracle(values, height, apart_s):
    """Tops of the whole signal, then of those that are near each other the highest."""
    flat = [next(group) for _, group in groupby(enumerate(values), key=lambda each: each[1])]
    tops = [
        (second, value)
        for (_, before), (second, value), (_, after) in zip(flat, flat[1:], flat[2:], strict=False)
        if before < value > after and value >= height
    ]
    found = []
    for second, value in tops:
        if found and second - found[-1][0] <= apart_s:
            if value > found[-1][1]:
                found[-1] = (second, value)
        else:
            found.append((second, value))
    return found


@example([0, 1, 0, 1, 1, -1], 0, 2)  # a flat top that reaches beyond the distance
@example([0, 4, 0, 0, 6, 6, 0], 0, 3)
@given(st.lists(st.integers(0, 6), max_size=60), st.integers(0, 4), st.integers(0, 6))
def test_it_equals_a_plain_oracle(values, height, apart_s):
    falling = [-1 - n for n in range(apart_s + 3)]
    chosen = PeakDetection(PeakDetectionParams(column="x", height=height, distance_s=apart_s))
    found = keyed_output(chosen, rows(*map(float, [*values, *falling])))
    expected = oracle([*values, *falling], height, apart_s)
    assert [(row["_time"], row["x"]) for row in found] == [(at(second), value) for second, value in expected]
