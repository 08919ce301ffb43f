"""Routes that do something about dead letters."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import Field

from pipeline_runtime.model.schema import COLUMNS_MAX
from webapp.api.accounts import Body
from webapp.api.authentication import actor
from webapp.handovers.letters import LETTERS_MAX, MendedRow, order_json, order_letters, put_back
from webapp.handovers.schemas import LetterOrder
from webapp.monitoring.letters import MENDED_MAX, REASON_MAX, order_progress, rows_to_mend
from webapp.monitoring.schemas import LetterOrderProgress, LetterRows

router = Router(tags=["dead letters"])
PATH = "/pipelines/{name}/elements/{id}/dead-letters"
Offset = Annotated[int, Field(ge=0, le=2**53)]


class RowMended(Body):
    """A row with its new values. A text may say a number, a truth value or a time."""

    offset: Offset
    cells: dict[str, str | bool | int | float | None] = Field(max_length=COLUMNS_MAX)
    at: str | None = Field(default=None, max_length=60)


class Letters(Body):
    """Which letters, and what was seen of them."""

    offsets: list[Offset] = Field(min_length=1, max_length=LETTERS_MAX)
    reason: str = Field(default="", max_length=REASON_MAX)


class Replayed(Letters):
    rows: list[RowMended] | None = Field(default=None, max_length=MENDED_MAX)


@router.get(PATH + "/rows", response=LetterRows)
def letter_rows(
    request: HttpRequest,
    name: str,
    id: str,
    reason: str = Query(default="", max_length=REASON_MAX),
    text: str = Query(default="", max_length=1000),
) -> LetterRows:
    """Returns the rows of the newest 500 open letters, to be mended: what can be read of each column.

    With `reason` only those of that group, with `text` only those in which it stands.
    """
    return rows_to_mend(name, id, text, reason)


@router.post(PATH + "/drop", response={202: LetterOrder})
def drop_letters(request: HttpRequest, name: str, id: str, body: Letters) -> Status[LetterOrder]:
    """Orders that these letters are dropped: they are counted and listed no more. They can be put back for as
    long as the topic holds them."""
    order = order_letters(actor(request), name, id, "drop", body.offsets, body.reason)
    return Status(202, order_json(order))


@router.post(PATH + "/replay", response={202: LetterOrder})
def replay_letters(request: HttpRequest, name: str, id: str, body: Replayed) -> Status[LetterOrder]:
    """Orders that the rows of these letters come back to the element, each exactly once, however often this
    is asked. With `rows` they come back with these values; each letter needs one then."""
    rows: dict[int, MendedRow] | None = None
    if body.rows is not None:
        rows = {each.offset: {"cells": dict(each.cells), "at": each.at} for each in body.rows}
    order = order_letters(actor(request), name, id, "replay", body.offsets, body.reason, rows)
    return Status(202, order_json(order))


@router.get(PATH + "/orders/{order}", response=LetterOrderProgress)
def letter_order(request: HttpRequest, name: str, id: str, order: UUID) -> LetterOrderProgress:
    """Returns what has become of an order, and of the rows that it brought back."""
    return order_progress(name, id, str(order))


@router.post(PATH + "/orders/{order}/put-back", response={202: LetterOrder})
def put_letters_back(request: HttpRequest, name: str, id: str, order: UUID) -> Status[LetterOrder]:
    """Orders that the letters that an order dropped are letters again."""
    return Status(202, order_json(put_back(actor(request), name, id, str(order))))
