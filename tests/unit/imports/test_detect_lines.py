"""Lines that are no rows, or that end in another way: restarts, marks of encodings, sums, quotes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.imports.kinds import TIMES, imported, lines
from webapp.imports import convert_text

NUMBERS = [n + 0.5 for n in range(30)]


@pytest.mark.parametrize(
    "above",
    [
        "time,v,w\n",
        "time,v,w\ns,°C,bar\n",
        "Logger X\nSerial: 123\ntime,v,w\n",
        "\ufefftime,v,w\n",
        '"time","v","w"\n',
        "Logger X\n\ntime,v,w\n,°C,bar\n",
    ],
)
def test_what_stands_above_a_table_may_come_again(tmp_path: Path, above: str) -> None:
    rows = lines("", "{time},{n}.5,{n}").splitlines(keepends=True)
    found = imported(tmp_path / "file", above + "".join(rows[:9]) + above + "".join(rows[9:]))
    assert found.names == ["time", "v", "w"]
    assert found.column("v") == NUMBERS
    assert "The column names come again at line" in found.notes


@pytest.mark.parametrize("piece_bytes", [60, 100, 170])
def test_names_come_again_anywhere_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece_bytes: int
) -> None:
    monkeypatch.setattr(convert_text, "PIECE_BYTES", piece_bytes)
    found = imported(tmp_path / "file", lines("time,v", "{time},{n}.5\ntime,v"))
    assert found.column("v") == NUMBERS


@pytest.mark.parametrize("mark", ["#", "//"])
def test_comments_between_rows(tmp_path: Path, mark: str) -> None:
    rows = lines("", "{time},{n}.5").splitlines(keepends=True)
    data = "time,v\n" + "".join(rows[:9]) + f"{mark} restarted, by hand\n" + "".join(rows[9:])
    assert imported(tmp_path / "file", data).column("v") == NUMBERS


def test_a_mark_of_the_encoding_between_rows(tmp_path: Path) -> None:
    rows = lines("", "{time},{n}.5").splitlines(keepends=True)
    found = imported(tmp_path / "file", "\ufefftime,v\n" + "".join(rows[:9]) + "\ufeff" + "".join(rows[9:]))
    assert found.column("v") == NUMBERS


@pytest.mark.parametrize("ends", [("\r\n", "\n", "\r"), ("\r\r\n",), ("\r",), ("\n", "\r\r\n")])
@pytest.mark.parametrize("piece_bytes", [40, 47, 10_000])
def test_lines_end_in_any_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: tuple[str, ...], piece_bytes: int
) -> None:
    monkeypatch.setattr(convert_text, "PIECE_BYTES", piece_bytes)
    rows = ["time,v", *lines("", "{time},{n}.5").splitlines()]
    found = imported(
        tmp_path / "file", "".join(row + ends[at % len(ends)] for at, row in enumerate(rows)), {}
    )
    assert found.column("v") == NUMBERS
    assert found.report.rows == 30


@pytest.mark.parametrize(
    "footer",
    ["Summe;435,0;435\n", "\nMittelwert;14,5;14\nMax;29,5;29\n", ";;\nTotal;435,0;435\n", "Gesamt:;435,0\n"],
)
def test_sums_behind_the_table_are_no_rows(tmp_path: Path, footer: str) -> None:
    found = imported(tmp_path / "file", lines("Zeit;kWh;n", "{time};{n},5;{n}") + footer)
    assert found.column("kWh") == NUMBERS
    assert found.column("n") == list(range(30))
    assert found.report.dead == 0


def test_a_quote_that_never_closes_is_named(tmp_path: Path) -> None:
    rows = [f"{time},{chr(34) if at == 5 else ''}ok,{at}.5\n" for at, time in enumerate(TIMES)]
    found = imported(tmp_path / "file", "time,n,v\n" + "".join(rows))
    assert found.column("v") == NUMBERS
    assert "Line 7 has a quote without its other half." in found.notes


@pytest.mark.parametrize("piece_bytes", [60, 10_000])
def test_quotes_behind_a_backslash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece_bytes: int) -> None:
    monkeypatch.setattr(convert_text, "PIECE_BYTES", piece_bytes)
    found = imported(tmp_path / "file", lines("time,n,v", '{time},"a \\"b\\", c\\\\",{n}.5'))
    assert found.column("n")[0] == 'a "b", c\\'
    assert found.column("v") == NUMBERS


def test_a_path_of_windows_is_no_escape(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("time,n,v", '{time},"C:\\data\\",{n}.5'))
    assert found.column("n")[0] == "C:\\data\\"


def test_names_of_several_lines(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines('"Time\n(UTC)","T\n[°C]","p\n[bar]"', "{time},{n}.5,{n}"))
    assert found.names == ["Time", "T", "p"]
    assert [column.unit for column in found.reading.columns[1:]] == ["°C", "bar"]


def aligned(missing: dict[int, int]) -> str:
    """Returns a table whose cells stand below each other; `missing` says which cell a row lacks."""
    rows = []
    for n, time in enumerate(TIMES):
        cells = [f"{20 + n / 10:6.1f}", f"{40 + n:5d}", f"{n / 2:6.1f}"]
        if n in missing:
            cells[missing[n]] = " " * len(cells[missing[n]])
        rows.append(f"{time}{''.join(cells)}\n")
    return "Date Time T Hum Wind\n" + "".join(rows)


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_missing_cell_between_spaces_moves_no_other(tmp_path: Path, missing: int) -> None:
    found = imported(tmp_path / "file", aligned(dict.fromkeys((3, 10, 29), missing)))
    for at, (name, first) in enumerate((("T", 20.0), ("Hum", 40), ("Wind", 0.0))):
        values = found.column(name)
        assert values[0] == first
        assert [n for n, value in enumerate(values) if value is None] == (
            [3, 10, 29] if at == missing else []
        )


def test_a_row_whose_places_say_nothing_is_a_dead_letter(tmp_path: Path) -> None:
    rows = aligned({}).splitlines(keepends=True)
    rows[9] = f"{TIMES[8]}     20.85\n"
    found = imported(tmp_path / "file", "".join(rows))
    assert found.report.dead == 1
    assert found.report.first_dead is not None
    assert found.report.first_dead[1].strip() == rows[9].strip()
    assert "do not stand where" in found.rows[8]["_reject"]


def test_the_names_of_other_columns_ask_which_table_is_read(tmp_path: Path) -> None:
    rows = lines("", "{time},{n}.5,{n}").splitlines(keepends=True)
    for second in ("time,p,T\n", "time,T,p,flow\n"):
        width = second.count(",")
        more = [row.rstrip() + ",1" * (width - 2) + "\n" for row in rows[15:]]
        data = "time,T,p\n" + "".join(rows[:15]) + second + "".join(more)
        first = imported(tmp_path / "file", data, {"part": 0})
        assert first.column("T") == NUMBERS[:15]
        assert [column.type.value for column in first.reading.columns] == ["timestamp", "number", "integer"]
        then = imported(tmp_path / "file", data, {"part": 1})
        assert then.names == second.strip().split(",")
        assert then.column(then.names[1]) == NUMBERS[15:]


@pytest.mark.parametrize(
    ("header", "answers", "names"),
    [("Temperatur", {}, ["Temperatur"]), ("", {"comma": 0}, ["c1"]), ("", {"comma": 1}, ["c1", "c2"])],
)
def test_one_column_with_a_decimal_comma(
    tmp_path: Path, header: str, answers: dict[str, int], names: list[str]
) -> None:
    found = imported(tmp_path / "file", lines(header, "{n},{d}"), answers)
    assert found.names == names
    assert found.column(names[0])[11] == (11.1 if len(names) == 1 else 11)


def test_two_names_are_two_columns(tmp_path: Path) -> None:
    assert imported(tmp_path / "file", lines("a,b", "{n},{d}")).column("b")[11] == 1


@pytest.mark.parametrize("comment", ["", "#"])
def test_a_row_of_units_may_have_some_that_nobody_knows(tmp_path: Path, comment: str) -> None:
    above = f"{comment}TIMESTAMP,RECORD,RH,WS\n{comment}TS,RN,%,wibbles/second\n"
    found = imported(tmp_path / "a.csv", above + lines("", "{time},{n},{n}.5,{d}.25"))
    assert found.names == ["TIMESTAMP", "RECORD", "RH", "WS"]
    assert [each.unit for each in found.reading.columns] == [None, None, "%", None]


@pytest.mark.parametrize("sums", ["Min;;0,5\nMax;;9,5\nMittelwert;;5,0\n", "Summe;;435,5\n", ""])
def test_sums_between_the_names_and_the_rows_are_no_rows(tmp_path: Path, sums: str) -> None:
    text = f"Nr;Zeit;T\n{sums}" + lines("", "{n};{time};{d},5")
    found = imported(tmp_path / "a.csv", text)
    assert (found.names, found.report.rows, found.report.dead) == (["Nr", "Zeit", "T"], 30, 0)
    rows = "".join(f"{word};{n}\n" for n, word in enumerate(("min", "max", "mean", "count", "name") * 3))
    assert imported(tmp_path / "b.csv", f"metric;value\n{rows}").report.rows == 15


def test_letters_below_groups_are_names_although_they_may_be_units(tmp_path: Path) -> None:
    text = "Station A,,Station B,\nT,H,T,H\n" + lines("", "{n}.5,{n},{n}.25,{d}")
    names = ["Station A T", "Station A H", "Station B T", "Station B H"]
    assert imported(tmp_path / "a.csv", text).names == names


def test_the_first_line_of_a_log_holds_no_names(tmp_path: Path) -> None:
    found = imported(tmp_path / "a.log", lines("", "[{time}] [INFO] value={n}.5"))
    assert (found.report.rows, found.column("value")[0]) == (30, 0.5)


def test_what_was_made_of_the_values_tells_names_apart_that_come_twice(tmp_path: Path) -> None:
    above = ",temp,temp,hum\n,mean,max,mean\ntime,,,\n"
    found = imported(tmp_path / "a.csv", above + lines("", "{time},{n}.5,{n}.75,{d}.25"))
    assert found.names == ["time", "temp mean", "temp max", "hum"]


@pytest.mark.parametrize(("mark", "name"), [(",", "#"), ("\t", "#"), ("", "n")])
def test_a_mark_of_comments_may_be_a_name(tmp_path: Path, mark: str, name: str) -> None:
    text = f"#{mark or 'n,'}Date Time,T\n".replace(",", mark or ",")
    found = imported(tmp_path / "a.csv", text + lines("", "{n},{time},{d}.5".replace(",", mark or ",")))
    assert found.names == [name, "Date Time", "T"]


def test_the_names_of_a_date_and_of_the_time_of_day_belong_to_them(tmp_path: Path) -> None:
    text = lines("Date Time Sensor name Value", "{time} Boiler top 3 {n}.5")
    found = imported(tmp_path / "a.txt", text, {"names": 0})
    assert found.names[:3] == ["Date", "Time", "Sensor"]


def test_a_column_without_a_description_keeps_its_name(tmp_path: Path) -> None:
    header = "Timestamp,TI101,PI102\n,Ofen Temperatur,Druck Leitung\n,°C,bar"
    found = imported(tmp_path / "file", lines(header, "{time},{n}.5,{n}"))
    assert found.names == ["Timestamp", "Ofen Temperatur", "Druck Leitung"]
    assert [column.unit for column in found.reading.columns] == [None, "°C", "bar"]


@pytest.mark.parametrize("remark", ["End of file", "*** stopped by user ***", "T: air temperature"])
@pytest.mark.parametrize("row", ["{time} {n}.5", "{time}   {n}.5  {n}"])
def test_remarks_behind_cells_that_spaces_divide(tmp_path: Path, row: str, remark: str) -> None:
    assert imported(tmp_path / "file", lines("", row) + f"\n{remark}\n").report.dead == 0


@pytest.mark.parametrize("written", ["[dd.MM.yyyy HH:mm]", "dd/MM/yyyy HH:mm:ss"])
def test_how_times_are_written_stands_among_the_units(tmp_path: Path, written: str) -> None:
    found = imported(tmp_path / "file", lines(f"Date and time,Power\n{written},[W]", "{time},{n}.5"))
    assert (found.names, found.reading.columns[1].unit) == (["Date and time", "Power"], "W")


def test_a_column_without_a_name_and_without_values_makes_no_comma_a_decimal_one(tmp_path: Path) -> None:
    data = "#group,false,false,true\n" + lines(",result,table,_time,_value", ",,0,{time},{n}.5")
    assert imported(tmp_path / "file", data).column("value")[:2] == [0.5, 1.5]


def test_units_such_as_1_min_are_no_row(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("time\tspeed\n\t1/min", "{time}\t14{n:02d}"))
    assert found.reading.columns[1].unit == "1/min"
    assert found.report.dead == 0


def test_other_names_far_behind_the_beginning_are_asked_after_the_import(tmp_path: Path) -> None:
    rows = lines("", "2024-05-01T00:00:{m:02d}.{n:06d},{n}.5,{n}", 40_000)
    found = imported(tmp_path / "file", "time,T,p\n" + rows + "time,p,T\n" + rows)
    [question] = [each for each in found.report.questions if each.id == "names.later"]
    assert question.line == 40_002
    assert question.choices[0].changes == {"last_line": 40_001}


def test_form_feeds_between_pages_are_nothing(tmp_path: Path) -> None:
    found = imported(tmp_path / "file", lines("time,v", "{time},{n}") + "\f" + lines("time,v", "{time},{n}"))
    assert (found.report.rows, found.report.dead) == (60, 0)


def test_a_quoted_cell_at_the_end_of_the_look_has_not_lost_its_quote(tmp_path: Path) -> None:
    data = lines("time,text,v", '{time},"one\n{n:0150d}",{n}', 800)
    assert "without its other half" not in imported(tmp_path / "file", data).notes


def test_columns_without_a_name_are_said(tmp_path: Path) -> None:
    assert (
        "Without a name in line 1: c3, c4."
        in imported(tmp_path / "file", lines("time,v", "{time},{n}.5,x,{n}.7")).notes
    )
