"""Finds the signs that number formats of a workbook show beside the stored digits: %, a unit, zeros or
characters."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from decimal import Decimal

from webapp.imports.sheet_marks import elements
from webapp.imports.units import unit_beside

_PERCENT_FORMATS = ("9", "10")
_UNIT = rb"(?:\"([^\"]{1,12})\"|\[\$([^\]-]{1,6})(?:-[0-9A-Fa-f]+)?\])".decode()
_BEHIND = re.compile(rf"[0#?][\s\\]*{_UNIT}$")
_BEFORE = re.compile(rf"^{_UNIT}[\s\\]*[#0?]")
_THOUSANDS = re.compile(r"(?<=[0#?]),+(?=[^0#?.,]*$)")
_SPACE = re.compile(r"_.|\*.")  # a space as wide as a character; a character that fills the cell
_TOKEN = re.compile(r"\"([^\"]*)\"|\\(.)|\[\$([^\]-]*)[^\]]*\]|\[[^\]]*\]|([0#?])|([-+() :])|(.)", re.DOTALL)
_DIGITS, _SIGNS = "0#?", "-+() "
_CODE_MAX = 100


@dataclass(frozen=True)
class Shown:
    """The signs that a number format shows. `behind` is % or a unit. `tens` is the power of ten by which the
    format shows a number larger: 2 for percent, -3 for thousands. `mask` is the form of a number such as
    00-000. In a mask, each digit is one of 0, # and ?, and a backslash stands before each other character."""

    behind: str = ""
    mask: str = ""
    tens: int = 0

    def text_of(self, value: int | float) -> str | None:
        """Returns the number as people see it in the sheet, or None if that would lose a part of the
        number."""
        number = Decimal(repr(value))
        if not self.mask or number != number.to_integral_value() or abs(number) >= 10**15:
            return None
        places = re.findall(r"\\.|.", self.mask, re.DOTALL)
        digits = str(abs(int(number)))
        first = next(at for at, place in enumerate(places) if place in _DIGITS)
        text = ""
        for at in reversed(range(len(places))):
            if places[at] not in _DIGITS:
                text = places[at][1] + text
            elif at == first:
                text = (digits or ("0" if places[at] == "0" else "")) + text
            else:
                text = (digits[-1:] or ("0" if places[at] == "0" else "")) + text
                digits = digits[:-1]
        return f"-{text}" if number < 0 else text


def shown_by_styles(archive: zipfile.ZipFile) -> dict[int, Shown]:
    """Returns the signs that each style of the workbook shows, by the style's number."""
    if "xl/styles.xml" not in archive.namelist():
        return {}
    data = archive.read("xl/styles.xml")
    codes = {each.get("numFmtId", ""): each.get("formatCode", "") for each in elements(data, "numFmt")}
    begin, end = data.find(b"cellXfs"), data.rfind(b"cellXfs")
    styles = elements(data[begin:end], "xf")
    return {
        number: _shown(each.get("numFmtId", ""), codes.get(each.get("numFmtId", ""), ""))
        for number, each in enumerate(styles)
    }


def _shown(id: str, code: str) -> Shown:
    if id in _PERCENT_FORMATS:
        return Shown("%", tens=2)
    first = _SPACE.sub("", code.partition(";")[0]).strip()
    if first.endswith("%") and re.search(r"[0#?]", first):
        return Shown("%", tens=2)
    scaled = _THOUSANDS.search(first)
    tens = -3 * len(scaled[0]) if scaled else 0
    first = _THOUSANDS.sub("", first)
    found = _BEHIND.search(first) or _BEFORE.match(first)
    unit = (found[1] or found[2]).strip() if found else ""
    if unit and unit_beside(f"1 {unit}") == unit:
        return Shown(unit, tens=tens)
    return Shown(tens=tens) if tens else Shown(mask=_mask(first))


def _mask(code: str) -> str:
    """Returns the mask of a format that shows a name and no quantity. Such a format shows whole numbers with
    leading zeros, or with characters before or between the digits."""
    places: list[str] = []
    for text, escaped, symbol, digit, mark, other in _TOKEN.findall(code[:_CODE_MAX]):
        if other:  # the format has a decimal point, a letter of a date, a fraction or an exponent
            return ""
        places += [digit] if digit else [f"\\{each}" for each in text + escaped + symbol + mark]
    at = [place for place, each in enumerate(places) if each in _DIGITS]
    if not at or "[<" in code or "[>" in code or "[=" in code:
        return ""
    before = "".join(each[1] for each in places[: at[0]]).strip(_SIGNS)
    between = len(at) < at[-1] - at[0] + 1
    zeros = sum(each == "0" for each in places)
    return "".join(places) if zeros > 1 or between or before else ""
