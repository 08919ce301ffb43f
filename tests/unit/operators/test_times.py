"""Laws of times in text: what is found is what is read, and what is no time is not found."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.operators.times import (
    best_time,
    checked_format,
    in_words,
    read_times,
    time_readings,
)

NOON = datetime(2024, 1, 31, 12, 0, tzinfo=UTC)
MINUTES = [NOON + timedelta(minutes=n) for n in range(30)]


def texts(time_format, times=MINUTES):
    return [time.strftime(time_format) for time in times]


def counted(unit_s, times=MINUTES):
    return [str(round(time.timestamp() / unit_s)) for time in times]


@pytest.mark.parametrize(
    ("values", "time_format", "zone"),
    [
        (texts("%Y-%m-%d %H:%M:%S"), "iso", "assumed"),
        (texts("%Y-%m-%dT%H:%M:%SZ"), "iso", "written"),
        (texts("%Y-%m-%dT%H:%M:%S.123456+00:00"), "iso", "written"),
        (counted(1), "epoch_s", "written"),
        (counted(1e-3), "epoch_ms", "written"),
        (counted(1e-6), "epoch_us", "written"),
        (counted(1e-9), "epoch_ns", "written"),
        (texts("%d.%m.%Y %H:%M:%S"), "%d.%m.%Y %H:%M:%S", "assumed"),
        (texts("%d.%m.%y %H:%M"), "%d.%m.%y %H:%M", "assumed"),
        (texts("%d.%m.%Y, %H:%M:%S,250"), "%d.%m.%Y, %H:%M:%S,%f", "assumed"),
        (texts("%m/%d/%Y %I:%M %p"), "%m/%d/%Y %I:%M %p", "assumed"),
        (texts("%d/%m/%Y %H:%M:%S"), "%d/%m/%Y %H:%M:%S", "assumed"),
        (texts("%Y/%m/%d %H:%M:%S.5"), "%Y/%m/%d %H:%M:%S.%f", "assumed"),
        (texts("%d/%b/%Y:%H:%M:%S +0000"), "%d/%b/%Y:%H:%M:%S %z", "written"),
        (texts("%Y%m%dT%H%M%S"), "%Y%m%dT%H%M%S", "assumed"),
        (texts("%H:%M:%S"), "%H:%M:%S", "assumed"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_a_format_is_found_and_reads_every_value(values, time_format, zone):
    first = time_readings("measured", values)[0]
    assert (first.format, first.zone, first.unread, first.back, first.step_s) == (time_format, zone, 0, 0, 60)
    read = read_times(pa.array(values), first.format).to_pylist()
    assert read[0].isoformat() == first.first
    assert [time - read[0] for time in read] == [time - NOON for time in MINUTES]


def test_a_day_above_twelve_tells_day_and_month_apart():
    assert [reading.format for reading in time_readings("d", ["13/01/2024", "14/01/2024"])] == ["%d/%m/%Y"]


def test_where_nothing_tells_them_apart_both_are_offered_and_the_shorter_steps_come_first():
    days = ["01/02/2024", "02/02/2024", "03/02/2024"]
    assert [reading.format for reading in time_readings("d", days)] == ["%d/%m/%Y", "%m/%d/%Y"]
    months = ["02/01/2024", "02/02/2024", "02/03/2024"]
    assert [reading.format for reading in time_readings("d", months)] == ["%m/%d/%Y", "%d/%m/%Y"]


def test_some_values_may_be_no_time_but_not_many():
    assert time_readings("at", [*texts("%d.%m.%Y"), "unknown"])[0].unread == 1
    assert time_readings("at", [*texts("%d.%m.%Y")[:5], "unknown"]) == []


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("power", ["1.5", "2.5", "3.5"]),
        ("id", ["1700000005", "1700000001", "1700000003"]),  # as large as seconds are, and not rising
        ("version", ["1.2.3", "1.2.4"]),
        ("machine", ["a", "b"]),
        ("n", ["1", "2", "3"]),
        ("at", ["", " "]),
        ("at", ["2024-13-01", "2024-13-02"]),
    ],
)
def test_what_is_no_time_is_not_found(name, values):
    assert time_readings(name, values) == []


@pytest.mark.parametrize(
    ("name", "values", "time_format", "step_s"),
    [
        ("t", ["0", "0.1", "0.2"], "epoch_s", 0.1),
        ("time [ms]", ["0", "20", "40"], "epoch_ms", 0.02),
        ("elapsed_s", ["5", "6", "7"], "epoch_s", 1),
    ],
)
def test_seconds_since_a_start_of_their_own_are_found_by_their_name(name, values, time_format, step_s):
    (reading,) = time_readings(name, values)
    assert (reading.format, reading.elapsed) == (time_format, True)
    assert reading.step_s == pytest.approx(step_s)
    assert "since the start" in reading.words


def chosen(**columns):
    return best_time([(name, time_readings(name, values)) for name, values in columns.items()])


def test_the_column_to_replay_by_is_the_one_that_moves():
    # A date that stays the same for all rows, a time, and another one.
    columns = {
        "date": texts("%Y-%m-%d"),
        "n": counted(1),
        "measured_at": texts("%Y-%m-%d %H:%M"),
        "stored_at": texts("%Y-%m-%d %H:%M"),
    }
    assert chosen(**columns) == ("measured_at", "iso")
    assert chosen(n=columns["n"]) == ("n", "epoch_s")


def test_a_file_from_new_to_old_is_not_replayed_by_its_times_without_asking():
    values = texts("%Y-%m-%d %H:%M")[::-1]
    assert time_readings("at", values)[0].back == 29
    assert chosen(at=values) is None


def test_a_format_in_words():
    assert in_words("%d.%m.%Y %H:%M") == "day.month.year hour:minute"
    assert in_words("epoch_ms") == "milliseconds since 1970"


@given(st.lists(st.text(alphabet="0129.:,/-+TZ apm", min_size=1, max_size=25), max_size=6))
def test_no_text_is_too_odd_to_be_looked_at(values):
    values = [value.strip() for value in values if value.strip()]
    for reading in time_readings("time", values):
        read = read_times(pa.array(values, pa.string()), reading.format)
        assert reading.rows - reading.unread == len(read.drop_null())


@pytest.mark.parametrize("time_format", ["%H:%M:%M", "%Q", "%"])
def test_a_format_by_which_no_text_could_be_read_is_refused(time_format):
    with pytest.raises(ValueError, match="format"):
        checked_format(time_format)


@pytest.mark.parametrize("time_format", ["iso", "epoch_ms", "%d.%m.%Y %H:%M", "noon"])
def test_a_format_by_which_texts_can_be_read_is_taken(time_format):
    assert checked_format(time_format) == time_format
