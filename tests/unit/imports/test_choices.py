"""Which file of an archive and which sheet of a workbook is read, a person can choose."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.unit.imports.kinds import lines
from tests.unit.imports.test_convert_kinds import workbook
from webapp.imports import sample
from webapp.imports.convert import convert
from webapp.imports.detect import Look, look, preview, redetect
from webapp.imports.faults import ImportFault
from webapp.imports.reading import Reading
from webapp.imports.sample import CHOICES_MAX

OTHER_BYTES = 256 << 10
POWER = lines("time,power", "{time},{n}.5")
NAMES = lines("machine;since", "M{n};{time}", count=5)
JSON = "".join(f'{{"t": "2024-05-01T00:00:0{n}Z", "v": {n}}}\n' for n in range(5))


def zipped(files: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return data.getvalue()


def looked(path: Path, data: bytes) -> Look:
    path.write_bytes(data)
    return look(path, path.name)


def read(path: Path, reading: Reading) -> list[dict[str, object]]:
    out = path.with_name("table.parquet")
    convert(path, reading, out, lambda *_: None, lambda: False)
    rows: list[dict[str, object]] = pq.read_table(out).to_pylist()
    return rows


def test_another_file_of_an_archive_is_read_with_its_own_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    found = looked(path, zipped({"names.csv": NAMES, "a/power.csv": POWER, "v.jsonl": JSON}))
    names = ("names.csv", "a/power.csv", "v.jsonl")
    assert found.detection.members == names
    assert "The archive has 3 tables. This is a/power.csv, the largest." in found.detection.notes
    for member, columns, row in (
        ("names.csv", ["machine", "since"], {"machine": "M1"}),
        ("v.jsonl", ["t", "v"], {"v": 1}),
        ("a/power.csv", ["time", "power"], {"power": 1.5}),
    ):
        again = redetect(found.head, {"member": member})
        assert [column.name for column in again.reading.columns] == columns
        assert again.members == names
        shown = preview(found.head, again.reading)
        assert [column.name for column in shown.columns] == columns
        rows = read(path, again.reading)
        assert row.items() <= rows[1].items()
        assert list(shown.rows[1].values)[1:] == [
            value.isoformat() if hasattr(value, "isoformat") else value
            for value in (rows[1][name] for name in columns[1:])
        ]


def test_another_sheet_of_a_workbook_is_read_with_its_own_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    second = [["id", "name"], *([n, f"M{n}"] for n in range(5))]
    found = looked(path, workbook([["n", "x"], *([n, n / 2] for n in range(9))], Machines=second))
    assert found.detection.sheets == ("Data", "Machines")
    again = redetect(found.head, {"sheet": "Machines"})
    assert [column.name for column in again.reading.columns] == ["id", "name"]
    assert again.sheets == ("Data", "Machines")
    assert preview(found.head, again.reading).rows[1].values == (1, "M1")
    assert read(path, again.reading)[1]["name"] == "M1"


def test_what_cannot_be_chosen_is_said(tmp_path: Path) -> None:
    many = {f"{n}.csv": POWER for n in range(CHOICES_MAX + 5)} | {"whole.csv": POWER * 2}
    found = looked(tmp_path / "a.zip", zipped(many))
    assert len(found.detection.members) == CHOICES_MAX
    assert found.detection.reading.member == "whole.csv"
    assert "6 of them cannot be chosen here. Upload them by themselves." in found.detection.notes
    with pytest.raises(ImportFault, match=r"'24\.csv' cannot be chosen"):
        redetect(found.head, {"member": "24.csv"})


def test_a_damaged_file_of_an_archive_does_not_hide_the_others(tmp_path: Path) -> None:
    data = bytearray(zipped({"names.csv": NAMES, "power.csv": POWER}))
    begin = data.index(b"names.csv") + len(b"names.csv")
    data[begin : begin + 20] = b"\xff" * 20
    found = looked(tmp_path / "a.zip", bytes(data))
    assert found.detection.members == ("power.csv",)
    assert "1 of them cannot be chosen here. Upload them by themselves." in found.detection.notes


def test_files_that_unpack_to_much_are_not_unpacked_to_look_at_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "OTHER_BYTES_MAX", OTHER_BYTES)
    files = {f"{n}.csv": "a,b\n" + "1,2\n" * OTHER_BYTES for n in range(3)}
    data = zipped(files | {"power.csv": "time,power\n" + "2024-05-01 00:00:00,2\n" * OTHER_BYTES})
    unpacked: dict[str, int] = {}
    unpack = zipfile.ZipExtFile.read

    def counted(self: zipfile.ZipExtFile, n: int | None = -1) -> bytes:
        block = unpack(self, n)
        unpacked[self.name] = unpacked.get(self.name, 0) + len(block)
        return block

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
    found = looked(tmp_path / "a.zip", data)
    assert found.detection.reading.member == "power.csv"
    assert len(unpacked) == 4
    others = [size for name, size in unpacked.items() if name != "power.csv"]
    assert max(others) < 2 * OTHER_BYTES
    assert len(found.head.model_dump_json()) < 1 << 20
