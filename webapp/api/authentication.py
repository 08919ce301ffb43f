"""Finds out who calls: by an API token, or by the browser's session with its CSRF token."""

from __future__ import annotations

from django.http import HttpRequest
from ninja.security import APIKeyCookie, HttpBearer
from ninja.utils import check_csrf

from webapp.accounts.models import User
from webapp.accounts.tokens import user_of_token
from webapp.problems import Forbidden, Unauthenticated


class TokenAuth(HttpBearer):
    def authenticate(self, request: HttpRequest, token: str) -> User:
        user = user_of_token(token)
        if user is None:
            # Not None, since then a session would stand in for a token that was revoked.
            raise Unauthenticated(
                "This API token is not valid.", next="Make a new one under Account, API tokens."
            )
        request.user = user
        return user


class SessionAuth(APIKeyCookie):
    param_name = "sessionid"

    def __init__(self) -> None:
        super().__init__(csrf=False)  # checked below, with a problem that says what to do

    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:
        if not isinstance(request.user, User) or not request.user.is_active:
            return None
        if check_csrf(request) is not None:
            raise Forbidden(
                "The CSRF token of the request is missing or out of date.",
                safe="Nothing was changed.",
                next="Send it as X-CSRFToken; reload the page to get a new one.",
                code="csrf",
            )
        return request.user


def actor(request: HttpRequest) -> User:
    """Returns the authenticated user."""
    user = request.auth
    assert isinstance(user, User)
    return user


def by_token(request: HttpRequest) -> bool:
    """Returns whether a program calls with an API token, rather than a person in a browser."""
    return request.headers.get("Authorization", "").lower().startswith("bearer ")


def bearer_secret(request: HttpRequest) -> str:
    """Returns the bearer token of a call that is not a user's, such as an enrolment."""
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Unauthenticated("The enrolment token is missing.", next="Send it as Authorization: Bearer.")
    return secret.strip()
