from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.middleware.csrf import get_token
from ninja import Router, Schema, Status
from pydantic import ConfigDict, Field

from webapp.accounts import actions
from webapp.accounts.models import ApiToken, Role, User
from webapp.accounts.permissions import require
from webapp.api.authentication import actor, by_token
from webapp.problems import Forbidden

router = Router(tags=["accounts"])


class Body(Schema):
    """Base of all bodies: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


class Me(Schema):
    username: str
    role: str
    csrf: str


class TokenOut(Schema):
    id: int
    name: str
    created_at: datetime
    last_used_at: datetime | None


class TokenCreated(TokenOut):
    token: str = Field(description="shown this once")


class TokenIn(Body):
    name: str = Field(min_length=1, max_length=80)


class UserOut(Schema):
    username: str
    role: str
    active: bool = Field(alias="is_active")
    last_login: datetime | None


class UserIn(Body):
    username: str = Field(min_length=1, max_length=150)
    password: str = Field(max_length=200)
    role: str = "viewer"


class UserChange(Body):
    role: str | None = None
    active: bool | None = None
    password: str | None = Field(None, max_length=200)


@router.get("/me", response=Me)
def me(request: HttpRequest) -> Any:
    user = actor(request)
    return {"username": user.username, "role": user.role, "csrf": get_token(request)}


@router.get("/tokens", response=list[TokenOut])
def list_tokens(request: HttpRequest) -> Any:
    """One's own API tokens, without their text."""
    return ApiToken.objects.filter(user=actor(request))


@router.post("/tokens", response={201: TokenCreated})
def create_token(request: HttpRequest, body: TokenIn) -> Any:
    if by_token(request):
        raise Forbidden(
            "An API token cannot make another one.",
            safe="Nothing was changed.",
            next="Sign in and make it under Account, API tokens.",
        )
    token, secret = actions.create_token(actor(request), body.name)
    return Status(
        201,
        {
            "id": token.pk,
            "name": token.name,
            "created_at": token.created_at,
            "last_used_at": None,
            "token": secret,
        },
    )


@router.delete("/tokens/{int:id}", response={204: None})
def revoke_token(request: HttpRequest, id: int) -> Any:
    actions.revoke_token(actor(request), id)
    return Status(204, None)


@router.get("/users", response=list[UserOut], by_alias=False)
def list_users(request: HttpRequest) -> Any:
    require(actor(request), Role.ADMIN, "see all accounts")
    return User.objects.order_by("username")


@router.post("/users", response={201: UserOut}, by_alias=False)
def create_user(request: HttpRequest, body: UserIn) -> Any:
    return Status(201, actions.create_user(actor(request), body.username, body.password, body.role))


@router.patch("/users/{username}", response=UserOut, by_alias=False)
def change_user(request: HttpRequest, username: str, body: UserChange) -> Any:
    return actions.change_user(
        actor(request), username, role=body.role, active=body.active, password=body.password
    )
