"""Checks what a user may do. An action starts with `require(actor, Role.X, "...")`."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser

from webapp.accounts.models import Role, User
from webapp.problems import Forbidden, Unauthenticated


def require(actor: User | AnonymousUser, needed: Role, doing: str) -> User:
    """Returns the actor if its role covers `needed`. `doing` completes the sentence "You may not ...".

    Raises Unauthenticated or Forbidden.
    """
    if not isinstance(actor, User):
        raise Unauthenticated("You are not signed in.", next="Sign in, or send an API token.")
    if not actor.may(needed):
        raise Forbidden(
            f"You may not {doing}: that needs the role {needed.value}, yours is {actor.role}.",
            safe="Nothing was changed.",
            next="Ask an admin for the role.",
        )
    return actor
