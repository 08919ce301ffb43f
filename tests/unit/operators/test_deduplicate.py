"""Laws of leaving out what is there already."""

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.operators import deduplicate
from pipeline_runtime.operators.deduplicate import Deduplicate, DeduplicateParams
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


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=40), st.integers(1, 9))
def test_it_equals_a_plain_oracle(steps, within_s):
    now, timed = 0, []
    for step, id in steps:
        now += step
        timed.append((now, id))
    last, expected = {}, []
    for second, id in timed:
        if id not in last or second - last[id] > within_s:
            last[id] = second
            expected.append((second, id))
    found = keyed_output(Deduplicate(DeduplicateParams(columns=("id",), within_s=within_s)), rows(*timed))
    assert [(row["_time"], row["id"]) for row in found] == [(at(second), id) for second, id in expected]
