"""Describes the payload of a message: whether it is a JSON object, its fields and their types. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from pipeline_runtime.model.connectors import PARTS_MAX, VALUE_MAX, Found, FoundPart
from pipeline_runtime.model.schema import FieldType

_DEPTH_MAX = 4
_PLAIN_KEY = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def found_by(topic: str, payload: bytes) -> Found:
    """Returns the topic with what one of its messages tells. Raises ValidationError if its name is too long
    or the message holds a broken text."""
    text = payload[:VALUE_MAX].decode(errors="replace")
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        value = text
    if isinstance(value, dict):
        parts = tuple(islice(parts_of(value), PARTS_MAX))
        return Found(path=topic, title=topic, type="JSON object", usable=True, value=text, parts=parts)
    if isinstance(value, list):
        return Found(path=topic, title=topic, type="JSON array", value=text)
    holds = type_of(value) or FieldType.STRING
    words = "text" if holds is FieldType.TIMESTAMP else str(holds).replace("string", "text")
    return Found(path=topic, title=topic, type=words, usable=True, value=text, holds=holds)


def parts_of(value: Mapping[str, Any], prefix: str = "", depth: int = 1) -> Iterator[FoundPart]:
    """Yields the fields of a JSON object that a column can hold, also those of objects in it."""
    for name, each in value.items():
        path = step_to(prefix, name)
        if isinstance(each, dict) and depth < _DEPTH_MAX:
            yield from parts_of(each, path, depth + 1)
            continue
        type_ = type_of(each)
        if type_ is not None and len(path) <= VALUE_MAX:
            yield FoundPart(name=path, type=type_)


def step_to(place: str, name: str) -> str:
    """Returns the path of a field of the object at a place, an empty text for the whole."""
    step = name if name and set(name) <= _PLAIN_KEY else f"[{json.dumps(name, ensure_ascii=False)}]"
    return f"{place}.{step}" if place and not step.startswith("[") else f"{place}{step}"


def type_of(value: Any) -> FieldType | None:
    """Returns the type of a column for a value of JSON, or None if a column cannot hold it.

    A number that is whole now may have decimals later, so it is a number.
    """
    match value:
        case bool():
            return FieldType.BOOLEAN
        case int() | float():
            return FieldType.NUMBER
        case str():
            return FieldType.TIMESTAMP if _is_time(value) else FieldType.STRING
    return None


def _is_time(text: str) -> bool:
    if "T" not in text:
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
