"""Random secrets that are shown once and stored as their SHA-256 (they have 256 bits and need no salt)."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.utils import timezone

from webapp.accounts.models import ApiToken, User

API_PREFIX = "fogline_"
_USE_NOTED_EVERY = timedelta(minutes=1)


def new_secret(prefix: str = "") -> str:
    return prefix + secrets.token_urlsafe(32)


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def user_of_token(secret: str) -> User | None:
    """Returns the active user that owns this API token."""
    token = ApiToken.objects.select_related("user").filter(hash=hash_secret(secret)).first()
    if token is None or not token.user.is_active:
        return None
    now = timezone.now()
    # Not at each request: a write per request would make all readers of the API wait for SQLite's lock.
    if token.last_used_at is None or now - token.last_used_at > _USE_NOTED_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token.user
