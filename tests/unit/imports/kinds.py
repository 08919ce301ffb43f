"""Looks at a file and imports it, and compares the preview with what was imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from webapp.imports.answer import answered
from webapp.imports.convert import convert
from webapp.imports.detect import Look, look, preview
from webapp.imports.reading import Reading, Report

TIMES = [f"2024-05-01 00:{minute:02d}:00" for minute in range(30)]


@dataclass(frozen=True)
class Imported:
    look: Look
    reading: Reading
    report: Report
    rows: list[dict[str, Any]]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.reading.columns]

    @property
    def notes(self) -> str:
        return " ".join(self.look.detection.notes)

    def column(self, name: str) -> list[Any]:
        return [_text(row[name]) for row in self.rows]

    @property
    def times(self) -> list[str]:
        return self.column("_time")


def imported(path: Path, data: str | bytes, answers: Mapping[str, int] | None = None) -> Imported:
    """Returns what the import makes of the data. There must be as many questions as answers.

    Fails if the preview shows something else.
    """
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    found = look(path, path.name)
    questions = found.detection.questions
    assert [question.id for question in questions] == list(answers or {}), questions
    reading = answered(found.detection.reading, questions, answers or {})
    out = path.with_name("table.parquet")
    report = convert(path, reading, out, lambda *_: None, lambda: False)
    rows = pq.read_table(out).to_pylist()
    whole = Imported(found, reading, report, rows)
    turned = reading.time is not None and (reading.time.newest_first or reading.time.marks == "end")
    for row, line in zip(rows, preview(found.head, reading).rows, strict=False):
        if turned:
            break
        assert (line.reject is None) == (row["_reject"] is None), line
        if line.reject is None:
            assert list(line.values) == [_text(row[name]) for name in whole.names]
            assert line.time == _text(row.get("_time"))
    return whole


def lines(header: str, row: str, count: int = 30, end: str = "\n") -> str:
    """Returns a table whose rows are made of `row`: {time}, {n} and {d}, a last digit."""
    rows = (row.format(time=TIMES[n % 30], n=n, d=n % 10, m=n % 60) for n in range(count))
    return "".join(each + end for each in ([header] if header else []) + list(rows))


def _text(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
