"""The pages of errors that a user may look up: what happened, what is safe, what to do."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from pipeline_runtime.model.error_codes import AT_ELEMENTS, AT_START, ERRORS, IN_ANSWERS, IN_ORDERS
from webapp.pages.views import page, view_context

_GROUPS = (
    ("Shown at an element", AT_ELEMENTS),
    ("Of deployments, moves and restorations that failed", IN_ORDERS),
    ("In answers of the REST API and in messages", IN_ANSWERS),
    ("At a start", AT_START),
)


@page
def known_errors(request: HttpRequest) -> HttpResponse:
    context = view_context(request, "errors", "Errors")
    return render(request, "errors/all.html", {**context, "groups": _GROUPS})


@page
def known_error(request: HttpRequest, code: str) -> HttpResponse:
    error = ERRORS.get(code)
    if error is None:
        raise Http404(f'There is no error "{code[:60]}".')
    return render(request, "errors/one.html", {**view_context(request, "errors", code), "error": error})
