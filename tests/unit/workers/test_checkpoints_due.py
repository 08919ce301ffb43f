"""When a checkpoint is taken: by time, by count of batches, never without a new batch."""

from __future__ import annotations

import pytest

from pipeline_runtime.model.ids import Seq
from workers.node.checkpoints import Tried, due


@pytest.mark.parametrize(
    ("seq", "now_s", "batches", "expected"),
    [
        (10, 1000.0, 0, False),  # nothing new, however late
        (11, 104.9, 0, False),
        (11, 105.0, 0, True),
        (29, 100.1, 20, False),
        (30, 100.1, 20, True),
        (90, 100.1, 0, False),  # batches are not counted
        (11, 105.0, 20, True),  # time still counts
    ],
)
def test_due(seq: int, now_s: float, batches: int, expected: bool) -> None:
    assert due(Tried(100.0, Seq(10)), Seq(seq), now_s, 5.0, batches) is expected
