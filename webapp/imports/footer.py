"""What stands behind the rows: sums and averages of the columns are no rows."""

from __future__ import annotations

import re

_WORDS = r"""
summe gesamt\w* zwischensumme totale?s? sum mittel\w* durchschnitt schnitt average avg mean median
min\w* max\w* anzahl count std\w* stabw\w* standard\w* variance varianz moyenne media promedio
somme suma range
razem średnia celkem součet průměr totaal gemiddelde summa medel\w* yhteensä összesen spolu
"""
_SUMMARY = re.compile(rf"\W*(?:grand |sub)?(?:{'|'.join(_WORDS.split())})\b(?!\s*=)", re.IGNORECASE)


def is_remark(text: str, delimiter: str) -> bool:
    """Returns whether a line is a text: it has no digit, or its first word has none where spaces divide."""
    some = text.split()[:1] if delimiter in ("whitespace", "places") else [text]
    return not any(map(str.isdigit, "".join(some)))


def is_summary(text: str) -> bool:
    """Returns whether a line begins as one with the sum or the average of the columns does: `Summe;435,0`."""
    return _SUMMARY.match(text[:80]) is not None
