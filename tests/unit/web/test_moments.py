"""Moments, milliseconds and text say the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from webapp.moments import iso_of_ms, moment_of_ms, ms_of_moment

YEAR_1_MS, YEAR_9999_END_MS = -62_135_596_800_000, 253_402_300_799_999


@given(st.integers(YEAR_1_MS, YEAR_9999_END_MS))
def test_there_and_back_is_exact(time_ms: int) -> None:
    assert ms_of_moment(moment_of_ms(time_ms)) == time_ms


def test_what_is_less_than_a_millisecond_does_not_count() -> None:
    moment = datetime(2026, 11, 27, 23, 59, 59, 999_999, tzinfo=UTC)
    assert moment_of_ms(ms_of_moment(moment)) == moment.replace(microsecond=999_000)


def test_a_moment_of_another_zone_is_the_same_moment() -> None:
    assert ms_of_moment(datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))) == 0


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [
        (None, None),
        (0, "1970-01-01T00:00:00+00:00"),
        (1, "1970-01-01T00:00:00.001000+00:00"),
        (YEAR_1_MS, "0001-01-01T00:00:00+00:00"),
        (YEAR_1_MS - 1, None),
        (YEAR_9999_END_MS, "9999-12-31T23:59:59.999000+00:00"),
        (YEAR_9999_END_MS + 1, None),
        (10**30, None),
    ],
)
def test_a_moment_as_text(time_ms: int | None, text: str | None) -> None:
    assert iso_of_ms(time_ms) == text
