"""Routes about alarms and the rules that raise them."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import AwareDatetime, Field

from webapp.alarms import actions, schemas, selectors
from webapp.alarms.rules import MetricRule
from webapp.alarms.selectors import Which
from webapp.alarms.state import Severity
from webapp.api.accounts import Body
from webapp.api.authentication import actor

router = Router(tags=["alarms"])
NOTE_MAX = 500


class NoteIn(Body):
    note: str = Field("", max_length=NOTE_MAX)


class SilenceIn(NoteIn):
    until: AwareDatetime
    """with a time zone"""


class AlarmRuleIn(Body):
    name: str = Field(min_length=1, max_length=60)
    rule: MetricRule
    enabled: bool = True


class AlarmRuleChange(Body):
    rule: MetricRule | None = None
    enabled: bool | None = None


@router.get("/alarms", response=schemas.AlarmPage)
def alarms(
    request: HttpRequest,
    which: Which = "open",
    limit: int = Query(100, ge=1, le=500),
    before: int | None = Query(None, ge=1, le=2**63 - 1),
    pipeline: str | None = Query(None, max_length=60),
    element: str | None = Query(None, max_length=60),
    node: str | None = Query(None, max_length=40),
    severity: Severity | None = None,
    text: str = Query("", max_length=200),
) -> schemas.AlarmPage:
    """Lists alarms, newest first: `open` ones, which are not cleared, or `past` ones. `text` stands in the
    message, in the name of what it is about, or in the key."""
    return selectors.alarms(which, limit, before, pipeline, element, node, severity, text)


@router.get("/alarms/rules", response=list[schemas.AlarmRule])
def rules(request: HttpRequest) -> list[schemas.AlarmRule]:
    """Lists the rules that raise alarms by what is measured."""
    return selectors.rules()


@router.post("/alarms/rules", response={201: schemas.AlarmRule})
def create_rule(request: HttpRequest, body: AlarmRuleIn) -> Status[schemas.AlarmRule]:
    """Creates a rule. Its alarm is raised when the value was beyond `raise_at` for `for_s`, and cleared when
    it was back at `clear_at` for `clear_for_s`."""
    row = actions.create_rule(actor(request), body.name, body.rule, body.enabled)
    return Status(201, selectors.rule_with(row.pk))


@router.get("/alarms/metrics", response=list[schemas.AlarmMetric])
def metrics(request: HttpRequest) -> list[schemas.AlarmMetric]:
    """Lists what rules may look at."""
    return selectors.metrics()


@router.patch("/alarms/rules/{int:id}", response=schemas.AlarmRule)
def change_rule(request: HttpRequest, id: int, body: AlarmRuleChange) -> schemas.AlarmRule:
    """Changes a rule. Its name stays."""
    return selectors.rule_with(actions.change_rule(actor(request), id, body.rule, body.enabled).pk)


@router.delete("/alarms/rules/{int:id}", response={204: None})
def remove_rule(request: HttpRequest, id: int) -> Status[None]:
    """Removes a rule. Its open alarms are cleared."""
    actions.remove_rule(actor(request), id)
    return Status(204, None)


@router.get("/alarms/{int:id}", response=schemas.AlarmWithHistory)
def alarm(request: HttpRequest, id: int) -> schemas.AlarmWithHistory:
    """Returns an alarm with its history."""
    return selectors.with_history(selectors.alarm_named(id))


@router.post("/alarms/{int:id}/acknowledge", response=schemas.AlarmWithHistory)
def acknowledge(request: HttpRequest, id: int, body: NoteIn) -> schemas.AlarmWithHistory:
    """Says that you know of the alarm. Messages about it are no longer repeated."""
    return selectors.with_history(actions.acknowledge(actor(request), id, body.note))


@router.post("/alarms/{int:id}/silence", response=schemas.AlarmWithHistory)
def silence(request: HttpRequest, id: int, body: SilenceIn) -> schemas.AlarmWithHistory:
    """Silences the alarm until a time, 31 days at most. Meanwhile nobody is told of it, also if it is cleared
    and raised again."""
    until: datetime = body.until
    return selectors.with_history(actions.silence(actor(request), id, body.note, until))


@router.post("/alarms/{int:id}/unsilence", response=schemas.AlarmWithHistory)
def unsilence(request: HttpRequest, id: int, body: NoteIn) -> schemas.AlarmWithHistory:
    """Ends the silence of an alarm."""
    return selectors.with_history(actions.unsilence(actor(request), id, body.note))


@router.post("/alarms/{int:id}/clear", response=schemas.AlarmWithHistory)
def clear(request: HttpRequest, id: int, body: NoteIn) -> schemas.AlarmWithHistory:
    """Clears an alarm that nothing else will clear. If its cause lasts, it is raised again."""
    return selectors.with_history(actions.clear(actor(request), id, body.note))
