"""Raises and clears alarms by rules on what is measured.

An open alarm is in the database. For how long a value has been beyond its limit is in memory: after a restart
of control that time begins from the start, so an alarm may be late by it, and none comes twice.
"""

from __future__ import annotations

import logging
from time import monotonic

from django.db import transaction
from django.utils import timezone
from pydantic import ValidationError

from webapp.alarms.facts import Measured, subjects
from webapp.alarms.models import Alarm, Rule
from webapp.alarms.rules import MetricRule, Subject, is_about, judge, message_of
from webapp.alarms.state import Clear, Raise
from webapp.alarms.taking import About, Step, clear_all, take
from webapp.backends.control_state import control_state
from webapp.monitoring.board import whole_board
from webapp.monitoring.nodes import all_nodes
from workers.control.context import ControlContext
from workers.control.periodic import Periodic

EACH_S = 2.0
OPEN_PER_RULE_MAX = 500
Key = tuple[str, str, str]
log = logging.getLogger(__name__)


class RuleKeeper(Periodic):
    """If it fails, rules are judged later."""

    name, failure = "alarm-rules", "the rules of alarms were not judged this time"

    def __init__(self, context: ControlContext) -> None:
        super().__init__(context, EACH_S)
        self._since_s: dict[tuple[int, Key], float] = {}  # by rule and subject

    def let_go(self) -> None:
        self._since_s = {}

    def look(self) -> None:
        rows = list(Rule.objects.filter(enabled=True))
        _clear_unruled({row.pk for row in rows})
        if not rows:
            self._since_s = {}
            return
        if not control_state().hears:
            self._since_s = {}
            return  # nothing is concluded while nodes are not heard
        facts = _facts()
        since_s: dict[tuple[int, Key], float] = {}
        for row in rows:
            self._judge(row, facts, since_s)
        self._since_s = since_s

    def _judge(
        self, row: Rule, facts: dict[Subject, Measured], since_s: dict[tuple[int, Key], float]
    ) -> None:
        try:
            rule = MetricRule.model_validate(row.rule)
        except ValidationError:
            log.exception("the rule %s cannot be read, and is passed over", row.name)
            return
        now, now_s = timezone.now(), monotonic()
        open = {_key_of(alarm): alarm for alarm in row.alarms.filter(cleared_at=None)}
        steps: list[Step] = []
        there = set()
        for subject, known in facts.items():
            if not is_about(rule, subject):
                continue
            key = subject.key
            there.add(key)
            value = known.values.get(rule.metric)
            verdict = judge(
                rule, value, is_open=key in open, now_s=now_s, since_s=self._since_s.get((row.pk, key))
            )
            if verdict.since_s is not None:
                since_s[row.pk, key] = verdict.since_s
            if verdict.act == "raise" and value is not None and len(open) + len(steps) < OPEN_PER_RULE_MAX:
                shown = {} if rule.kind.flag else {rule.kind.title: value, "limit": rule.raise_at}
                message = message_of(rule, subject, value, known.reasons.get(rule.metric, ""))[:500]
                steps.append(Step(_about(row, subject), Raise(now, rule.severity, message, shown)))
            elif verdict.act == "clear":
                steps.append(Step(_about(row, subject), Clear(now)))
        if steps:
            with transaction.atomic():
                take(steps)
        clear_all(
            (alarm for key, alarm in open.items() if key not in there),
            "What it was about is no longer there, or the rule is no longer about it.",
        )


def _facts() -> dict[Subject, Measured]:
    board = whole_board()
    elements = (
        (pipeline.name, pipeline.title, item)
        for pipeline in board.pipelines
        if (deployment := board.deployment(pipeline)) is not None and deployment.status in deployment.ACTIVE
        for item in board.elements(pipeline)
    )
    return subjects(elements, all_nodes(), timezone.now())


def _clear_unruled(rules: set[int]) -> None:
    left = Alarm.objects.filter(source=Alarm.Source.RULE, cleared_at=None).exclude(rule__in=rules)
    clear_all(left, "The rule was removed or switched off.")


def _about(row: Rule, subject: Subject) -> About:
    return About(
        Alarm.Source.RULE,
        subject.title,
        pipeline=subject.pipeline,
        element=subject.element,
        node=subject.node,
        site=subject.site,
        rule=row,
    )


def _key_of(alarm: Alarm) -> Key:
    return (alarm.pipeline, alarm.element, "" if alarm.element else alarm.node)
