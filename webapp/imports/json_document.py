"""Reads a JSON document whose records are in one array, item by item: `[{...}, ...]` or `{"data": [{...},
...]}`.

A path such as `result.data` says where the array is. The path "" means the document itself. A path that ends
with `*` means an object with one array for each column: `{"time": [...], "v": [...]}`.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from webapp.imports.faults import ImportFault

ITEM_CHARACTERS_MAX = 4 << 20
COLUMNS_BYTES_MAX = 16 << 20
"""The largest document with one array for each column, because such a document is read as a whole."""

SHORT_CHARACTERS = 512 << 10
_ITEMS_KEPT = 1_024
_DEPTH_MAX = 4
_LEFT_OVER = 2_000  # so many characters of text that is no JSON become one dead letter
_READ_AT_ONCE = 1 << 20
_SPACE = re.compile(r"[ \t\r\n]*")
_BETWEEN = re.compile(r"[ \t\r\n,]*")
_BEHIND = re.compile(r"[ \t\r\n\x1e]*")
_KEYS_OF_NAMES = ("columns", "fields", "header", "headers", "names")
_DECODER = json.JSONDecoder()


def arrays_of(text: str) -> list[str]:
    """Returns the paths of the arrays of records, by the beginning of a document, the longest array first.

    Returns [] if each line is a record, or if the text is no such document.
    """
    begin = text.lstrip()
    if not begin.startswith(("[", "{")) or _are_lines(begin):
        return []
    found: list[tuple[int, str]] = []
    try:
        _look(text, _SPACE.match(text).end(), (), found)  # type: ignore[union-attr]  # it always matches
    except RecursionError:
        return []
    return [path for _, path in sorted(found, key=lambda each: -each[0])]


def shortened(text: str) -> str:
    """Returns the document with only the first items of each array, together at most SHORT_CHARACTERS long.

    Raises ValueError or RecursionError if the text is no JSON.
    """
    document = first_of_keys(text)
    items, short = _ITEMS_KEPT, json.dumps(_cut(document, _ITEMS_KEPT), ensure_ascii=False)
    while len(short) > SHORT_CHARACTERS and items > 1:
        items //= 4
        short = json.dumps(_cut(document, items), ensure_ascii=False)
    return short


def _cut(value: Any, items: int) -> Any:
    if isinstance(value, dict):
        return {key: _cut(each, items) for key, each in value.items()}
    return [_cut(each, items) for each in value[:items]] if isinstance(value, list) else value


def depth_of(text: str) -> int:
    """Returns how deeply lists and objects are nested. Brackets within texts count as well."""
    depth = deepest = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _are_lines(text: str) -> bool:
    lines = [line for line in text.split("\n", 3)[:2] if line.strip()]
    if len(lines) < 2 or not lines[1].lstrip().startswith(lines[0][:1]):
        return False
    try:
        json.loads(lines[0])
    except (ValueError, RecursionError):
        return False
    return True


def _look(text: str, at: int, path: tuple[str, ...], found: list[tuple[int, str]]) -> int | None:
    """Adds (characters, path) for each array of records in the value at this place.

    Returns where the value ends, or None if the text ends earlier.
    """
    end = _end_of(text, at)
    extent = (len(text) if end is None else end) - at
    if text[at : at + 1] == "[":
        if re.compile(r"\[\s*[\[{]").match(text, at):
            found.append((extent, ".".join(path)))
    elif text[at : at + 1] == "{" and len(path) < _DEPTH_MAX:
        columns, at = 0, at + 1
        while key := _key(text, at):
            name, at = key
            if re.compile(r"\[\s*[^\[{\]\s]").match(text, at) and name not in _KEYS_OF_NAMES:
                columns += 1
            after = _look(text, at, (*path, name), found)
            if after is None:
                break
            at = _BETWEEN.match(text, after).end()  # type: ignore[union-attr]
        if columns > 1:
            found.append((extent, ".".join((*path, "*"))))
    return end


def _key(text: str, at: int) -> tuple[str, int] | None:
    """Returns (the key of an object at this place, where its value begins), or None."""
    at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]
    if text[at : at + 1] != '"':
        return None
    try:
        name, at = _DECODER.raw_decode(text, at)
    except ValueError:
        return None
    colon = re.compile(r"\s*:\s*").match(text, at)
    return None if colon is None else (name, colon.end())


def _end_of(text: str, at: int) -> int | None:
    try:
        return _DECODER.raw_decode(text, at)[1]
    except ValueError:
        return None


def json_lines(blocks: Iterable[bytes], records: str) -> Iterator[bytes]:
    """Yields the records of a document in UTF-8, one JSON object in each line.

    If the document is damaged or cut off, the last line is the text that is no JSON. Raises ImportFault if
    there is no array.
    """
    path = records.split(".") if records else []
    if path[-1:] == ["*"]:
        yield from _of_columns(blocks, path[:-1])
        return
    document = _Document(blocks)
    names = document.enter(path, records)
    lines: list[str] = []
    size = 0
    for line in document.items(names):
        lines.append(line + "\n")
        size += len(line)
        if size >= _READ_AT_ONCE:
            yield "".join(lines).encode(errors="replace")
            lines, size = [], 0
    yield "".join(lines).encode(errors="replace")


class _Document:
    """The text of a document. Only a part of it is in memory at a time."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = _parts(blocks)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.text, self.at, self.ended = "", 0, False

    def more(self) -> bool:
        """Reads the next part. Returns False at the end."""
        block = next(self._blocks, None)
        self.ended = block is None
        self.text = self.text[self.at :] + self._decoder.decode(block or b"", final=self.ended)
        self.at = 0
        return not self.ended

    def passed(self, pattern: re.Pattern[str]) -> str:
        """Skips the text that matches, and returns the next character, or "" at the end."""
        while True:
            self.at = pattern.match(self.text, self.at).end()  # type: ignore[union-attr]
            if self.at < len(self.text) or not self.more():
                return self.text[self.at : self.at + 1]

    def value(self) -> tuple[Any, str] | None:
        """Returns (the value at the present place, its text), or None if it is no JSON or too long."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.at)
            except RecursionError:
                return None
            except ValueError:
                if len(self.text) - self.at > ITEM_CHARACTERS_MAX or not self.more():
                    return None
                continue
            if end == len(self.text) and not isinstance(value, dict | list) and self.more():
                continue  # a number may continue
            text, self.at = self.text[self.at : end], end
            return value, text

    def enter(self, path: list[str], records: str) -> list[str] | None:
        """Goes to the array's first item. Returns the column names if the document lists them apart from the
        rows."""
        names = None
        for key in path:
            if self.passed(_SPACE) != "{":
                raise _no_array(records)
            self.at += 1
            while True:
                found = self.value() if self.passed(_BETWEEN) == '"' else None
                if found is None or self.passed(_SPACE) != ":":
                    raise _no_array(records)
                self.at += 1
                self.passed(_SPACE)
                if found[0] == key:
                    break
                passed = self.value()
                if passed is None:
                    raise _no_array(records)
                if found[0] in _KEYS_OF_NAMES and _are_names(passed[0]):
                    names = passed[0]
        if self.passed(_SPACE) != "[":
            raise _no_array(records)
        self.at += 1
        return names

    def items(self, names: list[str] | None) -> Iterator[str]:
        first = True
        while (mark := self.passed(_BETWEEN)) and mark != "]":
            found = self.value()
            if found is None:
                yield " ".join(self.text[self.at : self.at + _LEFT_OVER].split("\n"))
                return
            value, text = found
            if first and names is None and _are_names(value):
                names, first = value, False
                continue
            first = False
            if (rows := series_rows(value)) is not None:
                yield from (json.dumps(row, ensure_ascii=False) for row in rows)
                continue
            if isinstance(value, list):
                value = _named(value, names or [])
                text = json.dumps(_without_nan(value), ensure_ascii=False)
            elif "NaN" in text or "Infinity" in text:
                text = json.dumps(_without_nan(first_of_keys(text)), ensure_ascii=False)
            yield text.replace("\n", " ").replace("\r", " ")
        if not mark:
            yield "the document ends before its array does"
            return
        self.at += 1
        if self.passed(_BEHIND) in ("{", "["):
            yield "another document begins behind the array, and is not read"


def series_rows(value: Any) -> list[dict[str, Any]] | None:
    """Returns the rows of a time series in the form of a Prometheus answer, or None for another value. Each
    row has a time in seconds, a number as text, and the labels of the series."""
    if not isinstance(value, dict) or not isinstance(value.get("metric"), dict):
        return None
    pairs = value["values"] if "values" in value else [value.get("value")]
    if not isinstance(pairs, list) or not all(map(_is_sample, pairs)):
        return None
    taken = ("time", "value")
    labels = {f"label {key}" if key in taken else key: each for key, each in value["metric"].items()}
    return [{"time": float(time), "value": _float_or_none(text), **labels} for time, text in pairs]


def _is_sample(pair: Any) -> bool:
    return (
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], int | float)
        and isinstance(pair[1], str)
    )


def _float_or_none(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if number - number == 0 else None


def _parts(blocks: Iterable[bytes]) -> Iterator[bytes]:
    for block in blocks:
        for at in range(0, len(block), _READ_AT_ONCE):
            yield block[at : at + _READ_AT_ONCE]


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value)


def _named(values: list[Any], names: list[str]) -> dict[str, Any]:
    return {names[at] if at < len(names) else f"c{at + 1}": each for at, each in enumerate(values)}


def first_of_keys(text: str) -> Any:
    """Returns the value of a JSON text. If an object has a key twice, the first value counts, because DuckDB
    does the same. Raises ValueError or RecursionError."""
    return json.loads(text, object_pairs_hook=_first_of_pairs)


def _first_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        found |= dict(reversed(pairs))
    return found


def twice_in(text: str) -> str | None:
    """Returns the first key that an object of a JSON text has twice, or None. Raises ValueError or
    RecursionError."""
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        found.extend(key for at, key in enumerate(keys) if key in keys[:at] and len(keys) < _ITEMS_KEPT)
        return dict(pairs)

    json.loads(text, object_pairs_hook=look)
    return next(iter(found), None)


def _without_nan(value: Any) -> Any:
    """Replaces NaN and infinity, which JSON does not have although Python writes them."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    return [_without_nan(each) for each in value] if isinstance(value, list) else value


def _of_columns(blocks: Iterable[bytes], path: list[str]) -> Iterator[bytes]:
    data = bytearray()
    for block in blocks:
        data += block
        if len(data) > COLUMNS_BYTES_MAX:
            raise ImportFault(
                f"The JSON document has an array for each column, and more than {COLUMNS_BYTES_MAX:,} bytes.",
                None,
                "Write it with an object for each row, or as CSV.",
            )
    try:
        document = first_of_keys(data.decode(errors="replace"))
        for key in path:
            document = document[key]
        columns = {name: each for name, each in document.items() if isinstance(each, list)}
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise ImportFault(f"The JSON document cannot be read: {error}.", None, "Write it again.") from error
    length = max(map(len, columns.values()), default=0)
    rows = ({name: each[at] for name, each in columns.items() if at < len(each)} for at in range(length))
    yield "".join(json.dumps(_without_nan(row), ensure_ascii=False) + "\n" for row in rows).encode(
        errors="replace"
    )


def _no_array(records: str) -> ImportFault:
    where = f"at {records}" if records else "in it"
    return ImportFault(f"The JSON document has no array {where}.", None, "Look at the file again.")
