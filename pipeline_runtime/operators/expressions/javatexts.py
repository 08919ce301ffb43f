"""Values as Spark writes them, whose numbers are Java's."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

_EXACT = Context(prec=800)  # more digits than any double has


def rounded(value: float, digits: int) -> float:
    """Half away from zero, of the number as it is written; zero has no sign then."""
    return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _EXACT)) + 0.0


def text_of(value: Any) -> str:
    """As `cast(value as string)`; "null" for None."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return _number(value)
        case datetime():
            text = value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
            return text.rstrip("0").rstrip(".")
    return str(value)


def _number(value: float) -> str:
    """java.lang.Double.toString, but with no more digits than it takes (as Java 19 does, and 17 mostly)."""
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int), "finite"
    text = "".join(map(str, digits))
    before = "-" if sign else ""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        whole = format(Decimal(repr(abs(value))), "f")
        return before + (whole if "." in whole else f"{whole}.0")
    return f"{before}{text[0]}.{text[1:] or '0'}E{exponent + len(text) - 1}"
