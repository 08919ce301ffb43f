"""A look at the state of a running element, key by key: the web's question to a node, and the answer."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

LIMIT_MAX = 100


class KeptQuestion(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern="^[0-9a-f]{32}$")  # the answer is found under it
    group: str
    element: str
    search: str = ""
    after: str | None = None  # a key to continue after; the first keys are shown when it is None
    limit: int = Field(ge=1, le=LIMIT_MAX)


class KeptEntry(BaseModel):
    model_config = ConfigDict(frozen=True)

    key: str  # as people read it
    key_cut: bool = False
    state: str = ""  # JSON, unless it was cut
    state_cut: bool = False
    timers_ms: tuple[int, ...] = ()  # empty when the state was cut


class KeptAnswer(BaseModel):
    model_config = ConfigDict(frozen=True)

    refused: Literal["away", "elsewhere", "failed"] | None = None
    """away: it does not run on this node now; elsewhere: another element keeps the group's state."""
    keys: int = 0  # the number of all keys
    entries: tuple[KeptEntry, ...] = ()
    next: str | None = None  # the key to continue after
    # how many keys the search looked at; None if it could go straight to the result
    looked: int | None = None
