"""Keeps what both owners wrote to the journal around a change of owner, for the page of the handover.

All times are the broker's. The journal is trimmed later, so it is read soon after the handover has ended.
Nothing depends on it: where it could not be read, the page says that the batches are not known.
"""

from __future__ import annotations

import logging

from django.db import transaction

from pipeline_runtime.journal.reader import read_since
from pipeline_runtime.kafka.clients import KafkaError
from pipeline_runtime.kafka.transactions import Doubtful
from pipeline_runtime.model.spec import GroupSpec
from webapp.audit.announcements import announce
from webapp.handovers.models import Handover
from webapp.placements.models import GroupPlacement
from workers.control.context import ControlContext
from workers.control.handovers.written import written_around

log = logging.getLogger(__name__)

BEFORE_MS = 10_000
"""How far before the change of owner the journal is read."""
AFTER_S = 3.0
"""How long the new owner's next batches are waited for."""


def keep_written(id: str, context: ControlContext) -> None:
    """Reads the journal around the handover's change of owner, and stores what matters."""
    handover = Handover.objects.get(pk=id)
    granted_ms = handover.measured.get("at_ms")
    placement = GroupPlacement.objects.filter(deployment=handover.deployment_id, group=handover.group).first()
    if handover.written is not None or granted_ms is None or placement is None:
        return
    if context.closing.wait(AFTER_S):
        return
    try:
        journal = GroupSpec.model_validate(placement.spec).journal
        written = written_around(read_since(context.kafka, journal, granted_ms - BEFORE_MS), granted_ms)
    except (Doubtful, KafkaError, ValueError) as error:
        log.info("what was written around the handover %s could not be read: %s", id, error)
        return
    with transaction.atomic():
        Handover.objects.filter(pk=id).update(written=written)
        announce()
