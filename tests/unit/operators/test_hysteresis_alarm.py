"""Laws of the alarm with hysteresis."""

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from pipeline_runtime.operators.hysteresis_alarm import HysteresisAlarm, HysteresisAlarmParams
from tests.unit.operators.conftest import at, keyed_output, schema_of

SCHEMA = schema_of(key="k", k="string", x="number")


def rows(*values):
    return [(second, {"k": "a", "x": value}) for second, value in enumerate(values)]


def params(**more):
    return {"column": "x", "raise_at": 8, "clear_at": 5, **more}


def test_what_lies_between_the_limits_changes_nothing(operator, process):
    found = process(operator("hysteresis-alarm", params()), rows(7.0, 9.0, 6.0, 12.0, None, 5.0, 7.0, 8.5))
    assert [(row["alarm"], row["x"], row["_time"]) for row in found] == [
        ("raised", 9.0, at(1)),
        ("cleared", 5.0, at(5)),
        ("raised", 8.5, at(7)),
    ]
    assert (found[1]["since"], found[1]["lasted"], found[1]["worst"]) == (at(5), 4.0, 12.0)


def test_it_takes_its_time_in_one_go(operator, process):
    chosen = operator("hysteresis-alarm", params(for_s=2, clear_for_s=1))
    found = process(chosen, rows(9.0, 9.0, 7.0, 9.0, 9.0, 11.0, 4.0, 6.0, 4.0, 3.0))
    assert [(row["alarm"], row["since"], row["_time"]) for row in found] == [
        ("raised", at(3), at(5)),
        ("cleared", at(8), at(9)),
    ]
    assert found[0]["worst"] == 11.0


def test_values_too_low_are_the_same_the_other_way_round(operator, process):
    high = process(operator("hysteresis-alarm", params(for_s=1)), rows(9.0, 9.5, 6.0, 4.0))
    low = process(
        operator("hysteresis-alarm", params(direction="below", raise_at=-8, clear_at=-5, for_s=1)),
        rows(-9.0, -9.5, -6.0, -4.0),
    )
    assert [(row["alarm"], -row["worst"], row["_time"]) for row in low] == [
        (row["alarm"], row["worst"], row["_time"]) for row in high
    ]


def test_rows_are_taken_as_they_come():
    chosen = HysteresisAlarm(HysteresisAlarmParams(**params(for_s=2)))
    late = [(10**6, {"x": 9.0}), (1, {"x": 9.0}), (3, {"x": 9.0}), (2, {"x": 4.0})]
    found = keyed_output(chosen, late)
    assert [(row["alarm"], row["_time"], row["lasted"]) for row in found] == [
        ("raised", at(3), None),
        ("cleared", at(2), 0.0),
    ]


def test_what_does_not_fit_is_told(operator, mismatch):
    names = operator("hysteresis-alarm", params()).output_schema({"in": SCHEMA}).names
    assert names == ("k", "alarm", "x", "since", "lasted", "worst")
    assert mismatch(operator("hysteresis-alarm", params(column="y")), **{"in": SCHEMA}) == ["params.column"]
    with pytest.raises(ValidationError, match="otherwise it flaps"):
        operator("hysteresis-alarm", params(raise_at=5))


@pytest.mark.parametrize(
    ("direction", "clear_at", "message"),
    [("above", 8.5, "at most Raise at, which is 8, for an alarm above"), ("below", 5, "at least Raise at")],
)
def test_the_limits_never_turn_the_alarm_round(direction, clear_at, message):
    with pytest.raises(ValidationError, match=message) as refused:
        HysteresisAlarmParams(**params(direction=direction, clear_at=clear_at))
    assert [error["loc"] for error in refused.value.errors()] == [("clear_at",)]


def oracle(values, for_s, clear_for_s):
    """Looking at all values: where a run beyond (or behind) that is long enough ends the state from
    before."""
    found, raised, begin = [], False, 0
    while True:
        ends = (lambda v: v <= 5) if raised else (lambda v: v > 8)
        least = clear_for_s if raised else for_s
        runs = (
            index
            for index in range(begin, len(values))
            if index - least >= begin and all(map(ends, values[index - least : index + 1]))
        )
        index = next(runs, None)
        if index is None:
            return found
        raised = not raised
        found.append(("raised" if raised else "cleared", index))
        begin = index + 1


@given(st.lists(st.integers(0, 12), max_size=50), st.integers(0, 3), st.integers(0, 3))
def test_it_equals_a_plain_oracle(values, for_s, clear_for_s):
    chosen = HysteresisAlarm(HysteresisAlarmParams(**params(for_s=for_s, clear_for_s=clear_for_s)))
    found = keyed_output(chosen, rows(*map(float, values)))
    assert [(row["alarm"], row["_time"]) for row in found] == [
        (alarm, at(second)) for alarm, second in oracle(values, for_s, clear_for_s)
    ]


def row_by_row(values, *, direction, raise_at, clear_at, for_s, clear_for_s):
    """The alarms of (second, value), as the operator's words say it: one row after the other."""
    above = direction == "above"
    farther = max if above else min
    raised = since = worst = None
    for second, value in values:
        is_beyond = value > raise_at if above else value < raise_at
        is_back = value <= clear_at if above else value >= clear_at
        if raised is not None and not is_back:
            since, worst = None, farther(value, worst)
        elif raised is None and not is_beyond:
            since = worst = None
        else:
            worst = worst if raised is not None else value if worst is None else farther(value, worst)
            since = second if since is None else min(since, second)
            if second - since >= (for_s if raised is None else clear_for_s):
                yield "cleared" if raised is not None else "raised", second, value, since, worst
                raised, worst, since = (second, worst, None) if raised is None else (None, None, None)


_values = st.none() | st.sampled_from([-2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0])


@given(
    st.lists(st.tuples(st.integers(0, 12), _values), max_size=30),
    st.sampled_from([("above", 1, 0), ("below", 0, 1), ("above", 0.5, 0.5), ("below", 0.5, 0.5)]),
    st.sampled_from([(0, 0), (0, 2), (3, 0), (1, 1)]),
)
def test_what_can_be_passed_over_changes_nothing(given, limits, times):
    if limits[1] == limits[2] and not any(times):
        return  # refused: it would flap
    said = dict(
        zip(("direction", "raise_at", "clear_at", "for_s", "clear_for_s"), (*limits, *times), strict=True)
    )
    found = keyed_output(
        HysteresisAlarm(HysteresisAlarmParams(column="x", **said)),
        [(second, {"x": value}) for second, value in given],
    )
    expected = row_by_row([each for each in given if each[1] is not None], **said)
    assert [(row["alarm"], row["_time"], row["since"], repr((row["x"], row["worst"]))) for row in found] == [
        (alarm, at(second), at(since), repr((value, worst)))
        for alarm, second, value, since, worst in expected
    ]
