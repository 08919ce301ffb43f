"""Numbers as plants write them: a unit in each cell, other minus signs, other marks, words for yes and no."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.imports.kinds import imported, lines


@pytest.mark.parametrize(
    ("cell", "first", "unit"),
    [
        ("{n}%", [0, 1], "%"),
        ("{n},{d} %", [0.0, 1.1], "%"),
        ("20.{d} °C", [20.0, 20.1], "°C"),
        ("3,{d} bar", [3.0, 3.1], "bar"),
        ("-3,{d}\u00a0m³/h", [-3.0, -3.1], "m³/h"),
        ("${n}.50", [0.5, 1.5], "$"),
        ("-${n}.50", [-0.5, -1.5], "$"),
        ("{n},50 €", [0.5, 1.5], "€"),
        ("1.{n:03d},5 kWh", [1000.5, 1001.5], "kWh"),
    ],
)
def test_a_unit_in_each_cell_becomes_that_of_the_column(
    tmp_path: Path, cell: str, first: list[float], unit: str
) -> None:
    found = imported(tmp_path / "file", lines("time;v", "{time};" + cell))
    assert found.column("v")[:2] == first
    assert found.reading.columns[1].unit == unit
    assert f"{unit} stands beside each number" in found.notes


def test_two_units_in_one_column_are_no_number(tmp_path: Path) -> None:
    found = imported(
        tmp_path / "file", lines("time;v", "{time};3,{d} bar", 15) + lines("", "{time};3,{d} mbar", 15)
    )
    assert found.column("v")[-1] == "3,4 mbar"
    assert "v stays text" in found.notes


def test_a_unit_that_only_some_cells_have_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    data = lines("time;v", "{time};{n}.5 bar", 20) + lines("", "{time};{n}.5", 10)
    assert imported(tmp_path / "file", data).column("v")[-1] == 9.5


@pytest.mark.parametrize("name", ["id", "Seat", "Charge Nr"])
def test_codes_have_no_unit(tmp_path: Path, name: str) -> None:
    assert imported(tmp_path / "file", lines(f"time;{name}", "{time};1{n}A")).column(name)[1] == "11A"


@pytest.mark.parametrize(
    ("below", "first"),
    [
        ("({n}.50)", -3.5),
        ("{n}.50-", -3.5),
        ("\u2212{n}.50", -3.5),
        ("- {n}.50", -3.5),
        ("(1,23{d}.50)", -1233.5),
    ],
)
def test_a_minus_is_read_however_it_is_written(tmp_path: Path, below: str, first: float) -> None:
    rows = [line.split(";") for line in lines("", "{time};{n}.25;" + below).splitlines()]
    data = "time;v\n" + "".join(
        f"{time};{cell if at % 3 else minus}\n" for at, (time, cell, minus) in enumerate(rows)
    )
    found = imported(tmp_path / "file", data)
    assert found.column("v")[1:4] == [1.25, 2.25, first]
    assert "In v, " in found.notes


@pytest.mark.parametrize(
    ("cell", "first"),
    [
        ("1'23{d}.5", 1230.5),
        ("1\u201923{d}.5", 1230.5),
        ("1\u200923{d},5", 1230.5),
        ("1\u00a023{d},5", 1230.5),
        ("1\u202f23{d},5", 1230.5),
        ("1 23{d},5", 1230.5),
        ("1,{d}E+03", 1000.0),
        ("{n}.5E-3", 0.0005),
    ],
)
def test_marks_between_thousands_and_exponents(tmp_path: Path, cell: str, first: float) -> None:
    assert imported(tmp_path / "file", lines("time;v", "{time};" + cell)).column("v")[0] == first


@pytest.mark.parametrize("cell", ["0x{n:04X}", "{n:04d}"])
def test_what_is_no_decimal_number_stays_text(tmp_path: Path, cell: str) -> None:
    assert imported(tmp_path / "file", lines("time;v", "{time};" + cell)).column("v")[1] == cell.format(n=1)


@pytest.mark.parametrize(
    ("yes", "no"), [("ein", "aus"), ("AN", "AUS"), ("wahr", "falsch"), ("Ja", "Nein"), ("J", "N")]
)
def test_yes_and_no_in_german(tmp_path: Path, yes: str, no: str) -> None:
    data = "time;v\n" + "".join(f"2024-05-01 00:{at:02d};{yes if at % 3 else no}\n" for at in range(30))
    assert imported(tmp_path / "file", data).column("v")[:3] == [False, True, True]


def test_each_column_has_marks_of_its_own(tmp_path: Path) -> None:
    data = "Datum/Uhrzeit;Strom;n\n" + "".join(
        f"{42839 + n / 24:.9f};1.35{n % 10},65;{n}.5\n" for n in range(30)
    )
    found = imported(tmp_path / "file", data)
    assert found.column("Strom")[:2] == [1350.65, 1351.65]
    assert found.column("n")[:2] == [0.5, 1.5]
    assert found.times[0] == "2017-04-14T00:00:00+00:00"


def test_marks_are_found_though_most_cells_have_no_value(tmp_path: Path) -> None:
    rows = [f"{cell};{n}" for n in range(10) for cell in ("n/a", "---.-", f"{n},5", "-1.#IND00", "#####")]
    found = imported(tmp_path / "file", "v;w\n" + "\n".join(rows) + "\n")
    assert found.column("v")[:7] == [None, None, 0.5, None, None, None, None]


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (
            ["1,23,45.7"] * 30,
            "v stays text: its numbers have something beside them, such as '1,23,45.7' at line 2.",
        ),
        (["08:00:00"] * 30, "v stays text: its times have no date, such as '08:00:00' at line 2."),
        (["1.5", "a"] * 15, "no numbers, such as 'a' at line 3."),
        (["0001", "0002"] * 15, "which a number would lose, such as '0001' at line 2."),
    ],
)
def test_a_column_of_numbers_that_stays_text_says_why_and_where(
    tmp_path: Path, cells: list[str], says: str
) -> None:
    data = "time;v\n" + "".join(f"2024-05-01 00:00:{n:02d};{cell}\n" for n, cell in enumerate(cells))
    assert says in imported(tmp_path / "file", data).notes


def test_the_sum_behind_a_table_without_times_is_no_row(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("n;v", "{n};{n}.5") + "Gesamt;435.0\n")
    assert (found.report.rows, found.report.footer) == (30, 1)
