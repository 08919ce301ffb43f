"""How long an element paused while its owner changed, from what the new owner's journal says. Pure.

An element that writes once a second is silent for a second also when nothing happens. So the usual time
between two outputs is no pause, and is taken off. What writes seldom, or nothing at all, would show a pause
by its outputs only by chance: of that, the time in which nobody processed is measured, from the old owner's
last commit to the new one's first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from webapp.handovers.schemas import HandoverPause

SELDOM_MS = 10_000
"""Outputs that are usually further apart say little of a pause."""


@dataclass(frozen=True)
class Pause:
    ms: int  # with `usual_ms` None at most that
    by: Literal["outputs", "commits"]
    between_ms: int  # from the old owner's last one to the new one's first
    usual_ms: int | None  # from one to the next before; None: there were too few to tell


def pause_of(measured: Mapping[str, Any]) -> Pause | None:
    """Of a handover's `measured`; None: nothing was processed since, or it was not measured."""
    by_outputs = _pause(measured, "outputs", "output")
    by_commits = _pause(measured, "commits", "commit")
    usual_ms = by_outputs.usual_ms if by_outputs is not None else None
    often = usual_ms is not None and usual_ms <= SELDOM_MS
    return by_outputs if often else by_commits or by_outputs


def pause_json(measured: Mapping[str, Any]) -> HandoverPause | None:
    pause = pause_of(measured)
    if pause is None:
        return None
    return {
        "ms": pause.ms,
        "by": pause.by,
        "between_ms": pause.between_ms,
        "usual_ms": pause.usual_ms,
    }


def _pause(measured: Mapping[str, Any], by: Literal["outputs", "commits"], of: str) -> Pause | None:
    last_ms, first_ms = measured.get(f"last_{of}_at_ms"), measured.get(f"first_{of}_at_ms")
    if last_ms is None or first_ms is None:
        return None
    between_ms, usual_ms = first_ms - last_ms, measured.get(f"usual_{of}_ms")
    return Pause(max(0, between_ms - (usual_ms or 0)), by, between_ms, usual_ms)
