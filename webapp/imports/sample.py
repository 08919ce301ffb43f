"""Keeps a bounded part of a file, which is enough to detect how to read the file, and to show a preview
without it."""

from __future__ import annotations

import base64
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from webapp.imports.faults import ImportFault
from webapp.imports.json_document import COLUMNS_BYTES_MAX, arrays_of, shortened
from webapp.imports.unpack import BEGINNING_BYTES, BROKEN, Compression, compression_of, unpack

BEGIN_BYTES = 96 << 10
BEGIN_BYTES_MAX = 512 << 10  # so many bytes are kept of a file whose first lines are long
LINES_WANTED = 12
PIECES = 16
PIECE_BYTES = 4 << 10
END_BYTES = 8 << 10
UNPACKED_BYTES_MAX = 32 << 20  # so many bytes of a packed file are unpacked for a look
CHOICES_MAX = 20  # a person can choose from at most so many tables of an archive, or sheets of a workbook
OTHER_BYTES_MAX = 4 << 20  # so many bytes of each table that is not the first choice
_ZIP, _PARQUET = b"PK\x03\x04", b"PAR1"
_TABLES = (".csv", ".txt", ".tsv", ".dat", ".log", ".asc", ".json", ".jsonl", ".ndjson", ".prn", ".tab")
_UNPACKING = (*BROKEN, OSError, RuntimeError)


class Head(BaseModel):
    """A bounded part of a file: its beginning, some pieces from the rest, and its end.

    The parts are unpacked, and encoded in base64. For a file without lines of text, `rows` and `columns` are
    the beginning. `members` are the files of a zip archive that a person can choose, `sheets` those of a
    workbook. `others` are the heads of the ones that are not chosen. `left_out` counts the tables that nobody
    can choose.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["text", "parquet", "xlsx"] = "text"
    compression: Compression = ""
    member: str | None = None
    members: tuple[str, ...] = ()
    sheet: str | None = None
    sheets: tuple[str, ...] = ()
    others: tuple[Head, ...] = ()
    left_out: int = 0
    begin: str = ""
    pieces: tuple[str, ...] = ()
    end: str = ""
    whole: bool = False  # whether `begin` is the whole file
    rows: tuple[tuple[JsonValue, ...], ...] = Field(default=(), max_length=2_000)
    columns: tuple[tuple[str, str], ...] = ()  # (name, the FieldType's value) of a Parquet file's columns
    # The merged cells of a sheet, as far as they concern `rows`.
    merged: tuple[tuple[int, int, int], ...] = ()
    notes: tuple[str, ...] = ()  # notes about a sheet
    days_from: Literal[1900, 1904] = 1900  # the year from which a workbook counts days
    # The paths of the arrays in a JSON document that was read as a whole. `begin` has the first items of
    # each.
    arrays: tuple[str, ...] = ()

    def chosen(self, member: str | None, sheet: str | None) -> Head:
        """Returns the head of this file of the archive, or of this sheet.

        Without a name, it is the first choice. Raises ImportFault if nothing has that name.
        """
        wanted = (member or self.member, sheet or self.sheet)
        for head in (self, *self.others):
            if (head.member, head.sheet) == wanted:
                return head
        raise ImportFault(
            f"{(member or sheet)!r} cannot be chosen.",
            ", ".join((*self.members, *self.sheets)),
            "Choose one of these, or upload it by itself.",
        )

    @property
    def begin_bytes(self) -> bytes:
        return base64.b64decode(self.begin)

    @property
    def piece_bytes(self) -> tuple[bytes, ...]:
        """Returns the pieces in the file's order. They may begin and end in the middle of a line."""
        return tuple(base64.b64decode(piece) for piece in (*self.pieces, *([self.end] if self.end else [])))


def read_text_head(path: Path) -> Head:
    """Returns the head of a text file, packed or not. Raises ImportFault if the file cannot be unpacked."""
    with path.open("rb") as file:
        compression = compression_of(file.read(BEGINNING_BYTES))
        file.seek(0)
        try:
            if compression == "zip":
                return _zipped(file)
            if compression:
                head = _packed(unpack(file, compression), compression)
            else:
                head = _plain(file, path.stat().st_size)
            return _with_document(head, lambda: unpack(file, compression))
        except _UNPACKING as error:
            raise ImportFault(
                f"The file cannot be unpacked: {error}.", None, "Pack it again, or upload it unpacked."
            ) from error


def kind_of(path: Path) -> Literal["text", "parquet", "xlsx"]:
    """Returns the file's kind, by its first bytes."""
    with path.open("rb") as file:
        magic = file.read(4)
    if magic == _PARQUET:
        return "parquet"
    if magic == _ZIP:
        try:
            with zipfile.ZipFile(path) as archive:
                if "xl/workbook.xml" in archive.namelist():
                    return "xlsx"
        except zipfile.BadZipFile:
            pass  # `read_text_head` reports this error
    return "text"


def _plain(file: IO[bytes], size: int) -> Head:
    begin = _begin(file.read)
    at = len(begin)
    if at >= size:
        return Head(begin=_text(begin), whole=True)
    pieces = []
    # A multiple of 4, so that characters of UTF-16 stay whole.
    step = max((size - at - END_BYTES) // PIECES, PIECE_BYTES) & ~3
    for offset in range(at, max(at, size - END_BYTES - PIECE_BYTES), step):
        file.seek(offset)
        pieces.append(_text(file.read(PIECE_BYTES)))
    file.seek(max(at, (size - END_BYTES) & ~3))
    return Head(begin=_text(begin), pieces=tuple(pieces[: PIECES + 1]), end=_text(file.read(END_BYTES)))


def _with_document(head: Head, again: Callable[[], IO[bytes]]) -> Head:
    """Returns the head of a JSON document that is longer than its bounded beginning. It reads the whole
    document, because arrays may begin later. `again` opens the document once more, at its first byte."""
    if head.whole or head.begin_bytes[:1] not in (b"{", b"["):
        return head
    data = again().read(COLUMNS_BYTES_MAX + 1)
    if len(data) > COLUMNS_BYTES_MAX:
        return head
    try:
        text = data.decode()
        if not (arrays := arrays_of(text)):
            return head
        begin = _text(shortened(text).encode(errors="replace"))
    except (ValueError, RecursionError):
        return head
    return head.model_copy(update={"begin": begin, "pieces": (), "end": "", "arrays": tuple(arrays)})


def _begin(read: Callable[[int], bytes]) -> bytes:
    """Returns the first bytes of a file, and more of them if its lines are long."""
    begin = read(BEGIN_BYTES)
    while len(begin) < BEGIN_BYTES_MAX and begin.count(b"\n") + begin.count(b"\r") < LINES_WANTED:
        more = read(BEGIN_BYTES)
        if not more:
            break
        begin += more
    return begin


def _packed(unpacked: IO[bytes], compression: Compression, bytes_max: int = UNPACKED_BYTES_MAX) -> Head:
    begin = _begin(unpacked.read)
    step = bytes_max // PIECES
    pieces, last, total = [], b"", len(begin)
    while total < bytes_max and (block := unpacked.read(step)):
        total += len(block)
        pieces.append(_text(block[-PIECE_BYTES:]))
        last = block
    end = _text(last[-END_BYTES:]) if last else ""
    return Head(compression=compression, begin=_text(begin), pieces=tuple(pieces), end=end, whole=not last)


def _zipped(file: IO[bytes]) -> Head:
    with zipfile.ZipFile(file) as archive:
        infos = [each for each in archive.infolist() if not each.is_dir() and not _is_of_macos(each.filename)]
        if not infos:
            raise ImportFault("The archive is empty.", None, "Upload the file itself.")
        tables = [each for each in infos if Path(each.filename).suffix.lower() in _TABLES] or infos
        largest = max(tables, key=lambda each: each.file_size)
        others = [each for each in tables if each is not largest][: CHOICES_MAX - 1]
        heads = {each.filename: _other(archive, each) for each in others}
        with archive.open(largest) as unpacked:
            head = _packed(unpacked, "zip")
        heads[largest.filename] = head = _with_document(head, lambda: archive.open(largest))
    named = {name: each.model_copy(update={"member": name}) for name, each in heads.items() if each}
    members = tuple(each.filename for each in tables if each.filename in named)
    return head.model_copy(
        update={
            "member": largest.filename,
            "members": members,
            "others": tuple(named[name] for name in members if name != largest.filename),
            "left_out": len(tables) - len(members),
        }
    )


def _is_of_macos(name: str) -> bool:
    """Returns whether macOS has added this file to an archive. It adds one beside each real file."""
    return name.startswith("__MACOSX/") or Path(name).name.startswith("._")


def _other(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Head | None:
    """Returns the head of a file that a person may choose later, or None if the file cannot be unpacked."""
    try:
        with archive.open(info) as unpacked:
            return _packed(unpacked, "zip", OTHER_BYTES_MAX)
    except _UNPACKING:
        return None


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
