"""`cast(x as type)`: how a value of one type becomes one of another (docs/reference/operators.md)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.model.texts import texts
from pipeline_runtime.operators.expressions.values import (
    Values,
    as_type,
    each,
    finite,
    floored,
    in_64_bits,
    where,
    whole,
)
from pipeline_runtime.operators.recording import arrow_type
from pipeline_runtime.operators.times import ISO_PATTERN, read_iso

_TIME = arrow_type(FieldType.TIMESTAMP)
_INTEGER_TEXT = r"\A[\s\v]*[+-]?[0-9]+[\s\v]*\z"
_NUMBER_TEXT = r"\A[\s\v]*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?[\s\v]*\z"
_TRUE = ["true", "t", "yes", "y", "1"]
_FALSE = ["false", "f", "no", "n", "0"]
_DIGITS_MAX = 19  # of an integer of 64 bits
_YEAR_1_S, _YEAR_10000_S = -62_135_596_800, 253_402_300_800


def cast(values: Values, target: FieldType) -> Values:
    """Returns the values as that type, or null where a value cannot be converted. `types.type_of` says which
    pairs of types are allowed."""
    wanted = arrow_type(target)
    if values.type in (wanted, pa.null()):
        return as_type(values, wanted)
    return _TO[target](values)


# -- texts ---------------------------------------------------------------------------------------------


def text_of(value: Any) -> str | None:
    """Returns the text of one value, as `texts` does, or None for None."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return _number_text(value)
        case datetime():
            return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    return str(value)


def _number_text(value: float) -> str:
    written = Decimal(repr(value))
    if not written.is_finite():
        return str(value)
    if value == 0 or -6 <= written.adjusted() <= 9:
        plain = format(written, "f")
        return plain if "." in plain else f"{plain}.0"
    sign, digits, _ = written.normalize().as_tuple()
    more = "".join(map(str, digits[1:]))
    return f"{'-' * sign}{digits[0]}{'.' * bool(more)}{more}e{written.adjusted():+d}"


# -- numbers -------------------------------------------------------------------------------------------


def _integers(values: Values) -> Values:
    if values.type == pa.string():
        return _read_integers(_readable(values, _INTEGER_TEXT))
    if pa.types.is_timestamp(values.type):
        return floored(values.cast(pa.int64()), 1_000_000)
    return values.cast(pa.int64()) if pa.types.is_boolean(values.type) else whole(pc.trunc(values))


def _read_integers(found: Values) -> Values:
    try:
        return pc.replace_substring(found, "+", "").cast(pa.int64())
    except pa.ArrowInvalid:  # some row is beyond 64 bits
        return each(_integer, pa.int64(), found)


def _integer(text: str) -> int | None:
    digits = text.lstrip("+-").lstrip("0") or "0"
    if len(digits) > _DIGITS_MAX:
        return None
    return in_64_bits(-int(digits) if text.startswith("-") else int(digits))


def _numbers(values: Values) -> Values:
    if values.type == pa.string():
        return finite(_readable(values, _NUMBER_TEXT).cast(pa.float64()))
    if pa.types.is_timestamp(values.type):
        return pc.divide(as_type(values.cast(pa.int64()), pa.float64()), 1e6)
    return as_type(values, pa.float64())


def _readable(values: Values, pattern: str) -> Values:
    """Returns the texts without the spaces around them, or null where a text does not match the pattern."""
    return pc.ascii_trim_whitespace(where(pc.match_substring_regex(values, pattern), values))


# -- truths and times ----------------------------------------------------------------------------------


def _truths(values: Values) -> Values:
    if values.type != pa.string():
        return pc.not_equal(values, 0)
    said = pc.ascii_lower(pc.ascii_trim_whitespace(values))
    is_true = pc.is_in(said, pa.array(_TRUE))
    return where(pc.or_(is_true, pc.is_in(said, pa.array(_FALSE))), is_true)


def _times(values: Values) -> Values:
    if values.type == pa.string():
        return _read_times(values)
    if pa.types.is_integer(values.type):
        known = pc.and_(pc.greater_equal(values, _YEAR_1_S), pc.less(values, _YEAR_10000_S))
        return pc.multiply(where(known, values), 1_000_000).cast(_TIME)
    micros = pc.round(pc.multiply(values, 1e6))
    first, end = _YEAR_1_S * 1e6, _YEAR_10000_S * 1e6
    known = pc.and_(pc.greater_equal(micros, first), pc.less(micros, end))
    return where(known, micros).cast(pa.int64()).cast(_TIME)


def _read_times(values: Values) -> Values:
    if isinstance(values, pa.Scalar):
        return _read_times(pa.array([values.as_py()], pa.string()))[0]
    trimmed = pc.ascii_trim_whitespace(values)
    found = where(pc.match_substring_regex(trimmed, ISO_PATTERN), trimmed)
    # Digits beyond a microsecond are cut off.
    return read_iso(pc.replace_substring_regex(found, r"(\.[0-9]{6})[0-9]+", r"\1"))


_TO: dict[FieldType, Callable[[Values], Values]] = {
    FieldType.INTEGER: _integers,
    FieldType.NUMBER: _numbers,
    FieldType.STRING: texts,
    FieldType.BOOLEAN: _truths,
    FieldType.TIMESTAMP: _times,
}
