"""Many ways to write numbers, each a column of a file: it is read right, or a note says why it is text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.imports.kinds import TIMES, Imported, imported, lines
from webapp.imports.characters import FOREIGN, PLAIN

ROWS = len(TIMES)
Write = Callable[[int], str]
Value = Callable[[int], object]


def half(n: int) -> float:
    return n + 0.5


def turned(n: int) -> float:
    """Returns every second number below zero."""
    return -half(n) if n % 2 else half(n)


def thousands(n: int) -> float:
    return 1200 + n + 0.5


READ: dict[str, tuple[Write, Value]] = {
    **{
        f"padded by {ord(space):x}": (lambda n, s=space: f"{s * (4 - len(str(n)))}{n}.5{s}", half)
        for space in "\u00a0\u2003\u2007\u2009\u200a\u202f\u3000"
    },
    **{
        f"grouped by {ord(space):x}": (lambda n, s=space: f"1{s}2{n:02d},5", thousands)
        for space in "\u00a0\u2007\u2008\u2009\u200a\u202f\u3000"
    },
    **{
        f"apostrophe {ord(mark):x}": (lambda n, m=mark: f"1{m}2{n:02d}.5", thousands)
        for mark in "'\u2019\u2018\u02bc\u00b4`"
    },
    **{
        f"minus {ord(minus):x}": (lambda n, m=minus: f"{m if n % 2 else ''}{n}.5", turned)
        for minus in "\u2212\u2010\u2011\u2013\ufe63\uff0d"
    },
    **{
        f"{money} before": (lambda n, m=money: f"{m} 1,2{n:02d}.50", thousands)
        for money in ("€", "CHF", "Fr.", "US$", "R$", "kr", "zł", "₹", "SEK", "£", "¥")
    },
    **{
        f"{money} behind": (lambda n, m=money: f"1.2{n:02d},50\u00a0{m}", thousands)
        for money in ("€", "CHF", "Kč", "Ft", "kr", "₽", "PLN")
    },
    **{
        f"{money} below zero": (lambda n, m=money: f"({m}{n}.50)" if n % 2 else f"{m}{n}.50", turned)
        for money in ("€", "$", "A$", "NOK")
    },
    "a minus and a unit": (lambda n: f"{chr(0x2212) if n % 2 else ''}{n},5 °C", turned),
    "per cent below zero": (lambda n: f"({n}.5%)" if n % 2 else f"{n}.5%", turned),
    "per cent before": (lambda n: f"%{n}.5", half),
    "full-width per cent": (lambda n: f"{n}.5\uff05", half),
    "relative humidity": (lambda n: f"{n},5 % r.F.", half),
    "a plus": (lambda n: f"+{n}.5", half),
    "signs apart": (lambda n: f"{'-' if n % 2 else '+'} {n}.5", turned),
    "Fortran": (lambda n: f"{n}.5D+03", lambda n: half(n) * 1000),
    "times ten": (lambda n: f"{n}.5x10^3", lambda n: half(n) * 1000),
    "an exponent apart": (lambda n: f"{n}.5 E+03", lambda n: half(n) * 1000),
    "an exponent with another minus": (lambda n: f"{n}.5e\u22123", lambda n: float(f"{n}.5e-3")),
    "whole ones in Switzerland": (lambda n: f"{n}.-" if n % 2 else f"{n}.\u2014", lambda n: n),
    "Arabic digits": (lambda n: "".join(chr(0x660 + int(each)) for each in f"{n + 10}"), lambda n: n + 10),
    "full-width digits": (
        lambda n: "".join(chr(0xFF10 + int(each)) for each in f"{n + 10}"),
        lambda n: n + 10,
    ),
    "a mark of the direction": (lambda n: f"\u200e-{n}.5", lambda n: -half(n)),
    "errors of Excel in French": (
        lambda n: f"{n},5" if n % 3 else "#VALEUR!",
        lambda n: half(n) if n % 3 else None,
    ),
    "states of PI": (lambda n: f"{n},5" if n % 3 else "I/O Timeout", lambda n: half(n) if n % 3 else None),
    "no number of Visual C": (
        lambda n: f"{n},5" if n % 3 else "-nan(ind)",
        lambda n: half(n) if n % 3 else None,
    ),
}
TEXT: dict[str, Write] = {
    "0x": lambda n: f"0x{n:X}",
    "W#16#": lambda n: f"W#16#{n:04X}",
    "#1F": lambda n: f"#{n:02X}",
    "1Fh": lambda n: f"{n:02X}h",
    "0b": lambda n: f"0b{n:08b}",
    "plus or minus": lambda n: f"{n}.5 ± 0.1",
    "thousands as k": lambda n: f"{n}.5k",
    "at least": lambda n: f"{n}+",
    "underscores": lambda n: f"1_2{n:02d}",
    "halves": lambda n: f"{n}½",
    "a formula": lambda n: f"={n}.5",
    "two numbers": lambda n: f"{n} 5",
    "an address": lambda n: f"10.0.0.{n}",
    "a duration": lambda n: f"{n}h30m",
    "about": lambda n: f"~{n}.5",
    "a middle dot": lambda n: f"{n}·5",
    "two currencies": lambda n: f"{n}.50 {'€' if n % 2 else '$'}",
}


def read(tmp_path: Path, kinds: dict[str, Write]) -> Imported:
    rows = ("\t".join([TIMES[n], *(write(n) for write in kinds.values())]) for n in range(ROWS))
    return imported(tmp_path / "file", "\t".join(["time", *kinds]) + "\n" + "\n".join(rows) + "\n")


def test_numbers_are_read_however_they_are_written(tmp_path: Path) -> None:
    found = read(tmp_path, {name: write for name, (write, _) in READ.items()})
    meant = {name: [value(n) for n in range(ROWS)] for name, (_, value) in READ.items()}
    shown = dict(zip(READ, (found.column(name) for name in found.names[1:]), strict=True))
    assert {name: shown[name][:4] for name in READ if shown[name] != meant[name]} == {}


def test_what_is_no_plain_number_stays_text_and_a_note_says_so(tmp_path: Path) -> None:
    found = read(tmp_path, TEXT)
    shown = dict(zip(TEXT, (found.column(name) for name in found.names[1:]), strict=True))
    assert {name for name, write in TEXT.items() if shown[name] != [write(n) for n in range(ROWS)]} == set()
    silent = [name for name in found.names[1:] if f"{name} stays text: " not in found.notes]
    assert silent == []


def test_each_character_that_means_one_of_ascii_says_which() -> None:
    assert len(FOREIGN) == len(PLAIN)
    assert len(set(FOREIGN)) == len(FOREIGN)


@pytest.mark.parametrize("mark", ["MM", "brak", "fehlt", "11.5*", "11.5#"])
def test_a_mark_among_numbers_is_no_value_or_a_footnote(tmp_path: Path, mark: str) -> None:
    data = "time;v\n" + "".join(f"{time};{mark if n % 3 else f'{n}.5'}\n" for n, time in enumerate(TIMES))
    read = 11.5 if mark.startswith("1") else None
    assert imported(tmp_path / "file", data).column("v")[:4] == [0.5, read, read, 3.5]


def test_marks_for_no_value_alone_are_none_where_the_column_has_a_unit(tmp_path: Path) -> None:
    data = "time,wave,unit,v\n,m,,\n" + lines("", "{time},MM,MM,{n}")
    found = imported(tmp_path / "file", data)
    assert (found.column("wave")[0], found.column("unit")[0]) == (None, "MM")
    assert "wave has no values: there is only MM." in found.notes


@pytest.mark.parametrize("mark", ["M", "trace", "aus!"])
def test_a_word_again_and_again_among_numbers_is_asked(tmp_path: Path, mark: str) -> None:
    data = "time;v\n" + "".join(f"{time};{mark if n % 4 == 1 else n}\n" for n, time in enumerate(TIMES))
    assert imported(tmp_path / "a", data, {"type.v": 0}).column("v")[:3] == [0, None, 2]
    assert imported(tmp_path / "a", data, {"type.v": 1}).column("v")[:3] == ["0", mark, "2"]


@pytest.mark.parametrize(
    "written",
    ["-9999.0", "-9999,00", "-999.000", "1e30", "1.000000E+30", "-1.00E+34", "3.4028235e38", "9999.00"],
)
def test_a_usual_number_for_no_value_is_known_however_it_is_written(tmp_path: Path, written: str) -> None:
    decimal = "," if "," in written else "."
    cells = [written if n % 5 == 1 else f"{n}{decimal}5" for n in range(30)]
    data = "time;v\n" + "".join(f"{time};{cell}\n" for time, cell in zip(TIMES, cells, strict=True))
    found = imported(tmp_path / "file", data)
    assert found.column("v")[:3] == [0.5, None, 2.5]
    assert f"{written} means no value in v." in found.notes


@pytest.mark.parametrize("written", ["3276.7", "-3276.80", "655.35", "-327.68", "2147483.647", "429496729.5"])
def test_the_end_of_a_register_with_decimals_is_no_value(tmp_path: Path, written: str) -> None:
    cells = [written if n % 5 == 1 else f"{n}.5" for n in range(30)]
    data = "time,v\n" + "".join(f"{time},{cell}\n" for time, cell in zip(TIMES, cells, strict=True))
    found = imported(tmp_path / "file", data)
    assert found.column("v")[:3] == [0.5, None, 2.5]
    assert f"{written} means no value in v." in found.notes


def test_the_end_of_a_register_among_numbers_like_it_is_a_number(tmp_path: Path) -> None:
    cells = ["327.67" if n == 1 else f"{300 + n}.25" for n in range(30)]
    data = "time,v\n" + "".join(f"{time},{cell}\n" for time, cell in zip(TIMES, cells, strict=True))
    assert imported(tmp_path / "file", data).column("v")[:3] == [300.25, 327.67, 302.25]


@pytest.mark.parametrize("nines", ["99.9", "99.00", "999.0", "-99", "999"])
@pytest.mark.parametrize("every", [1, 4])
def test_nines_far_from_the_rest_are_asked(tmp_path: Path, nines: str, every: int) -> None:
    cells = [nines if n % every == 0 else f"{n}.5" for n in range(30)]
    data = "time;v\n" + "".join(f"{time};{cell}\n" for time, cell in zip(TIMES, cells, strict=True))
    found = imported(tmp_path / "file", data, {f"missing.{nines}": 0})
    assert found.column("v")[:2] == [None, None if every == 1 else 1.5]


@pytest.mark.parametrize("cells", [[97.5, 98.5, 99.9], [40, 60, 99], [990, 995, 999]])
def test_nines_beside_the_rest_are_numbers(tmp_path: Path, cells: list[float]) -> None:
    data = "time;v\n" + "".join(f"{time};{cells[n % 3]}\n" for n, time in enumerate(TIMES))
    assert imported(tmp_path / "file", data).column("v")[:3] == cells


@pytest.mark.parametrize(("answer", "first"), [(0, 41.995), (1, 41995)])
def test_a_point_in_a_table_of_both_decimal_marks_is_asked(tmp_path: Path, answer: int, first: float) -> None:
    data = lines("time;lat;lon;tmp;slp", "{time};41.995;-87.93;0100,{d};1013,{d}")
    found = imported(tmp_path / "file", data, {"thousands": answer})
    assert [found.column(name)[1] for name in ("lat", "lon")] == [first, -87.93]


def test_days_with_a_point_say_nothing_of_the_marks_of_other_columns(tmp_path: Path) -> None:
    data = "Time;a;b;n\n" + "".join(f"{45944 + n / 24:.9f};{n},5;{n},25;1.39{n % 10}\n" for n in range(30))
    assert imported(tmp_path / "file", data).column("n")[:2] == [1390, 1391]


@pytest.mark.parametrize("name", ["Longitude", "gps_lon", "Länge"])
def test_the_west_is_no_unit_of_a_place(tmp_path: Path, name: str) -> None:
    found = imported(tmp_path / "file", lines(f"time,{name}", "{time},{n}.5 W"))
    assert found.column(name)[1] == "1.5 W"
    assert f"{name} stays text: its numbers have something beside them" in found.notes
    assert imported(tmp_path / "file", lines("time,power", "{time},{n}.5 W")).column("power")[1] == 1.5
