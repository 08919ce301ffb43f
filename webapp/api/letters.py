"""Routes that do something about dead letters."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from pipeline_runtime.model.dead_letters import REASON_MAX, Chosen
from pipeline_runtime.model.schema import COLUMNS_MAX
from webapp.api.accounts import Body
from webapp.api.authentication import actor
from webapp.handovers.letters import (
    KEPT,
    LETTERS_MAX,
    MendedRow,
    cancel_order,
    count_letters,
    order_json,
    order_letters,
    put_back,
)
from webapp.handovers.schemas import LetterOrder, LettersCounted
from webapp.monitoring.letters import MENDED_MAX, order_progress, rows_to_mend
from webapp.monitoring.schemas import LetterOrderProgress, LetterRows
from webapp.problems import Fault, Invalid

router = Router(tags=["dead letters"])
PATH = "/pipelines/{name}/elements/{id}/dead-letters"
OFFSET_MAX = 2**53
Offset = Annotated[int, Field(ge=0, le=OFFSET_MAX)]


class RowMended(Body):
    """A row with its new values. A text may say a number, a truth value or a time."""

    offset: Offset
    cells: dict[str, str | bool | int | float | None] = Field(max_length=COLUMNS_MAX)
    at: str | None = Field(default=None, max_length=60)


class LettersSpan(Body):
    """All letters of a reason from the offset `first` to before `until`, as their count says them."""

    first: Offset
    until: Offset
    text: str = Field(default="", max_length=1000)


class Letters(Body):
    """Which letters: either named by their offsets, or all of a reason in a span."""

    offsets: list[Offset] | None = Field(default=None, min_length=1, max_length=LETTERS_MAX)
    span: LettersSpan | None = None
    reason: str = Field(default="", max_length=REASON_MAX)

    def chosen(self, element: str) -> Chosen:
        """Returns which ones. Raises Invalid if that can be read in two ways, or in none."""
        offsets, span = self.offsets, self.span
        if offsets is not None and span is None:
            return replace(Chosen.named(offsets), reason=self.reason)
        if span is not None and offsets is None and self.reason:
            return Chosen(span.first, span.until, None, self.reason, span.text)
        said = "Say either the offsets of the letters, or their reason and a span."
        fault: Fault = {"element": element, "path": "offsets", "message": said}
        raise Invalid(said, safe=KEPT, next="Send one of the two.", faults=[fault])


class Replayed(Letters):
    rows: list[RowMended] | None = Field(default=None, max_length=MENDED_MAX)


class CountedOf(Schema):
    """Which letters are counted."""

    reason: str = Field(min_length=1, max_length=REASON_MAX)
    text: str = Field(default="", max_length=1000)


@router.get(PATH + "/count", response=LettersCounted)
def letter_count(request: HttpRequest, name: str, id: str, asked: Query[CountedOf]) -> LettersCounted:
    """Returns how many open letters of a reason there are, and the span to order something about all of them.

    With `text` only those in which it stands. The newest 100,000 offsets are looked through.
    """
    found = count_letters(name, id, Chosen(0, OFFSET_MAX, None, asked.reason, asked.text))
    return {"letters": found.letters, "first": found.first, "until": found.until, "more": found.more}


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
    """Orders that letters are dropped: they are counted and listed no more. They can be put back for as long
    as the topic holds them. Say the letters' `offsets`, or the `reason` and the `span` that was counted."""
    order = order_letters(actor(request), name, id, "drop", body.chosen(id))
    return Status(202, order_json(order))


@router.post(PATH + "/replay", response={202: LetterOrder})
def replay_letters(request: HttpRequest, name: str, id: str, body: Replayed) -> Status[LetterOrder]:
    """Orders that the rows of letters come back to the element, each exactly once, however often this is
    asked. Say the letters' `offsets`, or the `reason` and the `span` that was counted. With `rows` they come
    back with these values; each letter is named and needs one then."""
    rows: dict[int, MendedRow] | None = None
    if body.rows is not None:
        rows = {each.offset: {"cells": dict(each.cells), "at": each.at} for each in body.rows}
    order = order_letters(actor(request), name, id, "replay", body.chosen(id), rows)
    return Status(202, order_json(order))


@router.get(PATH + "/orders/{order}", response=LetterOrderProgress)
def letter_order(request: HttpRequest, name: str, id: str, order: UUID) -> LetterOrderProgress:
    """Returns what has become of an order, and of the rows that it brought back."""
    return order_progress(name, id, str(order))


@router.post(PATH + "/orders/{order}/cancel", response={202: LetterOrder})
def cancel_letter_order(request: HttpRequest, name: str, id: str, order: UUID) -> Status[LetterOrder]:
    """Asks for the end of an order that is under way. What it has done stays done."""
    return Status(202, order_json(cancel_order(actor(request), name, id, str(order))))


@router.post(PATH + "/orders/{order}/put-back", response={202: LetterOrder})
def put_letters_back(request: HttpRequest, name: str, id: str, order: UUID) -> Status[LetterOrder]:
    """Orders that the letters that an order dropped are letters again."""
    return Status(202, order_json(put_back(actor(request), name, id, str(order))))
