"""Year, month, day and so on in columns without names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.unit.imports.kinds import imported


@pytest.mark.parametrize(
    ("form", "step"),
    [
        ("%Y,%m,%d,%H", timedelta(hours=1)),
        ("%Y %m %d %H", timedelta(hours=7)),
        ("%Y %m %d %H %M", timedelta(minutes=10)),
        ("%Y,%m,%d,%H,%M,%S", timedelta(seconds=90)),
        ("%Y,%m,%d", timedelta(days=1)),
        ("%Y,%m,%d,%H,%M", timedelta(hours=1)),
    ],
)
def test_parts_of_a_time_in_columns_without_names_are_the_time(
    tmp_path: Path, form: str, step: timedelta
) -> None:
    times = [datetime(2024, 5, 1, tzinfo=UTC) + n * step for n in range(60)]
    mark = "," if "," in form else " "
    lines = [f"{time:{form}}{mark}{n / 2:.1f}{mark}{n * n - 7}\n" for n, time in enumerate(times)]
    expected = [time.isoformat() for time in times]
    assert imported(tmp_path / "t.dat", "".join(lines)).times == expected


@pytest.mark.parametrize(("behind", "clock"), [("30", "03:30:00"), ("00,45", "03:00:45")])
def test_minutes_and_seconds_may_be_the_same_in_all_rows(tmp_path: Path, behind: str, clock: str) -> None:
    times = [datetime(2024, 5, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(40)]
    text = "".join(f"{time:%Y,%m,%d,%H},{behind},{n / 2:.1f}\n" for n, time in enumerate(times))
    assert imported(tmp_path / "t.csv", text).times[3] == f"2024-05-01T{clock}+00:00"


@pytest.mark.parametrize("row", ["{year},{n},{m},1", "2024,05,{m},{m}", "{n},05,01,00"])
def test_counts_in_columns_without_names_are_no_time(tmp_path: Path, row: str) -> None:
    lines = [row.format(year=2024 - n % 3, n=n % 12 + 1, m=n % 5 + 1) + "\n" for n in range(60)]
    assert imported(tmp_path / "t.csv", "".join(lines)).reading.time is None


@pytest.mark.parametrize("first", [0, 15])
def test_a_count_behind_the_hour_is_no_minute(tmp_path: Path, first: int) -> None:
    times = [datetime(2024, 5, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(40)]
    lines = [f"{time:%Y,%m,%d,%H},{first + n}\n" for n, time in enumerate(times)]
    found = imported(tmp_path / "t.csv", "".join(lines))
    assert (found.times[30], found.column("c5")[30]) == ("2024-05-02T06:00:00+00:00", first + 30)
