"""Laws of derive."""

from tests.unit.operators.conftest import schema_of

SCHEMA = schema_of(a="integer", b="integer", s="string")


def test_a_later_column_may_use_an_earlier_one_and_a_name_may_be_replaced(operator, run):
    columns = [
        {"name": "sum", "expression": "a + b"},
        {"name": "half", "expression": "sum / 2", "unit": "kW"},
        {"name": "a", "expression": "a * 10"},
    ]
    derive = operator("derive", {"columns": columns})
    (row,) = run(derive, [(0, 3, 4, "x")], SCHEMA)
    assert (row["sum"], row["half"], row["a"], row["b"], row["s"]) == (7, 3.5, 30, 4, "x")
    assert derive.output_schema({"in": SCHEMA}).field("half").unit == "kW"


def test_a_row_without_a_value_is_rejected_with_the_columns_name(operator, run):
    derive = operator("derive", {"columns": [{"name": "n", "expression": "cast(s as integer)"}]})
    found = run(derive, [(0, 1, 1, "12"), (1, 1, 1, "twelve"), (2, 1, 1, None)], SCHEMA)
    assert [(row["n"], row["_reject"]) for row in found] == [
        (12, None),
        (None, 'column "n" has no value for this row'),
        (None, None),
    ]


def test_each_wrong_expression_is_told(operator, mismatch):
    columns = [{"name": "x", "expression": "nope + 1"}, {"name": "y", "expression": "s * 2"}]
    assert mismatch(operator("derive", {"columns": columns}), **{"in": SCHEMA}) == [
        "params.columns[0].expression",
        "params.columns[1].expression",
    ]
