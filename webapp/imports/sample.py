"""What is kept of a file's bytes: enough to say how it is read, and to show that again without the file."""

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
BEGIN_BYTES_MAX = 512 << 10  # for a file whose first lines are long
LINES_WANTED = 12
PIECES = 16
PIECE_BYTES = 4 << 10
END_BYTES = 8 << 10
UNPACKED_BYTES_MAX = 32 << 20  # of a packed file: what lies behind is not looked at
CHOICES_MAX = 20  # tables of an archive, or sheets of a workbook, that a person can choose from
OTHER_BYTES_MAX = 4 << 20  # that are unpacked of each table that is not the one that was chosen at first
_ZIP, _PARQUET = b"PK\x03\x04", b"PAR1"
_TABLES = (".csv", ".txt", ".tsv", ".dat", ".log", ".asc", ".json", ".jsonl", ".ndjson", ".prn", ".tab")
_UNPACKING = (*BROKEN, OSError, RuntimeError)


class Head(BaseModel):
    """A bounded part of a file: its beginning, some pieces spread over the rest, and its end.

    The parts are unpacked and in base64. `rows` and `columns` are the beginning of a file that has no lines
    of text. `members` are the files of a zip archive that can be chosen, `sheets` those of a workbook, and
    `others` the heads of those that are not chosen. `left_out` counts the tables that cannot be chosen.
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
    whole: bool = False  # `begin` is all there is
    rows: tuple[tuple[JsonValue, ...], ...] = Field(default=(), max_length=2_000)
    columns: tuple[tuple[str, str], ...] = ()  # (name, the FieldType's value), of a Parquet file
    merged: tuple[tuple[int, int, int], ...] = ()  # `Merged` of a sheet, as far as it concerns `rows`
    notes: tuple[str, ...] = ()  # about a sheet
    days_from: Literal[1900, 1904] = 1900  # in a workbook
    # Where the arrays of a JSON document are that was looked at as a whole: `begin` has their first items.
    arrays: tuple[str, ...] = ()

    def chosen(self, member: str | None, sheet: str | None) -> Head:
        """Returns the head of this file of the archive, or of this sheet.

        Without a name, that is the one which was chosen at first. Raises ImportFault if there is none of that
        name.
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
        """Pieces that begin and end anywhere, in the file's order."""
        return tuple(base64.b64decode(piece) for piece in (*self.pieces, *([self.end] if self.end else [])))


def read_text_head(path: Path) -> Head:
    """Returns the head of a file of text, packed or not. Raises ImportFault if it cannot be unpacked."""
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
    """Returns what the file's first bytes say it is."""
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
            pass  # `read_text_head` says so
    return "text"


def _plain(file: IO[bytes], size: int) -> Head:
    begin = _begin(file.read)
    at = len(begin)
    if at >= size:
        return Head(begin=_text(begin), whole=True)
    pieces = []
    step = max((size - at - END_BYTES) // PIECES, PIECE_BYTES) & ~3  # so that characters of UTF-16 stay whole
    for offset in range(at, max(at, size - END_BYTES - PIECE_BYTES), step):
        file.seek(offset)
        pieces.append(_text(file.read(PIECE_BYTES)))
    file.seek(max(at, (size - END_BYTES) & ~3))
    return Head(begin=_text(begin), pieces=tuple(pieces[: PIECES + 1]), end=_text(file.read(END_BYTES)))


def _with_document(head: Head, again: Callable[[], IO[bytes]]) -> Head:
    """Returns the head of a JSON document that is longer than a look at its beginning: it is read as a whole,
    since arrays may follow that have not begun there. `again` gives its bytes from the first one on."""
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
    """Returns the first bytes: more of them if the lines are long."""
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
    """Whether macOS has put a file into an archive beside each of the real ones."""
    return name.startswith("__MACOSX/") or Path(name).name.startswith("._")


def _other(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Head | None:
    """Returns the head of a file that may be chosen later, or None if it cannot be unpacked."""
    try:
        with archive.open(info) as unpacked:
            return _packed(unpacked, "zip", OTHER_BYTES_MAX)
    except _UNPACKING:
        return None


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
