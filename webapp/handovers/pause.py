"""How long an element paused while its owner changed, by the new owner's journal. Pure.

An element that writes once a second is silent for a second even when nothing happens. So the usual time
between two outputs is no pause and is subtracted. The outputs of an element that seldom writes would show a
pause only by chance. For those, the time without processing is measured, from the old owner's last commit to
the new owner's first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from webapp.handovers.schemas import HandoverPause

SELDOM_MS = 10_000
"""Outputs that are usually further apart say little about a pause."""


@dataclass(frozen=True)
class Pause:
    ms: int  # without `usual_ms`, at most this
    by: Literal["outputs", "commits"]
    between_ms: int  # from the old owner's last one to the new owner's first
    usual_ms: int | None  # the usual time between two before; None when there were too few


def pause_of(measured: Mapping[str, Any]) -> Pause | None:
    """Returns the pause in a handover's `measured`, or None if nothing was processed since, or nothing was
    measured."""
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
