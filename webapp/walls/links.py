"""Lets in whoever has the secret of a link: to one wall, to look only."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from webapp.accounts.tokens import hash_secret
from webapp.problems import Forbidden, Unauthenticated
from webapp.walls.models import LINK_ENDS_AFTER, WallLink

LINK_PREFIX = "fogline_wall_"
_USE_NOTED_EVERY = timedelta(hours=1)


def living() -> Q:
    """Selects the links that have not ended."""
    since = timezone.now() - LINK_ENDS_AFTER
    return Q(last_used_at__gte=since) | Q(last_used_at=None, created_at__gte=since)


def used_link(secret: str, wall: str) -> WallLink:
    """Returns the link with this secret, and notes its use. Raises Unauthenticated, or Forbidden if it is
    another wall's."""
    link = WallLink.objects.filter(living(), hash=hash_secret(secret)).first()
    if link is None:
        raise Unauthenticated(
            "This link was revoked, or it ended because it was not used for 30 days.",
            next="Ask the person who gave it to you for a new one.",
        )
    if link.wall_id != wall:
        raise Forbidden("This link shows only the wall that it was made for.", next="Open that wall.")
    now = timezone.now()
    # Not at each request: a wall asks every second, and a write makes all others wait for SQLite's lock.
    if link.last_used_at is None or now - link.last_used_at > _USE_NOTED_EVERY:
        WallLink.objects.filter(pk=link.pk).update(last_used_at=now)
    return link
