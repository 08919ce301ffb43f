"""What the name of a column says of times."""

from __future__ import annotations

import re

_NAMES = re.compile(
    r"time|zeit|date|datum|stamp|uhr|^ts$|^t$|^dt$|^utc|^tmst|moment|heure|fecha|hora|^mst$|^gmt|^cet$|^yyyy|^hour$|^hh:?mm|^hhmm|^hrmn$|^clock$|^sec|elapsed"
)
_NOT_NAMES = re.compile(
    r"(?<!zeits)temp|batch|runtime|lifetime|duration|dauer|timeout|update|candidate|between|interval"
)
SECONDS = re.compile(r"\bsec|\bs\b|second|sekunden")
HOUR = re.compile(r"^(hour|hr|hh|h|stunde|std|heure|hora|ora|uur)\b")


def is_hint(name: str) -> float:
    """Returns 1 if the name of a column says that it is a time, or else 0."""
    low = name.lower().strip()
    if _NOT_NAMES.search(low) or name.strip() == "T":  # the name T with a capital letter means temperature
        return 0.0
    return 1.0 if _NAMES.search(low) else 0.0
