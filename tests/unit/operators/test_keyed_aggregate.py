"""Laws of the keyed aggregate."""

import statistics

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.operators.keyed_aggregate import KeyedAggregate
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


FUNCTIONS = ("count", "sum", "avg", "stddev", "min", "max", "first", "last")


def expected_aggregates(values):
    """The plain oracle: what Python makes of all values of a key, of which some may be None."""
    known = [value for value in values if value is not None]
    return {
        "count": len(known),
        "sum": pytest.approx(sum(known), abs=1e-9) if known else None,
        "avg": pytest.approx(statistics.fmean(known), abs=1e-9) if known else None,
        "stddev": pytest.approx(statistics.stdev(known), abs=1e-6) if len(known) > 1 else None,
        "min": min(known, default=None),
        "max": max(known, default=None),
        "first": known[0] if known else None,
        "last": known[-1] if known else None,
    }


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.floats(-1e3, 1e3))), max_size=8),
        max_size=6,
    )
)
def test_it_equals_a_plain_oracle(batches):
    aggregates = [{"function": name, "column": "x", "as": name} for name in FUNCTIONS]
    keyed = KeyedAggregate(KeyedAggregate.Params.model_validate({"keys": ["k"], "aggregates": aggregates}))
    second, given_batches, so_far, expected = 0, [], {}, []
    for batch in batches:
        rows, newest = [], {}
        for key, value in batch:
            rows.append((second, key, 0, value))
            so_far.setdefault(key, []).append(value)
            newest[key] = second
            second += 1
        given_batches.append({"in": dicts(rows, SCHEMA)})
        expected += [
            {"k": key, "_time": at(newest[key]), **expected_aggregates(so_far[key])}
            for key in sorted(newest, key=newest.__getitem__)
        ]
    assert processed(keyed, given_batches, {"in": SCHEMA}).rows == expected
