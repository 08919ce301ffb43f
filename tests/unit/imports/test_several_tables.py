"""Several tables in one file: which one is imported is asked, unless only one of them has rows."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from tests.unit.imports.kinds import imported, lines
from webapp.imports.detect import look, redetect


def _zip(files: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return data.getvalue()


@pytest.mark.parametrize(("answer", "name", "first"), [(0, "v", 0.5), (1, "w", 0)])
def test_which_table_of_an_archive_is_asked(tmp_path: Path, answer: int, name: str, first: float) -> None:
    data = _zip({"a.csv": lines("time;w", "{time};{n}", 5), "b.csv": lines("time;v", "{time};{n}.5")})
    assert imported(tmp_path / "file", data, {"table": answer}).column(name)[0] == first


@pytest.mark.parametrize(
    "other", [{"readme.txt": "Logger 4711\nSerial no: 20431187\n"}, {"empty.csv": ""}, {"names.csv": "a;b\n"}]
)
def test_an_archive_with_one_table_asks_nothing(tmp_path: Path, other: dict[str, str]) -> None:
    data = _zip({"a.csv": lines("time;v", "{time};{n}.5"), **other})
    assert imported(tmp_path / "file", data).column("v")[0] == 0.5


def test_what_macos_adds_to_an_archive_is_none_of_its_tables(tmp_path: Path) -> None:
    data = _zip({"a.csv": lines("time;v", "{time};{n}.5"), "__MACOSX/._a.csv": "x" * 4_000})
    found = imported(tmp_path / "file", data)
    assert "The archive has" not in found.notes


def test_a_table_that_was_chosen_is_not_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(_zip({"a.csv": lines("time;w", "{time};{n}", 5), "b.csv": lines("t;v", "{time};{n}.5")}))
    found = redetect(look(path, "file").head, {"member": "a.csv"})
    assert found.questions == ()
    assert [column.name for column in found.reading.columns] == ["time", "w"]


def _document(alarms: int, values: int) -> str:
    return json.dumps(
        {
            "alarms": [{"at": f"2024-05-01T00:{n % 60:02d}:00Z", "code": n} for n in range(alarms)],
            "values": [{"at": f"2024-05-01T00:{n % 60:02d}:00Z", "v": n + 0.5} for n in range(values)],
        }
    )


@pytest.mark.parametrize(("answer", "name", "first"), [(0, "code", 0), (1, "v", 0.5)])
def test_an_array_that_begins_far_behind_another_can_be_chosen(
    tmp_path: Path, answer: int, name: str, first: float
) -> None:
    found = imported(tmp_path / "file", _document(20_000, 30), {"table": answer})
    assert found.column(name)[0] == first
    assert found.look.detection.arrays == ("alarms", "values")


def test_columns_of_a_long_document_are_all_known(tmp_path: Path) -> None:
    count = 60_000
    data = {
        "time": [1_714_521_600 + n for n in range(count)],
        "v": [n / 2 for n in range(count)],
        "n": [7] * count,
    }
    found = imported(tmp_path / "file", json.dumps(data))
    assert (found.names, found.report.rows) == (["time", "v", "n"], count)
    assert found.rows[-1]["v"] == (count - 1) / 2
