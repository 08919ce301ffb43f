"""What a node reported of a replica, as it stands in the database: perhaps by another version of Fogline."""

from __future__ import annotations

import logging

from pydantic import ValidationError

from pipeline_runtime.model.desired import ReplicaStatus
from webapp.pipelines.models import Replica
from workers.control.guard import reason

log = logging.getLogger(__name__)


def reported(row: Replica | None) -> ReplicaStatus | None:
    """None: nothing, or nothing that can be read; the node's next report replaces it."""
    if row is None:
        return None
    try:
        return ReplicaStatus.model_validate(row.status)
    except ValidationError as error:
        group = f"{row.deployment_id}.{row.group}"
        log.warning("the last report of %s cannot be read and counts as none: %s", group, reason(error))
        return None
