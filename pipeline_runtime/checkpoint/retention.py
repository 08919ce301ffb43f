"""Decides which checkpoints of a group are kept. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline_runtime.checkpoint.manifest import CheckpointSummary
from pipeline_runtime.model.ids import Seq

HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Retention:
    """Keeps the newest `newest`, and the first one of each hour for `hours`.

    The first checkpoint of an hour stays the first. So a group's oldest checkpoint is as old as `hours`
    allows, and records that were trimmed because of it are at least that old.
    """

    newest: int = 5
    hours: int = 24

    def __post_init__(self) -> None:
        if self.newest < 1:
            raise ValueError("at least one checkpoint is always kept")


CENTRALLY = Retention()
ON_NODES = Retention(newest=3, hours=0)


def retained(checkpoints: Iterable[CheckpointSummary], now_ms: int, policy: Retention) -> frozenset[Seq]:
    """Returns the seqs to keep. It is idempotent: of the checkpoints that it keeps, it keeps all."""
    by_seq = sorted(checkpoints, key=lambda checkpoint: checkpoint.seq)
    kept = {checkpoint.seq for checkpoint in by_seq[-policy.newest :]}
    first_of_hour: dict[int, Seq] = {}
    for checkpoint in by_seq:
        if now_ms - checkpoint.created_at_ms < policy.hours * HOUR_MS:
            first_of_hour.setdefault(checkpoint.created_at_ms // HOUR_MS, checkpoint.seq)
    return frozenset(kept | set(first_of_hour.values()))
