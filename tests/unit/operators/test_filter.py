"""Laws of the filter."""

from tests.unit.operators.conftest import schema_of

SCHEMA = schema_of(a="integer", b="integer")


def test_rows_stay_for_which_the_condition_is_true(operator, run):
    rows = [(0, 1, 0), (1, 5, 0), (2, None, 0), (3, 9, 0)]
    assert [row["a"] for row in run(operator("filter", {"condition": "a > 1"}), rows, SCHEMA)] == [5, 9]


def test_a_row_without_an_answer_is_rejected_not_dropped(operator, run):
    rows = [(0, 4, 2), (1, 4, 0), (2, 1, 2)]
    found = run(operator("filter", {"condition": "a / b > 1"}), rows, SCHEMA)
    assert [(row["a"], row["b"], row["_reject"]) for row in found] == [
        (4, 2, None),
        (4, 0, "the condition cannot be computed for this row"),
    ]


def test_what_was_rejected_before_stays_rejected(operator, run):
    found = run(operator("filter", {"condition": "a / b > 1"}), [(0, 1, 2)], SCHEMA, _reject=["earlier"])
    assert [row["_reject"] for row in found] == ["earlier"]


def test_the_schema_passes_and_a_condition_is_a_truth(operator, mismatch):
    assert operator("filter", {"condition": "a > 1"}).output_schema({"in": SCHEMA}) == SCHEMA
    assert mismatch(operator("filter", {"condition": "a + 1"}), **{"in": SCHEMA}) == ["params.condition"]
