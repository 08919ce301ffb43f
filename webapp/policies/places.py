"""Stores the sites where the users of elements are. REST reports a site, and policies of the kind follow use
it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from pipeline_runtime.placement.policy.facts import GroupNow, UserAt
from pipeline_runtime.placement.policy.replay import Stay
from pipeline_runtime.placement.policy.rules import FollowUser, Policy
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.nodes.links import known_sites
from webapp.pipelines.models import Pipeline
from webapp.pipelines.selectors import no_element, pipeline_named
from webapp.pipelines.shape import element_of, is_view, names_of
from webapp.placements.selectors import active_deployment
from webapp.policies import schemas
from webapp.policies.facts import DeployedGroup, inputs_of
from webapp.policies.models import UserPlace, UserStay
from webapp.problems import Conflict, Invalid, TooSoon

CHANGE_EACH = timedelta(seconds=2)
"""How often another place is accepted for an element."""
TOLD_EACH = timedelta(seconds=10)
"""How often it is recorded that a place was reported again."""
AUDITED_EACH = timedelta(hours=1)
"""How often one user's reports for an element are audited: a device may report every few seconds."""
STAYS_KEPT = timedelta(days=1)


@transaction.atomic
def tell(actor: User, name: str, element: str, site: str) -> UserPlace:
    """Reports that the user of the element is at `site` now. Reporting it again only updates the time."""
    require(actor, Role.OPERATOR, "say where users are")
    pipeline, site = _with_element(name, element), _known(site)
    now, by = timezone.now(), actor.username
    first = {"site": site, "since": now, "told_at": now, "told_by": by, "audited_at": now}
    row, is_new = UserPlace.objects.get_or_create(pipeline=pipeline, element=element, defaults=first)
    if is_new:
        audit(actor, "element.place", f"{name}/{element}", site=site)
        announce()
        return row
    row = UserPlace.objects.select_for_update().get(pk=row.pk)
    if row.site == site:
        if now - row.told_at >= TOLD_EACH:
            row.told_at, row.told_by = now, by
            row.save(update_fields=["told_at", "told_by"])
        return row
    if now - row.since < CHANGE_EACH:
        seconds = int(CHANGE_EACH.total_seconds())
        raise TooSoon(
            f"The user of {_called(pipeline, element)} came to {row.site} less than {seconds} s ago.",
            safe="Nothing was changed.",
            next=f"Report it again in {seconds} s.",
            retry_after_s=seconds,
        )
    if row.told_by != by or now - row.audited_at >= AUDITED_EACH:
        audit(actor, "element.place", f"{name}/{element}", site=site, before=row.site)
        row.audited_at = now
    _has_left(row, now)
    row.site, row.since, row.told_at, row.told_by = site, now, now, by
    row.save()
    announce()
    return row


@transaction.atomic
def forget(actor: User, name: str, element: str) -> None:
    """Forgets where the element's user is. A second call changes nothing."""
    require(actor, Role.OPERATOR, "say where users are")
    pipeline = _with_element(name, element)
    row = UserPlace.objects.select_for_update().filter(pipeline=pipeline, element=element).first()
    if row is not None:
        _has_left(row, timezone.now())
        row.delete()
        audit(actor, "element.place", f"{name}/{element}", site=None)
        announce()


def _has_left(row: UserPlace, now: datetime) -> None:
    stay = {"pipeline": row.pipeline, "element": row.element}
    UserStay.objects.filter(**stay, until__lt=now - STAYS_KEPT).delete()
    UserStay.objects.create(**stay, site=row.site, since=row.since, until=now)


def place_json(row: UserPlace) -> schemas.UserPlace:
    return {**_note(row), "told_at": row.told_at.isoformat(), "told_by": row.told_by}


def places_of(pipelines: Iterable[Pipeline]) -> dict[tuple[int, str], schemas.UserPlaceNote]:
    """Returns places by pipeline and element."""
    rows = UserPlace.objects.filter(pipeline__in=list(pipelines))
    return {(row.pipeline_id, row.element): _note(row) for row in rows}


def with_users(
    measured: Sequence[GroupNow], groups: Mapping[str, DeployedGroup], policies: Iterable[Policy]
) -> list[GroupNow]:
    """Adds to the groups that follow a user where that user is. If others go along, all groups of those
    pipelines get their inputs."""
    asked = [policy.rule for policy in policies if isinstance(policy.rule, FollowUser)]
    if not asked:
        return list(measured)
    users: dict[tuple[str, str], UserAt] = {
        (row.pipeline.name, row.element): UserAt(row.element, row.site, row.since.timestamp())
        for row in UserPlace.objects.filter(pipeline__name__in={rule.pipeline for rule in asked})
        .select_related("pipeline")
        .only("pipeline__name", "element", "site", "since")
    }
    along = {rule.pipeline for rule in asked if rule.along}
    inputs = inputs_of({group.deployment.pk for group in groups.values() if group.now.pipeline in along})

    def told(group: GroupNow) -> GroupNow:
        own = tuple(
            user
            for (pipeline, id), user in users.items()
            if group.pipeline == pipeline and id in group.elements
        )
        return replace(group, users=own, inputs=group.inputs or inputs.get(group.id, ()))

    return [told(group) for group in measured]


def stays_of(pipeline: str, groups: Mapping[str, DeployedGroup]) -> dict[str, list[Stay]]:
    """Returns group -> where the users of its elements have been in the last day and are now, oldest
    first."""
    came = [
        (row.element, Stay(UserAt(row.element, row.site, row.since.timestamp()), row.until.timestamp()))
        for row in UserStay.objects.filter(pipeline__name=pipeline)
    ]
    came += [
        (row.element, Stay(UserAt(row.element, row.site, row.since.timestamp())))
        for row in UserPlace.objects.filter(pipeline__name=pipeline)
    ]
    return {
        id: [stay for element, stay in came if element in group.now.elements]
        for id, group in groups.items()
        if group.now.pipeline == pipeline
    }


def _note(row: UserPlace) -> schemas.UserPlaceNote:
    return {"site": row.site, "since": row.since.isoformat()}


def _called(pipeline: Pipeline, element: str) -> str:
    """Returns the name that people see, of an element that runs or is in the draft."""
    deployment = active_deployment(pipeline)
    running = names_of(deployment.version.document) if deployment else {}
    return {**names_of(pipeline.draft), **running}.get(element, element)


def _with_element(name: str, element: str) -> Pipeline:
    """Returns the pipeline, if what it runs, or its draft, has such an element that nodes run."""
    pipeline = pipeline_named(name)
    deployment = active_deployment(pipeline)
    documents = [deployment.version.document] if deployment else []
    for document in (*documents, pipeline.draft):
        found = element_of(document, element)
        if found is not None and is_view(found.get("type")):
            title = names_of(document)[element]
            raise Conflict(
                f"{title} cannot follow a user: it is shown by the dashboard and runs on no node.",
                safe="Nothing was changed.",
                next="Choose an element that runs on a node.",
            )
        if found is not None:
            return pipeline
    raise no_element(name, element)


def _known(site: str) -> str:
    site, known = " ".join(site.split()), known_sites()
    if site not in known:
        some = ", ".join(sorted(known)) or "none"
        message = f"there is no site {site}; there are {some}"
        raise Invalid(
            f"This place is not valid: {message}.",
            safe="Nothing was changed.",
            next="Set the site of a node, or set the latencies to the site on the map.",
            faults=[{"element": None, "path": "site", "message": message, "code": "unknown"}],
        )
    return site
