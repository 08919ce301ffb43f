"""Tests cells of workbooks that are not plain values: formats, texts among numbers, digits as written, and
far cells.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.unit.imports.kinds import TIMES, Imported, imported
from tests.unit.imports.test_convert_kinds import workbook
from webapp.imports.detect import look
from webapp.imports.faults import ImportFault


def of(path: Path, cells: list[Any], formats: tuple[str, ...] = (), shared: tuple[str, ...] = ()) -> Imported:
    """Imports a sheet of times and of one column `x`. A cell may be (number, format, from 2).

    ("shared", n) is the n-th of the shared texts.
    """
    rows = [[time, cell] for time, cell in zip(TIMES, cells, strict=False)]
    return imported(path / "book.xlsx", changed(workbook([["when", "x"], *rows]), formats, shared))


def changed(book: bytes, formats: tuple[str, ...] = (), shared: tuple[str, ...] = ()) -> bytes:
    codes = "".join(f'<numFmt numFmtId="{164 + n}" formatCode="{code}"/>' for n, code in enumerate(formats))
    styles = "".join(f'<xf numFmtId="{164 + n}"/>' for n in range(len(formats)))
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as given, zipfile.ZipFile(made, "w") as archive:
        for name in given.namelist():
            text = given.read(name).decode()
            text = text.replace("<cellXfs", f"<numFmts>{codes}</numFmts><cellXfs").replace(
                "</cellXfs>", f"{styles}</cellXfs>"
            )
            for number, each in enumerate(shared):
                inline = f't="inlineStr"><is><t>{each}</t></is>'
                text = text.replace(inline, f't="s"><v>{number}</v>')
            if shared and name == "xl/_rels/workbook.xml.rels":
                kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"
                text = text.replace(
                    "</Rel", f'<Relationship Id="texts" Type="{kind}" Target="sharedStrings.xml"/></Rel'
                )
            archive.writestr(name, text)
        if shared:
            texts = "".join(f"<si><t>{each}</t></si>" for each in shared)
            main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
            archive.writestr("xl/sharedStrings.xml", f'<sst xmlns="{main}">{texts}</sst>')
    return made.getvalue()


@pytest.mark.parametrize("shared", [(), ("1.234",)])
@pytest.mark.parametrize("text", ["1.234", "12,500", "-3.000"])
def test_a_text_among_numbers_that_can_be_read_in_two_ways_has_no_value(
    tmp_path: Path, text: str, shared: tuple[str, ...]
) -> None:
    found = of(tmp_path, [text if n == 5 else n + 0.5 for n in range(30)], shared=shared)
    assert found.column("x")[4:7] == [4.5, None, 6.5]
    assert f"texts that can be read in two ways, such as '{text}' in B7" in found.notes


@pytest.mark.parametrize(("text", "value"), [("0.125", 0.125), ("7.5", 7.5), ("1234.5", 1234.5)])
def test_a_text_among_numbers_that_is_one_number_is_read(tmp_path: Path, text: str, value: float) -> None:
    found = of(tmp_path, [text if n == 5 else n + 0.5 for n in range(30)])
    assert found.column("x")[5] == value
    assert "two ways" not in found.notes


def test_texts_of_numbers_alone_are_asked_about(tmp_path: Path) -> None:
    rows = [["when", "x"], *([time, f"1.{n + 100}"] for n, time in enumerate(TIMES))]
    found = imported(tmp_path / "book.xlsx", workbook(rows), {"thousands": 0})
    assert found.column("x")[0] in (1.1, 1100)


@pytest.mark.parametrize(
    ("format", "unit", "times"),
    [
        ("0%", "%", 100),
        ("0.00%;[Red]-0.00%", "%", 100),
        ("0.0&quot; °C&quot;", "°C", 1),
        ("#,##0.00\\ [$€-407]", "€", 1),
        ("_-* #,##0.00\\ &quot;€&quot;_-", "€", 1),
        ("[$$-409]#,##0.00", "$", 1),
        ("0.0&quot; %&quot;", "%", 1),
        ("0.000,&quot; kW&quot;", "kW", 1 / 1000),
        ("#,##0.0,,", None, 1 / 1_000_000),
        ("0.00&quot; things of no unit&quot;", None, 1),
        ("#,##0.00", None, 1),
        ("0.00E+00", None, 1),
    ],
)
def test_what_a_format_shows_behind_each_number_is_the_unit(
    tmp_path: Path, format: str, unit: str | None, times: int
) -> None:
    found = of(tmp_path, [(n / 8, 2) for n in range(30)], (format,))
    assert found.reading.columns[1].unit == unit
    assert found.column("x") == [pytest.approx(n / 8 * times) for n in range(30)]
    assert ("shows its numbers divided by" in found.notes) == (times < 1)


@pytest.mark.parametrize(
    ("format", "number", "text"),
    [
        ("00000", 1067, "01067"),
        ("00000;[Red]\\-00000", 12, "00012"),
        ("[$-407]00000", 1067, "01067"),
        ("00-00", 123, "01-23"),
        ("000\\-00\\-0000", 1234567, "001-23-4567"),
        ("&quot;SN-&quot;0000", 42, "SN-0042"),
        ("&quot;Line &quot;0", 7, "Line 7"),
        ("###-####", 5551234, "555-1234"),
        ("00 00", -12345, "-123 45"),
    ],
)
def test_a_number_that_is_shown_as_a_name_is_the_text_that_people_see(
    tmp_path: Path, format: str, number: int, text: str
) -> None:
    found = of(tmp_path, [(number, 2)] * 30, (format,))
    assert found.column("x") == [text] * 30


@pytest.mark.parametrize(
    "format",
    *[
        [
            "0",
            "#,##0",
            "0000.0",
            "+0;-0",
            "(0)",
            "0.00E+00",
            "# ?/?",
            "&quot;ca. &quot;0.0",
            "[&lt;=99]00;000",
        ]
    ],
)
def test_a_number_that_is_shown_as_a_quantity_stays_one(tmp_path: Path, format: str) -> None:
    assert of(tmp_path, [(n, 2) for n in range(30)], (format,)).column("x") == [*range(30)]


def test_zeros_that_some_cells_show_are_said(tmp_path: Path) -> None:
    found = of(tmp_path, [(n, 2 if n % 2 else 0) for n in range(30)], ("00000",))
    assert found.column("x") == [*range(30)]
    assert "Only some cells of B show zeros or characters that are not saved" in found.notes
    found = of(tmp_path, [(n + 0.5, 2) for n in range(30)], ("00000",))
    assert found.column("x")[3] == 3.5


@pytest.mark.parametrize(("mark", "begins"), [("1", "2024-03-04"), ("0", "2020-03-03")])
def test_plain_numbers_that_are_days_count_from_where_the_workbook_does(
    tmp_path: Path, mark: str, begins: str
) -> None:
    book = workbook([["date", "x"], *([43_893.5 + n, n] for n in range(30))])
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as given, zipfile.ZipFile(made, "w") as archive:
        for name in given.namelist():
            text = given.read(name).decode()
            archive.writestr(name, text.replace("<sheets>", f'<workbookPr date1904="{mark}"/><sheets>'))
    found = imported(tmp_path / "book.xlsx", made.getvalue())
    assert found.times[0] == f"{begins}T12:00:00+00:00"
    assert begins in found.notes


def test_percent_in_some_cells_only_is_said(tmp_path: Path) -> None:
    found = of(tmp_path, [(n / 8, 2 if n % 2 else 0) for n in range(30)], ("0%",))
    assert found.column("x") == [n / 8 for n in range(30)]
    assert "Only some cells of B show percent" in found.notes


def test_percents_as_numbers_and_as_texts_are_the_same(tmp_path: Path) -> None:
    found = of(tmp_path, [(n / 100, 2) if n % 2 else f"{n}%" for n in range(30)], ("0%",))
    assert (found.reading.columns[1].unit, found.column("x")) == ("%", list(range(30)))


def test_identifiers_keep_the_digits_that_the_file_has(tmp_path: Path) -> None:
    numbers = [123_456_789_012_345_678_901 + n for n in range(30)]
    assert of(tmp_path, numbers).column("x") == [str(number) for number in numbers]
    numbers = [-1_234_567_890_123_456 - n for n in range(30)]
    assert of(tmp_path, numbers).column("x") == numbers


def test_digits_that_the_workbook_has_not_kept_are_said(tmp_path: Path) -> None:
    found = of(tmp_path, [1.2345678901234e20 + n * 1e7 for n in range(30)])
    assert "numbers of more than 15 digits" in found.notes
    assert "more than 15 digits" not in of(tmp_path, [1.5e9 * n for n in range(30)]).notes


@pytest.mark.parametrize(("day", "said"), [(60, "1900-02-29"), (60.5, "1900-02-29"), (-5, "-5")])
def test_days_that_are_none_are_no_dates(tmp_path: Path, day: float, said: str) -> None:
    rows = [[(day if n == 5 else 61 + n, 1), n] for n in range(30)]
    found = imported(tmp_path / "book.xlsx", workbook([["when", "x"], *rows]))
    assert [row["_reject"] is None for row in found.rows] == [n != 5 for n in range(30)]
    assert said in found.rows[5]["_raw"]
    assert found.times[6] == "1900-03-07T00:00:00+00:00"


@pytest.mark.parametrize(
    "row",
    [
        '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>',
        '<row><c r="XFD1048576"><v>1</v></c></row>',
        "<row r='1048576'><c r='XFD1048576'><v>1</v></c></row>",
        '<row r="40"><c s="0" r="XFD1048576" t="n"><v>1</v></c></row>',
    ],
)
def test_a_cell_far_away_is_told_before_anything_is_read(tmp_path: Path, row: str) -> None:
    book = workbook([["when", "x"], *([time, n] for n, time in enumerate(TIMES))])
    far = f"{row}</sheetData>"
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as given, zipfile.ZipFile(made, "w") as archive:
        for name in given.namelist():
            archive.writestr(name, given.read(name).decode().replace("</sheetData>", far))
    (tmp_path / "book.xlsx").write_bytes(made.getvalue())
    with pytest.raises(ImportFault, match="reaches to XFD1048576"):
        look(tmp_path / "book.xlsx", "book.xlsx")
