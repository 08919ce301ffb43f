"""The preview of a file equals its import."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from webapp.imports.convert import convert
from webapp.imports.detect import look, preview

FILES = Path(__file__).parent / "files"
TIMES = [f"2024-05-01 00:{minute:02d}:00" for minute in range(30)]
KINDS = {
    "a row with too many cells": "".join(f"{time},{at}{',x' * (at == 7)}\n" for at, time in enumerate(TIMES)),
    "a row with too few cells": "".join(f"{time},{at}{',5' * (at != 7)}\n" for at, time in enumerate(TIMES)),
    "a quote that is text": "".join(f'{time},5" pipe,{at}\n' for at, time in enumerate(TIMES)),
    "a quote without its other half": "".join(
        time + (',"ok,' if at == 3 else ",ok,") + f"{at}\n" for at, time in enumerate(TIMES)
    ),
    "quotes behind spaces": "".join(f'{time}, {at}.5, "x, y"\n' for at, time in enumerate(TIMES)),
    "a cell of two lines": "".join(f'{time},"a\nb, c",{at}\n' for at, time in enumerate(TIMES)),
    "names of zones": "".join(
        f"{time} {'CEST' if at < 9 else 'CET'},{at}\n" for at, time in enumerate(TIMES)
    ),
    "names of days": "".join(f"Wed May  1 00:{at:02d}:00 2024,{at}\n" for at in range(30)),
    "a bad time": "".join(f"{'soon' if at == 5 else time},{at}\n" for at, time in enumerate(TIMES)),
    "runs of spaces": "".join(f"{time}   {at}.5  {at}\n" for at, time in enumerate(TIMES)),
    "a sentinel": "".join(f"{time},{-999 if at % 7 == 3 else 1013.5}\n" for at, time in enumerate(TIMES)),
    "a thousand columns": "".join(f"{time}{',1.5' * 998},{at}\n" for at, time in enumerate(TIMES)),
    "many columns and a bad cell": "".join(
        f"{time}{',1.5' * 300},{'bad' if at == 9 else at}.5\n" for at, time in enumerate(TIMES)
    ),
}


@pytest.mark.parametrize("name", [*KINDS, *(path.name for path in sorted(FILES.iterdir()))])
def test_the_preview_is_the_import(name: str, tmp_path: Path) -> None:
    path, out = FILES / name, tmp_path / "table"
    if name in KINDS:
        path = tmp_path / "file"
        path.write_text(KINDS[name])
    found = look(path, "file.csv")
    reading = found.detection.reading
    if reading.time is not None:
        # What the import makes of jumps is its own matter.
        time = reading.time.model_copy(update={"jump": "keep", "newest_first": False})
        reading = reading.model_copy(update={"time": time})
    convert(path, reading, out, lambda *_: None, lambda: False)
    rows = pq.read_table(out).to_pylist()
    shown = preview(found.head, reading).rows
    assert shown
    for at, (row, imported) in enumerate(zip(shown, rows, strict=False)):
        assert (row.reject is not None) == (imported["_reject"] is not None), at
        if row.reject is None:
            assert row.time == _text(imported.get("_time")), at
            names = [column.name for column in reading.columns]
            assert dict(zip(names, row.values, strict=True)) == _texts(imported, names), at
    assert len(rows) >= min(len(shown), 5)


def _texts(row: Mapping[str, object], names: list[str]) -> dict[str, object]:
    return {name: _text(row[name]) for name in names}


def _text(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
