"""JSON lines, Parquet and workbooks become the same kind of table as delimited text."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.imports.kinds import imported as read_without_help
from webapp.imports import convert_records, convert_text, sheets
from webapp.imports.convert import convert
from webapp.imports.detect import look
from webapp.imports.faults import ImportFault
from webapp.imports.reading import ColumnReading, Reading, TimeReading


def column(source, name, type_, **more):
    return ColumnReading(source=source, name=name, type=type_, **more)


@pytest.fixture
def imported(tmp_path):
    def make(data, columns, time, time_format="iso", **more):
        (tmp_path / "file").write_bytes(data)
        said = TimeReading(columns=time if isinstance(time, tuple) else (time,), format=time_format)
        reading = Reading(columns=columns, time=said, **more)
        report = convert(tmp_path / "file", reading, tmp_path / "table", lambda *told: None, lambda: False)
        return report, pq.read_table(tmp_path / "table").to_pylist()

    return make


def values(rows, name):
    return [row[name] for row in rows]


def test_json_lines_by_path(imported, monkeypatch):
    monkeypatch.setattr(convert_text, "PIECE_BYTES", 150)
    lines = [
        '{"t": "2024-05-01T00:00:00Z", "a": {"b": [{"c": 1.5}]}, "id": 89490200001234567890, "x.y": "p"}',
        "",
        '{"t": "2024-05-01T00:00:01Z", "a": {"b": []}, "id": 9007199254740993, "x.y": null}',
        '{"t": "2024-05-01T00:00:02Z", "a"',
        '[{"t": "2024-05-01T00:00:02Z"}]',
        '{"t": "2024-05-01T00:00:03Z", "a": {"b": [{"c": "2.5"}]}, "id": "0001"}',
    ]
    columns = (
        column("a.b[0].c", "c", "number"),
        column("id", "id", "string"),
        column("id", "n", "integer"),
        column("x.y", "s", "string"),
    )
    report, rows = imported("\r\n".join(lines).encode(), columns, "t", kind="json-lines")
    assert values(rows, "c") == [1.5, None, None, None, 2.5]
    assert values(rows, "id") == ["89490200001234567890", "9007199254740993", None, None, "0001"]
    assert values(rows, "n") == [None, 9007199254740993, None, None, 1]
    assert values(rows, "s") == ["p", None, None, None, None]
    assert values(rows, "_reject") == [None, None, *["is no JSON object"] * 2, None]
    assert (rows[2]["_raw"], report.first_dead[0]) == (lines[3], 4)


def test_parquet_keeps_what_it_says(imported):
    at = [datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 5, 1, 0, 0, 0, 5, tzinfo=UTC), None]
    table = pa.table(
        {
            "when": pa.array(at, pa.timestamp("us", "Europe/Berlin")),
            "x": [0.1, 1e-7, float("nan")],
            "n": pa.array([2**53 + 1, None, 3], pa.int64()),
            'a "b"': ["ä", "", None],
            "ok": [True, False, None],
        }
    )
    data = io.BytesIO()
    pq.write_table(table, data)
    columns = (
        column("when", "when", "timestamp"),
        column("x", "x", "number"),
        column("n", "n", "integer"),
        column('a "b"', "s", "string"),
        column("ok", "ok", "boolean"),
    )
    report, rows = imported(data.getvalue(), columns, "when", kind="parquet")
    assert values(rows, "_time") == [*at[:2], at[1]]
    assert values(rows, "x") == [0.1, 1e-7, None]
    assert values(rows, "n") == [2**53 + 1, None, 3]
    assert values(rows, "s") == ["ä", None, None]
    assert values(rows, "ok") == [True, False, None]
    assert (report.dead, report.first_dead[0]) == (1, 3)
    with pytest.raises(ImportFault, match="no column 'y'"):
        imported(data.getvalue(), (column("y", "y", "number"),), "when", kind="parquet")
    with pytest.raises(ImportFault, match="cannot be read"):
        imported(b"PAR1 no", (column("y", "y", "number"),), "when", kind="parquet")


def cells_of(rows):
    """XML of a sheet's rows. Cells: numbers, texts, or (days, style) for dates."""
    cells = []
    for number, row in enumerate(rows, 1):
        made = []
        for letter, value in zip("ABCDEFG", row, strict=False):
            place = f'r="{letter}{number}"'
            if isinstance(value, tuple):
                made.append(f'<c {place} s="{value[1]}"><v>{value[0]}</v></c>')
            elif isinstance(value, str):
                made.append(f'<c {place} t="inlineStr"><is><t>{value}</t></is></c>')
            elif value is not None:
                made.append(f"<c {place}><v>{value}</v></c>")
        cells.append(f'<row r="{number}">{"".join(made)}</row>')
    return "".join(cells)


def workbook(rows, merged=(), hidden_rows=(), hidden_columns=(), hidden=(), **more):
    """The parts of an .xlsx that a reader needs: the sheet Data, and more sheets by their names.

    `merged` are cells of Data such as A2:A5. Its `hidden_rows` and `hidden_columns` are counted from 1, and
    `hidden` names sheets.
    """
    sheets, states = {"Data": rows, **more}, ("visible", "hidden")
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{kind}.styles+xml"/>'
        '<Default Extension="xml" '
        f'ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {main} xmlns:r="{office}"><sheets>'
        + "".join(
            f'<sheet name="{name}" sheetId="{n}" state="{states[name in hidden]}" r:id="r{n}"/>'
            for n, name in enumerate(sheets, 1)
        )
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        + "".join(
            f'<Relationship Id="r{n}" Type="{office}/worksheet" Target="worksheets/sheet{n}.xml"/>'
            for n in range(1, len(sheets) + 1)
        )
        + f'<Relationship Id="styles" Type="{office}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet {main}><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="22"/>'
        "</cellXfs></styleSheet>",
    }
    for number, each in enumerate(sheets.values(), 1):
        columns = "".join(f'<col min="{n}" max="{n}" width="0" hidden="1"/>' for n in hidden_columns)
        cells = cells_of(each)
        for row in hidden_rows if number == 1 else ():
            cells = cells.replace(f'<row r="{row}"', f'<row r="{row}" hidden="1"')
        ranges = "".join(f'<mergeCell ref="{each}"/>' for each in merged) if number == 1 else ""
        data = (
            f"<worksheet {main}>{f'<cols>{columns}</cols>' if columns and number == 1 else ''}"
            f"<sheetData>{cells}</sheetData>"
            f"{f'<mergeCells>{ranges}</mergeCells>' if ranges else ''}</worksheet>"
        )
        parts[f"xl/worksheets/sheet{number}.xml"] = data
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path, text in parts.items():
            archive.writestr(path, '<?xml version="1.0" encoding="UTF-8"?>' + text)
    return data.getvalue()


def test_a_workbook_has_dates_or_days(imported, monkeypatch):
    monkeypatch.setattr(convert_records, "_SHEET_ROWS", 2)
    book = workbook(
        [
            ["Report", None, None],
            ["when", "day", "x", "s"],
            [(45413.25, 1), 45413.25, 1.5, "0001"],
            [(45413.5, 1), 45413.5, 3, "b"],
            [None, None, None],
            ["no", "no", 4],
            [(45414, 1), 45414, "oops", "c", "more"],
            ["made by hand"],
        ]
    )
    columns = (
        column(0, "when", "timestamp"),
        column(1, "day", "timestamp", format="excel_days"),
        column(2, "x", "number"),
        column(3, "s", "string"),
    )
    told = {"kind": "xlsx", "header_line": 2, "first_line": 3}
    report, rows = imported(book, columns, 0, sheet="Data", **told)
    at = [
        datetime(2024, 5, 1, 6, tzinfo=UTC),
        datetime(2024, 5, 1, 12, tzinfo=UTC),
        datetime(2024, 5, 2, tzinfo=UTC),
    ]
    assert values(rows, "when") == [*at[:2], None, at[2]]
    assert values(rows, "day") == [*at[:2], None, at[2]]
    assert values(rows, "x") == [1.5, 3, 4, None]
    assert values(rows, "s") == ["0001", "b", None, "c"]
    assert values(rows, "_reject") == [None, None, 'column "when" holds no time', "has more than 4 cells"]
    assert (report.first_dead, report.footer) == ((6, "no\tno\t4\t\t"), 1)
    _, again = imported(book, columns, 1, "excel_days", **told)
    assert values(again, "_time")[:2] == at[:2]


def test_what_is_no_workbook_is_refused(imported, monkeypatch, tmp_path):
    columns = (column(0, "x", "number"),)
    with pytest.raises(ImportFault, match="no workbook"):
        imported(b"x", columns, 0, kind="xlsx")
    with pytest.raises(ImportFault, match="no sheet 'Other'"):
        imported(workbook([[1]]), columns, 0, kind="xlsx", sheet="Other")
    monkeypatch.setattr(sheets, "WORKBOOK_BYTES_MAX", 100)
    with pytest.raises(ImportFault, match="unpacks to"):
        imported(workbook([[1]]), columns, 0, kind="xlsx")
    (tmp_path / "book").write_bytes(workbook([[1]]))
    with pytest.raises(ImportFault, match="unpacks to"):
        look(tmp_path / "book", "book.xlsx")


def test_a_workbook_is_looked_at(tmp_path):
    rows = [[f"2024-05-01 0{hour}:00:00", hour] for hour in range(3)]
    (tmp_path / "book").write_bytes(workbook([["when", "n"], *rows]))
    reading = look(tmp_path / "book", "book.xlsx").detection.reading
    assert (reading.kind, reading.header_line, reading.first_line) == ("xlsx", 1, 2)
    assert [(each.name, each.type) for each in reading.columns] == [("when", "timestamp"), ("n", "integer")]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (5400, "01:30:00"),
        (86_399, "23:59:59"),
        (95_400, "26:30:00"),
        (360_000, "100:00:00"),
        (-3600, "-01:00:00"),
        (0.25, "00:00:00.250000"),
    ],
)
def test_a_duration_in_a_cell_keeps_its_days_and_its_sign(seconds, text):
    assert sheets.cell_text(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("<v>1</v>", "<f>A2*2</f>", "Formulas without a saved value"),
        ("<v>1</v>", "<f>A2*2</f><v></v>", "Formulas without a saved value"),
        ("<v>1</v>", "<f>A2*2</f><v>1</v>", None),
        ('<c r="B2"><v>1</v>', '<c r="B2" t="str"><f>""</f><v></v>', None),
    ],
)
def test_what_the_cells_of_a_workbook_do_not_show_is_said(tmp_path, old, new, said):
    made = io.BytesIO()
    given = workbook([["when", "n"], *([f"2024-05-01 0{hour}:00:00", 1] for hour in range(3))])
    with zipfile.ZipFile(io.BytesIO(given)) as book, zipfile.ZipFile(made, "w") as archive:
        for name in book.namelist():
            archive.writestr(name, book.read(name).decode().replace(old, new, 1))
    (tmp_path / "book").write_bytes(made.getvalue())
    notes = " ".join(look(tmp_path / "book", "book.xlsx").detection.notes)
    assert ("Formulas without a saved value" in notes) == bool(said)


def test_items_of_lists_in_json_lines_have_their_place_in_their_name(tmp_path):
    lines = "".join(f'{{"n": {n}, "d": {{"pos": [{n}, {n}.5]}}}}\n' for n in range(3))
    (tmp_path / "a").write_text(lines)
    columns = look(tmp_path / "a", "a.jsonl").detection.reading.columns
    assert [column.name for column in columns] == ["n", "d.pos[0]", "d.pos[1]"]


def test_a_sheet_as_people_make_it(tmp_path):
    rows = [["Report"], [], ["", "Datum", "T", "p"], ["", "", "°C", "bar"]]
    for n in range(30):
        rows.append(["", 45413 + n / 24, "#N/A" if n == 3 else 20.5 + n, "#DIV/0!" if n == 5 else n])
    found = read_without_help(tmp_path / "file", workbook([*rows, ["", "Summe", 1, 2]]))
    assert found.column("T")[2:5] == [22.5, None, 24.5]
    assert found.column("p")[4:7] == [4, None, 6]
    assert [column.unit for column in found.reading.columns[2:]] == ["°C", "bar"]
    assert found.times[0] == "2024-05-01T00:00:00+00:00"
    assert (found.report.rows, found.report.dead, found.report.footer) == (30, 0, 1)


def test_a_merged_cell_has_its_value_in_each_line(tmp_path):
    rows = [["Report"], ["Day", "Hour", "T"], ["", "", "°C"]]
    rows += [["2024-05-01" if n % 12 == 0 else "", f"{n % 12:02d}:00", n + 0.5] for n in range(12)]
    book = workbook(rows, merged=["A1:C1", "A2:A3", "A4:A15"])
    found = read_without_help(tmp_path / "file", book)
    assert found.names == ["Day", "Hour", "T"]
    assert found.times == [f"2024-05-01T{n:02d}:00:00+00:00" for n in range(12)]
    assert "Cells are merged." in found.notes


def test_names_below_merged_groups_are_told_apart(tmp_path):
    rows = [["", "Motor 1", "", "Motor 2", ""], ["time", "T", "n", "T", "n"]]
    rows += [[f"2024-05-01 00:{n:02d}:00", n, n + 1, n + 2, n + 3] for n in range(20)]
    found = read_without_help(tmp_path / "file", workbook(rows, merged=["B1:C1", "D1:E1"]))
    assert found.names == ["time", "Motor 1 T", "Motor 1 n", "Motor 2 T", "Motor 2 n"]
    assert found.column("Motor 2 T")[0] == 2


def test_what_is_hidden_in_a_sheet_is_read_and_said(tmp_path):
    rows = [["time", "v"], *([f"2024-05-01 00:{n:02d}:00", n] for n in range(20))]
    book = workbook(rows, hidden_rows=[4, 5, 9], hidden_columns=[2])
    found = read_without_help(tmp_path / "file", book)
    assert found.report.rows == 20
    assert "Hidden rows are read as well: 4 to 5, 9. Hidden columns are read as well: B." in found.notes


def test_a_hidden_sheet_is_not_the_first_to_be_read(tmp_path):
    shown = [["time", "v"], *([f"2024-05-01 00:{n:02d}:00", n] for n in range(20))]
    book = workbook([["a"], ["b"], ["c"]], hidden=["Data"], Shown=shown)
    assert read_without_help(tmp_path / "file", book).names == ["time", "v"]
