"""Changes alarms and rules, on a user's order."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.alarms.models import Alarm, Rule
from webapp.alarms.rules import RULES_MAX, MetricRule
from webapp.alarms.selectors import alarm_named
from webapp.alarms.state import Acknowledge, Clear, Silence
from webapp.alarms.taking import change
from webapp.alarms.texts import checked_name, refuse
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.nodes.models import Node
from webapp.pipelines.models import Pipeline
from webapp.pipelines.shape import element_of
from webapp.problems import Conflict, Missing

SILENCE_MAX = timedelta(days=31)


@transaction.atomic
def acknowledge(actor: User, id: int, note: str) -> Alarm:
    """Says that a person knows of an alarm. A second call changes nothing."""
    require(actor, Role.OPERATOR, "acknowledge alarms")
    alarm = _open(id)
    if change(alarm, Acknowledge(timezone.now(), actor.username, note.strip())) is not None:
        audit(actor, "alarm.acknowledge", _target(alarm), note=note.strip())
    return alarm


@transaction.atomic
def silence(actor: User, id: int, note: str, until: datetime) -> Alarm:
    """Stops the messages of an alarm until then, also if it clears and is raised again."""
    require(actor, Role.OPERATOR, "silence alarms")
    now = timezone.now()
    if not now < until <= now + SILENCE_MAX:
        refuse("until", f"has to be a time in the next {SILENCE_MAX.days} days")
    alarm = _open(id)
    change(alarm, Silence(now, actor.username, note.strip(), until))
    audit(actor, "alarm.silence", _target(alarm), note=note.strip(), until=until.isoformat())
    return alarm


@transaction.atomic
def unsilence(actor: User, id: int, note: str) -> Alarm:
    """Ends the silence of an alarm. A second call changes nothing."""
    require(actor, Role.OPERATOR, "end the silence of alarms")
    alarm = _open(id)
    if change(alarm, Silence(timezone.now(), actor.username, note.strip())) is not None:
        audit(actor, "alarm.unsilence", _target(alarm), note=note.strip())
    return alarm


@transaction.atomic
def clear(actor: User, id: int, note: str) -> Alarm:
    """Clears an alarm that nothing else will clear, such as of a machine that was taken away."""
    require(actor, Role.OPERATOR, "clear alarms")
    alarm = _open(id)
    change(alarm, Clear(timezone.now(), note.strip(), who=actor.username))
    audit(actor, "alarm.clear", _target(alarm), note=note.strip())
    return alarm


def _open(id: int) -> Alarm:
    alarm_named(id)
    alarm = Alarm.objects.select_for_update().get(pk=id)
    if alarm.cleared_at is not None:
        raise Conflict(
            f"The alarm {id} is cleared.",
            safe="Nothing was changed.",
            next="Nothing is to be done. If it is raised again, that is a new alarm.",
        )
    return alarm


def _target(alarm: Alarm) -> str:
    return f"{alarm.title}{f', {alarm.key}' if alarm.key else ''}"[:200]


# -- rules -------------------------------------------------------------------------------------------


def create_rule(actor: User, name: str, rule: MetricRule, enabled: bool = True) -> Rule:
    require(actor, Role.OPERATOR, "create rules of alarms")
    name = checked_name(name)
    _check_about(rule)
    stored = rule.model_dump(mode="json")
    try:
        with transaction.atomic():
            if Rule.objects.count() >= RULES_MAX:
                raise Conflict(
                    f"There are {RULES_MAX} rules, which is the most that is allowed.",
                    safe="Nothing was changed.",
                    next="Remove a rule, or make one rule about several elements.",
                )
            row = Rule.objects.create(name=name, rule=stored, enabled=enabled, created_by=actor)
            audit(actor, "alarm_rule.create", name, rule=stored, enabled=enabled)
            announce()
    except IntegrityError as error:
        raise Conflict(
            f'A rule "{name}" exists already.', safe="Nothing was changed.", next="Choose another name."
        ) from error
    return row


@transaction.atomic
def change_rule(actor: User, id: int, rule: MetricRule | None = None, enabled: bool | None = None) -> Rule:
    """Changes the given fields. A second call changes nothing."""
    require(actor, Role.OPERATOR, "change rules of alarms")
    row = _locked_rule(id)
    changed: dict[str, Any] = {}
    if rule is not None and rule.model_dump(mode="json") != row.rule:
        _check_about(rule)
        changed["rule"] = rule.model_dump(mode="json")
    if enabled is not None and enabled != row.enabled:
        changed["enabled"] = enabled
    if changed:
        before = {name: getattr(row, name) for name in changed}
        for name, value in changed.items():
            setattr(row, name, value)
        row.save(update_fields=list(changed))
        audit(actor, "alarm_rule.change", row.name, before=before, **changed)
        announce()
    return row


@transaction.atomic
def remove_rule(actor: User, id: int) -> None:
    """Removes a rule. Control clears its open alarms, and past ones stay."""
    require(actor, Role.OPERATOR, "remove rules of alarms")
    row = _locked_rule(id)
    row.delete()
    audit(actor, "alarm_rule.delete", row.name)
    announce()


def _locked_rule(id: int) -> Rule:
    row = Rule.objects.select_for_update().filter(pk=id).first()
    if row is None:
        raise Missing(f"There is no rule {id}.", next="See the list of rules on the page Alarms.")
    return row


def _check_about(rule: MetricRule) -> None:
    """Refuses a rule about what is not there: it would never raise anything."""
    if rule.node and not Node.objects.filter(name=rule.node).exists():
        refuse("rule.node", f'there is no node "{rule.node}"')
    if rule.pipeline:
        pipeline = Pipeline.objects.filter(name=rule.pipeline).first()
        if pipeline is None:
            refuse("rule.pipeline", f'there is no pipeline "{rule.pipeline}"')
        elif rule.element and element_of(pipeline.draft, rule.element) is None:
            refuse("rule.element", f'there is no element "{rule.element}" in "{pipeline.title}"')
