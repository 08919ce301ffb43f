"""The pages: a shell, and a place where the browser's code draws the view."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from webapp.accounts.models import User
from webapp.api.problem_middleware import problem_response_of
from webapp.handovers.models import Handover
from webapp.monitoring.board import element_named
from webapp.nodes.models import Node
from webapp.pipelines.models import Pipeline
from webapp.pipelines.templates import template_page
from webapp.problems import Missing
from webapp.walls.models import Wall

THEMES = ("light", "dark")
RAIL = (  # section, address, title
    ("overview", "/", "Overview"),
    ("alarms", "/alarms/", "Alarms"),
    ("pipelines", "/pipelines/", "Pipelines"),
    ("walls", "/walls/", "Walls"),
    ("templates", "/templates/", "Templates"),
    ("files", "/files/", "Files"),
    ("connections", "/connections/", "Connections"),
    ("nodes", "/nodes/", "Nodes"),
    ("map", "/map/", "Map"),
    ("policies", "/policies/", "Policies"),
    ("events", "/events/", "Events"),
)
SECTION_OF_VIEW = {
    "editor": "pipelines",
    "element": "pipelines",
    "handover": "pipelines",
    "node": "nodes",
    "template": "templates",
    "wall": "walls",
}


def shell(request: HttpRequest) -> dict[str, Any]:
    """Returns the context of every page."""
    theme = request.COOKIES.get("fogline-theme", "")
    return {
        "theme": theme if theme in THEMES else "",
        "rail_state": "narrow" if request.COOKIES.get("fogline-rail") == "narrow" else "",
        "rail": RAIL,
        "version": settings.FOGLINE_VERSION,
    }


def view_context(request: HttpRequest, view: str, title: str, **props: Any) -> dict[str, Any]:
    """Returns what a page's shell needs, and in `props` what its browser code needs."""
    user = request.user
    assert isinstance(user, User)
    bootstrap = {
        "user": {"username": user.username, "role": user.role},
        "csrf": get_token(request),
        "version": settings.FOGLINE_VERSION,
        **props,
    }
    return {
        "view": view,
        "section": SECTION_OF_VIEW.get(view, view),
        "title": title,
        "props": json.dumps(bootstrap),
    }


def view_page(request: HttpRequest, view: str, title: str, **props: Any) -> HttpResponse:
    return render(request, "view.html", view_context(request, view, title, **props))


def page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorates a page that only reads: only people who are signed in get it, and no cache keeps it."""
    return login_required(never_cache(require_safe(view)))


def section_page(section: str, title: str) -> Callable[..., HttpResponse]:
    """Returns the page of a section of the rail. The page holds only the section's name."""

    @page
    def show(request: HttpRequest) -> HttpResponse:
        return view_page(request, section, title)

    return show


@page
def pipeline(request: HttpRequest, name: str) -> HttpResponse:
    if not Pipeline.objects.filter(name=name).exists():
        raise Http404(f'There is no pipeline "{name}".')
    mode = "live" if request.GET.get("mode") == "live" else "edit"
    return view_page(request, "editor", name, pipeline=name, mode=mode)


@page
def element(request: HttpRequest, name: str, id: str) -> HttpResponse:
    found = Pipeline.objects.filter(name=name).first()
    if found is None:
        raise Http404(f'There is no pipeline "{name}".')
    try:
        title = element_named(found, id)["title"]
    except Missing as error:
        raise Http404(str(error)) from error
    return view_page(request, "element", f"{title} of {name}", pipeline=name, element=id)


@page
def template(request: HttpRequest, name: str) -> HttpResponse:
    try:
        title = template_page(name)["title"]
    except Missing as error:
        raise Http404(str(error)) from error
    return view_page(request, "template", title, template=name)


@page
def node(request: HttpRequest, name: str) -> HttpResponse:
    if not Node.objects.filter(name=name).exists():
        raise Http404(f'There is no node "{name}".')
    return view_page(request, "node", name, node=name)


@page
def handover(request: HttpRequest, id: UUID) -> HttpResponse:
    found = Handover.objects.select_related("deployment__version").filter(pk=id).first()
    if found is None:
        raise Http404("There is no such handover.")
    return view_page(
        request, "handover", f"Handover of {found.deployment.name_of(found.element)}", id=str(id)
    )


@page
def wall(request: HttpRequest, id: str) -> HttpResponse:
    found = Wall.objects.filter(pk=id).first()
    if found is None:
        raise Http404(f'There is no wall "{id}".')
    return view_page(request, "wall", found.title, wall=id)


@never_cache
@require_safe
def shared_wall(request: HttpRequest, id: str) -> HttpResponse:
    """Shows a wall to whoever has the secret of a link. The secret stands behind the # of the address, so it
    comes neither here nor into a log. The page itself is the same for each id."""
    props = json.dumps({"wall": id, "version": settings.FOGLINE_VERSION})
    return render(request, "shared.html", {"view": "shared-wall", "title": "Wall", "props": props})


# --- errors -------------------------------------------------------------------------------------
def error_page(
    request: HttpRequest, status: int, title: str, what: str, next: str, *, safe: str = ""
) -> HttpResponse:
    if request.path.startswith("/api/"):
        return problem_response_of(status, what)
    context = {"title": title, "what": what, "safe": safe, "next": next, "status": status}
    return render(request, "error.html", context, status=status)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_page(
        request,
        400,
        "This request cannot be read",
        "The address or the host name is not one that this dashboard answers to.",
        "Check the address. An admin can allow more host names with FOGLINE_ALLOWED_HOSTS.",
    )


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_page(
        request,
        403,
        "You may not do this",
        "Your role does not cover this page or action.",
        "Ask an admin for another role.",
        safe="Nothing was changed.",
    )


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return error_page(
        request,
        403,
        "This form is out of date",
        "The page was open for too long or its cookies are gone, so the server cannot tell it from a "
        "forged one.",
        "Go back, reload the page and send it again. Your browser must allow cookies.",
        safe="Nothing was changed.",
    )


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    words = str(exception) if isinstance(exception, Http404) and exception.args else ""
    said = words if words.startswith("There is no") else "There is nothing at this address."
    return error_page(
        request,
        404,
        "Not found",
        said,
        "It may have been renamed or deleted. The overview shows what there is.",
    )


def server_error(request: HttpRequest) -> HttpResponse:
    return error_page(
        request,
        500,
        "The dashboard failed",
        "Something went wrong in the server. Its log has the details.",
        "Try again. If it fails again, send the last lines of the log to your administrator.",
        safe="Running pipelines do not need the dashboard and keep running.",
    )
