"""Computes how long an element paused while its owner changed. Pure.

The pause is the time by which rows waited longer because of the move. It begins when the new owner could have
processed the first row of its first batch: the row has come, and the old owner has made its last commit. It
ends with the new owner's first commit. The time that a row usually waits is subtracted. So two times do not
count: time without input, and time in which the element had nothing to write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webapp.handovers.schemas import HandoverPause


def pause_of(measured: Mapping[str, Any]) -> HandoverPause | None:
    """Returns the pause in a handover's `measured`, or None if nothing was processed before or since."""
    last_ms, first_ms = measured.get("last_commit_at_ms"), measured.get("first_commit_at_ms")
    if last_ms is None or first_ms is None:
        return None
    gap_ms = max(0, first_ms - last_ms)
    wait_ms, usual_ms = measured.get("first_wait_ms"), measured.get("usual_wait_ms")
    # The old owner of a stop-and-copy processed what came until it was told to stop.
    stood_ms = min(gap_ms, max(0, first_ms - measured.get("stopped_at_ms", last_ms)))
    waited_ms = stood_ms if wait_ms is None else min(gap_ms, wait_ms)
    return {
        "ms": max(0, waited_ms - (usual_ms or 0)),
        "at_most": wait_ms is None or usual_ms is None,
        "gap_ms": gap_ms,
        "waited_ms": None if wait_ms is None else waited_ms,
        "usual_ms": usual_ms,
    }
