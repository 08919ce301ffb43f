"""Reads the audit log. Shows many saves of one person, one after another, as one entry."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from django.db.models import Q

from webapp.audit.models import AuditRecord
from webapp.monitoring.schemas import AuditEntry

AUTOSAVES = ("pipeline.save", "wall.save")
PAUSE = timedelta(minutes=30)
"""After such a pause, further saves are another sitting."""
READ_MAX = 20_000
_OF_PIPELINES = ("pipeline.", "element.", "handover.")


def audit_entries(
    limit: int,
    *,
    pipeline: str | None = None,
    user: str | None = None,
    kind: str | None = None,
    fold: bool = False,
) -> list[AuditEntry]:
    """Returns entries, newest first. `kind` is the first word of the actions, such as pipeline.

    With `fold`, saves of one draft or wall by one person are one entry, if nobody did anything else to it in
    between. Then the function looks through the newest READ_MAX lines.
    """
    rows = AuditRecord.objects.all()
    if pipeline is not None:
        of_pipelines = Q()
        for prefix in _OF_PIPELINES:
            of_pipelines |= Q(action__startswith=prefix)
        rows = rows.filter(of_pipelines, Q(target=pipeline) | Q(target__startswith=f"{pipeline}/"))
    if fold:
        return folded(rows[:READ_MAX].iterator(chunk_size=500), limit, user=user, kind=kind)
    if user is not None:
        rows = rows.filter(username=user)
    if kind is not None:
        rows = rows.filter(action__startswith=f"{kind}.")
    return [_entry(row) for row in rows[:limit]]


def folded(
    rows: Iterable[AuditRecord], limit: int, *, user: str | None = None, kind: str | None = None
) -> list[AuditEntry]:
    """Folds saves into one entry each. `rows` are newest first, and by all people, because what another
    person did also ends such a series. An entry's `times` says how many saves it stands for, and `since` when
    the first one was."""
    entries: list[AuditEntry] = []
    # of a pipeline or a wall: its oldest save so far, its entry
    sittings: dict[tuple[bool, str], tuple[AuditRecord, AuditEntry]] = {}
    for row in rows:
        # A wall may be called as a pipeline is.
        of = (row.action.startswith("wall."), row.target.partition("/")[0])
        later = sittings.get(of)
        if later is not None and _one_sitting(later[0], row):
            later[1]["times"] += 1
            later[1]["since"] = row.at.isoformat()
            sittings[of] = (row, later[1])
            continue
        sittings.pop(of, None)
        if (user is not None and row.username != user) or (
            kind is not None and not row.action.startswith(f"{kind}.")
        ):
            continue
        if len(entries) == limit:
            break
        entry = _entry(row)
        entries.append(entry)
        if row.action in AUTOSAVES:
            sittings[of] = (row, entry)
    return entries


def _one_sitting(later: AuditRecord, row: AuditRecord) -> bool:
    same = row.action == later.action and row.username == later.username
    return same and later.at - row.at <= PAUSE


def people() -> list[str]:
    """Returns the people in the log, by name."""
    return list(AuditRecord.objects.order_by("username").values_list("username", flat=True).distinct())


def _entry(row: AuditRecord) -> AuditEntry:
    at = row.at.isoformat()
    return {
        "id": row.pk,
        "at": at,
        "since": at,
        "times": 1,
        "user": row.username,
        "action": row.action,
        "target": row.target,
        "detail": row.detail,
    }
