"""Many ways to write numbers, each a column of a file: it is read right, or a note says why it is text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.unit.imports.kinds import TIMES, Imported, imported
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
    "India": lambda n: f"12,34,5{n:02d}",
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
