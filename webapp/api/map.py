from __future__ import annotations

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import Field

from webapp.api.accounts import Body
from webapp.api.authentication import actor
from webapp.monitoring.site_map import site_map
from webapp.nodes import given
from webapp.nodes.given import LATENCIES, RATES
from webapp.nodes.schemas import GivenMatrix, Map

router = Router(tags=["map"])


class Matrix(Body):
    matrix: str = Field(
        max_length=200_000,
        description="A line with the names of the sites (SiteA,SiteB), then for each site, in that order, a "
        "line with what is between it and each of them (0,10): latencies in ms, rates in Mbit/s",
    )


@router.get("/map", response=Map)
def the_map(request: HttpRequest) -> Map:
    """Returns the sites with their nodes, the lines between them, and the elements that read from outside."""
    return site_map()


@router.get("/map/latencies", response=GivenMatrix)
def latencies(request: HttpRequest) -> GivenMatrix:
    """Returns the latencies that were given."""
    return given.matrix_of(LATENCIES)


@router.put("/map/latencies", response=GivenMatrix)
def give_latencies(request: HttpRequest, body: Matrix) -> GivenMatrix:
    """Replaces the given latencies. For each pair, a given value counts instead of the measured one."""
    given.give(actor(request), LATENCIES, body.matrix)
    return given.matrix_of(LATENCIES)


@router.delete("/map/latencies", response={204: None})
def forget_latencies(request: HttpRequest) -> Status[None]:
    """Removes the given latencies. From now on the measured ones count."""
    given.forget(actor(request), LATENCIES)
    return Status(204, None)


@router.get("/map/rates", response=GivenMatrix)
def rates(request: HttpRequest) -> GivenMatrix:
    """Returns the rates that were given."""
    return given.matrix_of(RATES)


@router.put("/map/rates", response=GivenMatrix)
def give_rates(request: HttpRequest, body: Matrix) -> GivenMatrix:
    """Replaces the given rates. For each pair, a given value counts instead of the measured one; 0 leaves the
    measured one."""
    given.give(actor(request), RATES, body.matrix)
    return given.matrix_of(RATES)


@router.delete("/map/rates", response={204: None})
def forget_rates(request: HttpRequest) -> Status[None]:
    """Removes the given rates. From now on the measured ones count."""
    given.forget(actor(request), RATES)
    return Status(204, None)
