"""Brings home what runs elsewhere than where it belongs (`webapp/handovers/homes.py`)."""

from __future__ import annotations

from django.db import transaction

from pipeline_runtime.model.ids import document_group
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.records import audit
from webapp.handovers import schemas
from webapp.handovers.actions import KEEPS_RUNNING, order
from webapp.handovers.facts import group_facts
from webapp.handovers.homes import elsewhere, moved_groups, settled_places
from webapp.handovers.models import Handover
from webapp.handovers.selectors import handover_json
from webapp.pipelines.schemas import Elsewhere
from webapp.pipelines.selectors import pipeline_named
from webapp.pipelines.shape import groups_of
from webapp.placements.group_state import GroupFacts, default_strategy, migrate_refusal
from webapp.placements.models import Deployment
from webapp.placements.selectors import active_deployment
from webapp.problems import Conflict


@transaction.atomic
def bring_back(actor: User, name: str) -> schemas.BroughtBack:
    """Orders a live migration home for each group that runs elsewhere, and says why the others cannot move.

    Raises Conflict if the pipeline does not run, or if nothing of it runs elsewhere.
    """
    require(actor, Role.OPERATOR, "move elements")
    pipeline = pipeline_named(name, for_update=True)
    deployment = active_deployment(pipeline)
    if deployment is None or deployment.status != Deployment.Status.RUNNING:
        raise Conflict(
            f'"{pipeline.title}" does not run, so nothing can be brought back.',
            safe="Nothing was changed.",
            next="Deploy the pipeline first.",
        )
    facts = group_facts([deployment])[deployment.pk]
    document, moves = deployment.version.document, moved_groups([deployment.pk]).get(deployment.pk, {})
    found = elsewhere(pipeline.draft, document, settled_places(facts.values()), moves)
    if not found:
        raise Conflict(
            f'Everything of "{pipeline.title}" runs where it belongs.',
            safe="Nothing was changed.",
            next="Nothing is to be done. To move an element, choose a node for it.",
        )
    placed = {document_group(group.group): group for group in facts.values()}
    group_of = {id: group for group, ids in groups_of(document).items() for id in ids}
    handovers: dict[str, Handover] = {}
    brought: list[str] = []
    refused: list[schemas.NotBroughtBack] = []
    for each in found:
        id = each["element"]
        group = placed[group_of[id]]
        going = handovers.get(group.group)
        if going is not None and going.target == each["home"]:
            brought.append(id)
        elif (reason := _refusal(group, each, going)) is not None:
            refused.append({"element": id, "home": each["home"], "reason": reason})
        else:
            handovers[group.group] = order(
                actor,
                deployment,
                group,
                element=id,
                kind=Handover.Kind.MIGRATION,
                strategy=default_strategy(group),
                target=each["home"],
            )
            brought.append(id)
    told = {
        "deployment": deployment.pk,
        "elements": brought,
        "refused": [each["element"] for each in refused],
    }
    audit(actor, "pipeline.bring_back", name, **told)
    return {
        "handovers": [handover_json(handover) for handover in handovers.values()],
        "elements": brought,
        "refused": refused,
    }


def _refusal(group: GroupFacts, elsewhere: Elsewhere, going: Handover | None) -> str | None:
    """Returns a sentence that says why the element cannot go home now. `going` is the move of its group that
    was ordered just before."""
    home = elsewhere["home"]
    if going is not None:
        return f"It runs as one with what moves to {going.target}. {KEEPS_RUNNING}"
    if home not in group.nodes:
        return f"{home} is no longer registered. {KEEPS_RUNNING}"
    why = migrate_refusal(group, home, None)
    return None if why is None else f"It cannot move to {home}: {why}. {KEEPS_RUNNING}"
