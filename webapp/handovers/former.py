"""Says how former moves of an element went. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

from webapp.handovers.forecast import Past
from webapp.handovers.models import Handover
from webapp.handovers.schemas import Former, FormerMove, MoveSpread


def former_json(moves: Sequence[tuple[Handover, Past]]) -> Former:
    """Returns the former moves for an answer. `moves` are newest first."""
    rows: list[FormerMove] = [
        {
            "id": str(row.pk),
            "ended_at": (row.ended_at or row.created_at).isoformat(),
            "origin": row.origin,
            "target": row.target,
            "pause_ms": past.pause_ms,
            "ready_ms": past.ready_ms,
            "bytes": row.bytes_copied,
        }
        for row, past in moves
    ]
    return {
        "moves": rows,
        "pause_ms": spread(row["pause_ms"] for row in rows),
        "ready_ms": spread(row["ready_ms"] for row in rows),
        "bytes": spread(row["bytes"] for row in rows),
    }


def spread(values: Iterable[int | None]) -> MoveSpread | None:
    """Returns percentiles by nearest rank: each is one of the values. Returns None if no value is known."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return None

    def rank(percent: int) -> int:
        return known[max(0, ceil(percent / 100 * len(known)) - 1)]

    return {"n": len(known), "least": known[0], "p50": rank(50), "p95": rank(95), "most": known[-1]}
