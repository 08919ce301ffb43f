"""Reads a text file piece by piece: unpacked, in UTF-8, in whole rows, without lines that are no rows."""

from __future__ import annotations

import codecs
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from webapp.imports.cuts import at_places, cut_line
from webapp.imports.decimal_commas import with_points
from webapp.imports.dialect import KEPT, in_quotes, without_backslashes
from webapp.imports.faults import ImportFault
from webapp.imports.reading import Reading
from webapp.imports.repeats import ABOVE_MAX, repeats
from webapp.imports.unpack import BROKEN, is_broken, unpack

PIECE_BYTES = 12 << 20
ROW_BYTES_MAX = 4 << 20
UNPACKED_BYTES_MAX = 16 << 30
UNPACKED_RATIO_MAX = 200
UNPACKED_BYTES_FREE = 64 << 20  # up to this size no ratio of unpacked to packed bytes is checked
QUOTED_LINES_MAX = 200
"""A quoted cell has at most so many lines. A longer one has lost its closing quote."""


_NEWLINE, _RETURN = 10, 13
_LINE_ENDS = re.compile(rb"\r*\n|\r")


@dataclass
class Piece:
    """Whole rows as UTF-8. `lines` has the line numbers, from 1, if some lines were left out. Otherwise the
    lines follow `first_line` one by one."""

    data: bytes
    first_line: int
    quote: str
    delimiter: str
    lines: NDArray[np.int64] | None = None
    ended: bool = True  # the last line has its end

    @cached_property
    def quoted_lines(self) -> bool:
        """Whether a quoted cell of the piece has more than one line."""
        if not self.quote or self.quote.encode() not in self.data:
            return False
        return bool(inside_quotes(self.data, newlines(self.data), self.quote, self.delimiter).any())

    @cached_property
    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns where each row begins in `data`, and the row's line number."""
        ends = newlines(self.data)
        starts = np.concatenate([[0], ends + 1])
        if len(starts) and starts[-1] >= len(self.data):
            starts = starts[:-1]
        lines = np.arange(len(starts)) + self.first_line if self.lines is None else self.lines[: len(starts)]
        whole = np.ones(len(starts), dtype=bool)
        whole[1:] = ~inside_quotes(self.data, ends, self.quote, self.delimiter)[: len(starts) - 1]
        data = np.frombuffer(self.data, np.uint8)
        blank = data[starts] == _NEWLINE
        returned = (data[starts] == _RETURN) & (starts + 1 < len(data))
        blank[returned] = data[starts[returned] + 1] == _NEWLINE
        whole &= ~blank  # DuckDB makes no row of a blank line either
        return starts[whole], lines[whole]

    def text(self, row: int, characters: int) -> str:
        """Returns the row's text in the file, cut to so many characters."""
        starts, _ = self.rows
        if row >= len(starts):
            return ""
        end = int(starts[row + 1]) if row + 1 < len(starts) else len(self.data)
        end = min(end, int(starts[row]) + 4 * characters)
        return self.data[int(starts[row]) : end].decode(errors="replace").rstrip("\r\n")[:characters]

    def line(self, row: int) -> int:
        _, lines = self.rows
        return int(lines[min(row, len(lines) - 1)]) if len(lines) else self.first_line


def newlines(data: bytes) -> NDArray[np.int64]:
    return np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)


def inside_quotes(data: bytes, ends: NDArray[np.int64], quote: str, delimiter: str) -> NDArray[np.bool_]:
    """Returns, for each line end, whether it stands within quotes and so belongs to a cell."""
    inside = np.zeros(len(ends), dtype=bool)
    if not quote or quote.encode() not in data:
        return inside
    quotes = np.flatnonzero(np.frombuffer(data, np.uint8) == ord(quote))
    if not (np.diff(np.searchsorted(quotes, ends), prepend=0) & 1).any():
        return inside  # every line has an even number of quotes
    for found in _quoted_cells(quote, delimiter).finditer(data):
        first, last = np.searchsorted(ends, [found.start(), found.end()])
        if last - first <= QUOTED_LINES_MAX:
            inside[first:last] = True
    return inside


@lru_cache
def _quoted_cells(quote: str, delimiter: str) -> re.Pattern[bytes]:
    q, d = re.escape(quote).encode(), re.escape(delimiter).encode()
    begin, inner = rb"(?:\A|(?<=\n)|(?<=" + d + rb"))" + q, rb"(?:[^" + q + rb"]|" + q + q + rb")*"
    return re.compile(begin + inner + rb"(?:" + q + rb"|\Z)")


def _with_lost_quotes(data: bytes, quote: str, delimiter: str) -> bytes:
    """Returns the data with each lost quote as a part of its cell's text. Such a quote begins a cell and has
    no closing quote. It is doubled, and the cell gets quotes of its own. Otherwise all following cells would
    become one cell."""
    q, d = quote.encode(), delimiter.encode()
    cells, cell_end = _quoted_cells(quote, delimiter), re.compile(re.escape(d) + rb"|\r?\n|\Z")
    parts, done, at = [], 0, 0
    while found := cells.search(data, at):
        begin, at = found.start(), found.end()
        open_ended = not (found[0].endswith(q) and len(found[0]) > 1)
        if not open_ended and found[0].count(b"\n") <= QUOTED_LINES_MAX:
            continue
        ended = cell_end.search(data, begin)
        assert ended is not None
        text = data[begin : ended.start()].replace(q, q + q)
        parts += [data[done:begin], q, text, q]
        done = at = ended.start()
    return b"".join([*parts, data[done:]]) if parts else data


class Counted:
    """A file that counts how many of its bytes were read."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("rb")
        self.size = path.stat().st_size

    @property
    def done(self) -> int:
        return self.file.tell()


def unpacked(counted: Counted, reading: Reading) -> Iterator[bytes]:
    """Yields a file's unpacked bytes. Limits how many bytes may come out of it."""
    source: IO[bytes] | Any = counted.file
    total = 0
    try:
        if reading.compression == "zip":
            source = _member(counted.file, reading.member)
        elif reading.compression:
            source = unpack(counted.file, reading.compression)
        while block := source.read(PIECE_BYTES if not reading.compression else 1 << 20):
            total += len(block)
            if reading.compression:
                _check(total, counted.size)
            yield block
    except (*BROKEN, OSError) as error:
        if not is_broken(error):
            raise
        raise ImportFault(
            f"The file cannot be unpacked: {error}.",
            f"after {total:,} unpacked bytes",
            "Pack it again, or upload it unpacked.",
        ) from error
    except RuntimeError as error:  # zipfile raises it for a member with a password
        raise ImportFault(
            f"The archive cannot be read: {error}.", reading.member, "Upload it unpacked."
        ) from error


def _member(file: IO[bytes], name: str | None) -> IO[bytes]:
    archive = zipfile.ZipFile(file)
    names = [each.filename for each in archive.infolist() if not each.is_dir()]
    if name is None and len(names) == 1:
        name = names[0]
    if name not in names:
        raise ImportFault(
            f"The archive has no file {name!r}." if name else f"The archive has {len(names)} files.",
            ", ".join(names[:10]),
            "Choose one of its files.",
        )
    assert name is not None
    return archive.open(name)


def _check(total: int, packed: int) -> None:
    allowed = min(UNPACKED_BYTES_MAX, max(UNPACKED_BYTES_FREE, UNPACKED_RATIO_MAX * packed))
    if total > allowed:
        raise ImportFault(
            f"The file unpacks to more than {allowed:,} bytes.",
            f"it has {packed:,} packed",
            "Split it, or upload it unpacked.",
        )


def in_utf8(blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Yields the text in UTF-8, without a byte order mark. If the file should already be UTF-8, wrong bytes
    stay as they are: `pieces` mends them in whole lines."""
    if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii"):
        first = next(blocks, b"")
        while len(first) < 3 and (more := next(blocks, b"")):
            first += more
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from blocks
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    first_text = True
    try:
        for block in blocks:
            text = decoder.decode(block)
            if first_text and text:
                text, first_text = text.removeprefix("\ufeff"), False
            yield text.encode(errors="replace")
        yield decoder.decode(b"", final=True).encode(errors="replace")
    except UnicodeError as error:
        raise ImportFault(
            f"The file is no text in {encoding}: {error}.", None, "Choose another encoding."
        ) from error


def in_lines(blocks: Iterator[bytes], reading: Reading) -> Iterator[bytes]:
    """Yields a UTF-8 text with a line feed at the end of each line. Byte order marks within the text are
    removed, and quotes after a backslash are doubled."""
    held = b""
    for block in blocks:
        data = held + block if held else block
        whole = data.rstrip(b"\r\\") if data[-1:] in (b"\r", b"\\") else data
        held, data = data[len(whole) :], whole
        yield _with_line_feeds(data, reading)
    yield _with_line_feeds(held, reading)


def _with_line_feeds(data: bytes, reading: Reading) -> bytes:
    if b"\r" in data and not _ends_as_windows(data):
        data = _LINE_ENDS.sub(b"\n", data)
    if not data.isascii() and codecs.BOM_UTF8 in data:
        data = data.replace(codecs.BOM_UTF8, b"")
    if reading.escape and b"\\" in data:
        # Bytes that are no characters, such as half of one at the end, stay as they are.
        text = data.decode(errors="surrogateescape")
        data = without_backslashes(text, reading.divider).encode(errors="surrogateescape")
    return data


def _ends_as_windows(data: bytes) -> bool:
    """Returns whether each carriage return stands right before a line feed."""
    characters = np.frombuffer(data, np.uint8)
    returns = np.flatnonzero(characters == _RETURN)
    return bool(returns[-1] + 1 < len(data) and (characters[returns + 1] == _NEWLINE).all())


def pieces(blocks: Iterator[bytes], reading: Reading) -> Iterator[Piece]:
    """Yields the rows from the reading's first line on, in whole rows, without blank lines and comments.

    Lines that repeat the column names are left out.
    """
    delimiter = reading.divider
    line, left, parts, size = 1, b"", [], 0
    skip = reading.first_line - 1
    above = Above(reading)

    def made(data: bytes) -> Piece | None:
        nonlocal line, skip
        if skip:
            at, count = 0, 0
            while count < skip and (end := data.find(b"\n", at)) >= 0:
                at, count = end + 1, count + 1
            if count < skip:
                at, count = len(data), count + 1
            above.add(line, data[:at])
            skip, line, data = max(0, skip - count), line + count, data[at:]
        first, line = line, line + data.count(b"\n")
        if reading.last_line is not None and line > reading.last_line:
            data = b"".join(data.splitlines(keepends=True)[: max(0, reading.last_line + 1 - first)])
        piece = Piece(data, first, reading.quote, delimiter, ended=data.endswith(b"\n"))
        return _cleaned(piece, reading, above) if data else None

    for block in blocks:
        parts.append(block)
        size += len(block)
        if size < PIECE_BYTES:
            continue
        whole, left = _whole_rows(left, b"".join(parts), reading.quote if skip == 0 else "", delimiter)
        if not whole or len(left) > ROW_BYTES_MAX:
            raise _endless(line + whole.count(b"\n"))
        piece = made(whole)
        parts, size = [], len(left)
        if piece is not None:
            yield piece
        if reading.last_line is not None and line > reading.last_line:
            return
    piece = made(left + b"".join(parts))
    if piece is not None:
        yield piece


def _whole_rows(left: bytes, more: bytes, quote: str, delimiter: str) -> tuple[bytes, bytes]:
    """Returns the whole rows of both parts, and the beginning of the next row. Copies little."""
    if not quote or (quote.encode() not in left and quote.encode() not in more):
        end = more.rfind(b"\n") + 1
        return (b"".join((left, memoryview(more)[:end])), more[end:]) if end else (b"", left + more)
    data = left + more
    ends = newlines(data)
    outside = ends[~inside_quotes(data, ends, quote, delimiter)]
    end = int(outside[-1]) + 1 if len(outside) else 0
    return data[:end], data[end:]


def _endless(line: int) -> ImportFault:
    return ImportFault(
        f"A row is longer than {ROW_BYTES_MAX:,} bytes.",
        f"it begins at line {line:,}",
        "Look whether a closing quote is missing there, or choose another delimiter or quote.",
    )


class Above:
    """The lines above the rows. They may come again between the rows."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.names = b""
        self.around: set[bytes] = set()

    def add(self, line: int, data: bytes) -> None:
        """Takes the lines from number `line` on."""
        header = self.reading.header_line
        if header is None or header + ABOVE_MAX < line:
            return
        for number, text in enumerate(data.split(b"\n"), line):
            text = text.rstrip(b"\r")
            if number == header and text.count(self.reading.quote.encode() or b'"') % 2 == 0:
                self.names = text
            elif header - ABOVE_MAX <= number <= header + ABOVE_MAX and text.strip():
                self.around.add(text)


def _cleaned(piece: Piece, reading: Reading, above: Above) -> Piece | None:
    data = piece.data
    for nothing in (b"\0", b"\f"):
        if nothing in data:
            data = data.replace(nothing, b"")
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            data = data.decode(errors="replace").encode()
    piece.data = data
    if reading.escape and KEPT.encode() in piece.data:
        piece.data = in_quotes(piece.data.decode(), piece.delimiter).encode()
        piece.__dict__.pop("quoted_lines", None)
    if piece.quote and piece.quoted_lines:
        piece.data = _with_lost_quotes(data, piece.quote, piece.delimiter)
        del piece.quoted_lines  # must be computed again
    if above.names and above.names in piece.data:
        _without_repeats(piece, above)
    if reading.comment:
        _without_comments(piece, reading.comment.encode())
    if reading.commas:
        piece.data = with_points(piece.data, reading.commas)
    if reading.delimiter == "places" or (reading.delimiter == "whitespace" and reading.cuts):
        cut = at_places if reading.delimiter == "places" else cut_line
        lines = (cut(line, reading.cuts) for line in piece.data.decode().replace("\t", " ").split("\n"))
        piece.data = "\n".join(map("\t".join, lines)).encode()
    elif reading.delimiter == "whitespace":
        piece.data = _tabbed(piece.data, reading.quote.encode())
    return piece if piece.data else None


def _without_repeats(piece: Piece, above: Above) -> None:
    lines = _lines_of(piece)
    again = repeats([line.rstrip(b"\r") for line in lines], above.names, above.around)
    if again:
        _keep(piece, lines, [at for at in range(len(lines)) if at not in again])


def _lines_of(piece: Piece) -> list[bytes]:
    lines = piece.data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return lines


def _keep(piece: Piece, lines: list[bytes], places: list[int]) -> None:
    numbers = np.arange(len(lines)) + piece.first_line if piece.lines is None else piece.lines
    piece.data = b"\n".join([lines[at] for at in places] + [b""]) if places else b""
    piece.lines = numbers[np.array(places, np.int64)]
    piece.__dict__.pop("quoted_lines", None)  # must be computed again


def _without_comments(piece: Piece, comment: bytes) -> None:
    """Removes comments and blank lines, except those within quotes."""
    ends = newlines(piece.data)
    inside = inside_quotes(piece.data, ends, piece.quote, piece.delimiter)
    lines = _lines_of(piece)
    within = [False, *inside.tolist()][: len(lines)]
    keep = [
        number
        for number, (text, quoted) in enumerate(zip(lines, within, strict=True))
        if quoted or (text.strip() and not text.lstrip().startswith(comment))
    ]
    _keep(piece, lines, keep)


def _tabbed(data: bytes, quote: bytes) -> bytes:
    """Replaces each run of spaces and tabs between two cells by one tab."""
    data = re.sub(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)", b"", data)
    if not quote or quote not in data:
        return re.sub(rb"[ \t]+", b"\t", data)
    cells = re.compile(re.escape(quote) + rb"[^\n" + quote + rb"]*" + re.escape(quote) + rb"|[ \t]+")
    return cells.sub(lambda found: b"\t" if found[0][:1] in b" \t" else found[0], data)
