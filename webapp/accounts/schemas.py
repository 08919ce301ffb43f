"""Responses about accounts. They are validated by their field names only, so they use ninja's own Schema."""

from __future__ import annotations

from datetime import datetime

from ninja import Schema
from pydantic import Field


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


class UserOut(Schema):
    username: str
    role: str
    active: bool = Field(alias="is_active")
    last_login: datetime | None
