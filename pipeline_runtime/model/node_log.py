"""The newest lines of a node's log: the web's question to a node, and the answer."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

LINES_MAX = 500
SEARCH_MAX = 200
Level = Literal["DEBUG", "INFO", "WARNING", "ERROR"]


class LogQuestion(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern="^[0-9a-f]{32}$")  # the answer is found under it
    group: str = Field(default="", max_length=400)  # only lines that name this group; empty: all
    search: str = Field(default="", max_length=SEARCH_MAX)  # upper and lower case are the same
    level: Level = "DEBUG"  # the least severe lines that are wanted
    limit: int = Field(ge=1, le=LINES_MAX)


class LogLine(BaseModel):
    model_config = ConfigDict(frozen=True)

    at_ms: int
    level: str
    logger: str
    text: str  # the message, and below it the traceback if there is one


class LogAnswer(BaseModel):
    model_config = ConfigDict(frozen=True)

    since_ms: int = 0  # the node keeps no line from before this time
    matching: int = 0  # how many lines that it keeps match the question
    lines: tuple[LogLine, ...] = ()  # the newest of these, oldest first
    failed: bool = False
