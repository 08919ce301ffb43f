"""Packed files are read within bounds, whatever has packed them."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.chosen import chosen
from tests.unit.imports.kinds import imported, lines
from webapp.imports import convert_text, unpack
from webapp.imports.convert import convert
from webapp.imports.detect import look
from webapp.imports.faults import ImportFault

TABLE = lines("time,power", "{time},{n}.5", 2_000).encode()


def zstd(data: bytes) -> bytes:
    return pa.compress(data, "zstd", asbytes=True)


PACKERS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zstd": zstd}
packed_by = pytest.mark.parametrize("kind", PACKERS)
Packer = Callable[[bytes], bytes]


@packed_by
def test_a_packed_file_is_read_as_if_it_were_not(tmp_path: Path, kind: str) -> None:
    found = imported(tmp_path / "file", PACKERS[kind](TABLE))
    assert found.reading.compression == kind
    assert found.column("power") == [n + 0.5 for n in range(2_000)]


@packed_by
def test_parts_that_were_packed_one_by_one_are_one_file(tmp_path: Path, kind: str) -> None:
    parts = [TABLE[:5_000], TABLE[5_000:5_001], TABLE[5_001:]]
    data = b"".join(PACKERS[kind](part) for part in parts)
    assert imported(tmp_path / "file", data).report.rows == 2_000


@pytest.mark.parametrize("kind", chosen(PACKERS, ["zstd"]))
def test_a_long_document_in_a_packed_file_is_looked_at_as_a_whole(tmp_path: Path, kind: str) -> None:
    items = ",".join(f'{{"t": "2024-05-01T00:00:00Z", "v": {n}}}' for n in range(8_000))
    data = f'{{"head": "{"-" * 1000}", "data": [{items}]}}'.encode()
    assert imported(tmp_path / "file", PACKERS[kind](data)).report.rows == 8_000


@packed_by
def test_a_packed_file_that_is_cut_off_is_told(tmp_path: Path, kind: str) -> None:
    path, whole = tmp_path / "file", PACKERS[kind](TABLE)
    path.write_bytes(whole)
    reading = look(path, "file").detection.reading
    path.write_bytes(whole[:-12])
    with pytest.raises(ImportFault, match="cannot be unpacked"):
        convert(path, reading, tmp_path / "table", lambda *told: None, lambda: False)
    path.write_bytes(whole[:20] + b"\xff" * 20 + whole[40:])
    with pytest.raises(ImportFault, match="cannot be unpacked"):
        look(path, "file")


@pytest.mark.parametrize("kind", chosen(PACKERS, ["gzip"]))
def test_few_bytes_that_unpack_to_very_many_are_refused(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convert_text, "UNPACKED_BYTES_FREE", 1 << 20)
    path = tmp_path / "file"
    path.write_bytes(PACKERS[kind](b"n\n" + b"1\n" * 600_000))
    reading = look(path, "file").detection.reading
    with pytest.raises(ImportFault, match="unpacks to more than"):
        convert(path, reading, tmp_path / "table", lambda *told: None, lambda: False)


def test_a_file_that_asks_for_much_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "XZ_MEMORY_BYTES", 1 << 20)
    path = tmp_path / "file"
    path.write_bytes(lzma.compress(TABLE, preset=9))
    with pytest.raises(ImportFault, match="cannot be unpacked: Memory usage limit exceeded"):
        look(path, "file")
