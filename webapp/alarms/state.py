"""Decides what becomes of an alarm. Pure: a state and what happens give the next state and what to tell.

    raised --> acknowledged --> cleared
       '--> silenced (until a time) --'

An alarm that is cleared and raised again is a new one. Only the silence of the former alarm stays, because a
value that flaps would otherwise end it.

If an alarm gets worse, nobody knows of that yet. So its acknowledgement ends, and so does a silence that was
meant for something less serious.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")
"""from the least to the greatest"""
Status = Literal["raised", "acknowledged", "silenced", "cleared"]
ChangeKind = Literal["raised", "worse", "acknowledged", "silenced", "unsilenced", "cleared"]


@dataclass(frozen=True)
class State:
    severity: Severity
    message: str
    raised_at: datetime
    seen_at: datetime
    """when it was raised last, of the `count` times since `raised_at`"""
    values: Mapping[str, Any] = field(default_factory=dict)
    """the last ones, by name"""
    count: int = 1
    cleared_at: datetime | None = None
    acknowledged_at: datetime | None = None
    acknowledged_by: str = ""
    silenced_until: datetime | None = None
    silenced_by: str = ""
    silenced_severity: Severity | Literal[""] = ""
    """how serious the alarm was when it was silenced; empty if it is not"""
    note: str = ""
    """of who acknowledged or silenced it last"""


NOT_SILENCED: Mapping[str, Any] = {"silenced_until": None, "silenced_by": "", "silenced_severity": ""}


@dataclass(frozen=True)
class Raise:
    at: datetime
    severity: Severity
    message: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Clear:
    at: datetime
    why: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    who: str = ""
    """empty when nobody did it"""


@dataclass(frozen=True)
class Acknowledge:
    at: datetime
    who: str
    note: str = ""


@dataclass(frozen=True)
class Silence:
    """With `until` None the silence ends."""

    at: datetime
    who: str
    note: str = ""
    until: datetime | None = None


Happening = Raise | Clear | Acknowledge | Silence


@dataclass(frozen=True)
class Change:
    """A line of an alarm's history."""

    kind: ChangeKind
    at: datetime
    who: str = ""
    """empty when the alarm changed by itself"""
    note: str = ""
    until: datetime | None = None


def status_of(state: State, now: datetime) -> Status:
    """Returns what people are shown. A silence that has ended is none."""
    if state.cleared_at is not None:
        return "cleared"
    if is_silent(state, now):
        return "silenced"
    return "raised" if state.acknowledged_at is None else "acknowledged"


def is_silent(state: State, now: datetime) -> bool:
    return state.silenced_until is not None and state.silenced_until > now


def taken(state: State | None, happening: Happening) -> tuple[State | None, Change | None]:
    """Returns the next state, and what changed for people, if anything did.

    `state` is the newest alarm of its place and key, or None if there was none. The result is a new alarm if
    that one was cleared: then its `raised_at` is the happening's time.
    """
    match happening:
        case Raise():
            return _raised(state, happening)
        case Clear():
            return _cleared(state, happening)
        case Acknowledge():
            return _acknowledged(state, happening)
        case Silence():
            return _silenced(state, happening)


def _raised(state: State | None, what: Raise) -> tuple[State, Change | None]:
    if state is None or state.cleared_at is not None:
        new = State(what.severity, what.message, what.at, what.at, what.values)
        if (
            state is not None
            and is_silent(state, what.at)
            and not is_worse(what.severity, state.silenced_severity)
        ):
            new = replace(
                new,
                silenced_until=state.silenced_until,
                silenced_by=state.silenced_by,
                silenced_severity=state.silenced_severity,
                note=state.note,
            )
        return new, Change("raised", what.at, note=what.message)
    next = replace(state, message=what.message, values=what.values, seen_at=what.at, count=state.count + 1)
    if not is_worse(what.severity, state.severity):
        return next, None
    worse = replace(next, severity=what.severity, acknowledged_at=None, acknowledged_by="")
    if is_worse(what.severity, state.silenced_severity):
        worse = replace(worse, **NOT_SILENCED)
    return worse, Change("worse", what.at, note=what.message)


def is_worse(severity: Severity, than: Severity | Literal[""]) -> bool:
    return than != "" and SEVERITIES.index(severity) > SEVERITIES.index(than)


def _cleared(state: State | None, what: Clear) -> tuple[State | None, Change | None]:
    if state is None or state.cleared_at is not None:
        return state, None
    values = what.values or state.values
    return replace(state, cleared_at=what.at, values=values), Change("cleared", what.at, what.who, what.why)


def _acknowledged(state: State | None, what: Acknowledge) -> tuple[State | None, Change | None]:
    if state is None or state.cleared_at is not None or state.acknowledged_at is not None:
        return state, None
    next = replace(state, acknowledged_at=what.at, acknowledged_by=what.who, note=what.note)
    return next, Change("acknowledged", what.at, what.who, what.note)


def _silenced(state: State | None, what: Silence) -> tuple[State | None, Change | None]:
    if state is None or state.cleared_at is not None:
        return state, None
    if what.until is None:
        if not is_silent(state, what.at):
            return state, None
        return replace(state, note=what.note, **NOT_SILENCED), Change(
            "unsilenced", what.at, what.who, what.note
        )
    if what.until <= what.at:
        return state, None
    next = replace(
        state,
        silenced_until=what.until,
        silenced_by=what.who,
        silenced_severity=state.severity,
        note=what.note,
    )
    return next, Change("silenced", what.at, what.who, what.note, what.until)
