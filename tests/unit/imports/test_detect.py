"""Tests the files that users reported as read wrong or not read. They are in `files/`."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from webapp.imports.detect import Look, look, preview, redetect
from webapp.imports.faults import ImportFault
from webapp.imports.reading import Question, Reading

FILES = Path(__file__).parent / "files"
Looked = Callable[[bytes | str], Look]


@pytest.fixture
def looked(tmp_path: Path) -> Looked:
    def at(data: bytes | str) -> Look:
        path = tmp_path / "file"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return look(path, "file.csv")

    return at


def of(name: str) -> Look:
    return look(FILES / name, name)


def rows(found: Look, reading: Reading | None = None) -> list[tuple[object, ...]]:
    return [row.values for row in preview(found.head, reading or found.detection.reading).rows]


def times(found: Look) -> list[str | None]:
    return [row.time for row in preview(found.head, found.detection.reading).rows]


def columns(found: Look) -> dict[str, str]:
    return {column.name: column.type.value for column in found.detection.reading.columns}


def only(questions: tuple[Question, ...]) -> Question:
    [question] = questions
    return question


def test_midnight_may_be_24_00() -> None:
    found = of("C10.csv")
    assert found.detection.reading.decimal == ","
    assert times(found)[10:] == ["2024-05-02T00:00:00+00:00", "2024-05-02T01:00:00+00:00"]


def test_an_hour_that_comes_twice_asks_for_the_zone() -> None:
    question = only(of("C11.csv").detection.questions)
    assert question.id == "time.zone"
    assert {"time.zone": "Europe/Berlin"} in [choice.changes for choice in question.choices]


def test_a_header_may_be_very_long(looked: Looked) -> None:
    names = [f"n{number}-" + "x" * 660 for number in range(100)]
    found = looked(
        ",".join(["time", *names])
        + "\n"
        + "\n".join(f"2024-05-01 00:00:0{row}" + ",1.5" * 100 for row in (0, 1))
    )
    assert len(columns(found)) == 101
    assert len(rows(found)) == 2


def test_an_excel_file_may_name_its_delimiter_in_line_1() -> None:
    found = of("C14.csv")
    assert list(columns(found)) == ["Time", "Flow", "Pressure"]
    assert len(rows(found)) == 2


def test_zero_bytes_are_left_out() -> None:
    found = of("C16.csv")
    assert list(columns(found).values()) == ["timestamp", "number"]
    assert len(rows(found)) == 3 or rows(found)[0][1] == 1.5


def test_texts_of_digits_stay_texts() -> None:
    found = of("C17.csv")
    assert columns(found) == {"time": "timestamp", "station": "string", "batch": "string"}
    assert rows(found)[0][1:] == ("0001", "89490200001234567890")


def test_a_preamble_is_passed_over() -> None:
    found = of("C2.csv")
    assert found.detection.reading.header_line == 3
    assert rows(found) == [
        ("2024-05-01T00:00:00+00:00", 1.5, 8.5),
        ("2024-05-01T00:00:10+00:00", 1.552, 8.55),
    ]


def test_a_file_from_windows_keeps_its_umlauts() -> None:
    assert list(columns(of("C21.csv"))) == ["Zeit", "Größe °C"]


def test_one_decimal_comma_makes_a_column_of_numbers() -> None:
    assert [row[2] for row in rows(of("C22.csv"))] == [20.5, 1.0, 2.0]


def test_a_row_of_units_gives_the_units() -> None:
    found = of("C3.csv")
    assert [(column.name, column.unit) for column in found.detection.reading.columns] == [
        ("time", None),
        ("flow", "m3/h"),
        ("pressure", "bar"),
    ]
    assert len(rows(found)) == 6


def test_the_time_may_be_the_last_of_101_columns(looked: Looked) -> None:
    names = ",".join([*(f"T{number}" for number in range(100)), "time"])
    found = looked(names + "\n" + "\n".join("1.5," * 100 + f"2024-05-01 00:00:0{row}" for row in range(3)))
    assert found.detection.reading.time is not None
    assert found.detection.reading.time.columns == (100,)


def test_what_means_no_value_is_found_among_numbers() -> None:
    assert [row[1:] for row in rows(of("C4.csv"))] == [(None, 1.5), (2.5, None), (3.5, 1.7)]
    found = of("C4-9999.csv")
    assert [row[1] for row in rows(found)] == [10.5, None, 11.5]
    assert "-9999 means no value in a." in found.detection.notes


def test_points_stand_between_thousands_where_commas_stand_before_decimals() -> None:
    assert [row[2] for row in rows(of("C5.csv"))] == [998, 1008, 12988]
    assert [row[2] for row in rows(of("C5-million.csv"))] == [999990, 1000000]


def test_a_number_that_can_be_two_is_asked(looked: Looked) -> None:
    question = only(
        looked("Zeit;Zaehler\n01.05.2024 00:00;998\n01.05.2024 00:01;1.008\n").detection.questions
    )
    assert question.id == "thousands"
    assert [choice.example for choice in question.choices] == ["1.008", "1008"]


def test_a_date_and_a_time_of_day_make_the_time() -> None:
    found = of("C6.csv")
    assert times(found)[1:3] == ["2024-05-01T23:30:00+00:00", "2024-05-02T00:00:00+00:00"]


def test_a_jump_of_the_clock_is_named_with_its_line() -> None:
    [note] = [note for note in of("C7.csv").detection.notes if "jumps" in note]
    assert note.startswith("At line 3 the time jumps ahead by 54 years")
    found = of("C7-glitch.csv")
    assert found.detection.reading.time is not None
    assert found.detection.reading.time.jump == "skip"
    assert any("2165" in note for note in found.detection.notes)


@pytest.mark.parametrize(
    ("text", "formats"),
    [
        ("03/04/2024", {"%d/%m/%Y", "%m/%d/%Y"}),
        ("03/04/05", {"%d/%m/%y", "%m/%d/%y", "%y/%m/%d"}),
    ],
)
def test_an_order_of_day_and_month_that_nothing_decides_is_asked(
    looked: Looked, text: str, formats: set[str]
) -> None:
    lines = "".join(f"{text} 0{hour}:00,{hour}\n" for hour in range(5))
    question = only(looked("time,v\n" + lines).detection.questions)
    assert question.id == "time.order"
    assert {str(choice.changes["time.format"]).partition(" ")[0] for choice in question.choices} == formats


def test_a_day_over_12_or_even_steps_decide_the_order(looked: Looked) -> None:
    found = looked("time,v\n12/10/2024 01:00,1\n13/10/2024 01:00,2\n").detection
    assert found.questions == ()
    assert found.reading.time is not None
    assert found.reading.time.format == "%d/%m/%Y %H:%M"
    days = "".join(f"0{day}/04/2024,{day}\n" for day in range(1, 9))
    found = looked("date,v\n" + days).detection
    assert found.questions == ()
    assert found.reading.time is not None
    assert found.reading.time.format == "%d/%m/%Y"


def test_a_column_that_changes_its_type_is_asked(looked: Looked) -> None:
    lines = [f"2024-05-01 {row // 60:02d}:{row % 60:02d}:00,{row}.5" for row in range(60)]
    lines += [f"2024-05-01 {row // 60:02d}:{row % 60:02d}:00,fault {row}" for row in range(60, 90)]
    question = only(looked("time,power\n" + "\n".join(lines)).detection.questions)
    assert (question.id, question.line) == ("type.power", 62)


@pytest.mark.parametrize(
    ("name", "time_format", "first", "count"),
    [
        ("hobo-formatted-NA.csv", "iso", "2014-07-28T11:00:00+00:00", 11),
        ("midc-solar-minute.txt", "%m/%d/%Y %H:%M", "2018-10-14T07:00:00+00:00", 7),
        ("minidot-oxygen-logger.txt", "epoch_s", "2019-12-13T15:17:00+00:00", 5),
        ("nova-flex2-bioreactor.csv", "%m/%d/%Y %I:%M:%S %p", "2021-02-18T10:28:04+00:00", None),
        ("pvgis-hourly.csv", "%Y%m%d:%H%M", "2016-01-01T00:10:00+00:00", 8),
    ],
)
def test_real_files_are_read_without_a_question(
    name: str, time_format: str, first: str, count: int | None
) -> None:
    found = of(name)
    assert found.detection.questions == ()
    assert found.detection.reading.time is not None
    assert found.detection.reading.time.format == time_format
    assert times(found)[0] == first
    assert count is None or len(columns(found)) == count


def test_a_unit_beside_one_of_several_numbers_is_none_of_the_column() -> None:
    """The import then asks about that cell."""
    column = next(
        each for each in of("nova-flex2-bioreactor.csv").detection.reading.columns if each.source == 16
    )
    assert (column.name, column.unit, column.beside) == ("Viable Density", None, "")


def test_units_in_the_header_are_units() -> None:
    reading = of("midc-solar-minute.txt").detection.reading
    assert ("Temperature @ 2m", "deg C") in [(column.name, column.unit) for column in reading.columns]
    reading = of("minidot-oxygen-logger.txt").detection.reading
    assert ("DO", "mg/l") in [(column.name, column.unit) for column in reading.columns]


def test_lines_behind_the_table_are_left_out() -> None:
    assert "The table ends at line 23. What follows is left out." in of("pvgis-hourly.csv").detection.notes


def test_other_kinds_of_files_are_looked_at(looked: Looked, tmp_path: Path) -> None:
    table = "time,a\n2024-05-01 00:00:00,1.5\n2024-05-01 00:00:01,2.5\n"
    assert looked(gzip.compress(table.encode())).detection.reading.compression == "gzip"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("readme.md", "x")
        zipped.writestr("data.csv", table)
    found = looked(archive.getvalue())
    assert found.detection.reading.member == "data.csv"
    assert len(rows(found)) == 2
    found = looked(
        "".join(
            json.dumps({"t": f"2024-05-01T00:00:0{n}Z", "a": {"b": n}, "on": True}) + "\n" for n in range(3)
        )
    )
    assert columns(found) == {"t": "timestamp", "a.b": "integer", "on": "boolean"}
    assert found.detection.reading.time is not None
    assert times(found)[2] == "2024-05-01T00:00:02+00:00"
    pq.write_table(pa.table({"at": pa.array([0], pa.timestamp("ms")), "n": [1]}), tmp_path / "p")
    found = look(tmp_path / "p", "p.parquet")
    assert columns(found) == {"at": "timestamp", "n": "integer"}


def test_what_a_person_fixes_stays_and_the_rest_follows(looked: Looked) -> None:
    found = looked("a;b\n1,5;2,5\n2,5;3,5\n")
    again = redetect(found.head, {"delimiter": ","})
    assert again.reading.delimiter == ","
    assert redetect(found.head, {"header_line": None}).reading.first_line == 1
    assert redetect(found.head, {"decimal": "."}).reading.decimal == "."
    assert redetect(found.head, {"time": None}).reading.time is None


@pytest.mark.parametrize("data", [b"", b"   \n\n", b"PK\x03\x04broken"])
def test_what_is_no_table_says_so(looked: Looked, data: bytes) -> None:
    with pytest.raises(ImportFault):
        looked(data)
