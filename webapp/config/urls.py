"""The addresses of pages, of the API, and of what machines read."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, URLResolver, path

from webapp.accounts.login import SignInView
from webapp.api.api import api
from webapp.monitoring.health import healthz, readyz
from webapp.monitoring.metrics import metrics
from webapp.pages import views as pages
from webapp.pages.account import account
from webapp.pages.known_errors import known_error, known_errors

urlpatterns: list[URLPattern | URLResolver] = [
    *(
        path(address.removeprefix("/"), pages.section_page(section, title), name=section)
        for section, address, title in pages.RAIL
    ),
    path("pipelines/<str:name>", pages.pipeline, name="pipeline"),
    path("pipelines/<str:name>/elements/<str:id>", pages.element, name="element"),
    path("templates/<str:name>", pages.template, name="template"),
    path("walls/<str:id>", pages.wall, name="wall"),
    path("walls/<slug:id>/shared", pages.shared_wall, name="shared-wall"),
    path("nodes/<str:name>", pages.node, name="node"),
    path("handovers/<uuid:id>", pages.handover, name="handover"),
    path("errors/", known_errors, name="errors"),
    path("errors/<str:code>", known_error, name="error"),
    path("accounts/", account, name="account"),
    path("accounts/login/", SignInView.as_view(), name="login"),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
    path("api/v1/", api.urls),
    path("healthz", healthz),
    path("readyz", readyz),
    path("metrics", metrics),
]
handler400 = "webapp.pages.views.bad_request"
handler403 = "webapp.pages.views.forbidden"
handler404 = "webapp.pages.views.not_found"
handler500 = "webapp.pages.views.server_error"
