"""Reads the three files of SpanEdge's scheduler (github.com/Telolets/StormOnEdge).

    messages;EdgeA,EdgeB          at which sites each source has rows
    EdgeA,EdgeB                   latencies in ms: the sites, then a row of them for each site
    0,10
    12,0
    EdgeA;1,2,3                   which copies run at which site

Blank lines, blanks around names and a byte order mark are nothing. What does not fit is a FileFault, which
says the line; the original ends at the first blank line, and takes what it cannot read for 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from pipeline_runtime.placement.geo import Latencies

SITES_MAX = 500


class FileFault(ValueError):
    """What is wrong, and in which line (from 1)."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line


def read_sources(text: str) -> dict[str, tuple[str, ...]]:
    """Source -> its sites, as they stand there; a source that stands there twice has the sites of both."""
    found: dict[str, tuple[str, ...]] = {}
    for number, line in _lines(text):
        source, sites = _pair(number, line, "source;SiteA,SiteB")
        found[source] = (
            *found.get(source, ()),
            *(site for site in sites if site not in found.get(source, ())),
        )
    if not found:
        raise FileFault(1, "no source stands here: a line for each, as in source;SiteA,SiteB")
    return found


def read_latencies(text: str) -> Latencies:
    return Latencies(*read_matrix(text, "latency in ms"))


def read_matrix(
    text: str, value: str, most: float = math.inf
) -> tuple[tuple[str, ...], tuple[tuple[float, ...], ...]]:
    """(The sites, a row for each of what lies between it and all of them). `value`: of a cell, in words;
    `most`: what is more is a fault."""
    lines = list(_lines(text))
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


def read_copies(text: str) -> dict[str, tuple[int, ...]]:
    """Site -> the numbers of the copies that run there."""
    found: dict[str, tuple[int, ...]] = {}
    for number, line in _lines(text):
        site, copies = _pair(number, line, "SiteA;1,2,3")
        wrong = next((copy for copy in copies if not (copy.isascii() and copy.isdigit())), None)
        if wrong is not None:
            raise FileFault(number, f'"{wrong}" is no number of a copy')
        found[site] = (*found.get(site, ()), *map(int, copies))
    return found


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if line.strip():
            yield number, line


def _pair(number: int, line: str, form: str) -> tuple[str, list[str]]:
    name, found, rest = (part.strip() for part in line.partition(";"))
    parts = [part.strip() for part in rest.split(",")]
    if not (found and name and all(parts)):
        raise FileFault(number, f'"{line.strip()[:60]}" is not of the form {form}')
    return name, parts


def _row(number: int, line: str, sites: tuple[str, ...], value: str, most: float) -> tuple[float, ...]:
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != len(sites):
        raise FileFault(number, f"{len(parts)} values for {len(sites)} sites")
    return tuple(_cell(number, part, site, value, most) for part, site in zip(parts, sites, strict=True))


def _cell(number: int, text: str, site: str, value: str, most: float) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and found >= 0):
        raise FileFault(number, f'"{text[:20]}" is no {value} to {site}')
    if found > most:
        raise FileFault(number, f"to {site} a {value} of more than {most:,.0f}")
    return found
