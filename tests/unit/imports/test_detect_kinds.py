"""Kinds of files that a detector reads wrong without a word unless it looks twice."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from webapp.imports.answer import answered
from webapp.imports.detect import Look, look, preview
from webapp.imports.faults import ImportFault
from webapp.imports.reading import Question
from webapp.imports.sample import BEGIN_BYTES

Looked = Callable[[str | bytes], Look]
TIMES = [f"2024-05-01 00:{minute:02d}:00" for minute in range(30)]


@pytest.fixture
def looked(tmp_path: Path) -> Looked:
    def at(data: str | bytes) -> Look:
        path = tmp_path / "file"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return look(path, "file.csv")

    return at


def table(header: str, *columns: Sequence[object], delimiter: str = ",") -> str:
    rows = (delimiter.join(map(str, row)) for row in zip(*columns, strict=False))
    return "\n".join([header, *rows]) + "\n"


def names(found: Look) -> list[str]:
    return [column.name for column in found.detection.reading.columns]


def types(found: Look) -> list[str]:
    return [column.type.value for column in found.detection.reading.columns]


def rows(found: Look) -> list[tuple[object, ...]]:
    return [row.values for row in preview(found.head, found.detection.reading).rows]


def times(found: Look) -> list[str | None]:
    return [row.time for row in preview(found.head, found.detection.reading).rows]


def question(found: Look, id: str) -> Question:
    [asked] = [each for each in found.detection.questions if each.id == id]
    return asked


# --- where the table stands


@pytest.mark.parametrize("header", ["time,1,2,3", "time,10,20,30"])
def test_names_may_be_numbers(looked: Looked, header: str) -> None:
    found = looked(table(header, TIMES[:8], [0.5] * 8, [1.5] * 8, range(8)))
    assert names(found) == header.split(",")
    assert len(rows(found)) == 8


def test_years_in_the_first_line_are_names(looked: Looked) -> None:
    found = looked("station,2019,2020,2021\nA,1.5,2.5,3.5\nB,2.5,3.5,4.5\nC,1.5,2.5,3.5\n")
    assert names(found) == ["station", "2019", "2020", "2021"]


def test_a_bad_cell_below_the_names_costs_neither_the_names_nor_the_row(looked: Looked) -> None:
    found = looked(table("time,a", TIMES, ["Bad Input", *[1.5] * 29]))
    assert names(found) == ["time", "a"]
    assert rows(found)[:2] == [
        ("2024-05-01T00:00:00+00:00", None),
        ("2024-05-01T00:01:00+00:00", 1.5),
    ]


def test_a_rule_below_the_names_is_passed_over(looked: Looked) -> None:
    found = looked("time | a\n-----|---\n" + "".join(f"{time} | 1.5\n" for time in TIMES))
    assert names(found) == ["time", "a"]
    assert len(rows(found)) == 30


def test_names_that_come_again_are_no_rows_to_judge_by(looked: Looked) -> None:
    found = looked(table("time,a", TIMES[:4], [1.5] * 4) * 3)
    assert types(found) == ["timestamp", "number"]


def test_one_name_may_stand_over_a_date_and_the_time_of_day(looked: Looked) -> None:
    found = looked("Time   T1   T2\n" + "".join(f"{time}  {at}.5  {at}\n" for at, time in enumerate(TIMES)))
    assert names(found) == ["Time", "Time_2", "T1", "T2"]
    assert times(found)[:2] == ["2024-05-01T00:00:00+00:00", "2024-05-01T00:01:00+00:00"]


def test_row_numbers_without_a_name_do_not_shift_the_names(looked: Looked) -> None:
    found = looked(table("time,a", range(1, 31), TIMES, [1.5] * 30))
    assert names(found) == ["c1", "time", "a"]
    assert found.detection.questions == ()


def test_cells_without_names_are_asked(looked: Looked) -> None:
    found = looked(table("time,v", TIMES, range(30), [5] * 30))
    asked = question(found, "names")
    right = answered(found.detection.reading, found.detection.questions, {"names": len(asked.choices) - 1})
    assert "another delimiter" in asked.text
    assert [column.name for column in right.columns] == ["c1", "time", "v"]


# --- what divides cells


@pytest.mark.parametrize("delimiter", ["^", "~"])
def test_rare_delimiters_are_found(looked: Looked, delimiter: str) -> None:
    found = looked(
        table(delimiter.join(("time", "a", "b")), TIMES, [1.5] * 30, range(30), delimiter=delimiter)
    )
    assert found.detection.reading.delimiter == delimiter
    assert types(found) == ["timestamp", "number", "integer"]


@pytest.mark.parametrize("size", ['5"', '"5 in'])
def test_a_quote_that_is_text_joins_no_rows(looked: Looked, size: str) -> None:
    found = looked(table("time,size,v", TIMES, [size] * 30, range(30)))
    assert [row[1:] for row in rows(found)] == [(size, at) for at in range(30)]


def test_a_cell_that_is_missing_between_single_spaces_is_named(looked: Looked) -> None:
    lines = [f"{time} {at}.5 {at}\n" for at, time in enumerate(TIMES)]
    lines[3] = f"{TIMES[3]} 3\n"
    found = looked("Date Time a b\n" + "".join(lines))
    assert any(note.startswith("Line 5 has 3 cells, and others have 4.") for note in found.detection.notes)


# --- what cells mean


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("uid", ["12E4", "1234", "9881"]),
        ("version", ["1.9", "1.10", "1.11"]),
        ("phone", ["+4917012345", "+4917012346", "+4917012347"]),
        ("serial", ["0001", "0002", "0003"]),
    ],
)
def test_what_a_number_would_lose_stays_text(looked: Looked, name: str, cells: list[str]) -> None:
    found = looked(table(f"time,{name}", TIMES, cells * 10))
    assert [row[1] for row in rows(found)] == cells * 10
    assert any(note.startswith(f"{name} stays text") for note in found.detection.notes)


def test_a_usual_sentinel_below_zero_is_none_of_a_pressure(looked: Looked) -> None:
    found = looked(table("time,hPa", TIMES, [1013.5, -999, 1012.5] * 10))
    assert [row[1] for row in rows(found)] == [1013.5, None, 1012.5] * 10
    assert "-999 means no value in hPa." in found.detection.notes


def test_a_column_of_nothing_but_a_sentinel_has_no_values(looked: Looked) -> None:
    found = looked(table("time,a,b", TIMES, [-9999] * 30, range(30)))
    assert "-9999 means no value in a." in found.detection.notes
    assert rows(found)[3][1:] == (None, 3)


def test_two_sentinels_of_one_column_are_both_found(looked: Looked) -> None:
    found = looked(table("time,T", TIMES, [20.5, -9999, -7999] * 10))
    assert [row[1] for row in rows(found)] == [20.5, None, None] * 10


def test_a_number_that_may_mean_no_value_is_asked_once_for_all_columns(looked: Looked) -> None:
    found = looked(table("time,CO,NOx", TIMES, [-200, 2.5, 3.5] * 10, [-200, 166, 1103] * 10))
    [asked] = found.detection.questions
    assert asked.id == "missing.-200"
    reading = answered(found.detection.reading, [asked], {asked.id: 0})
    assert [row.values[1:] for row in preview(found.head, reading).rows][:2] == [(None, None), (2.5, 166)]


def test_many_numbers_with_something_beside_them_are_asked(looked: Looked) -> None:
    asked = question(looked(table("time,ppm", TIMES, ["1.5", "<0.5", "2.5"] * 10)), "type.ppm")
    assert "'<0.5'" in asked.text


# --- times


@pytest.mark.parametrize(
    ("header", "zone", "first"),
    [
        ("Time (UTC+1)", "Etc/GMT-1", "2024-04-30T23:00:00+00:00"),
        ("Time GMT+05:30", "Asia/Kolkata", "2024-04-30T18:30:00+00:00"),
        ("Time CET", "Etc/GMT-1", "2024-04-30T23:00:00+00:00"),
        ("Zeit (MESZ)", "Etc/GMT-2", "2024-04-30T22:00:00+00:00"),
        ("Time (CET/CEST)", "Europe/Berlin", "2024-04-30T22:00:00+00:00"),
        ("Time", "UTC", "2024-05-01T00:00:00+00:00"),
    ],
)
def test_a_zone_in_the_header_holds(looked: Looked, header: str, zone: str, first: str) -> None:
    found = looked(table(f"{header},a", TIMES, range(30)))
    assert found.detection.reading.time is not None
    assert found.detection.reading.time.zone == zone
    assert times(found)[0] == first
    assert rows(found)[0][0] == first


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("2024-05-01 00:{:02d}:00 CEST", "2024-04-30T22:00:00+00:00"),
        ("Wed May 01 2024 00:{:02d}:00", "2024-05-01T00:00:00+00:00"),
        ("Wed May  1 00:{:02d}:00 2024", "2024-05-01T00:00:00+00:00"),
        ('"Wed, 01 May 2024 00:{:02d}:00 GMT"', "2024-05-01T00:00:00+00:00"),
        ("Mi. 01.05.2024 00:{:02d}", "2024-05-01T00:00:00+00:00"),
        ("1. Mai 2024 00:{:02d}", "2024-05-01T00:00:00+00:00"),
        ("01/May/2024:00:{:02d}:00 +0200", "2024-04-30T22:00:00+00:00"),
        ("2024-05-01 01:{:02d} p. m.", "2024-05-01T13:00:00+00:00"),
    ],
)
def test_times_are_read_as_they_are_written(looked: Looked, text: str, first: str) -> None:
    found = looked(table("time,a", [text.format(minute) for minute in range(20)], range(20)))
    assert times(found)[0] == first
    assert None not in times(found)


def test_a_column_that_names_its_zone_is_the_time(looked: Looked) -> None:
    local = [time.replace(" 00:", " 02:") for time in TIMES]
    found = looked(table("Local time,UTC time,a", local, TIMES, range(30)))
    assert times(found)[0] == "2024-05-01T00:00:00+00:00"


@pytest.mark.parametrize("text", ["01/{:02d}/2024", "{:02d}/01/2024"])
def test_first_days_of_months_may_be_days_of_january(looked: Looked, text: str) -> None:
    found = looked(table("date,a", [text.format(at) for at in range(1, 13)], range(12)))
    asked = question(found, "time.order")
    assert len({choice.example for choice in asked.choices}) == 2


def test_a_time_that_goes_back_is_named(looked: Looked) -> None:
    hours = [9, 10, 11, 12, 1, 2, 3, 4]
    found = looked(table("time,a", [f"2024-05-01 {hour:02d}:00" for hour in hours], range(8)))
    assert "At line 6 the time goes back by 11 hours." in found.detection.notes


def test_a_date_far_behind_the_beginning_decides_the_order(looked: Looked) -> None:
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    minutes = [(begin + timedelta(minutes=at)).strftime("%d/%m/%Y %H:%M") for at in range(20 * 1440)]
    found = looked(table("time,a", minutes, range(len(minutes))))
    assert found.detection.questions == ()
    assert found.detection.reading.time is not None
    assert found.detection.reading.time.format == "%d/%m/%Y %H:%M"


def test_a_date_and_the_time_of_day_need_no_names(looked: Looked) -> None:
    found = looked("".join(f"{time} temp={at}.5 rh={at}\n" for at, time in enumerate(TIMES)))
    assert times(found)[:2] == ["2024-05-01T00:00:00+00:00", "2024-05-01T00:01:00+00:00"]


# --- encodings


def test_letters_within_words_tell_dos_from_windows(looked: Looked) -> None:
    text = table("Zeit;Größe", TIMES, ["Störung"] * 30, delimiter=";")
    for encoding in ("cp850", "cp1252", "mac_roman"):
        assert rows(looked(text.encode(encoding)))[0][1] == "Störung", encoding


def test_a_character_that_the_look_cuts_is_not_damaged(looked: Looked) -> None:
    line = "2024-05-01 00:00:00;Fr\u00e4se;1,5\n".encode()
    cut = BEGIN_BYTES - line.index(b"\xc3") - 1
    begin = (b"Zeit;" + b"M" * (cut % len(line) - 11) + b";Wert\n") + line * 5000
    assert begin[BEGIN_BYTES - 1 : BEGIN_BYTES + 1] == "\u00e4".encode()
    assert not any("damaged" in note for note in looked(begin).detection.notes)


def test_one_damaged_byte_does_not_change_the_encoding(looked: Looked) -> None:
    found = looked(table("time,Größe", TIMES, [1.5] * 30).encode() + b"2024-05-01 01:00:00,\xff\n")
    assert names(found) == ["time", "Größe"]
    assert any("damaged" in note for note in found.detection.notes)


@pytest.mark.parametrize(
    ("encoding", "header"),
    [("cp1251", "Болт;Гайка"), ("gb18030", "时间;温度"), ("cp1250", "Czas;rzęsa")],
)
def test_an_encoding_that_nothing_says_is_asked(looked: Looked, encoding: str, header: str) -> None:
    found = looked(table(header, TIMES, [1.5] * 30, delimiter=";").encode(encoding))
    asked = question(found, "encoding")
    readings = [
        answered(found.detection.reading, [asked], {"encoding": at}) for at in range(len(asked.choices))
    ]
    assert header.split(";") in [[column.name for column in reading.columns] for reading in readings]


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b'{\n  "a": 1\n}', "JSON"),
        (b"<?xml version='1.0'?><a/>", "XML"),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b"%PDF-1.7 ...", "PDF"),
        (gzip.compress(gzip.compress(b"time,v\n" * 9)), "packed twice"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 500, "Excel"),
        (
            b",".join(b"c%d" % at for at in range(2001)) + b"\n" + b",".join([b"1"] * 2001) + b"\n",
            "2,001 columns",
        ),
    ],
)
def test_what_is_no_table_says_what_it_is(looked: Looked, data: bytes, word: str) -> None:
    with pytest.raises(ImportFault, match=word):
        looked(data)
