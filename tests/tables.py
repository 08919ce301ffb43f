"""Tables for tests: what the import makes of a text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline_runtime.operators.recording import Facts, facts_of
from webapp.imports.convert import convert
from webapp.imports.reading import ColumnReading, Reading, TimeReading


def as_table(
    text: str | bytes,
    out: Path,
    columns: dict[str, str],
    *,
    time: str | None = None,
    time_format: str = "iso",
    **told: Any,
) -> Facts:
    """Imports a CSV text with a header into `out`. `columns`: names and types, in the file's order; `time` is
    the one of them that says when a row was recorded, and `told` what else is known of it (TimeReading)."""
    source = out.with_name(f"{out.name}.csv")
    source.write_bytes(text.encode() if isinstance(text, str) else text)
    names = list(columns)
    reading = Reading(
        header_line=1,
        first_line=2,
        columns=tuple(
            ColumnReading(
                source=n, name=name, type=columns[name], format=time_format if name == time else None
            )
            for n, name in enumerate(names)
        ),
        time=None if time is None else TimeReading(columns=(names.index(time),), format=time_format, **told),
    )
    convert(source, reading, out, lambda *told: None, lambda: False)
    return facts_of(out)
