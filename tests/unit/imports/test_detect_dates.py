"""Dates that stand once for several rows, in several ways, without a day, and ranges of times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from tests.unit.imports.kinds import imported
from webapp.imports import convert_text
from webapp.imports.answer import answered
from webapp.imports.convert import convert
from webapp.imports.detect import look
from webapp.imports.turns import Above, turns_of

HOURS = [datetime(2024, 5, 1, tzinfo=UTC) + timedelta(hours=hour) for hour in range(72)]
IN_ISO = [at.isoformat() for at in HOURS]


def table(header: str, row: str) -> str:
    """Returns rows of 72 hours. {date} is in the first row of each day, {clock} in each."""
    rows = (
        row.format(at=at, n=n, date="" if at.hour else f"{at:%d.%m.%Y}", clock=f"{at:%H:%M}")
        for n, at in enumerate(HOURS)
    )
    return header + "\n" + "".join(f"{each}\n" for each in rows)


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("Datum;Uhrzeit;v", "{date};{clock};{n}"),
        ("Uhrzeit;Datum;v", "{clock};{date};{n}"),
        ("Zeit;v", "{date} {clock};{n}"),
        ("Datum;Stunde;v", "{date};{at.hour};{n}"),
        ("Datum;Uhrzeit;v", "{date};{clock};{n}.5"),
    ],
)
def test_a_date_in_the_first_row_of_a_day_holds_for_the_rows_below(
    tmp_path: Path, header: str, row: str
) -> None:
    found = imported(tmp_path / "file", table(header, row))
    assert found.times == IN_ISO
    assert found.report.dead == 0
    assert "Rows without a date have that of the row above" in found.notes
    assert "at line 3" in found.notes


def test_a_date_above_holds_over_pieces_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert_text, "PIECE_BYTES", 200)
    assert imported(tmp_path / "file", table("Datum;Uhrzeit;v", "{date};{clock};{n}")).times == IN_ISO


def test_rows_below_a_date_alone_are_of_that_day(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", table("Datum;v", "{date};{n}"))
    assert found.times == [at.replace(hour=0).isoformat() for at in HOURS]


def test_dates_that_are_missing_here_and_there_are_not_filled_in(tmp_path: Path) -> None:
    rows = "".join(f"{'' if n % 3 == 1 else f'{at:%d.%m.%Y}'};{at:%H:%M};{n}\n" for n, at in enumerate(HOURS))
    found = imported(tmp_path / "file", "Datum;Uhrzeit;v\n" + rows)
    assert found.report.dead == 24
    assert "24 of 72 rows have no time that can be read" in found.notes


def test_a_day_begins_below_a_date_where_the_time_falls() -> None:
    minute, day = 60_000_000, 86_400_000_000
    year_1 = -719_162 * day
    above = Above()
    known = np.ones(3, bool)
    assert above.of(np.array([year_1, 20_000 * day + 1380 * minute, year_1 + 1410 * minute]), known)[
        1:
    ].tolist() == [
        20_000 * day + 1380 * minute,
        20_000 * day + 1410 * minute,
    ]
    assert known.tolist() == [False, True, True]
    later = above.of(np.array([year_1 + 5 * minute, 20_005 * day, year_1 + minute]), np.ones(3, bool))
    assert later.tolist() == [20_001 * day + 5 * minute, 20_005 * day, 20_005 * day + minute]
    assert isinstance(turns_of("{above} %Y-%m-%d %H:%M", False), Above)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("{:%Y-%m-%d %H:%M}", "{:%d.%m.%Y %H:%M}"),
        ("{:%m/%d/%Y %H:%M}", "{:%d.%m.%Y %H:%M}"),
        ("{:%d.%m.%Y %H:%M}", "{:%Y-%m-%dT%H:%M:%S+00:00}"),
    ],
)
def test_a_column_with_two_ways_to_write_times_is_read(tmp_path: Path, first: str, second: str) -> None:
    moved = [at + timedelta(days=12) for at in HOURS]
    texts = [(first if n < 36 else second).format(at) for n, at in enumerate(moved)]
    found = imported(tmp_path / "file", "Zeit;v\n" + "".join(f"{text};{n}\n" for n, text in enumerate(texts)))
    assert found.times == [at.isoformat() for at in moved]
    assert f"written in several ways: {texts[0]} at line 2; {texts[36]} at line 38." in found.notes


def test_the_order_of_one_of_two_ways_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(
        "Zeit;v\n" + "2024-02-01;1\n2024-02-07;2\n2024-03-05;3\n02/03/2024;4\n04/05/2024;5\n06/07/2024;6\n"
    )
    (asked,) = look(path, "file").detection.questions
    assert asked.id == "time.order"
    assert {choice.changes["time.format"] for choice in asked.choices} == {"iso | %d/%m/%Y", "iso | %m/%d/%Y"}


@pytest.mark.parametrize(
    ("header", "texts", "months"),
    [
        ("Monat", ["01/2022", "02/2022", "03/2022", "04/2022"], [1, 2, 3, 4]),
        ("Monat", ["01.2022", "02.2022", "03.2022", "10.2022"], [1, 2, 3, 10]),
        ("month", ["2022-01", "2022-02", "2022-11", "2022-12"], [1, 2, 11, 12]),
        ("Quartal", ["Q1/2022", "Q2/2022", "Q3/2022", "Q4/2022"], [1, 4, 7, 10]),
        ("quarter", ["2022-Q1", "2022-Q2", "2022-Q3", "2022-Q4"], [1, 4, 7, 10]),
        ("Quartal", ["1. Quartal 2022", "2. Quartal 2022", "3. Quartal 2022"], [1, 4, 7]),
        ("Monat", ["Januar 2022", "März 2022", "Mai 2022", "Dezember 2022"], [1, 3, 5, 12]),
        ("mois", ["janv. 2022", "févr. 2022", "août 2022", "déc. 2022"], [1, 2, 8, 12]),
        ("Monat", ["Jan-22", "Feb-22", "Mrz-22", "Okt-22"], [1, 2, 3, 10]),
    ],
)
def test_a_month_or_a_quarter_begins_on_its_first_day(
    tmp_path: Path, header: str, texts: list[str], months: list[int]
) -> None:
    data = f"{header};v\n" + "".join(f"{text};{n},5\n" for n, text in enumerate(texts))
    found = imported(tmp_path / "file", data)
    assert found.times == [datetime(2022, month, 1, tzinfo=UTC).isoformat() for month in months]


def test_numbers_of_orders_are_no_months(tmp_path: Path) -> None:
    data = "Auftrag;v\n" + "".join(
        f"{text};{n}\n" for n, text in enumerate(["07/2022", "01/2023", "03/2022"] * 4)
    )
    found = imported(tmp_path / "file", data)
    assert found.reading.time is None
    assert found.column("Auftrag")[:2] == ["07/2022", "01/2023"]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("Datum;Zeit;kW", "{at:%d.%m.%Y};{at:%H:%M}-{end:%H:%M};{n}"),
        ("Zeitraum;kW", "{at:%d.%m.%Y %H:%M} - {end:%H:%M};{n}"),
        ("Zeitraum;kW", "{at:%d.%m.%Y %H:%M} bis {end:%d.%m.%Y %H:%M};{n}"),
        ("MTU (UTC);kW", "{at:%d.%m.%Y %H:%M} - {end:%d.%m.%Y %H:%M};{n}"),
        ("interval;kW", "{at:%Y-%m-%dT%H:%M}/{end:%Y-%m-%dT%H:%M};{n}"),
    ],
)
def test_which_end_of_a_range_is_asked(tmp_path: Path, header: str, row: str) -> None:
    some = [datetime(2024, 3, 1, 22, tzinfo=UTC) + timedelta(minutes=15 * n) for n in range(12)]
    ends = [at + timedelta(minutes=15) for at in some]
    rows = (row.format(at=at, end=end, n=n) for n, (at, end) in enumerate(zip(some, ends, strict=True)))
    data = header + "\n" + "".join(f"{each}\n" for each in rows)
    for answer, right in ((0, some), (1, ends)):
        found = imported(tmp_path / "file", data, {"time.range": answer})
        assert found.times == [at.isoformat() for at in right]
        assert found.report.dead == 0


def test_a_range_of_days_is_one_too(tmp_path: Path) -> None:
    data = "Abrechnung;kWh\n" + "".join(f"01.0{n}.2024 - 28.0{n}.2024;{n}\n" for n in range(1, 8))
    assert imported(tmp_path / "file", data, {"time.range": 1}).times[0] == "2024-01-28T00:00:00+00:00"


def test_a_reading_that_names_a_range_is_carried_out(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("Zeit;v\n" + "".join(f"{hour:02d}:00-{hour:02d}:30;{hour}\n" for hour in range(9)))
    detection = look(path, "file").detection
    assert [each.id for each in detection.questions] == ["time.date"]
    assert "The beginning of each range is its time." in detection.notes
    reading = answered(detection.reading, detection.questions, {"time.date": 0})
    report = convert(path, reading, tmp_path / "table", lambda *told: None, lambda: False)
    assert (report.dead, report.usual_interval_s) == (0, 3600.0)
