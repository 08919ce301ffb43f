"""Reads numbers and truth values from a cell's text. The preview and the import use the same rules.

`sql_of` gives DuckDB the same rules. Tests compare the two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import isfinite

from pipeline_runtime.model.schema import FieldType
from webapp.imports.characters import APOSTROPHES, FOREIGN, INVISIBLE, PLAIN, WIDE, in_ascii

TRUE_WORDS = ("true", "yes", "on", "1", "t", "y", "ja", "wahr", "ein", "an", "j", "oui", "vrai")
FALSE_WORDS = ("false", "no", "off", "0", "f", "n", "nein", "falsch", "aus", "non", "faux")
INTEGER_MAX = (1 << 63) - 1
_INTEGER = r"[+-]?[0-9]+"
_PLAIN = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?"
_SEPARATORS = " " + WIDE
"""The characters that DuckDB's `trim` removes: the separators of Unicode."""
_AROUND = " \t\n\v\f\r"  # DuckDB skips these characters, too
# 1.234 may be 1.234 or 1234. 0.123 and 1.234.567 can be read in one way only.
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}", re.ASCII)
_SPACES = str.maketrans(WIDE, " " * len(WIDE))
_APOSTROPHES = str.maketrans(APOSTROPHES, "'" * len(APOSTROPHES))
OTHERWISE = "\u00b1"
"""Stands for signs, exponents and digits in another form than plain ASCII. (5), 5-, - 5 and 5 after the sign
U+2212 are -5. 1.5D+03 is 1500, and 5.- is 5. Numbers with a unit are read in the same way."""

_REWRITES = (
    (r"^\(([^()+-]*[0-9][^()+-]*)\)$", r"-\1"),
    (r"^([+-]) +", r"\1"),
    (r"([0-9])[.,]-{1,2}$", r"\1"),
    (r"([0-9]) ?[*#]{1,3}$", r"\1"),  # a mark of a footnote
    (r"^([0-9.,][^+-]*)-$", r"-\1"),
    ("([0-9.,]) *(?:[dDeE]|[x\u00d7\u00b7*] *10\\^?) *([+-]?[0-9]{1,3})$", r"\1e\2"),
)
"""Pairs of a pattern, for Python and RE2, and its replacement in plain ASCII."""

EXCEL_TEXT = '=""'
_EXCEL_TEXT = '="[^"]*"'


def read_cell(
    text: str, type_: FieldType, decimal: str, thousands: str, beside: str = ""
) -> int | float | bool | str | None:
    """Returns the value of a cell, or None if the text has another type. `time_text` reads times.

    `beside` is the text beside a number, such as its unit.
    """
    if type_ is FieldType.STRING:
        return without_beside(text, beside) if beside == EXCEL_TEXT else text
    if type_ is FieldType.BOOLEAN:
        word = text.strip(_SEPARATORS).lower()
        return True if word in TRUE_WORDS else False if word in FALSE_WORDS else None
    plain = plain_number(_stripped(without_beside(text, beside)), decimal, thousands)
    if plain is None:
        return None
    if type_ is FieldType.INTEGER:
        if not re.fullmatch(_INTEGER, plain) or len(plain) > 40:
            return None
        whole = int(plain)
        return whole if -INTEGER_MAX - 1 <= whole <= INTEGER_MAX else None
    number = float(plain)
    return number if isfinite(number) else None


def _stripped(text: str) -> str:
    """Returns the text without spaces of any kind around it."""
    text = text.strip(_AROUND)
    return text if text.isascii() else text.strip(_SEPARATORS).strip(_AROUND)


def without_beside(text: str, beside: str) -> str:
    """Returns the number without the text beside it, with a sign and an exponent in ASCII."""
    if not beside:
        return text
    if beside == EXCEL_TEXT:
        bare = text.strip(_AROUND + WIDE)
        return bare[2:-1] if re.fullmatch(_EXCEL_TEXT, bare) else text
    bare = in_ascii(text).strip(_AROUND)
    for pattern, replacement in _rewrites(beside):
        bare = pattern.sub(replacement, bare, count=1)
    return bare


@lru_cache
def _rewrites(beside: str) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(pattern), by) for pattern, by in _without_unit(beside) + _REWRITES]


def _without_unit(beside: str) -> tuple[tuple[str, str], ...]:
    """Returns patterns and replacements that remove a unit right before or right after a number."""
    if beside == OTHERWISE:
        return ()
    unit = re.escape(in_ascii(beside))
    return (
        (rf"^([(+-]? *[+-]? *){unit} *", r"\1"),
        (rf"([0-9.,)+-]) *{unit}( *[)+-]?)$", r"\1\2"),
        (r" +$", ""),
        (r" +\)$", ")"),
    )


def _without_beside_sql(cell: str, beside: str) -> str:
    if beside == EXCEL_TEXT:
        bare = f"trim({cell}, {quoted(_AROUND + WIDE)})"
        inner = f"substr({bare}, 3, length({bare}) - 3)"
        return f"CASE WHEN regexp_full_match({bare}, {quoted(_EXCEL_TEXT)}) THEN {inner} ELSE {cell} END"
    bare = f"trim(translate({cell}, {quoted(FOREIGN + INVISIBLE)}, {quoted(PLAIN)}), {quoted(_AROUND)})"
    for pattern, replacement in _without_unit(beside) + _REWRITES:
        bare = f"regexp_replace({bare}, {quoted(pattern)}, {quoted(replacement)})"
    return bare


def can_be_either(text: str) -> bool:
    """Returns whether the text has two meanings: one if its mark is a decimal mark, and another if it divides
    thousands."""
    return _EITHER.fullmatch(text.strip()) is not None


def plain_number(text: str, decimal: str, thousands: str) -> str | None:
    """Returns the number in the form that programs write: 1.234,5 -> 1234.5. Returns None if the text is no
    such number."""
    if thousands == " ":
        text = text.translate(_SPACES).strip(_AROUND)
    elif thousands == "'":
        text = text.translate(_APOSTROPHES)
    if thousands and thousands in text:
        if not re.fullmatch(grouped(decimal, thousands), text):
            return None
        text = text.replace(thousands, "")
    if decimal == ",":
        if "." in text:
            return None
        text = text.replace(",", ".")
    return text if re.fullmatch(_PLAIN, text) else None


def grouped(decimal: str, thousands: str) -> str:
    """Returns the pattern of a number whose digits stand in groups of three. With commas, the groups before
    the last three digits may have two digits, as in India: 1,00,000."""
    mark = re.escape(thousands)
    groups = rf"[0-9]{{1,3}}({mark}[0-9]{{3}})+"
    if thousands == ",":
        groups = rf"({groups}|[0-9]{{1,2}}({mark}[0-9]{{2}})+{mark}[0-9]{{3}})"
    return rf"[+-]?{groups}({re.escape(decimal)}[0-9]*)?"


def sql_of(cell: str, type_: FieldType, decimal: str, thousands: str, beside: str = "") -> str:
    """Returns SQL for the value of `cell`, a column of texts. The value is null if the text has another
    type."""
    if type_ is FieldType.STRING:
        return f"({_without_beside_sql(cell, beside)})" if beside == EXCEL_TEXT else cell
    if type_ is FieldType.BOOLEAN:
        word = f"lower(trim({cell}))"
        yes, no = (
            f"WHEN {word} IN {_listed(TRUE_WORDS)} THEN true",
            f"WHEN {word} IN {_listed(FALSE_WORDS)} THEN false",
        )
        return f"CASE {yes} {no} END"
    if beside:
        cell = f"({_without_beside_sql(cell, beside)})"
    read = _whole_sql if type_ is FieldType.INTEGER else _number_sql
    if thousands == " ":
        cell = f"translate({cell}, '{WIDE}', '{' ' * len(WIDE)}')"
    elif thousands == "'":
        cell = f"translate({cell}, '{APOSTROPHES}', {quoted(chr(39) * len(APOSTROPHES))})"
    plain = f"replace({cell}, ',', '.')" if decimal == "," else cell
    value = read(plain)
    if decimal == "," and thousands != ".":
        value = f"CASE WHEN contains({cell}, '.') THEN NULL ELSE {value} END"
    if not thousands:
        return value
    mark = quoted(thousands)
    joined = f"replace(trim({cell}), {mark}, '')"
    joined = f"replace({joined}, ',', '.')" if decimal == "," else joined
    in_groups = f"regexp_full_match(trim({cell}), {quoted(_spaced(grouped(decimal, thousands)))})"
    return (
        f"CASE WHEN contains(trim({cell}), {mark}) THEN CASE WHEN {in_groups} THEN {read(joined)} END"
        f" ELSE {value} END"
    )


def _whole_sql(cell: str) -> str:
    # DuckDB rounds 1.5, and reads 0x1A and 1_000. So its result counts only if the text looks like a plain
    # number.
    bare = f"trim({cell})"
    return (
        f"CASE {_if_bare(cell)}"
        f" WHEN regexp_full_match({bare}, {quoted(_spaced(_INTEGER))}) THEN TRY_CAST({bare} AS BIGINT) END"
    )


def bare_whole_sql(cell: str) -> str:
    """Returns SQL for a whole number in the form that programs write: without spaces, marks, a plus or
    leading zeros. It is null for all other texts."""
    return f"CASE {_if_bare(cell)} END"


def _if_bare(cell: str) -> str:
    cast = f"TRY_CAST({cell} AS BIGINT)"
    return f"WHEN CAST({cast} AS VARCHAR) = {cell} THEN {cast}"


def _spaced(pattern: str) -> str:
    return rf"[ \t\n\v\f\r]*{pattern}[ \t\n\v\f\r]*"


def _number_sql(cell: str) -> str:
    # DuckDB also reads nan, inf and 1_000. If DuckDB cannot read a cell, the query tries again without the
    # spaces that DuckDB does not skip.
    cast = f"coalesce(TRY_CAST({cell} AS DOUBLE), TRY_CAST(trim({cell}) AS DOUBLE))"
    return f"CASE WHEN isfinite({cast}) AND NOT contains({cell}, '_') THEN {cast} END"


def quoted(text: str) -> str:
    """Returns the text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def _listed(texts: Sequence[str]) -> str:
    return "(" + ", ".join(quoted(text) for text in texts) + ")"
