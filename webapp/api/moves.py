"""Routes of a pipeline's queue of moves."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import Field

from webapp.api.accounts import Body
from webapp.api.authentication import actor
from webapp.handovers.queues import MOVES_MAX, Wanted, cancel_queued, queue_moves, queue_of
from webapp.handovers.schemas import QueuedMove
from webapp.pipelines.selectors import pipeline_named

router = Router(tags=["handovers"])
PATH = "/pipelines/{name}/moves"


class MoveWanted(Body):
    element: str = Field(min_length=1, max_length=60)
    target: str = Field(min_length=1, max_length=40)


class MovesWanted(Body):
    moves: list[MoveWanted] = Field(min_length=1, max_length=MOVES_MAX)


@router.get(PATH, response=list[QueuedMove])
def moves(request: HttpRequest, name: str) -> list[QueuedMove]:
    """Lists the pipeline's newest queue of moves, in its order, with those that have ended."""
    return queue_of(pipeline_named(name))


@router.post(PATH, response={202: list[QueuedMove]})
def order_moves(request: HttpRequest, name: str, body: MovesWanted) -> Status[list[QueuedMove]]:
    """Orders live migrations one after another, behind those that wait. Either all of them are put into the
    queue, or none. If one ends otherwise than done, those behind it are left out. Returns the queue."""
    wanted = [Wanted(each.element, each.target) for each in body.moves]
    return Status(202, queue_moves(actor(request), name, wanted))


@router.post(PATH + "/cancel", response=list[QueuedMove])
def cancel_moves(request: HttpRequest, name: str) -> list[QueuedMove]:
    """Cancels all moves that wait. One that is under way goes on: cancel its handover. Returns the queue."""
    return cancel_queued(actor(request), name)


@router.post(PATH + "/{int:move}/cancel", response=list[QueuedMove])
def cancel_move(request: HttpRequest, name: str, move: int) -> list[QueuedMove]:
    """Cancels one move that waits; those behind it go on. Answers 409 once it has begun, or has ended
    otherwise. Returns the queue."""
    return cancel_queued(actor(request), name, move)
