"""In place of a permit to commit where nothing is committed: a real one only the protocol's driver mints."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from pipeline_runtime.handover.ownership import CommitPermit
from pipeline_runtime.model.ids import Epoch


def unused_permit(epoch: int) -> CommitPermit:
    return cast(CommitPermit, SimpleNamespace(epoch=Epoch(epoch)))
