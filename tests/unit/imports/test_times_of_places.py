"""Times as people of several countries write them, and clocks that are changed there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.imports.kinds import imported, lines
from webapp.imports.convert import convert
from webapp.imports.detect import look

YEAR = [f"2024-{month:02d}-15T10:00:00+00:00" for month in range(1, 13)]


@pytest.mark.parametrize(
    ("form", "months"),
    [
        (
            "15 {} 2024 10:00",
            "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października "
            "listopada grudnia",
        ),
        ("15-{}-2024 10:00", "sty lut mar kwi maj cze lip sie wrz paź lis gru"),
        (
            "15. {} 2024 10:00",
            "ledna února března dubna května června července srpna září října listopadu prosince",
        ),
        ("15 {} 2024 10:00", "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc."),
        ("15 {} 2024 10:00", "jan feb mar apr maj jun jul aug sep okt nov dec"),
        (
            "15 de {} de 2024 10:00",
            "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
        ),
        (
            "15 {} 2024 10:00",
            "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
        ),
    ],
)
def test_months_have_the_names_of_many_languages(tmp_path: Path, form: str, months: str) -> None:
    rows = "".join(f"{form.format(month)};{n},5\n" for n, month in enumerate(months.split()))
    assert imported(tmp_path / "file", "time;v\n" + rows).times == YEAR


def test_uhr_behind_a_time_after_a_comma_is_a_part_of_it(tmp_path: Path) -> None:
    rows = "".join(f"01.05.2024, 10:{n:02d} Uhr;{n},5\n" for n in range(12))
    found = imported(tmp_path / "file", "Zeit;v\n" + rows)
    assert found.times[1] == "2024-05-01T10:01:00+00:00"
    assert found.column("v")[1] == 1.5


def test_a_day_above_31_beside_a_year_is_one_of_the_year(tmp_path: Path) -> None:
    rows = "".join(f"2024;122;{n:02d}:30;{n}\n" for n in range(12))
    found = imported(tmp_path / "file", "Jahr;Tag;Zeit;v\n" + rows)
    assert found.times[1] == "2024-05-01T01:30:00+00:00"


def test_days_in_digits_need_no_name_where_each_follows_the_one_before(tmp_path: Path) -> None:
    rows = "".join(f"US1,202405{day:02d},{day}\n" for day in range(1, 13))
    assert imported(tmp_path / "file", rows).times[1] == "2024-05-02T00:00:00+00:00"
    again = "".join(f"US1,202405{day // 2:02d},{day}\n" for day in range(2, 25))
    assert imported(tmp_path / "again", again).reading.time is None


CLOCKS = ("0:00", "0:30", "1:00", "1:30", "1:00", "1:30", "2:00", "2:30")


def test_the_hour_that_a_clock_has_twice_tells_the_order_of_day_and_month(tmp_path: Path) -> None:
    rows = "".join(f"11/03/2024 {clock},{n}\n" for n, clock in enumerate(CLOCKS))
    found = imported(tmp_path / "file", "time,v\n" + rows, {"time.zone": 0})
    assert found.times[:5:4] == ["2024-11-03T04:00:00+00:00", "2024-11-03T06:00:00+00:00"]


def test_a_short_file_with_the_newest_row_first_has_an_hour_twice(tmp_path: Path) -> None:
    clocks = ("03:30", "03:00", "02:30", "02:00", "02:30", "02:00", "01:30", "01:00")
    rows = "".join(f"27.10.2024 {clock};{n}\n" for n, clock in enumerate(clocks))
    found = imported(tmp_path / "file", "Zeit;v\n" + rows, {"time.zone": 0})
    assert found.column("v") == list(range(7, -1, -1))
    assert [time[11:16] for time in found.times] == [
        f"{hour}:{half}" for hour in ("23", "00", "01", "02") for half in ("00", "30")
    ]


@pytest.mark.parametrize("word", ["Suma", "Razem", "Celkem", "Průměr", "Moyenne", "Totaal", "Summa"])
def test_a_sum_behind_the_rows_is_the_footer_in_many_languages(tmp_path: Path, word: str) -> None:
    found = imported(tmp_path / "file", lines("time;v", "{time};{n},5") + f"{word};435,0\n")
    assert (found.report.rows, found.report.dead, found.report.footer) == (30, 0, 1)


@pytest.mark.parametrize(
    "written",
    [
        "{}. 5. 2024 10:00:00",
        "2024. május {}. 10:00",
        "pon., {} maja 2024 10:00",
        "mercredi {} mai 2024 10:00",
        "st {}. května 2024 10:00",
    ],
)
def test_dates_with_spaces_or_the_name_of_a_day(tmp_path: Path, written: str) -> None:
    rows = "".join(f"{written.format(day)};{day},5\n" for day in range(1, 5))
    found = imported(tmp_path / "file", "time;v\n" + rows)
    assert found.times == [f"2024-05-0{day}T10:00:00+00:00" for day in range(1, 5)]


def test_a_month_that_is_written_as_a_day_of_another_language_stays_a_month(tmp_path: Path) -> None:
    rows = "".join(f"Mar {day}, 2024 10:00;{day}\n" for day in range(1, 5))
    assert imported(tmp_path / "file", "time;v\n" + rows).times[0] == "2024-03-01T10:00:00+00:00"


@pytest.mark.parametrize("wrong", ["2099-12-31 23:59:59", "1970-01-01 00:00:00"])
def test_a_wrong_time_in_a_file_of_four_rows_is_left_out(tmp_path: Path, wrong: str) -> None:
    times = ["2024-05-01 00:00:00", "2024-05-01 00:00:01", wrong, "2024-05-01 00:00:03"]
    rows = "".join(f"{time},{n}\n" for n, time in enumerate(times))
    path = tmp_path / "file"
    path.write_text("time,v\n" + rows)
    reading = look(path, "file").detection.reading
    report = convert(path, reading, tmp_path / "table", lambda *_: None, lambda: False)
    assert (report.skipped, report.begins, report.ends) == (
        1,
        "2024-05-01T00:00:00+00:00",
        "2024-05-01T00:00:03+00:00",
    )


def test_a_line_of_types_below_the_names_is_no_line_of_names(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("time,flow,n\nTIMESTAMP,REAL,INT", "{time},{n}.5,{n}"))
    assert [(column.name, column.unit) for column in found.reading.columns] == [
        ("time", None),
        ("flow", None),
        ("n", None),
    ]


def test_words_for_types_are_names_below_a_preamble(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("Device,Pump 3\ntimestamp,real", "{time},{n}.5"))
    assert [column.name for column in found.reading.columns] == ["timestamp", "real"]
