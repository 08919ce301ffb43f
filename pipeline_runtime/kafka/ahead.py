"""Records that were read ahead, as JSON for the process that needs them."""

from __future__ import annotations

from typing import Any, NamedTuple

_TEXT = ("utf-8", "surrogateescape")  # any bytes at all come back as they were


class ReadAhead(NamedTuple):
    """What a task uses of a consumer's record."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


def pack(record: Any) -> list[Any]:
    """A consumer's record as [offset, timestamp, key, value, names and values of its headers]."""
    headers = [[name, _text(value)] for name, value in record.headers]
    return [record.offset, record.timestamp, _text(record.key), _text(record.value), headers]


def unpack(packed: list[Any]) -> ReadAhead:
    offset, timestamp, key, value, headers = packed
    pairs = tuple((name, _bytes(text) or b"") for name, text in headers)
    return ReadAhead(offset, timestamp, _bytes(key), _bytes(value), pairs)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(*_TEXT)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode(*_TEXT)
