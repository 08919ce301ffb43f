"""Responses about alarms."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

from webapp.alarms.routing import Reason, RouteSpec
from webapp.alarms.rules import MetricRule
from webapp.alarms.state import ChangeKind, Severity, Status


class AlarmRow(TypedDict):
    """The row that raised an alarm."""

    stream: str
    """element.port"""
    partition: int
    offset: int


class Alarm(TypedDict):
    id: int
    status: Status
    severity: Severity
    title: str
    """what it is about, as people read it"""
    message: str
    source: Literal["rows", "rule", "channel"]
    rule: str | None
    """the name of the rule that raised it"""
    pipeline: str | None
    element: str | None
    node: str | None
    """where the element ran when it was raised, or the node that it is about"""
    site: str | None
    key: str | None
    """such as the machine, for an alarm of one key"""
    values: dict[str, Any]
    """the last ones, by name"""
    row: AlarmRow | None
    count: int
    """how often it was raised while it was open"""
    raised_at: str
    seen_at: str
    """when it was raised last"""
    cleared_at: str | None
    acknowledged_at: str | None
    acknowledged_by: str | None
    silenced_until: str | None
    """null if it is not silenced now"""
    silenced_by: str | None
    note: str


class AlarmChange(TypedDict):
    at: str
    kind: ChangeKind
    who: str | None
    """null when it changed by itself"""
    note: str
    until: str | None


class AlarmWithHistory(Alarm):
    changes: list[AlarmChange]
    """oldest first"""


class AlarmPage(TypedDict):
    alarms: list[Alarm]
    """newest first"""
    before: int | None
    """pass it as `before` for older ones; null if there are none"""


class AlarmRule(TypedDict):
    id: int
    name: str
    rule: MetricRule
    enabled: bool
    open: int
    """how many alarms it has raised that are not cleared"""
    created_by: str | None
    created_at: str


class AlarmMetric(TypedDict):
    """What a rule may look at."""

    metric: str
    title: str
    unit: str
    of: Literal["element", "node"]
    below: bool
    """an alarm is raised when the value is too small"""
    flag: bool
    """it is true or not, and has no limit"""


class AlarmChannel(TypedDict):
    """Without its URL, which nobody is shown again."""

    id: int
    name: str
    kind: str
    """such as mail or Slack"""
    enabled: bool
    created_by: str | None
    created_at: str
    worked_at: str | None
    """when it took a message last"""
    failing_since: str | None
    error: str
    """of the newest attempt, if it failed"""
    waiting: int
    """messages that are not sent yet"""


class AlarmRoute(TypedDict):
    id: int
    name: str
    spec: RouteSpec
    enabled: bool
    created_by: str | None
    created_at: str


class AlarmMessage(TypedDict):
    id: str
    """goes along with it: in the Message-ID of a mail, and as Idempotency-Key of a webhook"""
    channel: str
    route: str | None
    """null for a test, or when the route was removed"""
    reason: Reason
    subject: str
    """empty before the first attempt"""
    alarms: list[int]
    created_at: str
    due_at: str
    """of the next attempt"""
    attempts: int
    repeats: int
    """how often the receiver may have had it before"""
    sent_at: str | None
    given_up_at: str | None
    error: str


class AlarmMessages(TypedDict):
    messages: list[AlarmMessage]
    """newest first"""
    waiting: int
    repeats: int
    """of the messages of the last day"""
