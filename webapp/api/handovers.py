from __future__ import annotations

from django.http import HttpRequest
from ninja import Query, Router, Status

from webapp.api.authentication import actor
from webapp.handovers import actions, selectors
from webapp.handovers.schemas import Handover, HandoverDetails

router = Router(tags=["handovers"])


@router.get("/handovers", response=list[Handover])
def handovers(
    request: HttpRequest,
    limit: int = Query(100, ge=1, le=1000),
    pipeline: str | None = None,
    element: str | None = None,
    group: str | None = None,
) -> list[Handover]:
    """Lists handovers, newest first."""
    return selectors.handovers(limit, pipeline, element, group)


@router.get("/handovers/{uuid:id}", response=Handover)
def handover(request: HttpRequest, id: str) -> Handover:
    """Returns one handover."""
    return selectors.handover_json(actions.handover_with(str(id)))


@router.get("/handovers/{uuid:id}/details", response=HandoverDetails)
def handover_details(request: HttpRequest, id: str) -> HandoverDetails:
    """Returns the batches around a handover, and how former moves of the element went."""
    return selectors.details(str(id))


@router.post("/handovers/{uuid:id}/cancel", response={202: Handover})
def cancel(request: HttpRequest, id: str) -> Status[Handover]:
    """Cancels a handover. Answers 409 from CUT or CLAIM on, when ownership is being passed.

    Of a restoration in CLAIM, the wait ends as soon as its target has failed or does not answer."""
    return Status(202, selectors.handover_json(actions.cancel(actor(request), str(id))))
