"""Laws of edge detection."""

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.operators.edge_detection import EdgeDetection, EdgeDetectionParams
from tests.unit.operators.conftest import at, keyed_output, schema_of

SCHEMA = schema_of(key="machine", machine="string", valve="boolean", level="number", n="integer")


def rows(name, *values):
    return [(second, {"machine": "m", name: value}) for second, value in enumerate(values)]


def test_a_change_is_an_edge_and_null_says_nothing(operator, process):
    found = process(
        operator("edge-detection", {"columns": ["valve"]}),
        rows("valve", None, False, None, True, True, False),
    )
    assert [(row["edge"], row["before"], row["after"], row["_time"]) for row in found] == [
        ("rising", 0.0, 1.0, at(3)),
        ("falling", 1.0, 0.0, at(5)),
    ]
    assert {row["signal"] for row in found} == {"valve"}


@pytest.mark.parametrize(("edges", "seconds"), [("both", [2, 4]), ("rising", [2]), ("falling", [4])])
def test_with_a_threshold_only_the_way_across_it_counts(operator, process, edges, seconds):
    chosen = operator("edge-detection", {"columns": ["level"], "edges": edges, "threshold": 10})
    found = process(chosen, rows("level", 1.0, 10.0, 10.5, 99.0, 3.0))
    assert [row["_time"] for row in found] == [at(second) for second in seconds]


def test_true_and_false_have_no_threshold_and_values_are_told_as_they_are(operator, process):
    both = [(n, {"valve": n % 2 == 1, "level": 100.0 * n}) for n in range(3)]
    found = process(operator("edge-detection", {"columns": ["valve", "level"], "threshold": 50}), both)
    assert [(row["signal"], row["edge"], row["before"], row["after"]) for row in found] == [
        ("valve", "rising", 0, 1),
        ("level", "rising", 0.0, 100.0),
        ("valve", "falling", 1, 0),
    ]


def test_several_signals_of_one_row_have_a_row_each(operator, process):
    both = [(second, {"machine": "m", "a": second, "b": -second}) for second in range(2)]
    found = process(operator("edge-detection", {"columns": ["b", "a"]}), both)
    assert [(row["signal"], row["edge"]) for row in found] == [("b", "falling"), ("a", "rising")]


def test_the_key_is_handed_on_and_what_does_not_fit_is_told(operator, mismatch):
    chosen = operator("edge-detection", {"columns": ["valve"]})
    assert chosen.output_schema({"in": SCHEMA}).names == ("machine", "signal", "edge", "before", "after")
    wrong = operator("edge-detection", {"columns": ["machine", "valve", "x"], "key": "y"})
    assert mismatch(wrong, **{"in": SCHEMA}) == ["params.columns[0]", "params.columns[2]", "params.key"]


@given(
    st.lists(st.one_of(st.none(), st.integers(-2, 2)), max_size=40),
    st.sampled_from(["both", "rising", "falling"]),
)
def test_it_equals_a_plain_oracle(values, edges):
    known = [(second, value) for second, value in enumerate(values) if value is not None]
    expected = [(second, b - a) for (_, a), (second, b) in pairwise(known) if a != b]
    wanted = [second for second, step in expected if edges == "both" or (step > 0) == (edges == "rising")]
    found = keyed_output(EdgeDetection(EdgeDetectionParams(columns=("n",), edges=edges)), rows("n", *values))
    assert [row["_time"] for row in found] == [at(second) for second in wanted]
