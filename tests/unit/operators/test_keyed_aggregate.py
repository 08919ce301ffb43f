"""Laws of the keyed aggregate."""

from pipeline_runtime.trial import at, processed, trial
from tests.unit.operators.conftest import dicts, schema_of

SCHEMA = schema_of(key="k", k="string", n="integer", x="number")
AGGREGATES = [
    {"function": "sum", "column": "n", "as": "total"},
    {"function": "last", "column": "x", "as": "newest"},
    {"function": "count", "as": "rows"},
]


def test_each_key_has_its_own_aggregates_and_its_newest_time(operator):
    rows = [(0, "a", 1, 1.0), (1, "b", 2, 2.0), (2, "a", 3, 3.0)]
    keyed = operator("keyed-aggregate", {"keys": ["k"], "aggregates": AGGREGATES})
    found = trial(keyed, dicts(rows, SCHEMA), SCHEMA).rows
    assert [(r["k"], r["total"], r["newest"], r["rows"], r["_time"]) for r in found] == [
        ("b", 2, 2.0, 1, at(1)),
        ("a", 4, 3.0, 2, at(2)),
    ]


def test_it_keeps_the_key_and_may_be_followed_in_large_steps(operator):
    keyed = operator("keyed-aggregate", {"keys": ["k"], "aggregates": AGGREGATES})
    assert keyed.output_schema({"in": SCHEMA}).key == "k"
    assert (keyed.follows({"in": SCHEMA}), keyed.output_mode) == ("coalesced", "update")


def test_missing_keys_are_told(operator, mismatch):
    keyed = operator("keyed-aggregate", {"keys": ["kk"], "aggregates": AGGREGATES})
    assert mismatch(keyed, **{"in": SCHEMA}) == ["params.keys[0]"]


def test_a_batch_emits_the_keys_that_changed_in_it(operator):
    batches = [[(0, "a", 1, 1.0), (1, "b", 2, 2.0)], [(2, "a", 3, 3.0), (3, "a", 4, None)], []]
    keyed = operator("keyed-aggregate", {"keys": ["k"], "aggregates": AGGREGATES})
    found = processed(keyed, [{"in": dicts(rows, SCHEMA)} for rows in batches], {"in": SCHEMA}).rows
    assert [(row["k"], row["total"], row["newest"], row["rows"]) for row in found] == [
        ("a", 1, 1.0, 1),
        ("b", 2, 2.0, 1),
        ("a", 8, 3.0, 3),
    ]


def test_a_zero_is_one_key_whatever_its_sign(operator):
    params = {"keys": ["x"], "aggregates": [{"function": "count", "as": "rows"}]}
    rows = [(0, "a", 1, 0.0), (1, "a", 1, -0.0)]
    [found] = trial(operator("keyed-aggregate", params), dicts(rows, SCHEMA), SCHEMA).rows
    assert (found["x"], found["rows"]) == (0.0, 2)


def test_a_key_whose_rows_have_no_time_has_none(operator):
    keyed = operator("keyed-aggregate", {"keys": ["k"], "aggregates": AGGREGATES})
    rows = [{**row, "_time": None} for row in dicts([(0, "a", 1, 1.0)], SCHEMA)]
    [found] = processed(keyed, [{"in": rows}], {"in": SCHEMA}).rows
    assert found["_time"] is None


def test_keys_of_several_columns_and_without_a_value_are_kept_apart(operator):
    params = {"keys": ["k", "n"], "aggregates": [{"function": "count", "as": "rows"}]}
    rows = [(0, "a", 1, None), (1, None, 1, None), (2, "a", None, None), (3, "a", 1, None)]
    found = trial(operator("keyed-aggregate", params), dicts(rows, SCHEMA), SCHEMA, seed=3).rows
    newest = {(row["k"], row["n"]): row["rows"] for row in found}
    assert newest == {("a", 1): 2, (None, 1): 1, ("a", None): 1}
