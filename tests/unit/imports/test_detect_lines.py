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
