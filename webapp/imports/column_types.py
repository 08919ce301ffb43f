"""Chooses the type of a column by all of its known cells, and finds the texts that mean "no value"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipeline_runtime.model.schema import FieldType
from webapp.imports.cell_text import read_cell
from webapp.imports.no_value_numbers import no_value_numbers
from webapp.imports.shapes import is_no_value, shape

NUMBERS_SHARE = 0.9  # share of the cells with a value that must be numbers
NEAR_FEW = 2  # so few cells such as 10.00% cause no question, however few rows there are
DOUBT_SHARE = 0.5  # from this share on, a person is asked
EXACT_MAX = 1 << 53  # above this number, a double loses digits
# Share of the cells that must be numbers for a question about one or two words among them.
NO_VALUE_NUMBERS_SHARE = 0.6
_NO_VALUE_HERE = ("MM",)
"""Texts that mean "no value" only in a column of numbers. In other columns they may be units."""

_NOTHING = re.compile(r"[^\w\s]+|[-+]?nan|null|\(null\)|none|<na>|#?n/a|nat|\\n")
"""Texts that mean "no value" even if a column has no other text. Other words, such as fault, may be
values."""

_TRUTHS = (
    ("true", "false"),
    ("yes", "no"),
    ("on", "off"),
    ("ja", "nein"),
    ("wahr", "falsch"),
    ("ein", "aus"),
    ("an", "aus"),
    ("oui", "non"),
    ("vrai", "faux"),
    ("j", "n"),
    ("t", "f"),
    ("y", "n"),
)
_ID = re.compile(
    r"(?:^|[^a-z])(?:id|ids|nr|no|serial|sn|code|plz|zip|phone|tag|asset|uuid|key|batch|charge|lot|order|auftrag)(?:$|[^a-z])"
    r"|(?:id|nr|no|num|number|nummer|code|serial)$",
)
_EXACT_NAME = re.compile(
    r"(?:^|[^a-z])(?:version|firmware|revision|release|phone|telephone|telefon|fax|iban|ean|gtin)(?:$|[^a-z])"
)
"""Names of columns whose texts must stay as they are: 1.10 is not 1.1 there, or a + has a meaning."""

_CODE = re.compile(r"\d{1,4}[eE]\d{1,4}", re.ASCII)
_HEX = re.compile(r"(?:0[xX] ?|&[hH]|[#$]|(?:W#|B#|DW#)?16#)[0-9A-Fa-f]+|[0-9A-Fa-f]{1,16}[hH]")
_ODD_NUMBER = re.compile(r"^\W{0,3}\d|\d[.,]\d")
"""A text that begins with a number, or has decimals. Its writer may have meant a number."""

_HEX_DIGITS = re.compile(r"(?:[0-9A-F]{2}){1,8}|(?:[0-9a-f]{2}){1,8}")
_LEADING_ZERO = re.compile(r"[+-]?0\d+", re.ASCII)


@dataclass(frozen=True)
class Cell:
    line: int | None  # None in a piece from the middle of the file, whose line numbers are not known
    text: str


@dataclass(frozen=True)
class Judged:
    """The type of a column. `missing`: texts that mean "no value". `sentinels`: those of them that are
    numbers. `suspect`: a number that may mean "no value". `unreadable`: the first cell that is no number in a
    column of numbers, or the cell because of which a column of numbers stays text."""

    type: FieldType
    missing: tuple[str, ...] = ()
    sentinels: tuple[str, ...] = ()
    suspect: str | None = None
    why_text: str | None = None
    unreadable: Cell | None = None
    asks: bool = False
    numbers: int = 0
    others: int = 0


def judge(
    name: str,
    cells: Sequence[Cell],
    decimal: str,
    thousands: str,
    quoted_differs: bool,
    unit: str | None = None,
) -> Judged:
    """Returns the type of a column. `quoted_differs`: the column's numbers stand in quotes, while others in
    the file do not."""
    filled = [cell for cell in cells if cell.text.strip()]
    none = [cell.text.strip() for cell in filled if is_no_value(cell.text)]
    words = [cell for cell in filled if not is_no_value(cell.text)]
    here = [cell for cell in words if cell.text.strip() in _NO_VALUE_HERE]
    if here and _are_among_numbers([cell.text for cell in words], unit):
        none += [cell.text.strip() for cell in here]
        words = [cell for cell in words if cell.text.strip() not in _NO_VALUE_HERE]
    missing = tuple(text for text, _ in Counter(none).most_common(10))
    if not words:
        nothing = tuple(text for text in missing if here or _NOTHING.fullmatch(text.lower()))
        return Judged(FieldType.STRING, missing=nothing)
    if _are_truths(words):
        return Judged(FieldType.BOOLEAN, missing=missing)
    numbers = [cell for cell in words if _number(cell.text, decimal, thousands) is not None]
    others = [cell for cell in words if _number(cell.text, decimal, thousands) is None]
    if not numbers:
        return _texts_alone(others)
    why_text, kept = _why_text(name, numbers, quoted_differs)
    if why_text:
        return Judged(FieldType.STRING, why_text=why_text, unreadable=kept)
    share = len(numbers) / len(words)
    mixed = f"{len(others):,} of its {len(words):,} cells that were looked at are no numbers"
    if share < DOUBT_SHARE:
        return Judged(FieldType.STRING, why_text=mixed, unreadable=others[0])
    few = share < NUMBERS_SHARE and not (len(others) <= NEAR_FEW and _are_near(others))
    is_asked = _are_near(others) or (share >= NO_VALUE_NUMBERS_SHARE and _are_marks(others))
    if few and not is_asked and _scattered(words, decimal, thousands):
        return Judged(FieldType.STRING, why_text=mixed, unreadable=others[0])
    sentinels, suspect = no_value_numbers([cell.text.strip() for cell in numbers], decimal, thousands)
    whole = all(
        read_cell(cell.text, FieldType.INTEGER, decimal, thousands) is not None
        for cell in numbers
        if cell.text.strip() not in sentinels
    )
    return Judged(
        FieldType.INTEGER if whole else FieldType.NUMBER,
        missing=missing + sentinels,
        sentinels=sentinels,
        suspect=suspect,
        unreadable=others[0] if others else None,
        asks=few,
        numbers=len(numbers),
        others=len(others),
    )


def _number(text: str, decimal: str, thousands: str) -> float | None:
    value = read_cell(text, FieldType.NUMBER, decimal, thousands)
    return value if isinstance(value, int | float) else None


def _are_truths(words: Sequence[Cell]) -> bool:
    """Returns whether the column has both words of a pair, such as yes and no, or only the words `true` and
    `false`."""
    said = {cell.text.strip().lower() for cell in words}
    return any(said == set(pair) for pair in _TRUTHS) or said <= {"true", "false"}


def _texts_alone(words: Sequence[Cell]) -> Judged:
    """Returns the judgement of a column without a plain number. Cells that are nearly numbers or times are
    noted."""
    kinds = {kind: [cell for cell in words if shape(cell.text) == kind] for kind in ("near", "time", "clock")}
    if _are_hexadecimal([cell.text.strip() for cell in words]):
        return Judged(FieldType.STRING, why_text="it may hold hexadecimal numbers", unreadable=words[0])
    if len(kinds["near"]) == len(words):
        return Judged(
            FieldType.STRING, why_text="its numbers have something beside them", unreadable=words[0]
        )
    for kind, why in (("clock", "its times have no date"), ("time", "its times are not all written alike")):
        if len(kinds[kind]) >= DOUBT_SHARE * len(words):
            return Judged(FieldType.STRING, why_text=why, unreadable=kinds[kind][0])
    numbers = [cell for cell in words if shape(cell.text) in ("number", "near")]
    if len(numbers) >= DOUBT_SHARE * len(words):
        return Judged(
            FieldType.STRING, why_text="its numbers are written in several ways", unreadable=numbers[0]
        )
    odd = [cell for cell in words if _ODD_NUMBER.search(cell.text)]
    if len(odd) >= DOUBT_SHARE * len(words):
        return Judged(FieldType.STRING, why_text="its cells are no plain numbers", unreadable=odd[0])
    return Judged(FieldType.STRING)


def _are_hexadecimal(texts: Sequence[str]) -> bool:
    """Returns whether the texts are hexadecimal: each has a mark, as in 0x1F, or all have the length of whole
    bytes."""
    if all(map(_HEX.fullmatch, texts)):
        return True
    digits = sum(any(map(str.isdigit, text)) for text in texts)
    return (
        len(set(map(len, texts))) == 1 and 2 * digits > len(texts) and all(map(_HEX_DIGITS.fullmatch, texts))
    )


def _why_text(name: str, numbers: Sequence[Cell], quoted_differs: bool) -> tuple[str, Cell]:
    """Returns why numbers stay text, and the first cell for which they do. The reason is "" if the column can
    be numbers."""
    texts = [cell.text.strip() for cell in numbers]
    for number, text in zip(numbers, texts, strict=True):
        if _LEADING_ZERO.fullmatch(text):
            return "numbers begin with a zero, which a number would lose", number
        digits = text.lstrip("+-")
        if len(digits) > 15 and digits.isdecimal() and int(digits) > EXACT_MAX:
            return "numbers have more digits than a number keeps exactly", number
    if _EXACT_NAME.search(name.lower()):
        return "it is no quantity, by its name", numbers[0]
    codes = [number for number, text in zip(numbers, texts, strict=True) if _CODE.fullmatch(text)]
    if codes and all(_CODE.fullmatch(text) or text.isdecimal() for text in texts):
        return "it holds codes such as 12E4", codes[0]
    if quoted_differs and all(map(str.isdecimal, texts)) and _ID.search(name.lower()):
        return "its numbers are in quotes, and the others of the file are not", numbers[0]
    return "", numbers[0]


def _scattered(words: Sequence[Cell], decimal: str, thousands: str) -> bool:
    """Returns whether numbers and other texts alternate, so that neither part follows the other as a
    whole."""
    kinds = [_number(cell.text, decimal, thousands) is not None for cell in words]
    changes = sum(before != after for before, after in pairwise(kinds))
    return changes > 2


def _are_among_numbers(texts: Sequence[str], unit: str | None) -> bool:
    """Returns whether the column has numbers, and beside them only words for "no value" or only one unit."""
    rest = [text for text in texts if text.strip() not in _NO_VALUE_HERE]
    return all(shape(text) == "number" for text in rest) if rest else unit is not None


def _are_marks(others: Sequence[Cell]) -> bool:
    """Returns whether the other cells are one or two words that come again and again, such as `M` for each
    gap."""
    texts = {cell.text.strip() for cell in others}
    return len(texts) <= 2 and not any(map(str.isdigit, "".join(texts)))


def _are_near(others: Sequence[Cell]) -> bool:
    """Returns whether the other cells are numbers with a text beside them: `10.00%`, `<0.5`."""
    return all(shape(cell.text) == "near" for cell in others)
