"""Times as loggers write them: without a year, as weeks and days of a year, with zones in many places."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from tests.unit.imports.kinds import imported, lines
from webapp.imports.detect import look


@pytest.mark.parametrize(
    ("header", "row", "first"),
    [
        ("time,v", "2024-05-01T12:{n:02d}:00+02:00[Europe/Berlin],{n}", "2024-05-01T10:00:00"),
        ("time,v", "2024-05-01T12:{n:02d}:00[Europe/Berlin],{n}", "2024-05-01T10:00:00"),
        ("time,v", "2024-05-01 12:{n:02d}:00 America/New_York,{n}", "2024-05-01T16:00:00"),
        ("time,v", "2024-05-01T12:{n:02d}Z[UTC],{n}", "2024-05-01T12:00:00"),
        ("time,v", "2024-W10-1,{n}", "2024-03-04T00:00:00"),
        ("time,v", "2024-W{n:02d},{n}", "2024-01-01T00:00:00"),
        ("date,v", "2024-1{n:02d},{n}", "2024-04-09T00:00:00"),
        ("year,doy,time,v", "2024,123,{n:04d},{n}", "2024-05-02T00:00:00"),
        ("year,doy,hhmm time,v", "2024,123,1{n:02d},{n}", "2024-05-02T01:00:00"),
        ("year,doy,time,v", "2024,123,00:{n:02d},{n}", "2024-05-02T00:00:00"),
        ("Jahr;KW;v", "2024;{n};{n},5", "2024-01-01T00:00:00"),
        ("year;doy;v", "2024;123.{n:02d};{n}", "2024-05-02T00:00:00"),
        ("ts;v", "17145216{n:02d},{d}25;{n},5", "2024-05-01T00:00:00.025000"),
        ("Zeit;v", "01.05.2024 12:00:{n:02d},123;{n},5", "2024-05-01T12:00:00.123000"),
        ("Datum;Zeit;v", "01.05.2024;12.30.{n:02d};{n},5", "2024-05-01T12:30:00"),
        ("Datum;Zeit;v", "01.05.2024;12:30:{n:02d},5;{n},5", "2024-05-01T12:30:00.500000"),
        ("Datum;Zone;v", "27.10.2024 02:{n:02d};CEST;{n}", "2024-10-27T00:00:00"),
        ("time,tz,v", "2024-05-01 02:{n:02d}:00,+02:00,{n}", "2024-05-01T00:00:00"),
        ("time,tz,v", "2024-05-01 02:{n:02d}:00,EST,{n}", "2024-05-01T07:00:00"),
        ("time,tz,v", "2024-05-01 02:{n:02d}:00,Europe/Berlin,{n}", "2024-05-01T00:00:00"),
        ("date,time,ampm,v", "2024-05-01,02:{n:02d},PM,{n}", "2024-05-01T14:00:00"),
        ("time,ampm,v", "2024-05-01 12:{n:02d},AM,{n}", "2024-05-01T00:00:00"),
    ],
)
def test_a_time_is_read_as_it_is_written(tmp_path: Path, header: str, row: str, first: str) -> None:
    begin = 1 if "W{n" in row or "KW" in header or "2024-1{n" in row else 0
    begin = 0 if "2024-1{n" in row else begin
    data = header + "\n" + "".join(row.format(n=n, d=n % 10) + "\n" for n in range(begin, 30))
    found = imported(tmp_path / "file", data)
    assert found.times[0] == f"{first}+00:00"
    assert None not in found.times
    assert "%" not in found.notes


@pytest.mark.parametrize(
    ("header", "is_end"),
    [
        *((header, True) for header in ("PeriodEnd", "period_end", "Interval End", "Zeit bis", "date_fin")),
        *((header, True) for header in ("End", "INTERVALENDTIME_GMT", "Period Ending", "Stundenende")),
        *((header, False) for header in ("Sendezeit", "Wochenende", "PeriodStart", "calendar_date", "Zeit")),
    ],
)
def test_a_name_says_whether_a_time_is_the_end_of_its_interval(
    tmp_path: Path, header: str, is_end: bool
) -> None:
    data = lines(f"{header},v", "2024-05-01 12:{n:02d}:00,{n}")
    (tmp_path / "file").write_text(data)
    found = look(tmp_path / "file", "file").detection.reading.time
    assert found is not None
    assert found.marks == ("end" if is_end else "begin")


@pytest.mark.parametrize(
    ("above", "first"),
    [
        ("Timezone: Europe/Berlin", "2024-04-30T22:00:00"),
        ("# Zeitzone = UTC+02:00", "2024-04-30T22:00:00"),
        ("Time Zone,GMT+05:30", "2024-04-30T18:30:00"),
        ("UTC offset: +2", "2024-04-30T22:00:00"),
        ("utc_offset_seconds: -14400", "2024-05-01T04:00:00"),
        ("UTC offset (hours): -5", "2024-05-01T00:00:00"),
        ("UTC offset: +5.5", "2024-05-01T00:00:00"),
        ("UTC offset: -300", "2024-05-01T00:00:00"),
        ("utc_offset_seconds: -36000000", "2024-05-01T00:00:00"),
        ("Timezone: 3", "2024-05-01T00:00:00"),
        ("Timezones of 2 sites are mixed", "2024-05-01T00:00:00"),
    ],
)
def test_a_zone_above_the_table_holds(tmp_path: Path, above: str, first: str) -> None:
    data = f"Station 7\n{above}\n\n" + lines("time,v", "2024-05-01 00:{n:02d}:00,{n}")
    assert imported(tmp_path / "file", data).times[0] == f"{first}+00:00"


def test_a_weather_services_table_of_the_place_names_the_zone_of_the_one_below(tmp_path: Path) -> None:
    place = "latitude,longitude,elevation,utc_offset_seconds,timezone,timezone_abbreviation\n"
    place += "52.52,13.419998,38.0,7200,Europe/Berlin,CEST\n\n"
    found = imported(
        tmp_path / "file", place + lines("time,temperature_2m (°C)", "2024-05-01T00:{n:02d},{n}.5")
    )
    assert found.names[0] == "time"
    assert found.times[0] == "2024-04-30T22:00:00+00:00"
    assert len(found.rows) == len(found.times) == 30


@pytest.mark.parametrize("header", ["timeUTC", "DateTimeUtc", "dateutc", "Zeit (GMT)"])
def test_a_column_in_utc_stays_so_below_another_zone(tmp_path: Path, header: str) -> None:
    data = "Timezone: Europe/Berlin\n\n" + lines(f"{header},v", "2024-05-01 00:{n:02d}:00,{n}")
    assert imported(tmp_path / "file", data).times[0] == "2024-05-01T00:00:00+00:00"


@pytest.mark.parametrize("header", ["timezone,est_flow,time", "site,tz,MST mean,Zeit"])
def test_the_name_of_a_column_is_no_zone_of_the_one_before(tmp_path: Path, header: str) -> None:
    others = ",".join(["1"] * header.count(","))
    data = lines(header, others + ",2024-05-01 00:{n:02d}:00")
    assert imported(tmp_path / "file", data).times[0] == "2024-05-01T00:00:00+00:00"


def test_a_message_between_the_first_rows_takes_no_names(tmp_path: Path) -> None:
    data = lines("time,v,w", "2024-05-01 00:{n:02d}:00,{n},1").replace(
        "time,v,w\n", "time,v,w\n,1,2\nsensor,swapped,here\n"
    )
    (tmp_path / "file").write_text(data)
    found = look(tmp_path / "file", "file").detection
    assert (found.reading.header_line, found.reading.first_line) == (1, 2)
    assert [question.id for question in found.questions] == ["part"]


def test_a_bracket_in_a_text_hides_no_zone_of_a_document(tmp_path: Path) -> None:
    rows = [{"time": f"2024-05-01T00:{n:02d}:00", "v": n} for n in range(30)]
    document = {"title": "T [°C]", "timezone": "Europe/Berlin", "data": rows}
    assert imported(tmp_path / "file.json", json.dumps(document)).times[0] == "2024-04-30T22:00:00+00:00"


def test_a_documents_offset_holds_for_its_times(tmp_path: Path) -> None:
    times = [f"2024-05-01T00:{n:02d}" for n in range(30)]
    document = {
        "latitude": 52.52,
        "utc_offset_seconds": 7200,
        "timezone": "Europe/Berlin",
        "hourly": {"time": times, "temperature_2m": [n / 2 for n in range(30)]},
    }
    assert imported(tmp_path / "file.json", json.dumps(document)).times[0] == "2024-04-30T22:00:00+00:00"


def test_a_row_of_formats_below_the_names_is_no_row_and_hides_no_zone(tmp_path: Path) -> None:
    """As the USGS writes it."""
    data = "# retrieved: 2024-05-02\n" + lines(
        "agency_cd\tsite_no\tdatetime\ttz_cd\tflow",
        "USGS\t01646500\t2024-05-01 00:{n:02d}\tEDT\t12{n:02d}",
    ).replace("flow\n", "flow\n5s\t15s\t20d\t6s\t14n\n")
    found = imported(tmp_path / "file", data)
    assert found.names == ["agency_cd", "site_no", "datetime", "tz_cd", "flow"]
    assert found.times[0] == "2024-05-01T04:00:00+00:00"
    assert found.column("flow")[0] == 1200


def test_both_names_of_a_zone_tell_the_hours_apart(tmp_path: Path) -> None:
    rows = [(f"27.10.2024 02:{minute:02d}", zone) for zone in ("CEST", "CET") for minute in (0, 20, 40)]
    data = "Datum;Zone;v\n" + "".join(f"{time};{zone};{n},5\n" for n, (time, zone) in enumerate(rows))
    assert imported(tmp_path / "file", data).times == [
        f"2024-10-27T0{hour}:{minute:02d}:00+00:00" for hour in (0, 1) for minute in (0, 20, 40)
    ]


def test_times_of_several_zones_without_an_offset_are_no_time(tmp_path: Path) -> None:
    data = lines("time,v", "2024-05-01T12:{n:02d}:00[Europe/Berlin],{n}", 9)
    found = imported(tmp_path / "file", data + lines("", "2024-05-01T12:{n:02d}:00[Asia/Tokyo],{n}", 9))
    assert found.reading.time is None
    assert "The times are in several zones, such as Europe/Berlin and Asia/Tokyo." in found.notes


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("time,host,v", "{month} {day:02d} {hour:02d}:31:02,host1,{n}.5"),
        ("", "{month} {day:2d} {hour:02d}:31:02 host1 app[123]: temp={n}.5"),
        ("Zeit;v", "{day:02d}.{number:02d}. {hour:02d}:31;{n},5"),
        ("time,v", "{number:02d}-{day:02d} {hour:02d}:31:02.125,{n}.5"),
    ],
)
def test_times_without_a_year_ask_for_it(tmp_path: Path, header: str, row: str) -> None:
    """The rows go on over New Year, so the year asked for is that of the first row."""
    times = [datetime(2020, 12, 30, 7, 31, tzinfo=UTC) + timedelta(hours=6 * n) for n in range(30)]
    rows = [
        row.format(month=f"{at:%b}", day=at.day, number=at.month, hour=at.hour, n=n)
        for n, at in enumerate(times)
    ]
    data = "".join(each + "\n" for each in ([header] if header else []) + rows)
    (tmp_path / "file").write_text(data)
    [question] = look(tmp_path / "file", "file").detection.questions
    years = [int(choice.title) for choice in question.choices]
    assert years == sorted(years, reverse=True)
    found = imported(tmp_path / "file", data, {"time.year": 1})
    assert [time[:13] for time in found.times] == [
        f"{at.replace(year=at.year - 2020 + years[1]):%Y-%m-%dT%H}" for at in times
    ]


def test_newest_first_without_a_year(tmp_path: Path) -> None:
    times = [datetime(2021, 1, 2, tzinfo=UTC) - timedelta(hours=6 * n) for n in range(30)]
    data = "time,v\n" + "".join(f"{at:%b %d %H:%M:%S},{n}\n" for n, at in enumerate(times))
    (tmp_path / "file").write_text(data)
    [question] = look(tmp_path / "file", "file").detection.questions
    year = int(question.choices[0].title)
    found = imported(tmp_path / "file", data, {"time.year": 0})
    assert found.times[-1][:10] == f"{year}-01-02"
    assert found.column("time") == found.times
    assert found.times[0][:10] == f"{year - 1}-12-25"


@pytest.mark.parametrize(
    ("zone", "at", "minutes"),
    [
        ("Europe/Berlin", "2024-10-27T02:00", 60),
        ("Europe/London", "2024-10-27T01:00", 60),
        ("America/New_York", "2024-11-03T01:00", 60),
        ("Australia/Adelaide", "2024-04-07T02:00", 60),
        ("Australia/Lord_Howe", "2024-04-07T01:30", 30),
        ("Pacific/Auckland", "2024-04-07T02:00", 60),
    ],
)
@pytest.mark.parametrize("step", [5, 10])
def test_times_that_come_twice_ask_for_the_zone(
    tmp_path: Path, zone: str, at: str, minutes: int, step: int
) -> None:
    begin = datetime.fromisoformat(at)
    local = [begin + timedelta(minutes=step * n - 60) for n in range((60 + minutes) // step)]
    local += [begin + timedelta(minutes=step * n) for n in range((60 + minutes) // step)]
    data = "time,v\n" + "".join(f"{each:%Y-%m-%d %H:%M},{n}\n" for n, each in enumerate(local))
    (tmp_path / "file").write_text(data)
    [question] = look(tmp_path / "file", "file").detection.questions
    zones = [choice.changes["time.zone"] for choice in question.choices]
    found = imported(tmp_path / "file", data, {"time.zone": zones.index(zone)})
    moments = [datetime.fromisoformat(each) for each in found.times]
    assert {after - before for before, after in pairwise(moments)} == {timedelta(minutes=step)}


def test_a_time_is_explained_by_an_example(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("Zeit;v", "01.05.2024 12:00:{n:02d},125;{n},5"))
    assert "The time is in Zeit: 01.05.2024 12:00:00,125 is 2024-05-01 12:00:00.125." in found.notes


def test_an_answer_about_the_time_holds_for_its_column_too(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("time,v", "03/04/2024 00:{n:02d},{n}"), {"time.order": 1})
    assert found.times[0] == "2024-03-04T00:00:00+00:00"
    assert found.column("time") == found.times


def test_seconds_with_a_decimal_comma_are_explained_too(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("ts;v", "17145216{n:02d},{d}25;{n},5"))
    assert "1714521600.025 is 2024-05-01 00:00:00.025 UTC" in found.notes


def test_one_bad_time_of_day_does_not_leave_the_others_out(tmp_path: Path) -> None:
    data = lines("Date;Time;v", "2024-05-01;12:{n:02d};{n}").replace("12:07", "broken")
    found = imported(tmp_path / "file", data)
    assert found.times[1] == "2024-05-01T12:01:00+00:00"
    assert found.report.dead == 1


@pytest.mark.parametrize(
    ("name", "text", "first"),
    [
        ("Zeitstempel", "24050108{n:02d}", "2024-05-01T08:00:00"),
        ("Datum", "45413", "2024-05-01T00:00:00"),
        ("datenum", "739373.25", "2024-05-01T06:00:00"),
        ("Time", "37974108{n:02d}", "2024-05-01T12:20:00"),
        ("Date", "1 mai 2024 08:{n:02d}", "2024-05-01T08:00:00"),
        ("Fecha", "1 ago. 2024 08:{n:02d}", "2024-08-01T08:00:00"),
    ],
)
def test_times_of_other_programs_and_languages(tmp_path: Path, name: str, text: str, first: str) -> None:
    rows = lines(f"{name};v", text + ";{n}") if "{n" in text else lines(f"{name};v", text + ";{n}", 1)
    if "{n" not in text:
        rows += lines("", str(float(text) + 1) + ";{n}", 1)
    assert imported(tmp_path / "file", rows).times[0] == f"{first}+00:00"


def test_digits_with_two_for_the_year_are_asked(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("Zeitstempel;v", "24053108{n:02d}30;{n}"), {"time.order": 0})
    assert found.times[0] == "2024-05-31T08:00:30+00:00"


def test_a_date_of_digits_and_a_time_of_day_of_digits(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("Datum;Zeit;v", "13052024;08{n:02d};{n}"))
    assert found.times[0] == "2024-05-13T08:00:00+00:00"


def test_a_capital_t_is_a_temperature(tmp_path: Path) -> None:
    assert imported(tmp_path / "file", lines("n;T", "{n};{n}.5")).reading.time is None


@pytest.mark.parametrize(
    ("above", "answer", "first"),
    [
        ("Datum: 13.03.2024\n\n", 0, "2024-03-13"),
        ("Date 03/04/2024\n\n", 1, "2024-03-04"),
        ("", 0, "1970-01-01"),
    ],
)
def test_times_of_day_ask_for_their_date_and_go_on_after_midnight(
    tmp_path: Path, above: str, answer: int, first: str
) -> None:
    rows = "".join(f"{(22 + n) % 24:02d}:00:00;{n}\n" for n in range(30))
    found = imported(tmp_path / "file", f"{above}Uhrzeit;v\n{rows}", {"time.date": answer})
    assert found.times[0] == f"{first}T22:00:00+00:00"
    moments = [datetime.fromisoformat(each) for each in found.times]
    assert {after - before for before, after in pairwise(moments)} == {timedelta(hours=1)}
    assert found.column("Uhrzeit") == found.times


def test_times_of_day_with_the_newest_first_go_back_over_midnight(tmp_path: Path) -> None:
    rows = "".join(f"{(3 - n) % 24:02d}:00;{n}\n" for n in range(30))
    found = imported(tmp_path / "file", f"Uhrzeit;v\n{rows}", {"time.date": 0})
    assert (found.times[0], found.times[-1]) == ("1969-12-30T22:00:00+00:00", "1970-01-01T03:00:00+00:00")


def test_times_of_day_may_be_no_time(tmp_path: Path) -> None:
    rows = "".join(f"00:{n:02d}:00;{n}\n" for n in range(30))
    found = imported(tmp_path / "file", f"Uhrzeit;v\n{rows}", {"time.date": 1})
    assert (found.reading.time, found.column("Uhrzeit")[1]) == (None, "00:01:00")


def test_spans_are_no_times_of_day(tmp_path: Path) -> None:
    rows = "".join(f"00:0{n * 7 % 10}:00;{n}\n" for n in range(30))
    found = imported(tmp_path / "file", f"Dauer;v\n{rows}")
    assert found.column("Dauer")[1] == "00:07:00"


def test_rows_without_a_time_are_counted_before_the_import(tmp_path: Path) -> None:
    rows = "".join(f"{'01.05.2024' if n % 5 == 0 else ''};00:{n:02d};{n}\n" for n in range(30))
    found = imported(tmp_path / "file", f"Datum;Zeit;v\n{rows}")
    assert "24 of 30 rows have no time that can be read, and become dead letters." in found.notes
    assert "The first is at line 3: ';00:01;1'." in found.notes


def test_hours_since_the_start_go_on_behind_24(tmp_path: Path) -> None:
    rows = "".join(f"{n:02d}:30:00;{n}\n" for n in range(0, 120, 6))
    found = imported(tmp_path / "file", f"Elapsed;v\n{rows}", {"time.date": 0})
    moments = [datetime.fromisoformat(each) for each in found.times]
    assert {after - before for before, after in pairwise(moments)} == {timedelta(hours=6)}


@pytest.mark.parametrize(("name", "add", "last"), [("Stunde", 0, "23:00"), ("hour", 1, "00:00")])
def test_a_date_and_the_hour_beside_it_are_the_time(tmp_path: Path, name: str, add: int, last: str) -> None:
    rows = "".join(f"{13 + n // 24}.03.2024;{n % 24 + add};{n}\n" for n in range(48))
    found = imported(tmp_path / "file", f"Datum;{name};v\n{rows}")
    moments = [datetime.fromisoformat(each) for each in found.times]
    assert {after - before for before, after in pairwise(moments)} == {timedelta(hours=1)}
    assert found.times[-1][11:16] == last


def test_a_date_an_hour_and_a_minute_are_the_time(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("Datum;Stunde;Minute;v", "13.03.2024;{d};{n};{n}"))
    assert found.times[11] == "2024-03-13T01:11:00+00:00"


@pytest.mark.parametrize("cell", ["-1{d}", "-9999", "+0{d}", "-0{d}5", "-05:4{d}"])
def test_numbers_behind_times_are_no_offsets(tmp_path: Path, cell: str) -> None:
    found = imported(tmp_path / "file", lines("time,T", f"{{time}},{cell}"))
    assert found.times[2] == "2024-05-01T00:02:00+00:00"
    offsets = imported(tmp_path / "file", lines("time,utc_offset,T", "{time},-10,{n}"))
    assert offsets.times[2] == "2024-05-01T10:02:00+00:00"


def test_milliseconds_in_a_column_of_their_own_are_of_the_time(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("time,ms,v", "{time},{d}5,{n}"))
    assert found.times[2] == "2024-05-01T00:02:00.025000+00:00"
    found = imported(tmp_path / "file", lines("time,ms,v", "{time}.5,{d}5,{n}"))
    assert found.times[2] == "2024-05-01T00:02:00.500000+00:00"


@pytest.mark.parametrize("name", ["duration", "Dauer", "sunrise"])
def test_a_duration_beside_a_date_is_no_time_of_day(tmp_path: Path, name: str) -> None:
    rows = "".join(f"2024-05-{n + 1:02d},0{n % 10}:30,{n}\n" for n in range(30))
    found = imported(tmp_path / "file", f"date,{name},v\n{rows}")
    assert found.times[1] == "2024-05-02T00:00:00+00:00"


@pytest.mark.parametrize("names", [[str(n) for n in range(1, 13)], ["Jan", "Feb", "Mär"]])
def test_a_year_and_a_month_beside_it_are_the_time(tmp_path: Path, names: list[str]) -> None:
    rows = "".join(f"{2021 + n // len(names)};{names[n % len(names)]};{n}\n" for n in range(30))
    found = imported(tmp_path / "file", f"Jahr;Monat;kWh\n{rows}")
    assert found.times[1] == "2021-02-01T00:00:00+00:00"
    assert found.times[len(names)] == "2022-01-01T00:00:00+00:00"


def test_ratios_beside_times_cost_no_rows(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("time;v", "{time};1:{n}"))
    assert (found.names, found.report.rows) == (["time", "v"], 30)
