"""Laws of the recording around an event."""

from copy import deepcopy

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.operators import recordings
from pipeline_runtime.operators.record_around import RecordAround
from pipeline_runtime.operators.recordings import AroundParams
from pipeline_runtime.trial import trial
from tests.unit.operators.conftest import Rejected, at, keyed_output, schema_of
from tests.unit.operators.plain_recordings import Full, PlainRecordings

SCHEMA = schema_of(key="k", k="string", x="number", alarm="boolean", t="timestamp")


# Some are in one slot of the rows that wait.
TIMES_MS = st.integers(0, 25).map(lambda step: step * 10)


def rows(*events, until=12):
    return [
        (second, {"k": "a", "x": float(second), "alarm": second in events, "t": at(second)})
        for second in range(until)
    ]


def around(**more):
    return {"event": "alarm", "before_s": 2, "after_s": 3, **more}


def test_rows_from_before_and_after_are_handed_on_with_their_own_time(operator, process):
    found = process(operator("record-around", around()), rows(5))
    assert [(row["x"], row["_time"], row["offset_s"]) for row in found] == [
        (float(second), at(second), float(second - 5)) for second in range(3, 9)
    ]
    assert {row["recording"] for row in found} == {1}
    assert [row["t"] for row in found] == [at(second) for second in range(3, 9)]


def test_an_event_within_a_recording_extends_it_and_one_after_it_begins_another(operator, process):
    found = process(operator("record-around", around(after_s=1)), rows(2, 3, 7, 10))
    assert [(row["x"], row["recording"]) for row in found] == [
        *((float(second), 1) for second in range(5)),
        *((float(second), 2) for second in range(5, 12)),  # 7 and 10 overlap in 8
    ]
    assert [row["offset_s"] for row in found if row["recording"] == 1] == [-2.0, -1.0, 0.0, 1.0, 2.0]


def test_what_comes_late_is_recorded_by_its_own_time(operator, process):
    def row(second, event=False):
        return second, {"k": "a", "x": float(second), "alarm": event, "t": None}

    chosen = operator("record-around", around(before_s=4, after_s=3))
    found = process(chosen, [row(2), row(10), row(5, True), row(9), row(7), row(6), row(14, True)])
    assert [(row["x"], row["recording"]) for row in found] == [
        (2.0, 1), (5.0, 1), (7.0, 1), (6.0, 1), (10.0, 2), (14.0, 2)
    ]  # fmt: skip


def test_null_is_no_event_and_too_much_is_rejected(operator, process, monkeypatch):
    nothing = [{"_time": at(second), "k": "a", "x": 1.0, "alarm": None} for second in range(5)]
    assert trial(operator("record-around", around()), nothing, SCHEMA, seed=1).rows == []
    monkeypatch.setattr(recordings, "KEPT_MAX", 2)
    with pytest.raises(Rejected, match="TooManyKept: 2 rows wait"):
        process(operator("record-around", around()), rows())


def ms(second):
    return int(at(second).timestamp() * 1000)


def test_what_does_not_fit_is_told(operator, mismatch):
    names = operator("record-around", around()).output_schema({"in": SCHEMA}).names
    assert names == (*SCHEMA.names, "recording", "offset_s")
    assert mismatch(operator("record-around", around(event="x")), **{"in": SCHEMA}) == ["params.event"]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=40), st.integers(0, 8), st.integers(0, 8)
)
def test_it_has_exactly_the_rows_near_an_event(steps, before_s, after_s):
    now, timed = 0, []
    for step, is_event in steps:
        now += step
        timed.append((now, is_event))
    operator = RecordAround(AroundParams(event="alarm", before_s=before_s, after_s=after_s))
    given_rows = [
        (second, {"k": "a", "x": float(n), "alarm": is_event, "t": None})
        for n, (second, is_event) in enumerate(timed)
    ]
    events = [(n, second) for n, (second, is_event) in enumerate(timed) if is_event]

    def near(n, second):
        """What comes before an event in the order of rows may wait for it; what comes after may follow it."""
        return any(
            (n <= e and second >= at_s - before_s) or (n >= e and second <= at_s + after_s)
            for e, at_s in events
        )

    found = keyed_output(operator, given_rows)
    assert [row["x"] for row in found] == [float(n) for n, (second, _) in enumerate(timed) if near(n, second)]
    assert len({row["recording"] for row in found}) == sum(
        1 for (_, a), (_, b) in zip([(0, -1e9), *events], events, strict=False) if b - before_s > a + after_s
    )


@given(
    st.lists(st.tuples(TIMES_MS, st.booleans()), max_size=60),
    st.integers(0, 80),
    st.integers(0, 80),
    st.sampled_from([2, 5, 100]),
    st.integers(0, 1000),
)
def test_it_does_what_the_plain_oracle_does_in_whatever_order_times_come(
    steps, before_ms, after_ms, most, seed
):
    plain, expected, refused = PlainRecordings(before_ms, after_ms, most), [], 0
    for place, (at_ms, is_event) in enumerate(steps):
        before = deepcopy(plain)
        try:
            found = plain.event(at_ms) if is_event else []
            plain.told(at_ms)
            expected += [*found, *plain.row(at_ms, place)]
        except Full:
            plain, refused = before, refused + 1
    given_rows = [
        {"_time": at(at_ms / 1000), "k": "a", "x": float(place), "alarm": is_event, "t": at(at_ms / 1000)}
        for place, (at_ms, is_event) in enumerate(steps)
    ]
    operator = RecordAround(AroundParams(event="alarm", before_s=before_ms / 1000, after_s=after_ms / 1000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recordings, "KEPT_MAX", most)
        found = trial(operator, given_rows, SCHEMA, seed=seed)
    got = [(int(row["x"]), row["recording"], round(row["offset_s"] * 1000)) for row in found.rows]
    assert got == expected
    assert all(row["t"] == row["_time"] for row in found.rows)
    assert len(found.rejected) == refused
