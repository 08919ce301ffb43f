"""Copies of elements at sites: what the editor is to draw, and what is added to, or taken out of, a pipeline
that runs when a site comes or goes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

from django.db import transaction

from pipeline_runtime.model.document import structural_faults
from pipeline_runtime.planning import copies
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.operations.actions import Because, refuse_invalid, upgrade, upgrade_failed
from webapp.operations.models import Operation
from webapp.operations.upgrades import refuse_upgrade
from webapp.pipelines.actions import set_draft
from webapp.pipelines.checking import fault_json
from webapp.pipelines.models import Pipeline
from webapp.pipelines.schemas import Copies
from webapp.pipelines.selectors import pipeline_named
from webapp.pipelines.shape import names_of
from webapp.placements.models import Deployment
from webapp.placements.selectors import active_deployment, is_what_runs
from webapp.problems import Conflict, Invalid, Problem

SAFE = "Nothing was changed."
Change = Literal["copy", "take-out"]


def drawn(name: str, document: dict[str, Any], elements: Collection[str], sites: Sequence[str]) -> Copies:
    """Returns the document with copies of the elements at the sites. Nothing is saved."""
    faults = structural_faults(document)
    if faults:
        raise Invalid(
            "The elements were not copied: the draft has mistakes.",
            safe=SAFE,
            next="Correct them first.",
            faults=[fault_json(fault) for fault in faults],
        )
    names = names_of(document)
    refused = copies.refusal(document, names, elements)
    if not sites or not any(each["id"] in elements for each in document["spec"].get("elements") or ()):
        refused = "Choose elements and sites."
    if refused is not None:
        raise Conflict(refused, safe=SAFE, next="Change what is selected, then copy again.")
    made, ids = copies.with_copies(document, names, elements, sites, _spent(pipeline_named(name)))
    return {"document": made, "elements": ids}


@transaction.atomic
def change_copies(actor: User | None, name: str, site: str, change: Change, reason: str = "") -> Operation:
    """Adds the missing copies at the site, or takes the site's copies out, in the draft and in what runs.
    `actor` is None for control itself, with its reason. Refuses if the draft is not the version that runs,
    because that would deploy other changes, too."""
    if actor is not None:
        require(actor, Role.EDITOR, "deploy pipelines")
    pipeline = pipeline_named(name, for_update=True)
    deployment, document = _changed(pipeline, site, change)
    deployment.pipeline = pipeline
    set_draft(actor, pipeline, document)
    audit(
        actor,
        "pipeline.copies",
        name,
        site=site,
        change=change,
        revision=pipeline.draft_revision,
        **({"reason": reason} if reason else {}),
    )
    announce()
    done = f"copies at {site}" if change == "copy" else f"without its copies at {site}"
    because = Because(reason, site, f"{done}, by the {reason}" if reason else done)
    return upgrade(actor, deployment, because=because)


def why_not(name: str, site: str, change: Change) -> str | None:
    """Returns why `change_copies` would refuse now, or None if it would not."""
    try:
        _changed(pipeline_named(name), site, change)
    except (Conflict, Invalid) as problem:
        return in_words(problem)
    return None


def draft_refusal(deployment: Deployment) -> str | None:
    """Returns why nobody can change the copies of what runs, at any site, or None if it is possible."""
    if not is_what_runs(deployment.pipeline.draft, deployment):
        return "its draft differs from the running version: deploy the draft first, or take its changes back"
    return "its last upgrade has failed: deploy it again first" if upgrade_failed(deployment) else None


def _changed(pipeline: Pipeline, site: str, change: Change) -> tuple[Deployment, dict[str, Any]]:
    """Returns the document to deploy. Raises Conflict or Invalid."""
    name, title = pipeline.name, pipeline.title
    deployment = active_deployment(pipeline)
    if deployment is None or deployment.status != Deployment.Status.RUNNING:
        raise Conflict(f'"{title}" does not run.', safe=SAFE, next="Deploy it first.")
    refused = draft_refusal(deployment)
    if refused is not None:
        raise Conflict(
            f"The copies of {title} at {site} were not changed: {refused}.",
            safe=SAFE,
            next="Do that, then try again.",
        )
    draft = pipeline.draft
    if change == "copy":
        document = copies.with_site(draft, names_of(draft), site, _spent(pipeline))
    else:
        document = copies.without_site(draft, site)
    if document == draft:
        what = (
            "has all possible copies already" if change == "copy" else "has no copies that can be taken out"
        )
        raise Conflict(f"{title} {what}, at {site}.", safe=SAFE, next="Choose another site.")
    refuse_invalid(name, document)
    refuse_upgrade(deployment, document, {}, ())
    return deployment, document


def _spent(pipeline: Pipeline) -> set[str]:
    """Returns the ids that no new element may have in what runs."""
    deployment = active_deployment(pipeline)
    return set() if deployment is None else deployment.gone


def in_words(problem: Problem) -> str:
    faults = "; ".join(fault["message"] for fault in problem.faults)
    return f"{problem} {faults}".strip()
