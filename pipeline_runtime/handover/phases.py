"""The strategies of a handover and their phases, as the database stores them.

The table is phases.json, which the browser's code also reads. For each strategy, it says which phases a
handover goes through if nothing goes wrong (`phases`), and which phase may follow which, and when (`next`).
It also has the words for people, and names the phases in which ownership passes (`passing`). Control decides
when a handover goes on (workers/control/handovers/steps.py), and enters no phase that the table does not
allow.
"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Any

_TABLE: dict[str, Any] = json.loads(Path(__file__).with_name("phases.json").read_text(encoding="utf-8"))


class Phase(StrEnum):
    """How far a handover has come. phases.json says which phase may follow which."""

    PENDING = "PENDING"
    PREPARE = "PREPARE"
    WARM = "WARM"
    CUT = "CUT"
    STOP = "STOP"
    COPY = "COPY"
    CLAIM = "CLAIM"
    FINISH = "FINISH"


class Strategy(StrEnum):
    """The way that a handover takes."""

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
"""The phases of each strategy in their order, when nothing goes wrong."""

NEXT: dict[Strategy, dict[Phase, dict[Phase, str]]] = {
    Strategy(name): {
        Phase(before): {Phase(after): when for after, when in following.items()}
        for before, following in row["next"].items()
    }
    for name, row in _TABLE["strategies"].items()
}
"""Strategy -> phase -> each phase that may follow it -> when it does. The usual one stands first."""

PASSING = tuple(Phase(name) for name in _TABLE["passing"])
"""Ownership passes with the first of these that a handover enters."""


def _before_passing(phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
    return phases[: next(place for place, phase in enumerate(phases) if phase in PASSING)]


BEFORE_CUT = tuple(dict.fromkeys(phase for phases in PHASES.values() for phase in _before_passing(phases)))
"""The phases in which the origin still owns the group, so the handover can be cancelled."""
