"""Tries a connection to an HTTP server, and shows what an answer has: arrays of rows, and their fields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from pydantic import ValidationError

from pipeline_runtime.connectors.http_out import Answer, Server
from pipeline_runtime.connectors.http_poll import BODY_BYTES_MAX, followed
from pipeline_runtime.connectors.payloads import parts_of, step_to
from pipeline_runtime.connectors.sdk import CONNECT_S, ConnectorError, Probed, shown_value
from pipeline_runtime.model.connectors import PARTS_MAX, ROWS_SHOWN, VALUE_MAX, Found, FoundPart
from pipeline_runtime.model.paths import parse_path, value_at
from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.http import HttpConnection
from pipeline_runtime.operators.ticked_rows import RowsPlace, rows_at

ARRAYS_MAX = 100
ROWS_LOOKED_AT = 100
"""How many rows are looked at for fields and their types."""
_DEPTH_MAX = 4
_PLAIN = {"Accept": "application/json", "Accept-Encoding": "identity"}
_NOT_SENT = " The headers that an element adds of its own are not sent here."


def probe(connection: HttpConnection, path: str) -> Probed:
    """Asks for `path`, or for /, and shows the first rows, and what may be ticked: the arrays of rows in the
    answer, or the fields of one of them."""
    place = rows_at(path)
    at = path if place is None else place.path
    at = at if at.startswith("/") else f"/{at}"
    server = Server(connection, CONNECT_S - 1)
    try:
        # Where a server leads from / to says nothing about the connection: often it is a page to log in.
        answer = (
            followed(server, connection, at, _PLAIN)
            if path
            else server.ask("GET", at, headers=_PLAIN, bytes_max=BODY_BYTES_MAX)
        )
    finally:
        server.close()
    not_sent = _NOT_SENT if path else ""
    if answer.status in (401, 403):
        raise ConnectorError(
            f"{connection.where} answers {answer.status}. Check the token.{not_sent}", lasting=True
        )
    words = f"Connected. The server answers {answer.status} to GET {at}."
    if not 200 <= answer.status < 300:
        return Probed(words + not_sent)
    try:
        body = _body(answer)
    except ValueError as error:
        return Probed(f"{words} {error}")
    if place is not None:
        return Probed(words, found=tuple(fields_of(place, body)))
    return Probed(words, _first_rows(body), tuple(arrays(at, body)))


def _body(answer: Answer) -> Any:
    """Raises ValueError with words for the user."""
    if not answer.whole:
        raise ValueError(f"It answers with more than {BODY_BYTES_MAX >> 20} MiB, or too slowly.")
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError) as error:
        raise ValueError("That is no JSON.") from error


# -- pure ------------------------------------------------------------------------------------------------


def arrays(path: str, body: Any) -> list[Found]:
    """Returns what may be rows in an answer: each array of objects, and the answer itself if it is an
    object."""
    found = []
    for place, rows in islice(_row_places(body, "", 1), ARRAYS_MAX):
        is_one = isinstance(rows, dict)
        parts = tuple(_parts([rows] if is_one else rows))
        with suppress(ValidationError):  # one array spoils no others
            each = Found(
                path=RowsPlace(path, place).text,
                title=place or "The answer",
                type="one row" if is_one else f"array of {len(rows)} rows",
                inner=True,
                usable=True,
                parts=parts,
            )
            found += [each] if parts else []
    return found


def fields_of(place: RowsPlace, body: Any) -> list[Found]:
    """Returns the fields of the rows that lie there, with their types and first values."""
    whole = body if not place.rows else value_at(body, body, parse_path(place.rows))
    rows = [whole] if isinstance(whole, dict) else whole if isinstance(whole, list) else []
    found = []
    for part in _parts(rows):
        path = parse_path(part.name)
        values = (value_at(row, row, path) for row in rows[:ROWS_LOOKED_AT])
        value = next((each for each in values if each is not None), None)
        with suppress(ValidationError):
            found.append(
                Found(
                    path=place._replace(field=part.name).text,
                    title=part.name,
                    type=str(part.type).replace("string", "text"),
                    usable=True,
                    holds=part.type,
                    value=shown_value(value),
                )
            )
    return found


def _row_places(value: Any, place: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Yields the arrays that may be rows, and the answer itself if it is an object: where it lies, and it."""
    if isinstance(value, list):
        if any(isinstance(each, dict) for each in value[:ROWS_LOOKED_AT]):
            yield place, value
    elif isinstance(value, dict):
        if not place:
            yield place, value
        for name, each in value.items() if depth <= _DEPTH_MAX else ():
            inner = step_to(place, name)
            if len(inner) <= VALUE_MAX:
                yield from _row_places(each, inner, depth + 1)


def _parts(rows: list[Any]) -> list[FoundPart]:
    """Returns the fields that columns can hold. One whose type differs between rows is a text."""
    types: dict[str, FieldType] = {}
    for row in (each for each in rows[:ROWS_LOOKED_AT] if isinstance(each, dict)):
        with suppress(ValidationError):  # a name that is no text
            for part in parts_of(row):
                if part.type is not None and (part.name in types or len(types) < PARTS_MAX):
                    is_same = types.get(part.name, part.type) is part.type
                    types[part.name] = part.type if is_same else FieldType.STRING
    return [FoundPart(name=name, type=type_) for name, type_ in types.items()]


def _first_rows(body: Any) -> tuple[dict[str, Any], ...]:
    rows = body if isinstance(body, list) else [body]
    return tuple(row for row in rows[:ROWS_SHOWN] if isinstance(row, dict))
