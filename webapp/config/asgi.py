"""The ASGI application: Django serves HTTP, Channels serves /ws/live."""

from __future__ import annotations

import os

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.core.asgi import get_asgi_application

os.umask(0o077)  # only this user may read uploads and sessions
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")
django_application = get_asgi_application()

# These import models, which cannot be imported before this point.
from django.urls import path  # noqa: E402

from webapp.config.body_limit import BodyLimit  # noqa: E402
from webapp.config.plain_requests import WEBSOCKET, PlainWebsockets  # noqa: E402
from webapp.monitoring.consumers import LiveConsumer  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": BodyLimit(django_application),
        # Only this dashboard's pages may open it: a websocket carries cookies, but no CSRF token.
        "websocket": PlainWebsockets(
            AllowedHostsOriginValidator(
                AuthMiddlewareStack(URLRouter([path(WEBSOCKET.removeprefix("/"), LiveConsumer.as_asgi())]))
            )
        ),
    }
)
