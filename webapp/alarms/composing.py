"""Makes the text of a message from its alarms, as they are at the first attempt."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from webapp.alarms.models import Alarm, Message
from webapp.alarms.routing import Line, body_of, subject_of
from webapp.alarms.state import is_silent

ALARMS_MAX = 500
"""How many alarms a webhook is told of in one message."""


def compose(message: Message, page: str, now: datetime) -> bool:
    """Sets the message's texts. Returns False if nobody needs it any more. `page` is the dashboard's
    address."""
    alarms = list(message.alarms.order_by("id"))
    if message.reason != "test" and alarms and all(_is_known(alarm, now) for alarm in alarms):
        return False
    lines = [_line(alarm, page) for alarm in alarms]
    message.subject = subject_of(message.reason, lines)
    message.body = body_of(message.reason, lines, f"{page}/alarms/")
    message.data = {
        "reason": message.reason,
        "count": len(alarms),
        "alarms": [_data(alarm, page) for alarm in alarms[:ALARMS_MAX]],
    }
    return True


def _is_known(alarm: Alarm, now: datetime) -> bool:
    """Returns whether somebody acknowledged or silenced the alarm while it was open."""
    return alarm.cleared_at is None and (alarm.acknowledged_at is not None or is_silent(alarm.state, now))


def link_to(alarm: Alarm, page: str) -> str:
    return f"{page}/alarms/?alarm={alarm.pk}"


def _line(alarm: Alarm, page: str) -> Line:
    state = "not cleared yet"
    if alarm.cleared_at is not None:
        state = f"cleared after {_lasted(alarm.cleared_at - alarm.raised_at)}"
    elif alarm.count > 1:
        state = f"raised {alarm.count:,} times"
    where = [alarm.title, *(f"{name} {value}" for name, value in _places(alarm).items() if value)]
    values = ", ".join(f"{name} {_said(value)}" for name, value in alarm.values.items())
    return Line(
        alarm.severity,
        alarm.message,
        ", ".join(where),
        alarm.raised_at,
        values,
        link_to(alarm, page),
        state,
        is_cleared=alarm.cleared_at is not None,
    )


def _places(alarm: Alarm) -> dict[str, str]:
    return {"key": alarm.key, "node": alarm.node if alarm.element else "", "site": alarm.site}


def _data(alarm: Alarm, page: str) -> dict[str, Any]:
    names = ("severity", "message", "title", "pipeline", "element", "node", "site", "key", "values", "count")
    return {
        "id": alarm.pk,
        **{name: getattr(alarm, name) for name in names},
        "raised_at": alarm.raised_at.isoformat(),
        "cleared_at": alarm.cleared_at.isoformat() if alarm.cleared_at else None,
        "link": link_to(alarm, page),
    }


def _lasted(time: timedelta) -> str:
    seconds = round(time.total_seconds())
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"


def _said(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "null" if value is None else str(value)
