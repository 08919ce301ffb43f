"""Laws of all operators that take the rows of each key in their order: however the input is cut into batches,
what comes of it and what is kept is the same."""

import json
import math
import re
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.batch.kept import decoded
from pipeline_runtime.operators import keyed_rows, look_back
from pipeline_runtime.operators.key_states import Lists
from pipeline_runtime.trial import StatesInMemory, at, processed, trial
from tests.chosen import examples
from tests.unit.operators.conftest import schema_of

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "speed-up-an-operator.md"
SCHEMA = schema_of(
    key="k", k="string", x="number", n="integer", b="boolean", s="string", t="timestamp"
)  # fmt: skip
_AGGREGATES = [
    {"function": function, "column": column, "as": f"{function}_{column}"}
    for function, column in [("avg", "x"), ("stddev", "x"), ("sum", "n"), ("max", "t"), ("first", "s")]
]
OPERATORS = [
    ("running-statistics", {"column": "x"}),
    ("running-statistics", {"column": "n", "every_s": 2, "reset": True}),
    ("difference", {"column": "x", "name": "d", "periods": 2}),
    ("difference", {"column": "n", "name": "d", "gives": "derivative"}),
    ("edge-detection", {"columns": ["b", "x"], "threshold": 0.5}),
    ("deduplicate", {"columns": ["s", "n"], "within_s": 3}),
    ("hysteresis-alarm", {"column": "x", "raise_at": 1, "clear_at": 0, "for_s": 1}),
    ("count-window-aggregate", {"size": 3, "partial": True, "aggregates": _AGGREGATES}),
    ("last-values", {"column": "x", "size": 3, "every": 2}),
    ("time-between", {"column": "s", "first": "a", "second": "b", "delay_s": 1, "debounce_s": 0.5}),
    ("trend", {"column": "x", "window_s": 4}),
    ("baseline-change", {"column": "x", "window_s": 4, "baseline": "mean"}),
    ("peak-detection", {"column": "x", "height": 0, "distance_s": 1, "also": ["t", "s"]}),
    (
        "frequency-filter",
        {"column": "x", "kind": "low-pass", "sample_rate_hz": 100, "high_cutoff_hz": 5},
    ),
    ("record-around", {"event": "b", "before_s": 1, "after_s": 2}),
]

_numbers = st.one_of(st.none(), st.floats(-2, 2), st.sampled_from([0.0, -0.0, 1.7e308, math.inf, math.nan]))
_rows = st.lists(
    st.fixed_dictionaries(
        {
            "_time": st.integers(0, 40).map(lambda quarters: at(quarters / 4)),
            "k": st.sampled_from(["a", "b", None]),
            "x": _numbers,
            "n": st.none() | st.integers(-3, 3) | st.just(2**60),
            "b": st.none() | st.booleans(),
            "s": st.none() | st.sampled_from("abc"),
            "t": st.none() | st.integers(0, 3).map(at),
        }
    ),
    max_size=25,
)


def outcome(operator, batches):
    """The output, the reasons of dead letters, and what is kept."""
    states = StatesInMemory()
    made = processed(operator, [{"in": batch} for batch in batches], {"in": SCHEMA}, states=states)
    return [repr(row) for row in made.rows], sorted(made.rejected), _sorted(states.kept)


def _sorted(kept):
    return {key: json.dumps(decoded(kept[key]).state, sort_keys=True, default=repr) for key in sorted(kept)}


@pytest.mark.parametrize(("type_", "params"), OPERATORS, ids=[type_ for type_, _ in OPERATORS])
@settings(max_examples=examples(40))
@given(rows=_rows, cuts=st.sets(st.integers(0, 25)))
def test_however_batches_are_cut_the_output_and_the_state_are_the_same(registry, type_, params, rows, cuts):
    operator = registry.create(type_, params)
    operator = type(operator)(operator.resolve({"in": SCHEMA}))
    edges = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    cut = [rows[first:end] for first, end in pairwise(edges)]
    assert repr(outcome(operator, cut)) == repr(outcome(operator, [rows]))


ROUNDS = [
    *OPERATORS[:2],
    ("running-statistics", {"column": "x", "every_s": 2}),
    ("running-statistics", {"column": "x", "every_s": 2, "reset": True}),
    *(each for each in OPERATORS if each[0] == "frequency-filter"),
    (
        "frequency-filter",
        {"column": "n", "kind": "band-pass", "sample_rate_hz": 9, "low_cutoff_hz": 1, "high_cutoff_hz": 3},
    ),
]


@pytest.mark.parametrize(("type_", "params"), ROUNDS, ids=str)
@settings(max_examples=examples(40))
@given(rows=_rows)
def test_rounds_over_all_keys_give_what_a_loop_gives(registry, type_, params, rows):
    operator = registry.create(type_, params)
    operator = type(operator)(operator.resolve({"in": SCHEMA}))
    by_loop = repr(outcome(operator, [rows]))
    for least in (1, 2):
        with patch.object(keyed_rows, "ROUND_KEYS_MIN", least):
            assert repr(outcome(operator, [rows])) == by_loop


LOOKING_BACK = [
    ("trend", {"column": "x", "window_s": 4}),
    *(
        ("baseline-change", {"column": "n", "window_s": 2.5, "baseline": each})
        for each in ("first", "mean", "median", "minimum", "maximum")
    ),
]


@pytest.mark.parametrize(("type_", "params"), LOOKING_BACK)
@settings(max_examples=examples(40))
@given(rows=_rows, in_turn=st.booleans(), cuts=st.sets(st.integers(0, 25)))
def test_a_look_back_is_the_same_row_by_row_and_in_small_steps(registry, type_, params, rows, in_turn, cuts):
    operator = registry.create(type_, params)
    operator = type(operator)(operator.resolve({"in": SCHEMA}))
    if in_turn:
        rows.sort(key=lambda row: row["_time"])
    edges = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    cut = [rows[first:end] for first, end in pairwise(edges)]
    with patch.object(look_back, "KEPT_MAX", 4):
        at_once = repr(outcome(operator, [rows]))
        with patch.object(look_back, "_AT_ONCE", 3):
            assert repr(outcome(operator, cut)) == at_once
        with patch.object(Lists, "in_turn", lambda times: np.zeros(len(times.counts), bool)):
            assert repr(outcome(operator, [rows])) == at_once
        with patch.object(look_back, "_firsts", lambda *_: None):
            assert repr(outcome(operator, [rows])) == at_once


def test_rows_leave_in_the_order_in_which_they_came(operator):
    rows = [{"_time": at(n), "k": key, "x": float(n)} for n, key in enumerate("babca")]
    chosen = operator("difference", {"column": "x", "key": "k", "name": "d"})
    made = processed(chosen, [{"in": rows}], {"in": schema_of(key="k", k="string", x="number")})
    assert [(row["k"], row["x"], row["d"]) for row in made.rows] == [
        ("b", 0.0, None),
        ("a", 1.0, None),
        ("b", 2.0, 2.0),
        ("c", 3.0, None),
        ("a", 4.0, 3.0),
    ]


def test_a_row_without_a_time_or_with_an_infinite_number_is_rejected_alone(operator):
    rows = [
        {"_time": time, "x": x}
        for time, x in [(at(0), 1.0), (None, 2.0), (at(2), math.inf), (at(3), 4.0)]
    ]  # fmt: skip
    made = processed(operator("difference", {"column": "x"}), [{"in": rows}], {"in": schema_of(x="number")})
    assert [row["difference"] for row in made.rows] == [None, 3.0]
    assert made.rejected == ["the row has no event time", "ValueError: inf is not a finite number"]


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_the_example_in_the_docs_does_what_it_says(seed):
    [code, _] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    made = {}
    exec(code, made)
    rows = [{"_time": at(n), "k": "ab"[n % 2], "value": float(n * n)} for n in range(6)]
    schema = schema_of(key="k", k="string", value="number")
    found = trial(made["MovingRange"](made["MovingRangeParams"](column="value")), rows, schema, seed=seed)
    assert [row["range"] for row in found.rows if row["k"] == "a"] == [None, 4.0, 12.0]
    assert [row["range"] for row in found.rows if row["k"] == "b"] == [None, 8.0, 16.0]


def test_people_see_the_rows_that_wait_and_the_recordings(operator):
    states = StatesInMemory()
    chosen = operator("record-around", {"event": "b", "before_s": 64, "after_s": 1})
    rows = [{"_time": at(n), "k": "m", "b": n == 0, "t": at(n)} for n in range(4)]
    schema = schema_of(key="k", k="string", b="boolean", t="timestamp")
    processed(chosen, [{"in": rows}], {"in": schema}, states=states)
    kept = {
        chosen.readable_key(key): chosen.readable_state(decoded(data).state, {"in": schema})
        for key, data in states.kept.items()
    }
    begin, end = "2024-05-01 11:58:56 UTC", "2024-05-01 12:00:01 UTC"
    assert kept["m"] == {"recordings": 1, "in_progress": [{"number": 1, "from": begin, "until": end}]}
    row = {"time": "2024-05-01 12:00:03 UTC", "k": "m", "b": False, "t": "2024-05-01 12:00:03 UTC"}
    assert kept["m, rows that wait from 2024-05-01 12:00:03 UTC on"] == [row]


def test_a_state_that_a_batch_does_not_change_is_not_kept_again(operator):
    class Counting(StatesInMemory):
        times = 0

        def keep_states(self, kept):
            self.times += len(kept.keys)
            super().keep_states(kept)

    states = Counting()
    chosen = operator("deduplicate", {"columns": ["x"]})
    rows = [{"_time": at(n), "x": 1.0} for n in range(3)]
    processed(chosen, [{"in": [row]} for row in rows], {"in": schema_of(x="number")}, states=states)
    assert states.times == 1
