"""Changes the draft after a move."""

from __future__ import annotations

from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.handovers.models import Handover
from webapp.pipelines.actions import set_draft
from webapp.pipelines.pins import moved_pins
from webapp.pipelines.selectors import pipeline_named
from webapp.placements.selectors import elements_by_group


def draft_follows(handover: Handover) -> list[str]:
    """Pins elements to the target that the draft had pinned to the origin, after a live migration. Returns
    these elements.

    Makes a new revision of the draft, as if its user had saved it. So a user who saves an older revision gets
    a warning. Call it in the transaction in which the handover ends.
    """
    deployment = handover.deployment
    elements = elements_by_group([deployment.pk]).get((deployment.pk, handover.group), ())
    pipeline = pipeline_named(deployment.pipeline.name, for_update=True)
    draft, followed = moved_pins(pipeline.draft, elements, handover.origin, handover.target)
    if followed:
        set_draft(handover.created_by or pipeline.updated_by, pipeline, draft)
        audit(
            handover.created_by,
            "pipeline.follow_move",
            pipeline.name,
            elements=followed,
            origin=handover.origin,
            to=handover.target,
            handover=str(handover.pk),
            revision=pipeline.draft_revision,
        )
        announce()
    return followed
