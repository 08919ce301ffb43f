"""Laws of the threshold alert."""

import pytest

from tests.unit.operators.conftest import at, schema_of

SCHEMA = schema_of(key="k", k="string", x="number", n="integer")


def alert(**more):
    return {"columns": ["x", "n"], "operator": ">", "limit": 30, **more}


def test_each_value_beyond_the_limit_alerts(operator, run):
    rows = [(0, "a", 30.0, 30), (1, "b", 31.256, 5), (2, "c", None, None), (3, "d", 99.0, 40)]
    found = run(operator("threshold-alert", alert(severity="critical")), rows, SCHEMA)
    assert [(r["k"], r["alert_column"], r["alert_value"], r["_time"]) for r in found] == [
        ("b", "x", 31.256, at(1)),
        ("d", "x", 99.0, at(3)),
        ("d", "n", 40.0, at(3)),
    ]
    assert {(row["alert_limit"], row["alert_severity"]) for row in found} == {(30.0, "critical")}
    assert found[0]["alert_message"] == "x is 31.26 (> 30)"


def test_a_message_has_columns_of_its_row(operator, run):
    params = alert(columns=["n"], message="it's {k}: {value} \\ {x}")
    (row,) = run(operator("threshold-alert", params), [(0, "a", None, 31)], SCHEMA)
    assert row["alert_message"] == "it's a: 31 \\ null"


@pytest.mark.parametrize(
    ("comparison", "values"),
    [(">", [31]), (">=", [30, 31]), ("<", [29]), ("<=", [29, 30]), ("=", [30]), ("!=", [29, 31])],
)
def test_each_comparison_is_what_it_says(operator, run, comparison, values):
    rows = [(i, "a", None, n) for i, n in enumerate((29, 30, 31))]
    found = run(operator("threshold-alert", alert(columns=["n"], operator=comparison)), rows, SCHEMA)
    assert [row["n"] for row in found] == values


def test_what_does_not_fit_is_told(operator, mismatch):
    params = alert(columns=["k", "y"], message="{vaule}")
    assert mismatch(operator("threshold-alert", params), **{"in": SCHEMA}) == [
        "params.columns[0]",
        "params.columns[1]",
        "params.message",
    ]
    chained = operator("threshold-alert", alert(columns=["x"])).output_schema({"in": SCHEMA})
    assert "inputs.in" in mismatch(operator("threshold-alert", alert(columns=["x"])), **{"in": chained})
    with pytest.raises(ValueError, match="brace"):
        operator("threshold-alert", alert(message="{value"))
