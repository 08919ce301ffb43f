"""Reads alarms and rules."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from django.db.models import Case, Count, IntegerField, Q, QuerySet, Value, When
from django.utils import timezone

from webapp.alarms import schemas
from webapp.alarms.models import Alarm, AlarmChange, Rule
from webapp.alarms.rules import KINDS, MetricRule
from webapp.alarms.state import SEVERITIES, Severity, is_silent, status_of
from webapp.moments import iso_of
from webapp.problems import Missing

Which = Literal["open", "past"]
OPEN_SHOWN_MAX = 500
"""How many open alarms the dashboards are told of: the worst, and of these the newest."""


def alarm_named(id: int) -> Alarm:
    found = Alarm.objects.select_related("rule").filter(pk=id).first()
    if found is None:
        raise Missing(f"There is no alarm {id}.", next="See the page Alarms. Old alarms are deleted.")
    return found


def open_alarms() -> list[schemas.Alarm]:
    """Returns the alarms that are not cleared, the worst first, of equal ones the newest."""
    now = timezone.now()
    ranks = [When(severity=each, then=Value(rank)) for rank, each in enumerate(SEVERITIES)]
    worst = Case(*ranks, default=Value(0), output_field=IntegerField())
    rows = Alarm.objects.select_related("rule").filter(cleared_at=None).annotate(rank=worst)
    return [alarm_json(alarm, now) for alarm in rows.order_by("-rank", "-id")[:OPEN_SHOWN_MAX]]


def worst_by_element(pipelines: Iterable[str]) -> dict[tuple[str, str], Severity]:
    """Returns (pipeline, element) -> the worst of its open alarms that nobody has silenced."""
    rows = Alarm.objects.filter(cleared_at=None, pipeline__in=list(pipelines)).exclude(element="")
    rows = rows.exclude(silenced_until__gt=timezone.now()).order_by()
    found: dict[tuple[str, str], Severity] = {}
    for pipeline, element, severity in rows.values_list("pipeline", "element", "severity").distinct():
        known = found.get((pipeline, element), severity)
        found[pipeline, element] = max(known, severity, key=SEVERITIES.index)
    return found


def alarms(
    which: Which,
    limit: int,
    before: int | None = None,
    pipeline: str | None = None,
    element: str | None = None,
    node: str | None = None,
    severity: str | None = None,
    text: str = "",
) -> schemas.AlarmPage:
    """Returns a page of alarms, newest first."""
    now = timezone.now()
    rows: QuerySet[Alarm] = Alarm.objects.select_related("rule").order_by("-id")
    rows = rows.filter(cleared_at=None) if which == "open" else rows.exclude(cleared_at=None)
    wanted = {"pipeline": pipeline, "element": element, "node": node, "severity": severity, "pk__lt": before}
    rows = rows.filter(**{name: value for name, value in wanted.items() if value is not None})
    if text:
        rows = rows.filter(Q(message__icontains=text) | Q(title__icontains=text) | Q(key__icontains=text))
    found = list(rows[: limit + 1])
    more = len(found) > limit
    found = found[:limit]
    return {"alarms": [alarm_json(each, now) for each in found], "before": found[-1].pk if more else None}


def with_history(alarm: Alarm) -> schemas.AlarmWithHistory:
    # a flapping severity may have many: the newest
    newest = list(alarm.changes.order_by("-id")[:200])
    return {
        **alarm_json(alarm, timezone.now()),
        "changes": [_change_json(each) for each in reversed(newest)],
    }


def alarm_json(alarm: Alarm, now: datetime) -> schemas.Alarm:
    silent = is_silent(alarm.state, now)
    return {
        "id": alarm.pk,
        "status": status_of(alarm.state, now),
        "severity": alarm.severity,
        "title": alarm.title,
        "message": alarm.message,
        "source": alarm.source,
        "rule": alarm.rule.name if alarm.rule else None,
        "pipeline": alarm.pipeline or None,
        "element": alarm.element or None,
        "node": alarm.node or None,
        "site": alarm.site or None,
        "key": alarm.key or None,
        "values": alarm.values,
        "row": alarm.row,
        "count": alarm.count,
        "raised_at": alarm.raised_at.isoformat(),
        "seen_at": alarm.seen_at.isoformat(),
        "cleared_at": iso_of(alarm.cleared_at),
        "acknowledged_at": iso_of(alarm.acknowledged_at),
        "acknowledged_by": alarm.acknowledged_by or None,
        "silenced_until": iso_of(alarm.silenced_until) if silent else None,
        "silenced_by": (alarm.silenced_by or None) if silent else None,
        "note": alarm.note,
    }


def _change_json(change: AlarmChange) -> schemas.AlarmChange:
    return {
        "at": change.at.isoformat(),
        "kind": change.kind,
        "who": change.who or None,
        "note": change.note,
        "until": iso_of(change.until),
    }


def rules() -> list[schemas.AlarmRule]:
    return [rule_json(row) for row in _rules()]


def rule_with(id: int) -> schemas.AlarmRule:
    found = _rules().filter(pk=id).first()
    if found is None:
        raise Missing(f"There is no rule {id}.", next="See the list of rules on the page Alarms.")
    return rule_json(found)


def _rules() -> QuerySet[Rule]:
    opened = Count("alarms", filter=Q(alarms__cleared_at=None))
    return Rule.objects.select_related("created_by").annotate(opened=opened).order_by("name")


def rule_json(row: Rule) -> schemas.AlarmRule:
    return {
        "id": row.pk,
        "name": row.name,
        "rule": MetricRule.model_validate(row.rule),
        "enabled": row.enabled,
        "open": row.opened,
        "created_by": row.created_by.username if row.created_by else None,
        "created_at": row.created_at.isoformat(),
    }


def metrics() -> list[schemas.AlarmMetric]:
    return [
        {
            "metric": metric,
            "title": kind.title,
            "unit": kind.unit,
            "of": kind.of,
            "below": kind.below,
            "flag": kind.flag,
        }
        for metric, kind in KINDS.items()
    ]
