"""Reads the bodies of requests as JSON that every part can store; see model.plain_data."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja.errors import HttpError
from ninja.parser import Parser

from pipeline_runtime.model.faults import join_path
from pipeline_runtime.model.plain_data import NotPlainData, read_json
from webapp.problems import Problem, Unreadable


class PlainJsonParser(Parser):
    def parse_body(self, request: HttpRequest) -> Any:
        return read_json(request.body)


def unreadable(error: HttpError) -> Problem | None:
    """Returns why a body could not be read, or None if the error is another one. Ninja makes its own error
    from the parser's."""
    cause = error.__cause__
    if not isinstance(cause, NotPlainData):
        return None
    faults = [
        {"element": None, "path": join_path(*loc), "message": reason, "code": "invalid"}
        for loc, reason in cause.places
    ]
    said = "; ".join(f"{fault['path']} {fault['message']}" for fault in faults)
    return Unreadable(
        f"The request's body cannot be taken. {cause}{f' {said}.' if said else ''}",
        safe="Nothing was changed.",
        next="Send JSON in UTF-8: valid Unicode without NUL characters, finite numbers of 64 bits.",
        faults=faults,
    )
