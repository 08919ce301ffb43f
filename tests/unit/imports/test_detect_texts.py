"""Cells that another program has dressed up, and files with little in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.imports.kinds import TIMES, imported
from webapp.imports.detect import look
from webapp.imports.faults import ImportFault


def rows(header: str, *cells: str) -> str:
    body = (";".join([TIMES[n], *(cell.format(n=n, m=n + 1) for cell in cells)]) for n in range(30))
    return "\n".join([header, *body]) + "\n"


def test_spaces_of_every_width_around_numbers_and_between_thousands(tmp_path: Path) -> None:
    wide = (
        "\u00a0\u00a0{n},5\u00a0",
        "\u2009{n}",
        "{m}\u2007000,5",
        "\u3000{n}\u2003",
        "{m}\u202f000",
        "{m}\u2009000",
    )
    found = imported(tmp_path / "file", rows("time;a;b;c;d;e;f", *wide))
    assert [found.rows[7][name] for name in "abcdef"] == [7.5, 7, 8000.5, 7, 8000, 8000]
    assert all(column.unreadable == 0 for column in found.report.columns)


def test_a_text_that_excel_writes_as_a_formula_is_that_text(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", rows("time;id;v;w", '="00{n}"', '"=""{n}.5"""', '="{n}"'))
    assert found.rows[7] | {"_time": None, "time": None} == found.rows[7] | {
        **{"_time": None, "time": None, "id": "007", "v": 7.5, "w": 7}
    }
    assert 'In id, ="001" is read as 001' in found.notes
    assert (
        "id stays text: numbers begin with a zero, which a number would lose, such as '000' at line 2"
        in found.notes
    )


@pytest.mark.parametrize("truths", [("TRUE", "FALSE"), ("ja", "nein")])
def test_no_value_among_truth_values_is_missing(tmp_path: Path, truths: tuple[str, str]) -> None:
    rows = "".join(f"{time},{(*truths, 'NA')[n % 3]}\n" for n, time in enumerate(TIMES))
    found = imported(tmp_path / "a.csv", "time,ok\n" + rows)
    assert found.column("ok")[:3] == [True, False, None]
    assert (found.report.columns[1].missing, found.report.columns[1].unreadable) == (10, 0)


@pytest.mark.parametrize("cell", ["0x{n:04X}", "EA{n:02X}", "{n:02x}ff"])
def test_hexadecimal_numbers_stay_text_and_a_note_says_so(tmp_path: Path, cell: str) -> None:
    found = imported(tmp_path / "file", rows("time;flags;v", cell, "{n},5"))
    assert found.column("flags")[5] == cell.format(n=5)
    assert (
        f"flags stays text: it may hold hexadecimal numbers, such as {cell.format(n=0)!r} at line 2"
        in found.notes
    )


@pytest.mark.parametrize(
    "data", ["time,a,b\n", "time,a,b", "value\n", "Serial\n\ntime;temp\n", "time;T\ns;°C\n"]
)
def test_column_names_without_rows_are_refused(tmp_path: Path, data: str) -> None:
    path = tmp_path / "file"
    path.write_text(data)
    with pytest.raises(ImportFault, match="has column names, and no rows"):
        look(path, "file")


@pytest.mark.parametrize("data", ["", "\n\n\n", " \r\n\t\r\n"])
def test_a_file_with_empty_lines_alone_is_refused(tmp_path: Path, data: str) -> None:
    path = tmp_path / "file"
    path.write_text(data)
    with pytest.raises(ImportFault, match="no text that could be a table"):
        look(path, "file")


@pytest.mark.parametrize("header", ["time\n", ""])
def test_times_alone_are_one_column(tmp_path: Path, header: str) -> None:
    found = imported(tmp_path / "file", header + "".join(f"{time}\n" for time in TIMES))
    assert found.times == [f"{time.replace(' ', 'T')}+00:00" for time in TIMES]
    assert found.names == [header.strip() or "c1"]


def test_one_row_is_a_table(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", "time,a,b\n2024-05-01 10:00:00,1.5,2\n")
    assert [(row["a"], row["b"]) for row in found.rows] == [(1.5, 2)]


@pytest.mark.parametrize(
    "data",
    [
        "".join(f'{{"t": "{time}", "v": {n}, "v": 99}}\n' for n, time in enumerate(TIMES)),
        "[" + ",".join(f'{{"t": "{time}", "v": {n}, "v": NaN}}' for n, time in enumerate(TIMES)) + "]",
    ],
)
def test_of_a_key_that_comes_twice_the_first_value_counts(tmp_path: Path, data: str) -> None:
    found = imported(tmp_path / "file", data)
    assert found.column("v") == list(range(30))
    assert found.names == ["t", "v"]


def test_a_key_that_comes_twice_is_named_with_its_line(tmp_path: Path) -> None:
    data = "".join(
        f'{{"t": "{time}", "a": {{"v": {n}{", " + chr(34) + "v" + chr(34) + ": 9" if n == 4 else ""}}}}}\n'
        for n, time in enumerate(TIMES)
    )
    found = imported(tmp_path / "file", data)
    assert "Line 5 has 'v' twice in one object. The first value counts." in found.notes
    assert found.column("a.v") == list(range(30))
