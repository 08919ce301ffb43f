"""The REST API: one NinjaAPI, its errors as problem documents, its routers."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from webapp.api import (
    accounts,
    alarm_delivery,
    alarms,
    connections,
    documents,
    elements,
    files,
    handovers,
    letters,
    map,
    moves,
    nodes,
    operators,
    overview,
    pipelines,
    policies,
    preview,
    states,
    streams,
    templates,
    walls,
)
from webapp.api.authentication import SessionAuth, TokenAuth
from webapp.api.json_body import PlainJsonParser, unreadable
from webapp.api.problem_middleware import problem_response, problem_response_of
from webapp.problems import CORRECT, Fault, Invalid, Problem, Unauthenticated

api = NinjaAPI(
    title="Fogline",
    version=settings.FOGLINE_VERSION,
    urls_namespace="api-1",
    description="Pipelines, elements, nodes and handovers. Errors are problem documents (RFC 9457).",
    auth=[TokenAuth(), SessionAuth()],
    parser=PlainJsonParser(),
    docs_url=None,  # its page loads scripts from other hosts
)
for router in (
    accounts.router,
    overview.router,
    alarms.router,
    alarm_delivery.router,
    operators.router,
    pipelines.router,
    documents.router,
    states.router,
    templates.router,
    elements.router,
    preview.router,
    streams.router,
    letters.router,
    handovers.router,
    moves.router,
    nodes.router,
    map.router,
    policies.router,
    connections.router,
    walls.router,
    files.router,
):
    api.add_router("", router)


@api.exception_handler(Problem)
def on_problem(request: HttpRequest, error: Problem) -> HttpResponse:
    return problem_response(request, error)


@api.exception_handler(AuthenticationError)
def on_unauthenticated(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    problem = Unauthenticated("You are not signed in.", next="Sign in, or send an API token.")
    return problem_response(request, problem)


@api.exception_handler(HttpError)
def on_http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    problem = unreadable(error)
    if problem is not None:
        return problem_response(request, problem)
    return problem_response_of(error.status_code, error.message)


@api.exception_handler(ValidationError)
def on_invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    faults = [_fault(item) for item in error.errors]
    return problem_response(
        request,
        Invalid(
            "The request has faults: "
            + "; ".join(f"{fault['path']}: {fault['message']}" for fault in faults),
            safe="Nothing was changed.",
            next=CORRECT,
            faults=faults,
        ),
    )


def _fault(error: dict[str, Any]) -> Fault:
    # ("body", "<name of the parameter>", "field", ...): the first two are not words of the caller.
    place, *names = error["loc"]
    path = [str(name) for name in (names[1:] if place == "body" and len(names) > 1 else names)]
    return {
        "element": None,
        "path": ".".join(path) or str(place),
        "message": error["msg"],
        "code": error["type"],
    }
