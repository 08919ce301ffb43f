"""Laws of the time between events."""

from itertools import pairwise
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings, strategies as st
from pydantic import ValidationError

from pipeline_runtime.operators import time_between
from pipeline_runtime.operators.time_between import TimeBetween, TimeBetweenParams
from pipeline_runtime.trial import processed, trial
from tests.chosen import examples
from tests.unit.operators.conftest import at, keyed_output, schema_of

SCHEMA = schema_of(key="machine", machine="string", signal="string")


def events(*pairs):
    """(second, what happened), in the order of arrival."""
    return [(second, {"machine": "m", "signal": signal}) for second, signal in pairs]


def params(**more):
    return {"column": "signal", "first": "a", "second": "b", **more}


def told(found):
    return [(row["outcome"], row["event"], row.get("interval_s"), row["_time"]) for row in found]


def test_an_event_is_paired_with_the_next_that_answers_it(operator, process):
    found = process(
        operator("time-between", params()), events((0, "a"), (1, "x"), (2.5, "b"), (10, "a"), (14, "b"))
    )
    assert told(found) == [("matched", "b", 2.5, at(2.5)), ("matched", "b", 4.0, at(14))]
    assert (found[0]["first_at"], found[0]["second_at"]) == (at(0), at(2.5))


def test_what_does_not_pair_is_told(operator, process):
    found = process(
        operator("time-between", params(within_s=5, debounce_s=0.5)),
        events(
            (0, "b"), (1, "a"), (1.2, "a"), (3, "a"), (4, "b"), (4.5, "b"), (10, "a"), (16, "x"), (17, "b")
        ),
    )
    assert told(found) == [
        ("unexpected", "b", None, at(0)),
        ("duplicate", "a", None, at(1.2)),
        ("unanswered", "a", None, at(1)),
        ("matched", "b", 1.0, at(4)),
        ("duplicate", "b", None, at(4.5)),
        ("unanswered", "a", None, at(10)),
        ("unexpected", "b", None, at(17)),
    ]


def test_what_comes_late_finds_its_place(operator, process):
    late = events((0, "a"), (5, "b"), (4, "a"), (3, "b"), (20, "x"))
    found = process(operator("time-between", params(delay_s=3)), late)
    assert told(found) == [("matched", "b", 3.0, at(3)), ("matched", "b", 1.0, at(5))]


def test_what_comes_later_than_that_is_told_and_changes_nothing(operator, process):
    late = events((10, "a"), (5, "b"), (4, "a"), (12, "b"))
    assert told(process(operator("time-between", params(debounce_s=0.5)), late)) == [
        ("late", "b", None, at(5)),
        ("late", "a", None, at(4)),
        ("matched", "b", 2.0, at(12)),
    ]


def test_too_many_that_wait_are_rejected_until_some_may_go(operator, monkeypatch):
    monkeypatch.setattr(time_between, "KEPT_MAX", 2)
    rows = [{"_time": at(second), "signal": "a"} for second in (0, 1, 2, 100, 101)]
    found = trial(operator("time-between", params(delay_s=10)), rows, schema_of(signal="string"))
    assert [reason.split(":")[0] for reason in found.rejected] == ["TooManyKept"]
    assert [row["outcome"] for row in found.rows] == ["unanswered", "unanswered"]


def test_values_are_compared_as_text(operator, process):
    chosen = operator("time-between", params(first="true", second="false"))
    found = process(chosen, [(0, {"signal": True}), (2, {"signal": None}), (3, {"signal": False})])
    assert told(found) == [("matched", "false", 3.0, at(3))]


def test_what_does_not_fit_is_told(operator, mismatch):
    names = operator("time-between", params()).output_schema({"in": SCHEMA}).names
    assert names == ("machine", "outcome", "event", "interval_s", "first_at", "second_at")
    assert mismatch(operator("time-between", params(column="y")), **{"in": SCHEMA}) == ["params.column"]
    with pytest.raises(ValidationError, match="two different values"):
        operator("time-between", params(second="a"))


LATE_S, WITHIN_S = 4, 6


def oracle(all_events):
    """Returns the outcomes by looking at all events at once, in the order of their time."""
    found, opened = [], None
    for second, kind in sorted(all_events):
        if opened is not None and second - opened > WITHIN_S:
            found.append(("unanswered", opened, None))
            opened = None
        if kind == "a":
            if opened is not None:
                found.append(("unanswered", opened, None))
            opened = second
        elif opened is None:
            found.append(("unexpected", second, None))
        else:
            found.append(("matched", second, float(second - opened)))
            opened = None
    return found if opened is None else [*found, ("unanswered", opened, None)]


@given(
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from("ab")), max_size=30),
    st.randoms(use_true_random=False),
)
def test_late_events_within_the_bound_change_nothing(some, chance):
    """The order of arrival, each at most LATE_S behind the newest so far, makes no difference."""
    arrival = sorted(some, key=lambda each: each[0] + chance.uniform(0, LATE_S - 0.001))
    operator = TimeBetween(TimeBetweenParams(**params(within_s=WITHIN_S, delay_s=LATE_S)))
    found = keyed_output(operator, [*events(*arrival), *events((1000, "x"))])
    expected = [(outcome, at(second), interval) for outcome, second, interval in oracle(some)]
    assert [(row["outcome"], row["_time"], row.get("interval_s")) for row in found] == expected


def row_by_row(some, most, *, within_ms, debounce_ms, delay_ms):
    """What is told with each row, one after the other; `some`: (ms, what happened)."""
    waiting, newest, opened, last = [], None, None, (None, None)
    for at_ms, what in some:
        newest_now = at_ms if newest is None else max(newest, at_ms)
        until = newest_now - delay_ms
        if what in "ab":
            staying = [each for each in waiting if each[0] > until]
            if at_ms > until and len(staying) >= most:
                yield at_ms, "too many", None
                continue
            waiting = sorted([*waiting, (at_ms, what)])
        newest = newest_now
        ready = [each for each in waiting if each[0] <= until]
        waiting = [each for each in waiting if each[0] > until]
        for event_ms, kind in ready:
            if last[0] is not None and event_ms < last[0]:
                yield event_ms, "late", None
                continue
            if debounce_ms and kind == last[1] and event_ms - last[0] <= debounce_ms:
                yield event_ms, "duplicate", None
                continue
            if opened is not None and event_ms - opened > within_ms:
                yield opened, "unanswered", None
                opened = None
            last = event_ms, kind
            if kind == "a":
                if opened is not None:
                    yield opened, "unanswered", None
                opened = event_ms
            else:
                interval = None if opened is None else (event_ms - opened) / 1000
                yield event_ms, "unexpected" if opened is None else "matched", interval
                opened = None
        if opened is not None and until - opened > within_ms:
            yield opened, "unanswered", None
            opened = None


@settings(max_examples=examples(100))
@example(
    [(0, "a"), (2, "x")], True, (1, 0, 0), 1, []
)  # nothing is told later than with the first row that may
@example([(0, "b"), (3, "x")], True, (1, 0, 3), 1, [])
@example([(0, "a"), (3, "x"), (4, "a"), (5, "a"), (4, "x")], False, (1, 0, 3), 1, [4])  # 5 is too many
@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abxx")), max_size=25),
    st.booleans(),
    st.tuples(st.integers(1, 9), st.sampled_from([0, 2]), st.sampled_from([0, 0, 3])),
    st.integers(1, 3),
    st.lists(st.integers(0, 25), max_size=2),
)
def test_rows_that_are_passed_over_change_nothing(some, in_turn, said, most, cuts):
    some = sorted(some) if in_turn else some
    named = dict(zip(("within", "debounce", "delay"), said, strict=True))
    rows = [{"_time": at(at_ms / 1000), "signal": what} for at_ms, what in some]
    batches = [{"in": rows[first:end]} for first, end in pairwise([0, *sorted(cuts), len(rows)])]
    with patch.object(time_between, "KEPT_MAX", most):
        schema = schema_of(signal="string")
        chosen = TimeBetween(
            TimeBetweenParams(**params(**{f"{name}_s": ms / 1000 for name, ms in named.items()}))
        )
        found = processed(chosen, batches, {"in": schema})
    expected = list(row_by_row(some, most, **{f"{name}_ms": ms for name, ms in named.items()}))
    assert [(row["_time"], row["outcome"], row["interval_s"]) for row in found.rows] == [
        (at(at_ms / 1000), *rest) for at_ms, *rest in expected if rest[0] != "too many"
    ]
    assert len(found.rejected) == len([each for each in expected if each[1] == "too many"])
