"""Random schedules of whole handovers: replicas, control, a broker, and faults.

SEED=123 replays one schedule with its trace; SCHEDULES=50000 tries more than CI does.
"""

from __future__ import annotations

import os
from collections import Counter
from itertools import chain

import pytest

from tests.chosen import examples
from tests.simulation.mutants import (
    MUTANTS,
    OF_THE_CORE,
    SEEDS_FIRST,
    SEEDS_FIRST_OF_THE_CORE,
    Decide,
    Rules,
)
from tests.simulation.schedules import (
    CONTROL_RESTARTED,
    HEIR_LOST,
    RELEASED,
    STATE_BEHIND,
    TROUBLED_STEPS,
    TWO_TARGETS,
    Schedule,
    try_seed,
)

SCHEDULES_OF_CI = 4000
SCHEDULES = int(os.environ.get("SCHEDULES", examples(6000)))
SEED = os.environ.get("SEED")
BATCHES = 4
MET_BY_100_SCHEDULES = {RELEASED: 25, HEIR_LOST: 4, CONTROL_RESTARTED: 4, TWO_TARGETS: 200}
"""At least this many: about half of what schedules meet. With fewer, a law that nothing breaks would say
little."""


@pytest.mark.timeout(180 + SCHEDULES // 10)
@pytest.mark.parametrize("batch", range(1 if SEED else BATCHES))
def test_no_schedule_breaks_a_law(batch: int) -> None:
    """One epoch per seq, no seq twice or missing, and some owner once the faults are over."""
    seeds = [int(SEED)] if SEED else range(batch, SCHEDULES, BATCHES)
    met: Counter[str] = Counter()
    for seed in seeds:
        broken = try_seed(seed, met=met)
        assert broken is None, str(broken)
    print(f"{len(seeds)} schedules met {dict(met)}")
    if len(seeds) >= 500:
        missed = {
            what: met[what]
            for what, least in MET_BY_100_SCHEDULES.items()
            if met[what] * 100 < least * len(seeds)
        }
        assert not missed, f"too few in {len(seeds)} schedules: {missed}"


class OwnersCrashBehind(Schedule):
    """Each third owner crashes when its batch is in the journal and its state lacks the batch."""

    def _step(self) -> None:
        super()._step()
        for replica in self.replicas.values():
            is_hit = replica.up and self._is_behind(replica) and self.network.now < TROUBLED_STEPS
            if is_hit and self.random.random() < 1 / 3:
                self._crash(replica)


def test_an_owner_that_crashes_between_its_commit_and_the_write_of_its_state_catches_up() -> None:
    met: Counter[str] = Counter()
    for seed in range(40):
        schedule = OwnersCrashBehind(seed, Rules(), None)
        schedule.run()  # raises LawBroken
        met.update(schedule.met)
    assert met[STATE_BEHIND] >= 20


@pytest.mark.timeout(180 + SCHEDULES_OF_CI // 10)
@pytest.mark.parametrize("broken", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_protocol_without_one_of_its_rules_is_found_out(broken: Decide) -> None:
    """CI's schedules find it, by a seq that is missing or stands twice, and not because no replica owns."""
    first = SEEDS_FIRST[broken]
    assert first in range(SCHEDULES_OF_CI)
    tried = (try_seed(seed, Rules(broken)) for seed in chain([first], range(SCHEDULES_OF_CI)))
    found = next((result for result in tried if result is not None and result.is_unsafe), None)
    assert found is not None, f"no schedule of {SCHEDULES_OF_CI} finds it out"
    print(found)


@pytest.mark.timeout(180 + SCHEDULES_OF_CI // 10)
@pytest.mark.parametrize("broken", OF_THE_CORE)
def test_a_core_without_one_of_its_rules_is_found_out(broken: str) -> None:
    seeds = chain([SEEDS_FIRST_OF_THE_CORE[broken]], range(SCHEDULES_OF_CI))
    tried = (try_seed(seed, OF_THE_CORE[broken]) for seed in seeds)
    found = next((result for result in tried if result is not None and result.is_unsafe), None)
    assert found is not None, f"no schedule of {SCHEDULES_OF_CI} finds it out"
    print(found)
