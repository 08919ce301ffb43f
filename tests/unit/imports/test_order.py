"""The rows of a large file keep their order, and each row its own values."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from webapp.imports.convert import convert
from webapp.imports.reading import ColumnReading, Reading, TimeReading

ROWS, COLUMNS = 17_000, 60


@pytest.mark.parametrize("quote", ["", '"'])
def test_rows_keep_their_order_and_their_values(tmp_path: Path, quote: str) -> None:
    """Without quotes Arrow divides it; with quotes DuckDB does, in several threads."""
    file, out = tmp_path / "file.csv", tmp_path / "table"
    names = [f"c{n}" for n in range(COLUMNS)]
    with file.open("w") as text:
        print("t", "s", *names, sep=",", file=text)
        for row in range(ROWS):
            at = f"2024-01-01 {row // 3600:02}:{row // 60 % 60:02}:{row % 60:02}"
            print(at, f"{quote}row {row}{quote}", *(row + n for n in range(COLUMNS)), sep=",", file=text)
    types = {"t": "timestamp", "s": "string"} | dict.fromkeys(names, "integer")
    reading = Reading(
        header_line=1,
        first_line=2,
        columns=tuple(
            ColumnReading(source=n, name=name, type=type_) for n, (name, type_) in enumerate(types.items())
        ),
        time=TimeReading(columns=(0,), format="iso"),
    )
    convert(file, reading, out, lambda *told: None, lambda: False)
    table = pq.read_table(out)
    assert table["s"].to_pylist() == [f"row {row}" for row in range(ROWS)]
    assert [at.second for at in table["t"].to_pylist()] == [row % 60 for row in range(ROWS)]
    for n in range(COLUMNS):
        assert table[f"c{n}"].to_pylist() == list(range(n, ROWS + n)), n
