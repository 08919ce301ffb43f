"""The parts of which the types of several apps' responses are made. Fogline checks a response against its
type before it sends the response. A field that the type lacks is dropped, and a missing field is an error."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import WithJsonSchema
from typing_extensions import TypedDict

Number = int | float
"""Sent as it is, so that 1 does not become 1.0."""

Document = Annotated[dict[str, Any], WithJsonSchema({"type": "object", "x-typescript": "PipelineDocument"})]
"""A pipeline's document. A draft may be invalid, so nothing in it is checked."""

Follow = Literal["exact", "coalesced", "none"]
"""How a standby can follow an element; with `none` it cannot."""


class Allowed(TypedDict):
    allowed: bool
    reason: str | None
    note: str | None
    """what to know before doing it"""
