"""Laws of panes and of the windows that are put together from them."""

# ruff: noqa: DTZ001 - what a wall clock shows has no zone

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
from hypothesis import given, settings, strategies as st

from pipeline_runtime.operators.panes import HOUR_US, ZonedCalendar, first_start, windows
from tests.chosen import examples

ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "America/Havana",
    "UTC",
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.sets(st.tuples(st.integers(0, 2), st.integers(-40, 80)), min_size=1),
    st.integers(1, 25),
    st.data(),
)
def test_each_window_has_its_panes_in_their_order(
    entries: set[tuple[int, int]], size: int, data: st.DataObject
) -> None:
    slide = data.draw(st.integers(1, size))
    ordered = sorted(entries)
    first = first_start(data.draw(st.integers(-100, 60)), slide)
    starts = range(first, data.draw(st.integers(first, 100)), slide)
    keys, panes = np.array(ordered).T
    begins, firsts, counts = windows(keys, panes, starts, size)
    found = [
        (start, ordered[place : place + count])
        for start, place, count in zip(begins.tolist(), firsts.tolist(), counts.tolist(), strict=True)
    ]
    expected = [
        (start, panes)
        for key in range(3)
        for start in starts
        if (panes := [each for each in ordered if each[0] == key and start < each[1] <= start + size])
    ]
    assert found == expected


@settings(max_examples=examples(200), deadline=None)
@given(
    st.sampled_from(ZONES),
    st.sampled_from([1, 2, 8, 24, 7 * 24]),
    st.integers(0, 23),
    st.lists(st.datetimes(datetime(1975, 1, 1), datetime(2037, 1, 1)), min_size=1, max_size=20),
)
def test_a_pane_begins_at_the_first_moment_at_which_the_clocks_show_its_time(
    zone: str, hours: int, offset_h: int, moments: list[datetime]
) -> None:
    calendar = ZonedCalendar(hours * HOUR_US, offset_h * HOUR_US, zone)
    times = np.array([(each.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1) for each in moments])
    for pane, time_us in zip(calendar.pane_of(times).tolist(), times.tolist(), strict=True):
        begins = calendar.end_us(pane - 1)
        assert begins <= time_us < calendar.end_us(pane)
        wanted = datetime(1970, 1, 1) + timedelta(hours=offset_h + hours * (pane - 1))
        assert wall(zone, begins) >= wanted > wall(zone, begins - 1_000_000)


def wall(zone: str, time_us: int) -> datetime:
    return (EPOCH + timedelta(microseconds=time_us)).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def test_times_that_no_calendar_has_are_placed_all_the_same() -> None:
    calendar = ZonedCalendar(24 * HOUR_US, 0, "Europe/Berlin")
    times = np.array([-(2**62), -(2**60), 2**60, 2**62])
    panes = calendar.pane_of(times)
    assert all(np.diff(panes) > 0)
