"""Decides which messages about an alarm a route sends, when, and why. Pure.

A route sends one message about an alarm to its channels. It repeats the message until somebody acknowledges
the alarm. If nobody does so in time, it sends a message to further channels. When the alarm is cleared, it
sends a message to all channels that had one about the alarm.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from functools import cache
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from webapp.alarms.state import SEVERITIES, Severity, State, is_worse, status_of

Reason = Literal["raised", "worse", "repeat", "escalation", "cleared", "test"]
ROUTES_MAX = 50
CHANNELS_MAX = 50
CHANNELS_PER_ROUTE_MAX = 10
Clock = Annotated[str, Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")]
Names = Annotated[list[Annotated[str, Field(max_length=60)]], Field(max_length=50)]


_zones = cache(available_timezones)  # cached, since a call opens hundreds of files


class OnCall(BaseModel):
    """Some hours of some days. A span that ends before it begins goes on to the next day; one that ends when
    it begins is the whole day."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    days: tuple[Annotated[int, Field(ge=0, le=6)], ...] = Field(min_length=1, max_length=7)
    """0 is Monday"""
    begins: Clock = "00:00"
    ends: Clock = "00:00"


class RouteSpec(BaseModel):
    """To which channels an alarm goes. Empty lists stand for all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    channels: list[int] = Field(min_length=1, max_length=CHANNELS_PER_ROUTE_MAX)
    severity: Severity = "warning"
    """the least severity of an alarm for which the route sends messages"""
    pipelines: Names = []
    sites: Names = []
    on_call: list[OnCall] = Field(default=[], max_length=20)
    """when the route sends messages; always, if the list is empty. A message about an alarm that is raised at
    another time is sent when the next of these times begins"""
    zone: str = Field(default="UTC", max_length=60)
    wait_s: float = Field(default=10, ge=0, le=600, allow_inf_nan=False)
    """how long a message waits for further alarms of the route, in s"""
    repeat_min: float = Field(default=30, ge=0, le=10_080, allow_inf_nan=False)
    """after how many minutes a message is repeated; 0: never"""
    escalate_min: float = Field(default=0, ge=0, le=10_080, allow_inf_nan=False)
    """after how many minutes without an acknowledgement `escalate_to` gets a message; 0: never"""
    escalate_to: list[int] = Field(default=[], max_length=CHANNELS_PER_ROUTE_MAX)
    tells_cleared: bool = True

    @field_validator("zone")
    @classmethod
    def _known(cls, zone: str) -> str:
        if zone not in _zones():
            raise ValueError("is no time zone; write one such as Europe/Vienna")
        return zone

    @model_validator(mode="after")
    def _whole(self) -> RouteSpec:
        if bool(self.escalate_min) != bool(self.escalate_to):
            raise ValueError("an escalation needs both: after how many minutes, and to which channels")
        if 0 < self.repeat_min < 1 or 0 < self.escalate_min < 1:
            raise ValueError("repeat and escalate after at least a minute")
        return self


@dataclass(frozen=True)
class Told:
    """The messages that a route has already sent about an alarm."""

    first_at: datetime
    last_at: datetime
    severity: Severity
    """the worst severity in a message of the route"""
    escalated_at: datetime | None = None


def is_on_call(spec: RouteSpec, now: datetime) -> bool:
    if not spec.on_call:
        return True
    here = now.astimezone(ZoneInfo(spec.zone))
    return any(_covers(span, here) for span in spec.on_call)


def _covers(span: OnCall, here: datetime) -> bool:
    begins, ends, at = time.fromisoformat(span.begins), time.fromisoformat(span.ends), here.time()
    today, before = here.weekday(), (here.weekday() - 1) % 7
    if begins < ends:
        return today in span.days and begins <= at < ends
    return (today in span.days and at >= begins) or (before in span.days and at < ends)


def is_about(spec: RouteSpec, severity: str, pipeline: str, site: str) -> bool:
    """Returns whether the route sends messages about such an alarm. An alarm of a node has no pipeline. It
    also goes to the routes that name pipelines, because these pipelines may run on the node."""
    return (
        SEVERITIES.index(severity) >= SEVERITIES.index(spec.severity)
        and (not spec.pipelines or not pipeline or pipeline in spec.pipelines)
        and (not spec.sites or site in spec.sites)
    )


def due(spec: RouteSpec, state: State, told: Told | None, now: datetime) -> list[Reason]:
    """Returns the reasons for which the route has to send messages about an open alarm at the time `now`.
    `told`: the messages that it has already sent, or None if it has sent none."""
    if status_of(state, now) != "raised" or not is_on_call(spec, now):
        return []
    if told is None:
        return ["raised"]
    found: list[Reason] = []
    if is_worse(state.severity, told.severity):
        found.append("worse")
    elif spec.repeat_min and now - told.last_at >= timedelta(minutes=spec.repeat_min):
        found.append("repeat")
    late = spec.escalate_min and now - told.first_at >= timedelta(minutes=spec.escalate_min)
    if late and told.escalated_at is None:
        found.append("escalation")
    return found


PAUSES_S = (2.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0)
"""The pauses between the attempts to send a message. The last one repeats."""
GIVEN_UP_AFTER = timedelta(hours=24)


def pause_s(attempts: int) -> float:
    """Returns how long to wait, in s, after a number of failed attempts."""
    return PAUSES_S[min(max(attempts, 1), len(PAUSES_S)) - 1]


@dataclass(frozen=True)
class Line:
    """The text about one alarm in a message."""

    severity: str
    message: str
    title: str
    since: datetime
    values: str
    link: str
    state: str
    """the state in words, such as: raised, or: cleared after 3 min"""
    is_cleared: bool = False


WHOLE_MAX = 20
"""How many alarms a message describes in full. Each further alarm has one line."""
LINES_MAX = 500
"""How many alarms a message names at most. It counts the others."""


def subject_of(reason: Reason, lines: list[Line]) -> str:
    """Returns the subject: the worst alarm, and how many more there are. A test message has no lines."""
    if not lines:
        return "[Fogline] Test message"
    worst = worst_first(lines)[0]
    what = {"repeat": "still ", "escalation": "not acknowledged yet: "}.get(reason, "")
    word = "cleared" if worst.is_cleared else worst.severity
    more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    # A mail's subject has to be one line, but a row's text may have several.
    return " ".join(f"[Fogline] {what}{word}: {worst.message}{more}".split())[:200]


def body_of(reason: Reason, lines: list[Line], page: str) -> str:
    """Returns the text. It has for each alarm what happened, where and since when, the last values and a
    link. `page`: the address of the page of alarms."""
    if not lines:
        return f"This is a test of a channel of Fogline. Nothing is wrong.\n\n{page}"
    parts = []
    found = worst_first(lines)
    for line in found[:WHOLE_MAX]:
        parts.append(
            f"{line.severity.upper()}: {line.message}\n"
            f"Where: {line.title}\n"
            f"Since: {line.since:%Y-%m-%d %H:%M:%S} UTC, {line.state}\n"
            + (f"Last values: {line.values}\n" if line.values else "")
            + line.link
        )
    if len(found) > WHOLE_MAX:
        rest = [f"- {line.severity}: {line.message} ({line.state})" for line in found[WHOLE_MAX:LINES_MAX]]
        parts.append("\n".join(["Further alarms:", *rest]))
    if len(found) > LINES_MAX:
        parts.append(f"And {len(found) - LINES_MAX} more alarms: {page}")
    return "\n\n".join(parts)


def worst_first(lines: Iterable[Line]) -> list[Line]:
    def rank(line: Line) -> tuple[bool, int]:
        return line.is_cleared, -SEVERITIES.index(line.severity)

    return sorted(lines, key=rank)
