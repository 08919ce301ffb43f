"""Recognises lines after the last row that are no rows, such as sums and averages of the columns."""

from __future__ import annotations

import re

_WORDS = r"""
summe gesamt\w* zwischensumme totale?s? sum mittel\w* durchschnitt schnitt average avg mean median
min\w* max\w* anzahl count std\w* stabw\w* standard\w* variance varianz moyenne media promedio
somme suma range
razem średnia celkem součet průměr totaal gemiddelde summa medel\w* yhteensä összesen spolu
"""
_SUMMARY = re.compile(rf"\W*(?:grand |sub)?(?:{'|'.join(_WORDS.split())})\b(?!\s*=)", re.IGNORECASE)
_COUNT_OF_ROWS = re.compile(
    r"\(?\d[\d,]{0,12}\s(?:rows?|records?|lines?|zeilen?|s\u00e4tze)"
    r"(?:\s(?:selected|affected|in\sset|returned|exported|betroffen|ausgew\u00e4hlt)(?:\s\([\d.]+\ssec\))?)?\)?\.?",
    re.IGNORECASE,
)


def is_remark(text: str, delimiter: str) -> bool:
    """Returns whether a line is text. That is so if it has no digit. If spaces divide the cells, it is enough
    that its first word has no digit."""
    some = text.split()[:1] if delimiter in ("whitespace", "places") else [text]
    return not any(map(str.isdigit, "".join(some)))


def is_summary(text: str) -> bool:
    """Returns whether a line begins like one with the sum or the average of the columns (`Summe;435,0`), or
    counts the rows (`(4 rows affected)`)."""
    return _SUMMARY.match(text[:80]) is not None or _COUNT_OF_ROWS.fullmatch(text.strip()) is not None
