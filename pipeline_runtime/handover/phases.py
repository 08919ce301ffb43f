"""The strategies of a handover and their phases, as they are persisted.

The table is phases.json, which the browser's code reads, too: the phases that a strategy goes through in
their order, what people call them, and with which of them ownership passes. What leads from one phase to
the next is the control side's (workers/control/handovers/steps.py).
"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Any

_TABLE: dict[str, Any] = json.loads(Path(__file__).with_name("phases.json").read_text(encoding="utf-8"))


class Phase(StrEnum):
    PENDING = "PENDING"
    PREPARE = "PREPARE"
    WARM = "WARM"
    CUT = "CUT"
    STOP = "STOP"
    COPY = "COPY"
    CLAIM = "CLAIM"
    FINISH = "FINISH"


class Strategy(StrEnum):
    STANDBY = "standby"
    STOP_AND_COPY = "stop-and-copy"
    HOT_STANDBY = "hot-standby"
    CHECKPOINT = "checkpoint"
    REWIND = "rewind"

    @property
    def restores(self) -> bool:
        return bool(_TABLE["strategies"][self]["restores"])


PHASES: dict[Strategy, tuple[Phase, ...]] = {
    Strategy(name): tuple(Phase(phase) for phase in row["phases"])
    for name, row in _TABLE["strategies"].items()
}
"""When nothing goes wrong: CUT turns into CLAIM where the origin or the release fails."""

PASSING = tuple(Phase(name) for name in _TABLE["passing"])
"""With the first of these ownership passes."""


def _before_passing(phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
    return phases[: next(place for place, phase in enumerate(phases) if phase in PASSING)]


BEFORE_CUT = tuple(dict.fromkeys(phase for phases in PHASES.values() for phase in _before_passing(phases)))
"""In these the group is its origin's, so the handover can be cancelled."""
