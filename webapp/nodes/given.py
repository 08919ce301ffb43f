"""Latencies and rates that a person has entered for the lines between sites. They replace measured values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from django.db import transaction

from pipeline_runtime.placement.site_matrix import FileFault, read_matrix
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.nodes.actions import SITE, SITE_ALLOWED
from webapp.nodes.models import GivenCell, GivenLatency, GivenRate, Node
from webapp.nodes.schemas import GivenMatrix
from webapp.problems import Fault, Invalid

SITES_MAX = 100


@dataclass(frozen=True)
class Given:
    """A kind of matrix."""

    name: Literal["latencies", "rates"]
    cells: type[GivenCell]
    field: str
    one: str  # the name of a value
    most: float  # a higher value is a slip of the pen


LATENCIES = Given("latencies", GivenLatency, "ms", "latency in ms", 600_000)
RATES = Given("rates", GivenRate, "mbit_s", "rate in Mbit/s", 1_000_000)


@transaction.atomic
def give(actor: User, given: Given, matrix: str) -> None:
    """Replaces what was given by the content of a file: the sites, then a row of values for each, in their
    order."""
    require(actor, Role.OPERATOR, f"give {given.name} between sites")
    try:
        sites, rows = read_matrix(matrix, given.one, given.most)
    except FileFault as error:
        raise _no_matrix(given, error.line, str(error).removeprefix(f"line {error.line}: ")) from error
    if len(sites) > SITES_MAX:
        raise _no_matrix(given, 1, f"{len(sites)} sites; at most {SITES_MAX} are allowed")
    wrong = next((site for site in sites if not SITE.fullmatch(site)), None)
    if wrong is not None:
        raise _no_matrix(given, 1, f'"{wrong[:60]}" is not a name for a site: {SITE_ALLOWED}')
    given.cells.objects.all().delete()
    given.cells.objects.bulk_create(
        given.cells(origin=origin, target=target, **{given.field: value})
        for origin, row in zip(sites, rows, strict=True)
        for target, value in zip(sites, row, strict=True)
    )
    audit(actor, f"map.{given.name}", "map", sites=list(sites))
    announce()


@transaction.atomic
def forget(actor: User, given: Given) -> None:
    """Removes what was given, so that measured values count. A second call changes nothing."""
    require(actor, Role.OPERATOR, f"remove {given.name} between sites")
    if given.cells.objects.all().delete()[0]:
        audit(actor, f"map.{given.name}_removed", "map")
        announce()


def matrix_of(given: Given) -> GivenMatrix:
    """Returns the matrix as it was given. Empty if there is none."""
    rows: dict[str, list[float]] = {}
    for cell in given.cells.objects.all():
        rows.setdefault(cell.origin, []).append(getattr(cell, given.field))
    there = {node.place for node in Node.objects.only("site", "name")}
    return {"sites": list(rows), "rows": list(rows.values()), "unknown": sorted(rows.keys() - there)}


def between(given: Given) -> dict[tuple[str, str], float]:
    """Returns (from site, to another) -> what was given. The diagonal is stored but not used, and a rate of 0
    means that nothing was given."""
    return {
        (cell.origin, cell.target): value
        for cell in given.cells.objects.all()
        if cell.origin != cell.target and ((value := getattr(cell, given.field)) or given is LATENCIES)
    }


def _no_matrix(given: Given, line: int, message: str) -> Invalid:
    fault: Fault = {"element": None, "path": f"matrix.line {line}", "message": message, "code": "invalid"}
    return Invalid(
        f"The {given.name} cannot be read: line {line}: {message}.",
        safe="Nothing was changed.",
        next=f"Correct that line: the first names the sites, then a row for each, a {given.one} to each.",
        faults=[fault],
    )
