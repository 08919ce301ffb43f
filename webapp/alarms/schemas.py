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
    """the stream of the row: element.port"""
    partition: int
    offset: int


class Alarm(TypedDict):
    id: int
    status: Status
    severity: Severity
    title: str
    """the name of the node, the element or the key that the alarm is about, as people read it"""
    message: str
    source: Literal["rows", "rule", "channel"]
    rule: str | None
    """the name of the rule that raised it"""
    pipeline: str | None
    element: str | None
    node: str | None
    """the node where the element ran when the alarm was raised, or the node that the alarm is about"""
    site: str | None
    key: str | None
    """the key that the alarm is about, such as a machine; null for an alarm without a key"""
    values: dict[str, Any]
    """the newest values, by name"""
    row: AlarmRow | None
    count: int
    """how often the alarm was raised while it was open"""
    raised_at: str
    seen_at: str
    """when the alarm was last raised"""
    cleared_at: str | None
    acknowledged_at: str | None
    acknowledged_by: str | None
    silenced_until: str | None
    """null if the alarm is not silenced now"""
    silenced_by: str | None
    note: str


class AlarmChange(TypedDict):
    at: str
    kind: ChangeKind
    who: str | None
    """the user who changed the alarm; null if Fogline changed it"""
    note: str
    until: str | None


class AlarmWithHistory(Alarm):
    changes: list[AlarmChange]
    """the changes of the alarm, oldest first"""


class AlarmPage(TypedDict):
    alarms: list[Alarm]
    """newest first"""
    before: int | None
    """to get older alarms, pass this number as `before`; null if there are no older ones"""


class AlarmRule(TypedDict):
    id: int
    name: str
    rule: MetricRule
    enabled: bool
    open: int
    """the number of alarms that this rule has raised and that are not cleared"""
    created_by: str | None
    created_at: str


class AlarmMetric(TypedDict):
    """A metric that a rule may watch."""

    metric: str
    title: str
    unit: str
    of: Literal["element", "node"]
    below: bool
    """whether a rule raises its alarm when the value is too small"""
    flag: bool
    """whether the metric is true or false, and has no limit"""


class AlarmChannel(TypedDict):
    """A channel without its URL: Fogline shows the URL to nobody."""

    id: int
    name: str
    kind: str
    """the kind of channel, such as mail or Slack"""
    enabled: bool
    created_by: str | None
    created_at: str
    worked_at: str | None
    """when the channel last took a message; null if it never did"""
    failing_since: str | None
    error: str
    """the error of the newest attempt; empty if that attempt succeeded"""
    waiting: int
    """the number of messages that are not sent yet"""


class AlarmRoute(TypedDict):
    id: int
    name: str
    spec: RouteSpec
    enabled: bool
    created_by: str | None
    created_at: str


class AlarmMessage(TypedDict):
    id: str
    """the id that Fogline sends with the message: as the Message-ID of a mail, and as the Idempotency-Key of
    a webhook"""
    channel: str
    route: str | None
    """null for a test, or if the route was removed"""
    reason: Reason
    subject: str
    """the subject of the message; empty before the first attempt"""
    alarms: list[int]
    created_at: str
    due_at: str
    """when the next attempt is due"""
    attempts: int
    repeats: int
    """how often the receiver may have got the message before"""
    sent_at: str | None
    given_up_at: str | None
    error: str


class AlarmMessages(TypedDict):
    messages: list[AlarmMessage]
    """newest first"""
    waiting: int
    repeats: int
    """the number of repeats among the messages of the last day"""
