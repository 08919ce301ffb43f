"""Data that every part of Fogline can store: JSON data of valid Unicode, not too deep, with numbers of 64
bits.

Everything from outside is read through `read_json`, and every document goes through `unfit`. JSON text can
hold more than Fogline can keep: half a surrogate pair cannot be written to a file, a NUL character not to
PostgreSQL, and NaN not as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

DEPTH_MAX = 64
_EXACT_MAX = 2**53
PLACES_MAX = 20
_DIGITS_MAX = 20  # a sign and the 19 digits of 64 bits
_INTEGER_MIN, _INTEGER_MAX = -(1 << 63), (1 << 63) - 1

Location = tuple[str | int, ...]


class Unfit(NamedTuple):
    """One place that cannot be stored, and why. Both are valid text, whatever stands there."""

    loc: Location
    reason: str


class NotPlainData(ValueError):
    """A text is no JSON, or holds something that Fogline cannot keep. `places` says where, if that is
    known."""

    def __init__(self, message: str, places: tuple[Unfit, ...] = ()) -> None:
        super().__init__(message)
        self.places = places


class NotJson(NotPlainData):
    """The text is in another language, or broken."""


def read_json(text: str | bytes, *, is_kept: bool = True) -> Any:
    """Returns the data in JSON text (bytes are UTF-8). Raises NotPlainData.

    What is only looked at (not `is_kept`) may have characters that Fogline cannot keep: they come as escapes,
    such as \\x00.
    """
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        value = json.loads(decoded, parse_constant=_no_constant, parse_float=_number, parse_int=_integer)
        if not is_kept:
            value = _with_escapes(value)
    except UnicodeDecodeError as error:
        raise NotPlainData(f"It is not UTF-8: byte {error.start} cannot be read.") from None
    except RecursionError:
        raise NotPlainData(f"It is nested more than {DEPTH_MAX} deep.") from None
    except json.JSONDecodeError as error:
        raise NotJson(f"It is no JSON: {error}.") from None
    places = unfit(value)
    if places:
        raise NotPlainData("It has what Fogline cannot take.", tuple(places))
    return value


def object_in(text: str) -> dict[str, Any]:
    """Returns the JSON object in a text that is only looked at, or {} if it is none."""
    found = data_in(text)
    return found if isinstance(found, dict) else {}


def data_in(text: str) -> Any:
    """Returns the JSON data in a text that is only looked at, or the text if it is none."""
    try:
        return read_json(text, is_kept=False)
    except NotPlainData:
        return escaped(text)


def exact(value: Any) -> Any:
    """Returns JSON data for a browser: whole numbers of which it would lose digits are texts."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT_MAX:
        return str(value)
    if isinstance(value, dict):
        return {name: exact(each) for name, each in value.items()}
    return [exact(each) for each in value] if isinstance(value, list) else value


def unfit(value: Any) -> list[Unfit]:
    """Returns the first places that cannot be stored, at most PLACES_MAX, or [] if all can."""
    found: list[Unfit] = []
    waiting: list[tuple[Any, Location]] = [(value, ())]
    while waiting and len(found) < PLACES_MAX:
        item, loc = waiting.pop()
        reason = _refusal(item, len(loc))
        if reason is not None:
            found.append(Unfit(loc, reason))
        elif isinstance(item, Mapping):
            for key, below in reversed(list(item.items())):
                wrong = _refusal(key, 0) if isinstance(key, str) else "is no text, as a name has to be"
                if wrong is None:
                    waiting.append((below, (*loc, key)))
                else:
                    found.append(Unfit((*loc, shown(key)), f"this name {wrong}"))
        elif isinstance(item, list | tuple):
            waiting.extend((item[index], (*loc, index)) for index in reversed(range(len(item))))
    return found[:PLACES_MAX]


def shown(value: object, most: int = 60) -> str:
    """Returns a text that may be hostile as valid text of at most about `most` characters."""
    return escaped(str(value)[:most])


def escaped(text: str) -> str:
    """Returns the text with escapes for the characters that cannot be kept."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def _with_escapes(value: Any) -> Any:
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, dict):
        return {escaped(name): _with_escapes(each) for name, each in value.items()}
    return [_with_escapes(each) for each in value] if isinstance(value, list) else value


def _refusal(value: Any, depth: int) -> str | None:
    """Returns why this value cannot be stored, apart from what is inside it."""
    if depth > DEPTH_MAX:
        return f"is nested more than {DEPTH_MAX} deep"
    if isinstance(value, str):
        return _text_refusal(value)
    if value is None or isinstance(value, bool | Mapping | list | tuple):
        return None
    if isinstance(value, int):
        return None if _INTEGER_MIN <= value <= _INTEGER_MAX else "is an integer of more than 64 bits"
    if isinstance(value, float):
        return None if value - value == 0 else "is not a number: JSON knows no NaN and no infinity"
    return "is not JSON data"


def _text_refusal(text: str) -> str | None:
    if "\0" in text:
        return "has a NUL character, which a database cannot keep"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "is not valid Unicode: it has half of a surrogate pair"
    return None


def _no_constant(name: str) -> NoReturn:
    raise NotPlainData(f"{name} is no JSON number.")


def _number(text: str) -> float:
    value = float(text)
    if value - value != 0:
        raise NotPlainData(f"The number {text[:30]} is too large.")
    return value


def _integer(text: str) -> int:
    # Checked before it is read: reading a number of very many digits takes quadratic time, and Python refuses
    # it.
    if len(text) > _DIGITS_MAX or not _INTEGER_MIN <= (value := int(text)) <= _INTEGER_MAX:
        raise NotPlainData(f"The integer {text[:30]}{'…' if len(text) > 30 else ''} has more than 64 bits.")
    return value
