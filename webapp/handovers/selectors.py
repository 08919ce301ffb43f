"""Reads handovers as JSON."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet

from pipeline_runtime.handover.phases import PASSING, Phase, Strategy
from pipeline_runtime.model.ids import GROUP_NUMBER, document_group
from webapp.handovers import actions, schemas
from webapp.handovers.costs import cost_json, surroundings
from webapp.handovers.facts import coming, facts_by_element, group_facts
from webapp.handovers.forecast import Past, forecast_json
from webapp.handovers.former import former_json
from webapp.handovers.models import Handover
from webapp.handovers.pause import pause_of
from webapp.handovers.schemas import NodeForecast
from webapp.moments import ms_of_moment
from webapp.pipelines.models import Pipeline
from webapp.placements.fleet import Fleet
from webapp.placements.selectors import active_deployment, busy_nodes

RECENT = 20
DRAFT = "deployment__pipeline__draft"
"""Large, and not needed here."""
LARGE = (DRAFT, "written")


def handover_json(handover: Handover) -> schemas.Handover:
    return {
        "id": str(handover.pk),
        "pipeline": handover.deployment.pipeline.name,
        "deployment": handover.deployment_id,
        "element": handover.element,
        "group": document_group(handover.group),
        "kind": handover.kind,
        "strategy": handover.strategy,
        "origin": handover.origin,
        "target": handover.target,
        "checkpoint_seq": handover.checkpoint_seq,
        "phase": handover.phase,
        "outcome": handover.outcome,
        "message": handover.message,
        "code": handover.code,
        "timeline": handover.timeline,
        "gap_ms": handover.gap_ms,
        "measured": handover.measured,
        "round_trips": handover.round_trips,
        "reason": handover.reason,
        "bytes_copied": handover.bytes_copied,
        "cancel_requested": handover.cancel_requested,
        "pause": pause_of(handover.measured),
        "begun": handover.begun,
        "created_at": handover.created_at.isoformat(),
        "created_by": handover.created_by.username if handover.created_by else None,
        "ended_at": handover.ended_at.isoformat() if handover.ended_at else None,
        "cancellable": actions.cancellable(handover),
    }


def handovers(
    limit: int = 100, pipeline: str | None = None, element: str | None = None, group: str | None = None
) -> list[schemas.Handover]:
    """Returns handovers, newest first. `element` is the one that a user chose; `group` finds all of its
    elements."""
    rows = Handover.objects.select_related("deployment__pipeline", "created_by").defer(*LARGE)
    if pipeline is not None:
        rows = rows.filter(deployment__pipeline__name=pipeline)
    if element is not None:
        rows = rows.filter(element=element)
    if group is not None:
        rows = rows.filter(Q(group=group) | Q(group__startswith=f"{group}{GROUP_NUMBER}"))
    return [handover_json(row) for row in rows[:limit]]


PAST = 100


def forecast(pipeline: Pipeline, element: str) -> dict[str, NodeForecast]:
    """Returns how long it takes to move the element to each other node, or to restore it there. Returns {}
    while it is not deployed."""
    deployment = active_deployment(pipeline)
    if deployment is None:
        return {}
    group = facts_by_element(group_facts([deployment])[deployment.pk]).get(element)
    if group is None:
        return {}
    found = forecast_json(past_of(pipeline.name), pipeline.name, group, busy_nodes())
    around, against = surroundings(deployment, group), Fleet(coming()).warnings(deployment, group.group)
    for node, there in found.items():
        has_copy = there["had"] or there["start"] == "follows"
        there["cost"] = cost_json(around, group, node, has_copy=has_copy)
        there["warnings"] = against.get(node, [])
    return found


def past_of(pipeline: str) -> list[Past]:
    """Returns completed handovers, newest first: those of the pipeline, and those of all."""
    done = (
        Handover.objects.filter(outcome=Handover.Outcome.DONE)
        .select_related("deployment__pipeline")
        .defer(*LARGE)
        .order_by("-ended_at")
    )
    rows = {row.pk: row for row in (*done.filter(deployment__pipeline__name=pipeline)[:PAST], *done[:PAST])}
    newest = sorted(rows.values(), key=lambda row: row.ended_at or row.created_at, reverse=True)
    return [_as_past(row) for row in newest]


def details(id: str) -> schemas.HandoverDetails:
    """Returns what the page of a handover shows besides the handover."""
    handover = actions.handover_with(id)
    done = Handover.objects.filter(
        deployment__pipeline=handover.deployment.pipeline_id,
        group=handover.group,
        strategy=handover.strategy,
        outcome=Handover.Outcome.DONE,
        created_at__lt=handover.created_at,
    )
    rows = done.select_related("deployment__pipeline").defer(*LARGE).order_by("-created_at")[:PAST]
    return {
        "written": handover.written,
        "ready_ms": _as_past(handover).ready_ms,
        "former": former_json([(row, _as_past(row)) for row in rows]),
    }


def _as_past(row: Handover) -> Past:
    # A restoration is over when the target owns. Whoever waits sees no difference between the steps before.
    until = (Phase.FINISH,) if row.kind == Handover.Kind.RESTORATION else PASSING
    passing = next((entry for entry in row.timeline if entry["phase"] in until), None)
    ordered_ms = ms_of_moment(row.created_at)
    pause, stops = pause_of(row.measured), row.strategy == Strategy.STOP_AND_COPY
    return Past(
        pipeline=row.deployment.pipeline.name,
        group=row.group,
        target=row.target,
        strategy=row.strategy,
        start=row.begun["start"],
        ready_ms=max(0, passing["start_ms"] - ordered_ms) if passing else None,
        pause_ms=pause["ms"] if pause and (stops or not pause["at_most"]) else None,
    )


def recent_handovers() -> list[schemas.Handover]:
    rows = Handover.objects.select_related("deployment__pipeline", "created_by").defer(*LARGE)
    return [handover_json(row) for row in recent(rows)]


def recent(rows: QuerySet[Any]) -> list[Any]:
    """Returns all that are running and those that ended last, newest first."""
    running = rows.filter(ended_at__isnull=True)
    ended = rows.filter(ended_at__isnull=False).order_by("-ended_at")[:RECENT]
    # Read in this order: one that ends in between is in both, and has ended.
    found = {row.pk: row for row in (*running, *ended)}
    return sorted(found.values(), key=lambda row: (row.created_at, str(row.pk)), reverse=True)
