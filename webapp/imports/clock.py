"""Finds, in the times of a file's beginning, the time zone, the order of the rows, changes of the clock, and
jumps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from webapp.imports.time_text import ABBREVIATIONS

HOUR_US, DAY_US = 3_600_000_000, 86_400_000_000
JUMP_TIMES = 1_000  # a step is a jump if it is so many times the usual step, and at least a day
STEPS_MIN = 5
_ZONE_BEHIND = re.compile(r"\[([A-Za-z][\w+/-]*)\]$| ([A-Z]\w+/[\w+/-]+)$")
_OFFSET = re.compile(
    r"(?:gmt|utc)\s*([+\u2212-])\s*(?!\d{3}(?!\d))(\d{1,2})(?::?([0-5]\d))?(?![.,]?\d)", re.IGNORECASE
)
_OFFSET_OF_SOME_KIND = re.compile(r"(?:gmt|utc)\W*[+\u2212-]\s*\d", re.IGNORECASE)
_ZONE_ABOVE = re.compile(
    r"(time[ _-]?zone|zeitzone|\btz\b|(?:utc|gmt)[ _-]?offset(?:[ _]?seconds)?)"
    r"[\"']?(?:\s*[:=;,\t|]\s*|\s+)[\"']?([^\s\"',;|}]+(?: ?[+\u2212-] ?\d[\d:]*)?)",
    re.IGNORECASE,
)
"""Matches the name of a zone in a line above the table: `Timezone: Europe/Berlin`,
`"utc_offset_seconds":7200`."""
_CELLS = re.compile(r"[,;\t|]")
_PARTS_OF_HOURS = {
    "+0330": "Asia/Tehran",
    "+0430": "Asia/Kabul",
    "+0530": "Asia/Kolkata",
    "+0545": "Asia/Kathmandu",
    "+0630": "Asia/Yangon",
    "+0845": "Australia/Eucla",
    "+0930": "Australia/Darwin",
    "-0930": "Pacific/Marquesas",
}
"""Offsets that are no whole hours, each with a zone that has this offset today and does not change its
clock."""

_BOTH = {
    ("cet", "cest"): "Europe/Berlin",
    ("mez", "mesz"): "Europe/Berlin",
    ("eet", "eest"): "Europe/Helsinki",
    ("wet", "west"): "Europe/Lisbon",
    ("gmt", "bst"): "Europe/London",
    ("est", "edt"): "America/New_York",
    ("cst", "cdt"): "America/Chicago",
    ("mst", "mdt"): "America/Denver",
    ("pst", "pdt"): "America/Los_Angeles",
}
"""Names of the two times of a zone. A file with both has a clock that was changed."""
_ZONES = (
    *("Europe/Berlin", "Europe/London", "Europe/Helsinki"),
    *("America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles", "America/St_Johns"),
    *("Australia/Sydney", "Australia/Adelaide", "Australia/Lord_Howe", "Pacific/Auckland"),
    *("America/Santiago", "Asia/Jerusalem", "Africa/Cairo"),
)
"""One zone for each of today's rules for changing clocks."""

ZONES_MAX = 5


@dataclass(frozen=True)
class Step:
    """A step between two rows that is not the usual one. `row` is the place of the later row."""

    row: int
    before_us: int
    after_us: int


def zone_named(header: str) -> str | None:
    """Returns the zone that a column's header names, such as `Date Time, GMT-07:00` or `MST`."""
    found = _OFFSET.search(header)
    if found:
        sign = "+" if found[1] == "+" else "-"
        hours, minutes = int(found[2]), found[3] or "00"
        if minutes != "00":
            return _PARTS_OF_HOURS.get(f"{sign}{hours:02d}{minutes}")
        if hours > (14 if sign == "+" else 12):
            return None
        # The IANA database uses the opposite sign in such names.
        return f"Etc/GMT{'-' if sign == '+' else '+'}{hours}" if hours else "UTC"
    if _OFFSET_OF_SOME_KIND.search(header):
        return None  # for example UTC-300, which may mean minutes
    words = set(re.findall(r"[a-z]+", header.lower()))
    for pair, zone in _BOTH.items():
        if words >= set(pair):
            return zone
    for word in sorted(words):
        if word.upper() in ABBREVIATIONS:
            hours = ABBREVIATIONS[word.upper()]
            return f"Etc/GMT{'-' if hours > 0 else '+'}{abs(hours)}" if hours else "UTC"
    return None


def zone_above(lines: Sequence[str]) -> str | None:
    """Returns the zone in the lines above a table, or None if they name none or several. An offset in seconds
    counts more than a zone's name: a program that writes both uses the offset for all times."""
    named = [*lines]
    for before, line in pairwise(lines):
        names, values = _CELLS.split(before), _CELLS.split(line)
        if len(names) == len(values) > 1:
            named += [f"{name.strip()}={value.strip()}" for name, value in zip(names, values, strict=True)]
    offsets: set[str | None] = set()
    zones: set[str | None] = set()
    for word, value in (match.groups() for line in named for match in _ZONE_ABOVE.finditer(line)):
        if word.lower().endswith("seconds"):
            offsets.add(_by_seconds(value))
        elif "/" in value and is_zone(value):
            zones.add(value)
        elif re.match(r"[A-Za-z(+\u2212-]", value):
            zones.add(zone_named(value if value[0].isalpha() or value[0] == "(" else f"UTC{value}"))
    some = (offsets or zones) - {None}
    return some.pop() if len(some) == 1 else None


def _by_seconds(text: str) -> str | None:
    try:
        minutes, rest = divmod(abs(int(text)), 60)
    except ValueError:
        return None
    sign = "-" if text.startswith("-") else "+"
    return None if rest else zone_named(f"UTC{sign}{minutes // 60:02d}:{minutes % 60:02d}")


def is_newest_first(times: Sequence[int]) -> bool:
    """Returns whether nearly all steps go back in time. In a short file, one step forward may be the repeated
    hour of a clock change."""
    steps = [step for step in _steps(times) if step]
    back = sum(step < 0 for step in steps)
    return back > 0.9 * len(steps) > 0 or (len(steps) >= STEPS_MIN and back == len(steps) - 1)


def usual_us(times: Sequence[int]) -> int:
    """Returns the usual step, in microseconds, or 0 if there is none."""
    steps = sorted(abs(step) for step in _steps(times) if step)
    return usual_of(steps[0], steps[len(steps) // 2], len(steps)) if steps else 0


def usual_of(least: int, middle: int, count: int) -> int:
    """Returns the usual one of `count` steps. This is the middle one. If there are few steps, it is the least
    one, because half of them may come from one wrong time."""
    return least if count < STEPS_MIN and middle > JUMP_TIMES * least else middle


def far_us(times: Sequence[int]) -> int:
    """Returns the longest step that does not count as a jump, in microseconds."""
    return max(DAY_US, JUMP_TIMES * usual_us(times))


def clock_changes(times: Sequence[int]) -> tuple[str, ...]:
    """Returns the zones whose clock change the local times show. At a change, an hour or half an hour comes
    twice or never."""
    usual = usual_us(times)
    if not 0 < usual <= HOUR_US:
        return ()
    for before, after in pairwise(times):
        shift = after - before - usual
        if abs(shift) not in (HOUR_US, HOUR_US // 2):
            continue
        # If an hour comes twice, it must hold both rows. If an hour never comes, a row must be missing there.
        inside = (before + usual,) if shift > 0 else (before, after)
        zones = tuple(zone for zone in _ZONES if all(_shift_us(zone, at) == shift for at in inside))
        if zones:
            return zones[:ZONES_MAX]
    return ()


def _shift_us(zone: str, local_us: int) -> int:
    """Returns by how much a zone's clock is changed at this local time, or 0 if the time comes exactly
    once."""
    local = _moment(local_us).replace(tzinfo=ZoneInfo(zone))
    first, second = (local.replace(fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    return (second - first) // timedelta(microseconds=1)


def zones_behind(texts: Sequence[str]) -> tuple[str, ...]:
    """Returns the zones whose names follow the times: `2024-05-01T12:00:00[Europe/Berlin]`."""
    found = (_ZONE_BEHIND.search(text) for text in texts)
    names = dict.fromkeys(each[1] or each[2] for each in found if each is not None)
    return tuple(name for name in names if is_zone(name))


def is_zone(name: str) -> bool:
    """Returns whether the IANA database has a zone of this name."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def glitch(times: Sequence[int]) -> Step | None:
    """Returns the row with a wrong time, if only one time is far away and the next one is right again."""
    if not usual_us(times):
        return None
    far = far_us(times)
    for at in range(1, len(times) - 1):
        before, here, after = times[at - 1 : at + 2]
        if abs(here - before) > far and abs(after - here) > far and abs(after - before) <= far:
            return Step(at, before, here)
    return None


def fall_back(times: Sequence[int]) -> Step | None:
    """Returns the largest step back among times that otherwise rise, if it is longer than a usual step."""
    steps = _steps(times)
    usual = usual_us(times)
    if not usual or sum(step > 0 for step in steps) < 0.5 * len(steps):
        return None
    at = min(range(len(steps)), key=lambda each: steps[each])
    return Step(at + 1, times[at], times[at + 1]) if steps[at] < -usual else None


def jump(times: Sequence[int]) -> Step | None:
    """Returns the largest step, if it is a jump."""
    steps = _steps(times)
    if not usual_us(times):
        return None
    at = max(range(len(steps)), key=lambda each: abs(steps[each]))
    if abs(steps[at]) <= far_us(times):
        return None
    return Step(at + 1, times[at], times[at + 1])


def in_words(micros: int, *, exact: bool = False) -> str:
    """Returns a time as people write it, to the second. With `exact`, it has the fraction of the second,
    too."""
    text = _moment(micros).strftime("%Y-%m-%d %H:%M:%S")
    return f"{text}.{micros % 1_000_000:06d}".rstrip("0") if exact and micros % 1_000_000 else text


def span(micros: int) -> str:
    """Returns a length of time in words: `54 years`, `3 days`, `20 minutes`."""
    seconds = abs(micros) / 1e6
    for size, word in ((31_557_600, "year"), (86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            count = round(seconds / size)
            return f"{count} {word}" + ("" if count == 1 else "s")
    return f"{seconds:g} seconds"


def _moment(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


def _steps(times: Sequence[int]) -> list[int]:
    return [after - before for before, after in pairwise(times)]
