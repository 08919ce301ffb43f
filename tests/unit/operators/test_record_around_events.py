"""Laws of the recording around another stream's events."""

from copy import deepcopy

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.operators import recordings
from pipeline_runtime.operators.record_around_events import RecordAroundEvents
from pipeline_runtime.operators.recordings import AroundParams
from pipeline_runtime.trial import StatesInMemory, at, processed, trial
from tests.unit.operators.conftest import schema_of
from tests.unit.operators.plain_recordings import Full, PlainRecordings

ROWS = schema_of(key="k", k="string", x="number")
EVENTS = schema_of(key="k", k="string", alarm="boolean")


# Some are in one slot of the rows that wait.
TIMES_MS = st.integers(0, 25).map(lambda step: step * 10)


def around(before_s, after_s):
    return RecordAroundEvents(AroundParams(event="alarm", before_s=before_s, after_s=after_s))


def rows(*seconds, key="a"):
    return [{"_time": at(second), "k": key, "x": float(second)} for second in seconds]


def events(until, *seconds, key="a"):
    return [{"_time": at(second), "k": key, "alarm": second in seconds} for second in range(until)]


def recorded(operator, some, others, seed=None):
    found = trial(operator, some, ROWS, others={"events": (others, EVENTS)}, seed=seed)
    assert found.rejected == []
    return sorted((row["k"], row["x"], row["recording"], row["offset_s"]) for row in found.rows)


def test_it_has_the_rows_around_the_events_of_the_same_key():
    some = [*rows(*range(12)), *rows(*range(12), key="b")]
    others = [*events(12, 5), *events(12, key="b")]
    assert recorded(around(2, 1), some, others) == [("a", float(n), 1, n - 5.0) for n in (3, 4, 5, 6)]


def test_rows_wait_for_a_stream_that_stands_still_and_events_for_theirs():
    some, others = rows(*range(1000)), events(1000, 3, 990)
    expected = [("a", float(n), 1, n - 3.0) for n in range(2, 6)]
    expected += [("a", float(n), 2, n - 990.0) for n in range(989, 993)]
    batches = [{"in": some}, {"events": others}]
    for order in (batches, batches[::-1]):
        states = StatesInMemory()
        found = processed(around(1, 2), order, {"in": ROWS, "events": EVENTS}, states=states)
        got = sorted((row["k"], row["x"], row["recording"], row["offset_s"]) for row in found.rows)
        assert got == expected
        assert len(states.kept) <= 4  # the recordings, and a slot for each row that waits


def test_what_does_not_fit_is_told(operator, mismatch):
    chosen = around(1, 1)
    assert chosen.output_schema({"in": ROWS, "events": EVENTS}).names == ("k", "x", "recording", "offset_s")
    assert mismatch(chosen, **{"in": ROWS, "events": ROWS}) == ["params.event"]
    keyless = schema_of(alarm="boolean")
    assert mismatch(chosen, **{"in": ROWS, "events": keyless}) == ["inputs.events"]
    by_x = RecordAroundEvents(AroundParams(event="alarm", key="x"))
    assert mismatch(by_x, **{"in": ROWS, "events": EVENTS}) == ["params.key"]


@given(
    st.lists(st.integers(0, 60), max_size=40),
    st.lists(st.tuples(st.integers(0, 60), st.booleans()), max_size=20),
    st.integers(0, 8),
    st.integers(0, 8),
    st.integers(0, 1000),
)
def test_whichever_stream_comes_first_it_has_exactly_the_rows_near_an_event(
    seconds, flags, before_s, after_s, seed
):
    some = rows(*sorted(seconds))
    others = [{"_time": at(second), "k": "a", "alarm": flag} for second, flag in sorted(flags)]
    merged = []  # the oracle: intervals that touch are one
    for second in sorted(second for second, flag in flags if flag):
        if merged and second - before_s <= merged[-1][2]:
            merged[-1][2] = second + after_s
        else:
            merged.append([second, second - before_s, second + after_s])
    expected = sorted(
        ("a", float(second), number, float(second - event))
        for second in seconds
        for number, (event, start, end) in enumerate(merged, 1)
        if start <= second <= end
    )
    assert recorded(around(before_s, after_s), some, others, seed) == expected


@given(
    st.lists(st.tuples(TIMES_MS, st.booleans(), st.booleans()), max_size=60),
    st.integers(0, 80),
    st.integers(0, 80),
    st.sampled_from([2, 5, 100]),
)
def test_it_does_what_the_plain_oracle_does_in_whatever_order_times_come(steps, before_ms, after_ms, most):
    # In batches of one row, so that the order of the rows is that of the oracle.
    plain, batches, expected, refused = PlainRecordings(before_ms, after_ms, most), [], [], 0
    for place, (at_ms, is_event, is_row) in enumerate(steps):
        if is_row:
            batches.append({"in": [{"_time": at(at_ms / 1000), "k": "a", "x": float(place)}]})
            before = deepcopy(plain)
            try:
                expected += plain.row(at_ms, place)
            except Full:
                plain, refused = before, refused + 1
        else:
            batches.append({"events": [{"_time": at(at_ms / 1000), "k": "a", "alarm": is_event}]})
            expected += plain.event(at_ms) if is_event else []
            plain.told(at_ms)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recordings, "KEPT_MAX", most)
        found = processed(around(before_ms / 1000, after_ms / 1000), batches, {"in": ROWS, "events": EVENTS})
    got = [(int(row["x"]), row["recording"], round(row["offset_s"] * 1000)) for row in found.rows]
    assert got == expected
    assert len(found.rejected) == refused


@pytest.mark.parametrize("ahead", ["in", "events"])
def test_a_row_from_a_clock_that_is_ahead_stops_nothing(ahead):
    some, others = rows(0, 1, 2, 3, 4, 5, 6, 7, 8), events(9, 7)
    stray = at(10**9)
    if ahead == "in":
        some.insert(2, {"_time": stray, "k": "a", "x": -1.0})
    else:
        others.insert(2, {"_time": stray, "k": "a", "alarm": False})
    for seed in range(20):
        found = recorded(around(2, 1), some, others, seed)
        assert [x for _, x, *_ in found][-2:] == [7.0, 8.0]
