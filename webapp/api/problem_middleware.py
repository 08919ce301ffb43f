"""Turns every error below /api/ into a problem document, including errors outside the API's own code."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, HttpResponseBase, RawPostDataException, UnreadablePostError
from django.http.multipartparser import MultiPartParserError

from pipeline_runtime.model.error_codes import ERRORS
from webapp.problems import Problem, Unreadable, problem_document

PROBLEM_TYPE = "application/problem+json"
DETAILS = {
    400: "The request cannot be read.",
    401: "You are not signed in.",
    403: "You may not do this.",
    404: "There is nothing at this address.",
    405: "This address does not accept that method.",
    413: "The request is too large.",
    500: "The server failed.",
}
# The pages of docs/errors for answers that no action has given.
CODES = {
    400: "unreadable",
    401: "unauthenticated",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    413: "too-large",
    500: "server-failed",
}
# What Django and its parsers raise of a request that is malformed, or has too many fields or files.
UNREADABLE = (
    BadRequest,
    MultiPartParserError,
    RawPostDataException,
    SuspiciousOperation,
    UnreadablePostError,
)
READING = ("GET", "HEAD", "OPTIONS")
log = logging.getLogger(__name__)


class ProblemMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if not request.path.startswith("/api/"):
            return response
        response.headers.setdefault("Cache-Control", "no-store")
        if response.status_code < 400 or response.headers.get("Content-Type") == PROBLEM_TYPE:
            return response
        problem = problem_response_of(response.status_code)
        for name in ("Allow", "WWW-Authenticate", "Retry-After"):
            if name in response.headers:
                problem.headers[name] = response.headers[name]
        return problem

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponseBase | None:
        if not request.path.startswith("/api/"):
            return None
        if isinstance(exception, Problem):
            return problem_response(request, exception)
        if isinstance(exception, RequestDataTooBig):
            return problem_response_of(413)
        if isinstance(exception, UNREADABLE):
            return problem_response(
                request,
                Unreadable(
                    "The request's body does not have the form that its content type names.",
                    safe="Nothing was changed.",
                    next=f"Check its boundary and its number of fields and files: {exception}",
                ),
            )
        log.exception("%s %s failed", request.method, request.path, exc_info=exception)
        return problem_response_of(500)


def problem_response(request: HttpRequest, problem: Problem) -> HttpResponse:
    document = problem.document()
    if request.method not in READING:
        document.setdefault("safe", "Nothing was changed.")  # actions raise before they change anything
    response = HttpResponse(
        json.dumps(document, default=str), status=problem.status, content_type=PROBLEM_TYPE
    )
    if problem.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if "retry_after_s" in problem.extra:
        response.headers["Retry-After"] = str(problem.extra["retry_after_s"])
    return response


def problem_response_of(status: int, detail: str | None = None) -> HttpResponse:
    """Answers with an error that no action has raised. What is safe and what to do are those of its page."""
    text = detail or DETAILS.get(status, "The request was refused.")
    known = ERRORS[CODES.get(status, "server-failed" if status >= 500 else "unreadable")]
    document = problem_document(status, text, safe=known.safe, next=known.next, code=known.code)
    return HttpResponse(json.dumps(document), status=status, content_type=PROBLEM_TYPE)
