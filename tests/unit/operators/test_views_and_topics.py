"""Laws of the elements that run no code of their own: views, and the user's own topics."""

import pytest

from tests.unit.operators.conftest import schema_of

SCHEMA = schema_of(key="k", k="string", x="number")


def test_views_check_their_columns(operator, mismatch):
    assert operator("live-table", {"columns": ["k"]}).output_schema({"in": SCHEMA}) == SCHEMA
    assert mismatch(operator("live-table", {"columns": ["zz"]}), **{"in": SCHEMA}) == ["params.columns[0]"]
    assert operator("live-chart", {"columns": ["x"], "by": "k"}).output_schema({"in": SCHEMA}) == SCHEMA
    assert mismatch(operator("live-chart", {"columns": ["k"], "by": "b"}), **{"in": SCHEMA}) == [
        "params.columns[0]",
        "params.by",
    ]


def test_a_charts_marks_are_columns_of_true_and_false(operator, mismatch):
    schema = schema_of(x="number", high="boolean")
    chart = operator("live-chart", {"columns": ["x"], "marks": ["high"]})
    assert chart.output_schema({"in": schema}) == schema
    wrong = operator("live-chart", {"columns": ["x"], "marks": ["high", "x", "zz"]})
    assert mismatch(wrong, **{"in": schema}) == ["params.marks[1]", "params.marks[2]"]
    with pytest.raises(ValueError, match="marks"):
        operator("live-chart", {"columns": ["x"], "marks": list("abcdef")})


def test_a_topics_columns_are_its_schema(operator, mismatch):
    params = {"topic": "t", "columns": [{"name": "k"}, {"name": "x", "type": "number", "unit": "kW"}]}
    schema = operator("kafka-in", params | {"key": "k"}).output_schema({})
    assert ([(f.name, f.type.value, f.unit) for f in schema.fields], schema.key) == (
        [("k", "string", None), ("x", "number", "kW")],
        "k",
    )
    assert mismatch(operator("kafka-in", params | {"key": "y"})) == ["params.key"]


def test_what_goes_to_a_topic_is_what_came(operator, run, mismatch):
    out = operator("kafka-out", {"topic": "t", "key": "x"})
    assert out.output_schema({"in": SCHEMA}).key == "x"
    (row,) = run(out, [(0, "a", 1.5)], SCHEMA)
    assert (row["k"], row["x"]) == ("a", 1.5)
    assert mismatch(operator("kafka-out", {"topic": "t", "key": "y"}), **{"in": SCHEMA}) == ["params.key"]


@pytest.mark.parametrize(
    "topic", ["", "a b", "ä", "x" * 250, "a/b", "fl.d1.power.journal", "__consumer_offsets"]
)
def test_a_name_that_is_no_topic_is_refused(operator, topic):
    with pytest.raises(ValueError, match="topic"):
        operator("kafka-out", {"topic": topic})
