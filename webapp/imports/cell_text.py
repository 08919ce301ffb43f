"""What a cell's text says: the one meaning of numbers and truth values, for the preview and the import.

`sql_of` says the same to DuckDB; tests compare the two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite

from pipeline_runtime.model.schema import FieldType

TRUE_WORDS = ("true", "yes", "on", "1", "t", "y", "ja", "wahr", "ein", "an", "j", "oui", "vrai")
FALSE_WORDS = ("false", "no", "off", "0", "f", "n", "nein", "falsch", "aus", "non", "faux")
INTEGER_MAX = (1 << 63) - 1
_INTEGER = r"[+-]?[0-9]+"
_PLAIN = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?"
_SEPARATORS = (
    " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
)
"""What DuckDB's `trim` takes away: the separators of Unicode."""
_AROUND = " \t\n\v\f\r"  # what DuckDB passes over, too
_WIDE = "\u00a0\u2007\u2009\u202f"  # what programs write as a space between groups of three digits
_SPACES = str.maketrans(_WIDE, " " * len(_WIDE))
_BESIDE_SPACES = _AROUND + _WIDE  # between a number and its unit
MINUS_BEHIND, PARENTHESES, MINUS_SIGN, MINUS_APART = "-", "()", "\u2212", "- "
EXCEL_TEXT = '=""'
_EXCEL_TEXT = '="[^"]*"'
"""What may stand beside numbers and is no unit: `5-`, `(5)`, `- 5` and 5 behind the sign U+2212 are -5."""


def read_cell(
    text: str, type_: FieldType, decimal: str, thousands: str, beside: str = ""
) -> int | float | bool | str | None:
    """Returns the value, or None if the text is none of this type. Times are read by `time_text`.

    `beside` is what stands beside a number, such as its unit.
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
    """Returns the text without spaces around it, as `_stripped_sql` has it."""
    text = text.strip(_AROUND)
    return text if text.isascii() else text.strip(_SEPARATORS).strip(_AROUND)


def without_beside(text: str, beside: str) -> str:
    """Returns the number without what stands beside it; `5-` and `(5)` as -5; another text as it is."""
    if not beside:
        return text
    bare = text.strip(_BESIDE_SPACES)
    if beside == EXCEL_TEXT:
        return bare[2:-1] if re.fullmatch(_EXCEL_TEXT, bare) else text
    if beside == MINUS_SIGN:
        return bare.replace(beside, "-")
    if beside == MINUS_APART:
        return re.sub(rf"\A-[ {_WIDE}]+(?=[0-9.,])", "-", bare)
    if beside == MINUS_BEHIND:
        return f"-{bare[:-1].rstrip(_BESIDE_SPACES)}" if re.match(r"[0-9.,].*-\Z", bare) else text
    if beside == PARENTHESES:
        return f"-{bare[1:-1].strip(_BESIDE_SPACES)}" if re.match(r"\([0-9.,].*\)\Z", bare) else text
    if bare.endswith(beside):
        return bare.removesuffix(beside).rstrip(_BESIDE_SPACES)
    if bare.startswith(beside):
        return bare.removeprefix(beside).lstrip(_BESIDE_SPACES)
    if bare.startswith(f"-{beside}"):
        return "-" + bare.removeprefix(f"-{beside}").lstrip(_BESIDE_SPACES)
    return text


def _without_beside_sql(cell: str, beside: str) -> str:
    spaces = quoted(_BESIDE_SPACES)
    bare = f"trim({cell}, {spaces})"
    if beside == EXCEL_TEXT:
        inner = f"substr({bare}, 3, length({bare}) - 3)"
        return f"CASE WHEN regexp_full_match({bare}, {quoted(_EXCEL_TEXT)}) THEN {inner} ELSE {cell} END"
    if beside == MINUS_SIGN:
        return f"replace({bare}, {quoted(beside)}, '-')"
    if beside == MINUS_APART:
        return f"regexp_replace({bare}, '^-[ {_WIDE}]+([0-9.,])', '-\\1')"
    if beside in (MINUS_BEHIND, PARENTHESES):
        begin, pattern = (1, "[0-9.,].*-") if beside == MINUS_BEHIND else (2, r"\([0-9.,].*\)")
        inner = f"trim(substr({bare}, {begin}, length({bare}) - {begin}), {spaces})"
        return f"CASE WHEN regexp_full_match({bare}, {quoted(pattern)}) THEN '-' || {inner} ELSE {cell} END"
    unit, size, negative = quoted(beside), len(beside), quoted(f"-{beside}")
    return (
        f"CASE WHEN suffix({bare}, {unit}) THEN rtrim(left({bare}, -{size}), {spaces})"
        f" WHEN prefix({bare}, {unit}) THEN ltrim(substr({bare}, {size + 1}), {spaces})"
        f" WHEN prefix({bare}, {negative}) THEN '-' || ltrim(substr({bare}, {size + 2}), {spaces})"
        f" ELSE {cell} END"
    )


def plain_number(text: str, decimal: str, thousands: str) -> str | None:
    """Returns the number as a program writes it: 1.234,5 -> 1234.5; None if the text is no such number."""
    if thousands == " ":
        text = text.translate(_SPACES).strip(_AROUND)
    elif thousands == "'":
        text = text.replace("\u2019", "'")
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
    """Returns the pattern of a number whose digits are in groups of three."""
    return rf"[+-]?[0-9]{{1,3}}({re.escape(thousands)}[0-9]{{3}})+({re.escape(decimal)}[0-9]*)?"


def sql_of(cell: str, type_: FieldType, decimal: str, thousands: str, beside: str = "") -> str:
    """Returns SQL with the value of `cell`, a column of texts; null if the text is none of this type."""
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
        cell = f"translate({cell}, '{_WIDE}', '{' ' * len(_WIDE)}')"
    elif thousands == "'":
        cell = f"replace({cell}, '\u2019', {quoted(chr(39))})"
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
    # DuckDB rounds 1.5 and reads 0x1A and 1_000, so what it read has to look like its text.
    cast, bare = f"TRY_CAST({cell} AS BIGINT)", f"trim({cell})"
    return (
        f"CASE WHEN CAST({cast} AS VARCHAR) = {cell} THEN {cast}"
        f" WHEN regexp_full_match({bare}, {quoted(_spaced(_INTEGER))}) THEN TRY_CAST({bare} AS BIGINT) END"
    )


def _spaced(pattern: str) -> str:
    return rf"[ \t\n\v\f\r]*{pattern}[ \t\n\v\f\r]*"


def _number_sql(cell: str) -> str:
    # DuckDB reads nan, inf and 1_000 as well.
    # Only a cell that it cannot read is looked at again without the spaces that it does not pass over.
    cast = f"coalesce(TRY_CAST({cell} AS DOUBLE), TRY_CAST(trim({cell}) AS DOUBLE))"
    return f"CASE WHEN isfinite({cast}) AND NOT contains({cell}, '_') THEN {cast} END"


def quoted(text: str) -> str:
    """Returns the text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def _listed(texts: Sequence[str]) -> str:
    return "(" + ", ".join(quoted(text) for text in texts) + ")"
