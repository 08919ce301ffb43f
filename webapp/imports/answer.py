"""Applies a user's answers and changes to a reading. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import JsonValue, ValidationError

from webapp.imports.reading import Question, Reading


def answered(reading: Reading, questions: Sequence[Question], answers: Mapping[str, int]) -> Reading:
    """Returns the reading with these answers. `answers` maps each question's id to the number of a choice,
    from 0.

    Raises ValueError, with a text for people, if a question has no answer, or has an answer that is not one
    of its choices.
    """
    for question in questions:
        choice = answers.get(question.id)
        if choice is None:
            raise ValueError(f"no answer to the question: {question.text}")
        if not 0 <= choice < len(question.choices):
            raise ValueError(f"there is no answer {choice} to the question: {question.text}")
        reading = changed(reading, question.choices[choice].changes)
    return reading


_TABLES = ("member", "sheet", "records")
_WITHIN = ("delimiter", "commas", "header_line", "units_line", "first_line", "last_line")
"""Places of a reading that choose one table of a text, if the table has columns of its own."""


def leading(questions: Sequence[Question], answers: Mapping[str, int]) -> dict[str, JsonValue]:
    """Returns the places and values that choose another table. The file has to be looked at again with them,
    because another table has questions of its own."""
    fixed: dict[str, JsonValue] = {}
    for question in questions:
        choice = answers.get(question.id, -1)
        if 0 <= choice < len(question.choices):
            changes = question.choices[choice].changes
            others = _WITHIN if "columns" in changes else ()
            places = [place for place in _TABLES if place in changes] or others
            fixed |= {place: changes[place] for place in places if place in changes}
    return fixed


def changed(reading: Reading, changes: Mapping[str, JsonValue]) -> Reading:
    """Returns the reading with other values at places such as `delimiter` or `columns.2.thousands`.

    Raises ValueError, with a text for people, if there is no such place, or if a value is of another kind.
    """
    whole: Any = reading.model_dump(mode="json")
    for place, value in changes.items():
        _set(whole, place, value)
    return _checked(whole)


def check_places(fixed: Mapping[str, JsonValue]) -> None:
    """Raises ValueError, with a text for people, if no reading may have one of these places, or if its value
    is of another kind. A given reading may lack the place: it may have fewer columns, or no time."""
    for place, value in fixed.items():
        match _steps(place):
            case [name]:
                _checked({name: value})
            case ["time", name]:
                _checked({"time": _SOME_TIME | {name: value}})
            case ["columns", number, name] if number.isdecimal():
                _checked({"columns": [_SOME_COLUMN | {name: value}]})
            case _:
                raise _no_place(place)


_SOME_TIME: dict[str, Any] = {"columns": [0], "format": "iso"}
_SOME_COLUMN: dict[str, Any] = {"source": 0, "name": "a", "type": "string"}


def _checked(whole: Any) -> Reading:
    try:
        return Reading.model_validate(whole)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _set(whole: Any, place: str, value: JsonValue) -> None:
    *outer, last = _steps(place)
    inner = whole
    for step in outer:
        inner = _at(inner, step, place)
    if isinstance(inner, dict) and last in inner:
        inner[last] = value
    elif isinstance(inner, list) and last.isdecimal() and int(last) < len(inner):
        inner[int(last)] = value
    else:
        raise _no_place(place)


def _steps(place: str) -> list[str]:
    if len(place) > 100:
        raise ValueError("the name of a place in a reading has at most 100 characters")
    return place.split(".")


def _at(inner: Any, step: str, place: str) -> Any:
    if isinstance(inner, dict) and step in inner:
        return inner[step]
    if isinstance(inner, list) and step.isdecimal() and int(step) < len(inner):
        return inner[int(step)]
    raise _no_place(place)


def _no_place(place: str) -> ValueError:
    return ValueError(f"a reading has no {place}")


def open_questions(questions: Iterable[Question], settled: Iterable[str]) -> tuple[Question, ...]:
    """Returns the questions without an answer."""
    known = set(settled)
    return tuple(question for question in questions if question.id not in known)
