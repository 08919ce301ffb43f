"""Tests the oracle for moves of the systems that the benchmark compares with Fogline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.benchmarks.bench_peers_moves import CELLS
from tests.benchmarks.events import NOTHING_WRONG, Verdict
from tests.benchmarks.peers.moving import Seen, gap, verdict
from tests.handover.traffic import ACTIVE_KEYS

_SENT = 2 * ACTIVE_KEYS + 10


def _outputs() -> list[Seen]:
    keys = [f"k{n % ACTIVE_KEYS:04d}" for n in range(_SENT)]
    return [Seen(n / 200, "a", key, n // ACTIVE_KEYS + 1, n, True) for n, key in enumerate(keys)]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (lambda seen: seen, NOTHING_WRONG),
        (lambda seen: seen[1:], Verdict(1, 0, 0, 0)),
        (lambda seen: [*seen, seen[-1]], Verdict(0, 1, 0, 0)),
        (lambda seen: [*seen[1 : ACTIVE_KEYS + 1], seen[0], *seen[ACTIVE_KEYS + 1 :]], Verdict(0, 0, 1, 0)),
        (lambda seen: [replace(seen[0], count=2), *seen[1:]], Verdict(0, 0, 0, 1)),
        (lambda seen: [replace(seen[0], intact=False), *seen[1:]], Verdict(0, 0, 0, 1)),
    ],
)
def test_each_event_is_counted_once_in_order_and_its_keys_blob_is_whole(
    fault: object, expected: Verdict
) -> None:
    assert callable(fault)
    assert verdict(fault(_outputs()), _SENT) == expected


def test_a_gap_is_between_the_last_output_of_one_and_the_first_of_the_other() -> None:
    old = [Seen(at, "a", "k0000", 1, 0, True) for at in (0.0, 9.0, 9.001, 9.1, 9.2)]
    new = [Seen(at, "b", "k0000", 1, 0, True) for at in (5.0, 9.5, 9.6)]  # it owned before, too
    found = gap([*old, *new], "a", "b")
    assert found.ms == pytest.approx(300)
    assert found.usual_ms == pytest.approx(99.5)


def test_each_system_is_moved_by_order_and_after_a_kill_with_its_defaults() -> None:
    assert {(cell.system, cell.way) for cell in CELLS if cell.name == "defaults"} == {
        (system, way) for system in ("streams", "flink") for way in ("handover", "restoration")
    }
