from __future__ import annotations

from django.db.models import QuerySet
from django.http import HttpRequest
from django.middleware.csrf import get_token
from ninja import Router, Schema, Status
from pydantic import ConfigDict, Field

from webapp.accounts import actions
from webapp.accounts.models import ApiToken, Role, User
from webapp.accounts.permissions import require
from webapp.accounts.schemas import Me, TokenCreated, TokenOut, UserOut
from webapp.api.authentication import actor, by_token
from webapp.problems import Forbidden

router = Router(tags=["accounts"])


class Body(Schema):
    """The base of all bodies: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


class TokenIn(Body):
    name: str = Field(min_length=1, max_length=80)


class UserIn(Body):
    username: str = Field(min_length=1, max_length=150)
    password: str = Field(max_length=200)
    role: str = "viewer"


class UserChange(Body):
    role: str | None = None
    active: bool | None = None
    password: str | None = Field(None, max_length=200)


@router.get("/me", response=Me)
def me(request: HttpRequest) -> Me:
    """Returns your name and role, and the CSRF token of this session."""
    user = actor(request)
    return Me(username=user.username, role=user.role, csrf=get_token(request))


@router.get("/tokens", response=list[TokenOut])
def list_tokens(request: HttpRequest) -> QuerySet[ApiToken]:
    """Lists your API tokens, without their text."""
    return ApiToken.objects.filter(user=actor(request))


@router.post("/tokens", response={201: TokenCreated})
def create_token(request: HttpRequest, body: TokenIn) -> Status[TokenCreated]:
    """Makes an API token with your rights. Its text is in this answer only. A token cannot make another
    one."""
    if by_token(request):
        raise Forbidden(
            "An API token cannot make another one.",
            safe="Nothing was changed.",
            next="Sign in and make it under Account, API tokens.",
        )
    token, secret = actions.create_token(actor(request), body.name)
    return Status(
        201,
        TokenCreated(
            id=token.pk, name=token.name, created_at=token.created_at, last_used_at=None, token=secret
        ),
    )


@router.delete("/tokens/{int:id}", response={204: None})
def revoke_token(request: HttpRequest, id: int) -> Status[None]:
    """Revokes one of your API tokens. An admin may revoke any."""
    actions.revoke_token(actor(request), id)
    return Status(204, None)


@router.get("/users", response=list[UserOut], by_alias=False)
def list_users(request: HttpRequest) -> QuerySet[User]:
    """Lists all accounts. Only admins may see them."""
    require(actor(request), Role.ADMIN, "see all accounts")
    return User.objects.order_by("username")


@router.post("/users", response={201: UserOut}, by_alias=False)
def create_user(request: HttpRequest, body: UserIn) -> Status[User]:
    """Creates an account. Only admins may."""
    return Status(201, actions.create_user(actor(request), body.username, body.password, body.role))


@router.patch("/users/{username}", response=UserOut, by_alias=False)
def change_user(request: HttpRequest, username: str, body: UserChange) -> User:
    """Changes an account's role or password, or whether it may sign in. Only admins may. A new password
    ends the account's sessions and revokes its tokens. The last admin stays one."""
    return actions.change_user(
        actor(request), username, role=body.role, active=body.active, password=body.password
    )
