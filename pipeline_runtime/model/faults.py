"""Faults of a pipeline document: one for each mistake, naming its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pipeline_runtime.model.spec import Frozen

_HINT_CHARACTERS_MAX = 60
_HINT_NAMES_MAX = 200
FAULTS_MAX = 500
"""The most faults that are reported for one document. Nobody reads more, and it could have a hundred
thousand."""
_TEXT_MAX = 1000


class Instead(Frozen):
    """What would do in place of a parameter: its whole new value, and the column that it then reads."""

    column: str
    value: str


class Fault(Frozen):
    """One mistake. `path` is its place in the document, e.g. `spec.elements[2].params.rate`.

    `title` and `place` say the same for people: the element's name, and the field of its form. Only a
    validation with the operator library knows them; otherwise they are empty. `instead` holds values of the
    parameter at `path` that would be right.
    """

    element: str | None
    path: str
    message: str
    code: str
    title: str = ""
    place: str = ""
    instead: tuple[Instead, ...] = ()

    @property
    def words(self) -> str:
        """Returns the fault for people: 'Power: Size: has to be at least 1'."""
        named = [part for part in (self.title or self.element, self.place) if part]
        where = named if self.place else [self.path] if self.path else named
        return ": ".join([*where, self.message])


class DocumentInvalid(ValueError):
    """The document cannot be used. `faults` lists everything that is wrong with it."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        lines = "; ".join(fault.words for fault in self.faults)
        n = len(self.faults)
        super().__init__(f"The pipeline document has {n} {'mistake' if n == 1 else 'mistakes'}: {lines}")


def short(text: str) -> str:
    """Returns a text of a fault, cut if it is too long for people: a name in it may be of any length."""
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"


def join_path(*parts: str | int) -> str:
    """('spec', 'elements', 2, 'id') -> 'spec.elements[2].id'. Parts may be paths themselves."""
    path = ""
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part:
            path += f".{part}" if path else part
    return path


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns a hint to append to a message, '; did you mean "rate"?', or an empty text."""
    # Comparing takes long. A very long name, or a large document full of unknown names, gets no hint.
    if len(name) > _HINT_CHARACTERS_MAX:
        return ""
    near = get_close_matches(name, list(islice(known, _HINT_NAMES_MAX)), n=1, cutoff=0.6)
    return f'; did you mean "{near[0]}"?' if near else ""


def nearest(name: str, known: Sequence[str]) -> list[str]:
    """Returns all of `known`: those that are spelled like `name` first, the others in their order."""
    if len(name) > _HINT_CHARACTERS_MAX or len(known) > _HINT_NAMES_MAX:
        return list(known)
    near = get_close_matches(name, known, n=3, cutoff=0.6)
    return [*near, *(each for each in known if each not in near)]


def listed(names: Iterable[str], most: int = 12) -> str:
    """'a, b, c', cut after `most` names."""
    all_names = list(names)
    shown = ", ".join(all_names[:most])
    return f"{shown}, ... ({len(all_names)} in all)" if len(all_names) > most else shown


def pydantic_faults(
    error: ValidationError, *, prefix: Sequence[str | int] = (), known: Iterable[str] = ()
) -> list[tuple[str, str, str, tuple[Any, ...]]]:
    """Returns (path, message, code, loc) of the first FAULTS_MAX errors. `known` holds the top-level names,
    for hints."""
    known_names = tuple(known)
    found = []
    for item in error.errors(include_url=False)[:FAULTS_MAX]:
        loc = tuple(part for part in item["loc"] if not str(part).startswith("function-"))
        code, message = _describe(item, loc, known_names)
        found.append((join_path(*prefix, *loc), message, code, loc))
    return found


# What pydantic says about a value, in words. `{name}` is filled from the error's context.
_WORDS = {
    "greater_than": "has to be more than {gt}",
    "greater_than_equal": "has to be at least {ge}",
    "less_than": "has to be less than {lt}",
    "less_than_equal": "has to be at most {le}",
    "finite_number": "has to be a number",
    "float_type": "has to be a number",
    "float_parsing": "has to be a number",
    "int_type": "has to be a whole number",
    "int_parsing": "has to be a whole number",
    "int_from_float": "has to be a whole number",
    "bool_type": "has to be true or false",
    "bool_parsing": "has to be true or false",
    "string_type": "has to be text",
    "string_too_long": "is too long: at most {max_length} characters are allowed",
    "enum": "has to be {expected}",
    "literal_error": "has to be {expected}",
    "list_type": "has to be a list",
    "tuple_type": "has to be a list",
    "dict_type": "has to be an object",
    "model_type": "has to be an object",
    "model_attributes_type": "has to be an object",
}


_TWO_WAYS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
"""1,234 is 1.234 to some and 1234 to others."""


def _describe(item: ErrorDetails, loc: tuple[Any, ...], known: tuple[str, ...]) -> tuple[str, str]:
    kind, value, context = item["type"], item.get("input"), item.get("ctx", {})
    name = str(loc[-1]) if loc else ""
    if kind == "extra_forbidden":
        return "unknown_field", f'unknown field "{name}"{did_you_mean(name, known)}'
    if kind == "missing":
        return "missing", "this is required"
    if kind == "value_error":
        return "invalid", item["msg"].removeprefix("Value error, ")
    if kind == "too_short":
        least = context.get("min_length", 1)
        return "invalid", f"needs at least {'one entry' if least == 1 else f'{least} entries'}"
    if kind == "too_long":
        return (
            "invalid",
            f"has {context.get('actual_length')} entries; at most {context.get('max_length')} are allowed",
        )
    if kind == "string_too_short":
        least = context.get("min_length", 1)
        return "invalid", "is empty" if least == 1 else f"needs at least {least} characters"
    if kind in _WORDS:
        message = _WORDS[kind].format(**{name: _bound(bound) for name, bound in context.items()})
    elif kind == "string_pattern_mismatch":
        message = pattern_words(str(context.get("pattern", "")))
    else:
        message = item["msg"].removeprefix("Input ")
    if value is None:
        return "invalid", f"{message} (it is empty)"
    if kind in ("float_parsing", "int_parsing") and _TWO_WAYS.fullmatch(str(value).strip()):
        text = str(value).strip()
        ways = f"{text.replace(',', '.')} or {text.replace(',', '')}"
        return "invalid", f'{message}: "{text}" can be read in two ways, write {ways}'
    if isinstance(value, str | int | float | bool):
        message = f"{message} (it is {_shown(value)})"
    return "invalid", message


def _bound(value: Any) -> Any:
    """Returns 1 for 1.0, for messages."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_PATTERNS: dict[str, str] = {}


def words_for_pattern(pattern: str, words: str) -> str:
    """Returns the pattern, and notes the words that tell people what a matching value looks like."""
    _PATTERNS[pattern] = words
    return pattern


def pattern_words(pattern: str) -> str:
    return _PATTERNS.get(pattern, f"has to be of the form {pattern}")


def _shown(value: str | int | float | bool) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f'"{text[:60]}"' if isinstance(value, str) else text[:60]
