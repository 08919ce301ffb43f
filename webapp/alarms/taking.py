"""Takes what happens into the alarms: changes them, and writes their histories and the messages about them.
Call these functions in a transaction that also stores that the happening was taken."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from webapp.alarms.models import Alarm, AlarmChange, Rule
from webapp.alarms.outbox import tell
from webapp.alarms.state import Change, Clear, Happening, Raise, State, taken
from webapp.audit.announcements import announce

CLEARED_KEPT = 10_000
"""How many cleared alarms are kept, the newest ones."""
OPEN_PER_ELEMENT_MAX = 500
"""Further keys of an element share one alarm."""
OTHER_KEYS = "other keys"
_PRUNED_EVERY = 500


@dataclass(frozen=True)
class About:
    """What an alarm is about."""

    source: str
    title: str
    pipeline: str = ""
    element: str = ""
    node: str = ""
    site: str = ""
    deployment: str = ""
    key: str = ""
    rule: Rule | None = None
    channel: int | None = None

    @property
    def identity(self) -> str:
        """What identifies the subject: the same wherever an element runs, and after its pipeline was deployed
        again."""
        where = "" if self.element else self.node
        parts = [
            self.source,
            self.pipeline,
            self.element,
            where,
            self.key,
            self.rule and self.rule.pk,
            self.channel,
        ]
        return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


@dataclass(frozen=True)
class Step:
    """Something that happened, and the row that says so."""

    about: About
    happening: Happening
    row: dict[str, Any] | None = None


def take(steps: Sequence[Step]) -> list[tuple[Alarm, Change]]:
    """Takes the steps in their order. Returns what changed for people."""
    if not steps:
        return []
    known = _newest({step.about.identity for step in steps})
    changed: dict[int, Alarm] = {}  # by id()
    told: list[tuple[Alarm, Change]] = []
    for step in steps:
        about = step.about
        alarm = known.get(about.identity)
        before = alarm.state if alarm is not None else None
        after, change = taken(before, step.happening)
        if after is None or after == before:
            continue
        if alarm is None or _is_another(before, after):
            alarm = known[about.identity] = _new(about, step.row)
        alarm.state = after
        if isinstance(step.happening, Raise):
            alarm.node, alarm.site = about.node, about.site  # it may have moved since
        changed[id(alarm)] = alarm
        if change is not None:
            told.append((alarm, change))
    _store(changed.values(), told)
    return told


def clear_all(alarms: Iterable[Alarm], why: str) -> None:
    """Clears these alarms in a transaction of its own. `why` is for their histories."""
    ids, now = [alarm.pk for alarm in alarms], timezone.now()
    for start in range(0, len(ids), 500):
        with transaction.atomic():
            rows = Alarm.objects.select_for_update().filter(pk__in=ids[start : start + 500], cleared_at=None)
            for alarm in rows.order_by("id"):
                change(alarm, Clear(now, why))


def change(alarm: Alarm, happening: Happening) -> Change | None:
    """Takes what a person did with an alarm, which is locked. Returns what changed."""
    after, change = taken(alarm.state, happening)
    if after is None or change is None:
        return None
    alarm.state = after
    _store([alarm], [(alarm, change)])
    return change


def _is_another(before: State | None, after: State) -> bool:
    return before is not None and before.cleared_at is not None and after.cleared_at is None


def _new(about: About, row: dict[str, Any] | None) -> Alarm:
    return Alarm(
        identity=about.identity,
        source=about.source,
        rule=about.rule,
        channel=about.channel,
        pipeline=about.pipeline,
        element=about.element,
        node=about.node,
        site=about.site,
        deployment=about.deployment,
        key=about.key,
        title=about.title[:200],
        row=row,
    )


def _newest(identities: Iterable[str]) -> dict[str, Alarm]:
    """Returns the newest alarm of each identity, and locks it: a person may change an alarm at the same
    time."""
    found: dict[str, Alarm] = {}
    wanted = sorted(identities)
    for start in range(0, len(wanted), 500):
        of_some = Alarm.objects.filter(identity__in=wanted[start : start + 500])
        newest = (
            of_some.order_by().values("identity").annotate(newest=Max("id")).values_list("newest", flat=True)
        )
        for alarm in Alarm.objects.select_for_update().filter(pk__in=list(newest)):
            found[alarm.identity] = alarm
    return found


def _store(alarms: Iterable[Alarm], told: Sequence[tuple[Alarm, Change]]) -> None:
    for alarm in alarms:
        alarm.save()
    if not told:
        return
    AlarmChange.objects.bulk_create(
        AlarmChange(
            alarm=alarm,
            at=change.at,
            kind=change.kind,
            who=change.who,
            note=change.note[:500],
            until=change.until,
        )
        for alarm, change in told
    )
    tell(told)
    if any(alarm.pk % _PRUNED_EVERY == 0 for alarm, _ in told):
        prune()
    announce()


def prune() -> None:
    """Deletes the oldest cleared alarms beyond CLEARED_KEPT."""
    cleared = Alarm.objects.exclude(cleared_at=None).order_by("-id").values_list("pk", flat=True)
    oldest = cleared[CLEARED_KEPT : CLEARED_KEPT + 1].first()
    if oldest is not None:
        Alarm.objects.exclude(cleared_at=None).filter(pk__lte=oldest).delete()
