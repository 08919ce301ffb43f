"""The time of the rows as it was found, and a column right after it that completes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from webapp.imports.clock import is_zone
from webapp.imports.time_formats import in_parts
from webapp.imports.time_text import ABBREVIATIONS, ABOVE, COUNTED, RANGE, time_reader

_MILLIS_ALONE = re.compile(r"ms|msec|millis?|millisec(?:ond)?s?|millisekunden?|millitm|ms of second")
# Without a name for offsets, a column may have so many of them: the two of a zone that changes its clock.
_OFFSETS_MAX = 2
_TWO_DIGITS = re.compile(r"[+-]1\d")
_OFFSET_NAMES = re.compile("utc|gmt|zone|offset|off|tz|dst")
_OFFSET = re.compile(r"Z|UTC|GMT|[+-](?:0\d|1[0-4])(?::?(?:00|15|30|45))?")
_IANA = re.compile(r"[A-Z][A-Za-z_]+/[A-Za-z0-9_+/-]+|UTC")


@dataclass(frozen=True)
class TimeFound:
    """The time of the rows. `formats` has several entries if nothing shows the order of day and month."""

    columns: tuple[int, ...]
    formats: tuple[str, ...]
    score: float = 0.0
    others: dict[int, str] = field(default_factory=dict)  # further columns of times, with their formats
    zone: str | None = None  # the zone that a column beside the time names

    @property
    def format(self) -> str:
        return self.formats[0]


def with_what_follows(found: TimeFound, names: Sequence[str], filled: Sequence[Sequence[str]]) -> TimeFound:
    """Returns the time, completed by the column after it, if that column has AM or PM, an offset or a
    zone."""
    at = found.columns[-1] + 1
    cells = filled[at] if at < len(filled) else ()
    if (
        not cells
        or found.format in COUNTED
        or re.search(r"%[zZp]|\|", found.format)
        or found.format.startswith((ABOVE, RANGE))
        or len(cells) < len(filled[found.columns[0]])
    ):
        return found
    said = set(cells)
    if all(re.fullmatch(r"[AaPp]\.?[Mm]\.?", each) for each in said):
        formats = [each.replace("%H", "%I") + " %p" for each in _in_parts(found, filled) if "%H" in each]
    elif said <= ABBREVIATIONS.keys():
        formats = [f"{each} %Z" for each in _in_parts(found, filled)]
    elif _MILLIS_ALONE.fullmatch(names[at].strip().lower()) and _are_millis(said):
        formats = [f"{each} milliseconds" for each in _in_parts(found, filled) if each.endswith("%S")]
        formats = formats if not any("." in cell for cell in filled[found.columns[-1]][:20]) else []
    elif _are_offsets(names[at], said):
        formats = [f"{each} %z" for each in _in_parts(found, filled)]
    elif len(said) == 1 and _IANA.fullmatch(cells[0]) and is_zone(cells[0]):
        return replace(found, zone=cells[0])
    else:
        return found
    others = {place: each for place, each in found.others.items() if place != at}
    if not formats:
        return found
    return replace(found, columns=(*found.columns, at), formats=tuple(formats), others=others)


def _are_millis(said: set[str]) -> bool:
    return len(said) > 1 and all(cell.isdecimal() and len(cell) <= len("999") for cell in said)


def _are_offsets(name: str, said: set[str]) -> bool:
    """Returns whether the cells are offsets from UTC. +02:00 and -05 are offsets. -10 is one only if the
    column's name says so, because it may be a temperature."""
    if not all(map(_OFFSET.fullmatch, said)):
        return False
    named = _OFFSET_NAMES.search(name.lower()) is not None
    return named or (len(said) <= _OFFSETS_MAX and not any(map(_TWO_DIGITS.fullmatch, said)))


def _in_parts(found: TimeFound, filled: Sequence[Sequence[str]]) -> tuple[str, ...]:
    if found.format != "iso":
        return found.formats
    cells = filled[found.columns[0]]
    if any(time_reader("iso")(cell.strip()) is not None and _OFFSET.search(cell[10:]) for cell in cells[:20]):
        return ()
    return in_parts(cells[0])[:1]
