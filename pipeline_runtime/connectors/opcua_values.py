"""Turns values of rows into the types of OPC UA. Pure: it does not know the client library."""

from __future__ import annotations

import struct
from typing import Any

_BITS = {
    "SByte": 8,
    "Int16": 16,
    "Int32": 32,
    "Int64": 64,
    "Byte": 8,
    "UInt16": 16,
    "UInt32": 32,
    "UInt64": 64,
}
_UNSIGNED = ("Byte", "UInt16", "UInt32", "UInt64")


def fitting(value: Any, type_: str) -> Any:
    """Returns a value that is not None in a type of OPC UA, such as Int16. Raises ValueError with the reason
    why it does not fit."""
    if type_ in _BITS:
        return _integer(value, type_)
    match type_:
        case "Boolean" if value in (0, 1) and not isinstance(value, str):
            return bool(value)
        case "Float" | "Double" if not isinstance(value, str):
            return _float(value, type_)
        case "String" | "LocalizedText" if isinstance(value, bool):
            return "true" if value else "false"
        case "String" | "LocalizedText":
            return str(value)
    raise ValueError(f"{_quoted(value)} is no {type_}")


def _float(value: Any, type_: str) -> float:
    try:
        found = float(value)
        if type_ == "Float":
            struct.pack("<f", found)
    except OverflowError as error:
        raise ValueError(f"{_quoted(value)} does not fit into {type_}") from error
    return found


def _integer(value: Any, type_: str) -> int:
    if isinstance(value, str) or value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"{_quoted(value)} is no {type_}")
    if int(value) != value:
        raise ValueError(f"{_quoted(value)} is no whole number, and its node is a {type_}")
    bits = _BITS[type_]
    first = 0 if type_ in _UNSIGNED else -(2 ** (bits - 1))
    if not first <= value < first + 2**bits:
        raise ValueError(f"{_quoted(value)} does not fit into {type_}")
    return int(value)


def _quoted(value: Any) -> str:
    return repr(value)[:100]
