"""The phases of a handover, as they are persisted. What leads from one to the next is the control side's."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    PENDING = "PENDING"
    PREPARE = "PREPARE"
    WARM = "WARM"
    CUT = "CUT"
    STOP = "STOP"
    COPY = "COPY"
    CLAIM = "CLAIM"
    FINISH = "FINISH"


BEFORE_CUT = (Phase.PENDING, Phase.PREPARE, Phase.WARM, Phase.STOP, Phase.COPY)
"""In these the group is its origin's, so the handover can be cancelled."""

PASSING = (Phase.CUT, Phase.CLAIM)
"""With the first of these ownership passes."""
