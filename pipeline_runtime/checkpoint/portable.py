"""Writes the states of several groups as one text, which another Fogline can read.

Each line of the text is one JSON value:

    {"format": 1, ...}                         the header, which the caller makes
    {"group", "key", "state"}                  the state of a key (null: of the element as a whole)
    {"group", "file", "piece"}                 the next piece of a sink's file
    {"lines", "sha256"}                        the end: the number of lines before it, and their hash

States and pieces are base64. A state is MessagePack that its operator made, and only that operator reads it.
So the reader runs no code from the text, and takes no database file from outside.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from pipeline_runtime.checkpoint import keyed_state
from pipeline_runtime.checkpoint.chunks import CHUNK_BYTES
from pipeline_runtime.checkpoint.keyed_state import KeyedState
from pipeline_runtime.checkpoint.manifest import FileEntry
from pipeline_runtime.model.plain_data import NotPlainData, read_json

FORMAT = 1
LINE_BYTES_MAX = 16 << 20
SINK_FILES = "elements"
FILES_MAX = 10_000
_NAME_BYTES_MAX = 255  # the longest name that file systems take
_KEYS_AT_ONCE = 1000


class NotPortable(ValueError):
    """A checkpoint cannot be written as a text, or `write` did not make a text. The message says why."""


@dataclass(frozen=True)
class _Entry:
    """A line between the header and the end."""

    group: str
    data: bytes  # the state of `key`, or a piece of `file`
    key: str | None = None
    file: str | None = None  # relative to the directory of a replica


def write(header: Mapping[str, Any], states: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the lines of a text."""
    digest, lines = hashlib.sha256(), 0
    for line in chain([_line({"format": FORMAT, **header})], states):
        digest.update(line)
        lines += 1
        yield line
    yield _line({"lines": lines, "sha256": digest.hexdigest()})


def state_lines(group: str, directory: Path) -> Iterator[bytes]:
    """Yields the lines for one group. `directory`: its unpacked checkpoint. Raises NotPortable."""
    keyed, spark = directory / keyed_state.DIRECTORY, directory / "spark"
    if spark.is_dir() and not keyed.is_dir():
        raise NotPortable("Spark keeps its state, which cannot be carried")
    state = KeyedState(keyed)
    try:
        if (whole := state.get([None])[0]) is not None:
            yield _line({"group": group, "key": None, "state": _text(whole)})
        for name, value in state.items():
            yield _line({"group": group, "key": name, "state": _text(value)})
    finally:
        state.close()
    for path in sorted((directory / SINK_FILES).rglob("*")):
        if path.is_file():
            yield from _file_lines(group, path.relative_to(directory).as_posix(), path)


def _file_lines(group: str, name: str, path: Path) -> Iterator[bytes]:
    with open(path, "rb") as stream:
        piece = stream.read(CHUNK_BYTES)
        yield _line({"group": group, "file": name, "piece": _text(piece)})
        while piece := stream.read(CHUNK_BYTES):
            yield _line({"group": group, "file": name, "piece": _text(piece)})


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _line(value: Mapping[str, Any]) -> bytes:
    line = json.dumps(value, separators=(",", ":")).encode() + b"\n"
    if len(line) > LINE_BYTES_MAX:
        raise NotPortable(f"one of its states has more than {LINE_BYTES_MAX:,} bytes")
    return line


def check(stream: BinaryIO) -> dict[str, Any]:
    """Reads a whole text, from its beginning, and returns its header. Raises NotPortable if `unpack` would
    not take a line."""
    digest, lines = hashlib.sha256(), 0
    header: dict[str, Any] | None = None
    files: dict[str, set[str]] = {}  # by their groups
    while line := stream.readline(LINE_BYTES_MAX + 1):
        value = _value(line, lines + 1)
        if header is None:
            header = value
            if header.get("format") != FORMAT:
                raise NotPortable(f"it is no exported state of the format {FORMAT}")
        elif "sha256" in value:
            if value != {"lines": lines, "sha256": digest.hexdigest()} or stream.read(1):
                raise NotPortable("its hash does not fit: it was changed, or has arrived in part")
            if any(_have_folders_as_files(each) for each in files.values()):
                raise NotPortable("it has a file and a folder of one name")
            return header
        elif (entry := _entry(value, lines + 1)).file is not None:
            files.setdefault(entry.group, set()).add(entry.file)
            if len(files[entry.group]) > FILES_MAX:
                raise NotPortable(f"a group has more than {FILES_MAX:,} files")
        digest.update(line)
        lines += 1
    raise NotPortable("its end is missing: it has arrived in part")


def _value(line: bytes, number: int) -> dict[str, Any]:
    if len(line) > LINE_BYTES_MAX or not line.endswith(b"\n"):
        raise NotPortable(f"line {number} is too long or broken off")
    try:
        value = read_json(line)
    except NotPlainData as error:
        raise NotPortable(f"line {number}: {error}") from error
    if not isinstance(value, dict):
        raise NotPortable(f"line {number} is no object")
    return value


def unpack(stream: BinaryIO, group: str, end: Mapping[str, Any], directory: Path) -> None:
    """Makes the directory of a replica of `group` from a whole text. The replica stands at `end`. Raises
    NotPortable."""
    shutil.rmtree(directory, ignore_errors=True)
    KeyedState.create(directory / keyed_state.DIRECTORY)
    state = KeyedState(directory / keyed_state.DIRECTORY)
    try:
        keys: dict[str | None, bytes] = {}
        stream.seek(0)
        for number, line in enumerate(stream, 1):
            value = _value(line, number)
            if number == 1 or value.get("group") != group:  # the header is the caller's
                continue
            entry = _entry(value, number)
            if entry.file is not None:
                _append(directory / entry.file, entry.data)
                continue
            keys[entry.key] = entry.data
            if len(keys) == _KEYS_AT_ONCE:
                _keep(state, keys, end)
                keys = {}
        _keep(state, keys, end)
    finally:
        state.close()


def _keep(state: KeyedState, keys: Mapping[str | None, bytes], end: Mapping[str, Any]) -> None:
    state.begin()
    state.keep(list(keys), list(keys.values()), [None] * len(keys))
    state.seal()
    state.commit(end)


def _entry(value: Mapping[str, Any], number: int) -> _Entry:
    key, group = value.get("key"), value.get("group")
    if not isinstance(group, str) or not isinstance(key, str | None):
        raise NotPortable(f"line {number}: groups and keys are texts")
    is_file = "file" in value
    try:
        data = base64.b64decode(value["piece" if is_file else "state"], validate=True)
    except (KeyError, TypeError, ValueError) as error:
        raise NotPortable(f"line {number}: no base64") from error
    return _Entry(group, data, key, _confined(value["file"], number) if is_file else None)


def _confined(name: Any, number: int) -> str:
    try:
        path = FileEntry(path=name, size=0, chunks=()).path
    except ValueError as error:
        raise NotPortable(f"line {number}: it names a file that lies elsewhere") from error
    if any(len(part.encode()) > _NAME_BYTES_MAX for part in path.split("/")):
        raise NotPortable(f"line {number}: the name of a file is too long")
    if not path.startswith(f"{SINK_FILES}/"):
        raise NotPortable(f"line {number}: it has a file that is none of a sink's")
    return path


def _have_folders_as_files(paths: set[str]) -> bool:
    return any(str(folder) in paths for path in paths for folder in PurePosixPath(path).parents)


def _append(target: Path, piece: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "ab") as file:
        file.write(piece)
