"""Reads the header of a LabVIEW measurement (`.lvm`): the time of its beginning, and the units of its
columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from webapp.imports.dialect import Line
from webapp.imports.time_text import SINCE, time_reader

END_OF_HEADER = "***End_of_Header***"
_SECONDS = ("", "time")
_FRACTION_DIGITS = 9


@dataclass(frozen=True)
class Measurement:
    """The facts of a header. `seconds` is the format of the first column, which counts from the beginning, or
    "". `units` has the unit of each column, at the column's place."""

    seconds: str = ""
    units: tuple[str, ...] = ()


def measurement(rows: Sequence[Line]) -> Measurement | None:
    """Returns the facts of the headers, or None if there is no header. The second header describes the
    channels."""
    ends = [at for at, row in enumerate(rows) if row.cells and row.cells[0].strip() == END_OF_HEADER]
    if not ends:
        return None
    said = {row.cells[0].strip(): row.cells for row in rows[: ends[:2][-1]] if row.cells}
    units = ("", *(cell.strip() for cell in said.get("Y_Unit_Label", ())[1:]))
    if _value(said, "X_Dimension").lower() not in _SECONDS or _value(said, "X_Columns") == "No":
        return Measurement(units=units)
    clock, _, fraction = _value(said, "Time").replace(",", ".").partition(".")
    begin = f"{_value(said, 'Date').replace('/', '-')} {clock}"
    begin += f".{fraction[:_FRACTION_DIGITS]}" if fraction else ""
    known = time_reader("iso")(begin) is not None and ":" in clock
    return Measurement(SINCE.format(begin) if known else "", units)


def _value(said: dict[str, tuple[str, ...]], key: str) -> str:
    return next((cell.strip() for cell in said.get(key, ())[1:] if cell.strip()), "")
