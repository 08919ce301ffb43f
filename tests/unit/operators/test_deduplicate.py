"""Laws of leaving out what is there already."""

from itertools import dropwhile, pairwise
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings, strategies as st

from pipeline_runtime.operators import deduplicate
from pipeline_runtime.operators.deduplicate import Deduplicate, DeduplicateParams
from pipeline_runtime.trial import processed, trial
from tests.chosen import examples
from tests.unit.operators.conftest import Rejected, at, keyed_output, schema_of

SCHEMA = schema_of(key="k", k="string", id="integer", t="timestamp")


def rows(*pairs):
    return [(second, {"k": "a", "id": id, "t": None}) for second, id in pairs]


def test_the_first_is_handed_on_and_again_after_the_time(operator, process):
    chosen = operator("deduplicate", {"columns": ["id"], "within_s": 5})
    found = process(chosen, rows((0, 1), (1, 2), (3, 1), (5, 1), (6, 1), (11, 1), (12, 1)))
    assert [(row["id"], row["_time"]) for row in found] == [(1, at(0)), (2, at(1)), (1, at(6)), (1, at(12))]


def test_without_columns_all_of_them_count_and_null_is_the_same_as_null(operator, process):
    other = {"k": "a", "id": None, "t": at(9)}
    found = process(operator("deduplicate", {}), [*rows((0, None), (1, None)), (2, other), (3, dict(other))])
    assert [row["_time"] for row in found] == [at(0), at(2)]


def test_a_clock_that_is_ahead_keeps_nothing_out(operator, monkeypatch):
    monkeypatch.setattr(deduplicate, "KEPT_MAX", 3)
    chosen = operator("deduplicate", {"columns": ["id"], "within_s": 5})
    ahead = rows((10**9, -1), *((second, second) for second in range(0, 100, 3)))
    assert len(keyed_output(chosen, ahead)) == len(ahead)


def test_what_is_too_much_is_rejected_and_what_does_not_fit_is_told(operator, mismatch, monkeypatch):
    monkeypatch.setattr(deduplicate, "KEPT_MAX", 2)
    chosen = operator("deduplicate", {"columns": ["id"], "within_s": 5})
    with pytest.raises(Rejected, match="TooManyKept"):
        keyed_output(chosen, rows((0, 1), (1, 2), (2, 3)))
    assert len(keyed_output(chosen, rows((0, 1), (1, 2), (7, 3)))) == 3
    assert chosen.output_schema({"in": SCHEMA}) == SCHEMA
    assert mismatch(operator("deduplicate", {"columns": ["x"]}), **{"in": SCHEMA}) == ["params.columns[0]"]


def oracle(some, within_s, most):
    """The rows that are passed on and those that are too many, row by row; `some`: (key, second, id)."""
    kept_of, out, too_many = {}, [], []
    for row in some:
        key, second, id = row
        kept = kept_of.setdefault(key, {})  # in the order in which they were passed on
        if id in kept and second - kept[id] <= within_s:
            continue
        staying = [*dropwhile(lambda each, least=second - within_s: each[1] < least, kept.items())]
        staying = [each for each in staying if each[0] != id]
        if len(staying) >= most:
            staying = [(each, at_s) for each, at_s in kept.items() if 0 <= second - at_s <= within_s]
        if len(staying) >= most:
            too_many.append(row)
            continue
        kept_of[key] = {**dict(staying), id: second}
        out.append(row)
    return out, too_many


@settings(max_examples=examples(80))
@example([("a", 0, 0), ("a", 4, 0), ("a", 8, 0), ("b", 8, 0), ("a", 9, 0)], True, 4, 9, [1])
@example([("a", 0, 0), ("a", 2, 0)], True, 1, 6, [])
@example(
    [("a", 0, 0), ("a", 4, 1), ("a", 3, 0)], False, 4, 6, [2]
)  # what is just old enough drops a late row
@example([("a", 10, 0), ("a", 10, 1), ("a", 10, 2), ("a", 5, 3)], False, 9, 2, [])
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(0, 5)), max_size=30),
    st.booleans(),
    st.integers(1, 9),
    st.integers(2, 6),
    st.lists(st.integers(0, 30), max_size=3),
)
def test_it_equals_a_plain_oracle(some, in_turn, within_s, most, cuts):
    """Also where rows are late or too many."""
    if in_turn:
        some = sorted(some, key=lambda row: row[1])
    rows = [{"k": key, "id": id, "t": None, "_time": at(second)} for key, second, id in some]
    edges = [0, *sorted(cuts), len(rows)]
    batches = [{"in": rows[first:end]} for first, end in pairwise(edges)]
    chosen = Deduplicate(DeduplicateParams(columns=("id",), within_s=within_s, key="k"))
    expected, too_many = oracle(some, within_s, most)
    for least in (0, deduplicate.ARRAYS_MIN):
        with patch.multiple(deduplicate, KEPT_MAX=most, ARRAYS_MIN=least):
            found = processed(chosen, batches, {"in": SCHEMA})
        assert [(row["k"], row["_time"], row["id"]) for row in found.rows] == [
            (key, at(second), id) for key, second, id in expected
        ]
        assert len(found.rejected) == len(too_many)


@pytest.mark.parametrize("columns", [("x",), ("x", "s"), ("s", "k")])
def test_rows_that_differ_in_any_digit_are_not_equal(columns):
    """Neither is null and a value, nor texts that are the same end to end."""
    values = [
        (0.0, "", "ab"),
        (-0.0, "a", "b"),
        (None, None, ""),
        (1.0, "", "ab"),
        (1.0 + 2**-52, "ab", None),
    ]
    rows = [{"x": x, "s": s, "k": k, "_time": at(0)} for _ in range(2) for x, s, k in values]
    schema = schema_of(x="number", s="string", k="string")
    found = trial(Deduplicate(DeduplicateParams(columns=columns)), rows, schema).rows
    assert len(found) == len({tuple(repr(row[name]) for name in columns) for row in rows})
