"""Laws of merging."""

import pytest

from tests.unit.operators.conftest import at, schema_of

READINGS = schema_of(key="k", k="string", v="integer")
TURNED = schema_of(key="k", v="integer", k="string")


def test_the_rows_of_all_streams_are_there_with_their_times_whatever_the_order_of_columns(operator, run):
    rows = {"in1": [(0, "a", 1), (1, "b", 2)], "in2": [(5, 3, "c")], "in4": []}
    found = run(operator("merge", {}), rows, {"in1": READINGS, "in2": TURNED, "in4": READINGS})
    assert sorted((row["k"], row["v"], row["_time"]) for row in found) == [
        ("a", 1, at(0)),
        ("b", 2, at(1)),
        ("c", 3, at(5)),
    ]


@pytest.mark.parametrize(
    "other",
    [
        schema_of(key="k", k="string"),
        schema_of(key="k", k="string", v="integer", w="string"),
        schema_of(key="k", k="string", v="number"),
        schema_of(k="string", v="integer"),
    ],
    ids=["one less", "one more", "another type", "another key"],
)
def test_streams_that_differ_are_no_one_stream(operator, mismatch, other):
    assert mismatch(operator("merge", {}), in1=READINGS, in2=other) == ["inputs.in2"]
