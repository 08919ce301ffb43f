"""Reads a matrix of values between sites, in the format of SpanEdge's scheduler
(github.com/Telolets/StormOnEdge).

    EdgeA,EdgeB       the sites
    0,10              the values from EdgeA to EdgeA and to EdgeB
    12,0              the values from EdgeB to EdgeA and to EdgeB

Blank lines, blanks around names and a byte order mark are ignored. The original ends at the first blank line,
and reads a value that is no number as 0; here such a value is a fault.
"""

from __future__ import annotations

import math

SITES_MAX = 500


class FileFault(ValueError):
    """Says what is wrong in which line. Lines are counted from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line


def read_matrix(
    text: str, value: str, most: float = math.inf
) -> tuple[tuple[str, ...], tuple[tuple[float, ...], ...]]:
    """Returns the sites, and for each site the row of values from it to all of them.

    `value` names what a cell holds, for messages. Raises FileFault for text that is no such matrix, or that
    holds a value above `most`.
    """
    lines = [
        (number, line)
        for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1)
        if line.strip()
    ]
    if not lines:
        raise FileFault(1, "the first line has to name the sites, as in SiteA,SiteB")
    number, header = lines[0]
    sites = tuple(part.strip() for part in header.split(","))
    if len(sites) > SITES_MAX:
        raise FileFault(number, f"{len(sites)} sites, at most {SITES_MAX} are read")
    if not all(sites):
        raise FileFault(number, "a site without a name")
    if repeated := next((site for site in sites if sites.count(site) > 1), None):
        raise FileFault(number, f'"{repeated}" stands there twice')
    rows = [_row(number, line, sites, value, most) for number, line in lines[1:]]
    if len(rows) != len(sites):
        raise FileFault(lines[-1][0], f"{len(sites)} sites need {len(sites)} rows, and there are {len(rows)}")
    return sites, tuple(rows)


def _row(number: int, line: str, sites: tuple[str, ...], value: str, most: float) -> tuple[float, ...]:
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != len(sites):
        raise FileFault(number, f"{len(parts)} values for {len(sites)} sites")
    return tuple(_cell(number, part, site, value, most) for part, site in zip(parts, sites, strict=True))


def _cell(number: int, text: str, site: str, value: str, most: float) -> float:
    try:
        parsed = float(text)
    except ValueError:
        parsed = math.nan
    if not (math.isfinite(parsed) and parsed >= 0):
        raise FileFault(number, f'"{text[:20]}" is no {value} to {site}')
    if parsed > most:
        raise FileFault(number, f"to {site} a {value} of more than {most:,.0f}")
    return parsed
