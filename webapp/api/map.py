from __future__ import annotations

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import Field

from webapp.api.accounts import Body
from webapp.api.authentication import actor
from webapp.monitoring.site_map import site_map
from webapp.nodes import actions
from webapp.nodes.links import given_latencies
from webapp.nodes.schemas import GivenLatencies, Map

router = Router(tags=["map"])


class Matrix(Body):
    matrix: str = Field(
        max_length=200_000,
        description="A line with the names of the sites (SiteA,SiteB), then for each site, in that order, a "
        "line with its latencies to each of them in ms (0,10)",
    )


@router.get("/map", response=Map)
def the_map(request: HttpRequest) -> Map:
    """Sites with their nodes, the lines between them, and the elements that read from outside."""
    return site_map()


@router.get("/map/latencies", response=GivenLatencies)
def latencies(request: HttpRequest) -> GivenLatencies:
    """What was given."""
    return given_latencies()


@router.put("/map/latencies", response=GivenLatencies)
def give_latencies(request: HttpRequest, body: Matrix) -> GivenLatencies:
    """Replaces what was given before. It counts instead of what is measured, pair by pair."""
    actions.give_latencies(actor(request), body.matrix)
    return given_latencies()


@router.delete("/map/latencies", response={204: None})
def forget_latencies(request: HttpRequest) -> Status[None]:
    """From now on what is measured counts."""
    actions.forget_latencies(actor(request))
    return Status(204, None)
