"""A look at what a running element keeps, key by key: what the web asks a node, and its answer."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

LIMIT_MAX = 100


class KeptQuestion(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern="^[0-9a-f]{32}$")  # by which the answer is found
    group: str
    element: str
    search: str = ""
    after: str | None = None  # a key; None: from the first one on
    limit: int = Field(ge=1, le=LIMIT_MAX)


class KeptEntry(BaseModel):
    model_config = ConfigDict(frozen=True)

    key: str  # as people read it
    key_cut: bool = False
    state: str = ""  # JSON, unless it is cut
    state_cut: bool = False
    timers_ms: tuple[int, ...] = ()  # unknown of a state that is cut


class KeptAnswer(BaseModel):
    model_config = ConfigDict(frozen=True)

    refused: Literal["away", "elsewhere", "failed"] | None = None
    """away: it does not run on this node now; elsewhere: not this element keeps the group's state"""
    keys: int = 0  # that there are
    entries: tuple[KeptEntry, ...] = ()
    next: str | None = None  # to go on after
    looked: int | None = None  # how many keys the search has looked through; None: it went straight to them
