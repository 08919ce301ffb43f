"""Random schedules of whole handovers: replicas, control, a broker and what goes wrong with them.

SEED=123 replays one schedule with its trace; SCHEDULES=50000 tries more than CI does.
"""

from __future__ import annotations

import os

import pytest

from tests.simulation.mutants import MUTANTS, Decide
from tests.simulation.schedules import try_seed

SCHEDULES = int(os.environ.get("SCHEDULES", "2000"))
SEED = os.environ.get("SEED")
BATCHES = 4
MUTANT_SEEDS_MAX = 6000


@pytest.mark.timeout(180 + SCHEDULES // 10)
@pytest.mark.parametrize("batch", range(1 if SEED else BATCHES))
def test_no_schedule_breaks_a_law(batch: int) -> None:
    """One epoch per seq, no seq twice or missing, and some owner once the faults are over."""
    seeds = [int(SEED)] if SEED else range(batch, SCHEDULES, BATCHES)
    for seed in seeds:
        broken = try_seed(seed)
        assert broken is None, str(broken)


@pytest.mark.parametrize("broken", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_protocol_without_one_of_its_rules_is_found_out(broken: Decide) -> None:
    found = next(result for seed in range(MUTANT_SEEDS_MAX) if (result := try_seed(seed, broken)) is not None)
    print(found)
