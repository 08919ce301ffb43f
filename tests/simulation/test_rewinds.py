"""Rewinds among claims that come at the same time, late, and from a state that was rewound meanwhile.

SEED=123 replays one schedule; SCHEDULES=50000 tries more than CI does.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from random import Random

import pytest

from pipeline_runtime.journal.view import JournalBroken
from pipeline_runtime.model.desired import ClaimOrder
from pipeline_runtime.model.ids import Seq
from tests.simulation.actors import LawBroken, ReplicaActor
from tests.simulation.broker import Broker
from tests.simulation.memory import Desired
from tests.simulation.mutants import Rules
from tests.simulation.network import Network, Trouble
from tests.simulation.schedules import Judge

SCHEDULES_OF_CI = 400
SCHEDULES = int(os.environ.get("SCHEDULES", SCHEDULES_OF_CI))
SEED = os.environ.get("SEED")
NAMES = ("A", "B", "C")
TROUBLED_STEPS, CALM_STEPS_MAX = 400, 600
REWINDS_PER_SCHEDULE = 0.5
"""At least this many. With fewer, a law that nothing breaks would say little."""


@dataclass
class Rewinding:
    seed: int
    heeds_rewinds: bool = True
    crashes: bool = True
    keeps_the_view: bool = True

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.broker = Broker()
        self.network = Network(self.random, self.broker, Trouble(delay_max=self.random.choice([1, 4])))
        self.judge = Judge(self.broker)
        self.replicas = [
            ReplicaActor(name, self.network, self.random, Rules(), lambda who, what, *places: None)
            for name in NAMES
        ]
        for replica in self.replicas:
            replica.heeds_rewinds = self.heeds_rewinds
            replica.marks.are_noted = True
            replica.marks.keep_the_view = self.keeps_the_view
        self._orders = 0

    def run(self) -> None:
        """Raises LawBroken or JournalBroken."""
        while self.network.now < TROUBLED_STEPS:
            if self.random.random() < 0.04:
                self._order(rewind=self.random.random() < 0.4)
            if self.random.random() < 0.04:
                self.random.choice(self.replicas).paused_until = self.network.now + self.random.choice(
                    [5, 30]
                )
            if self.crashes and self.random.random() < 0.02:
                crashed = self.random.choice(self.replicas)
                crashed.crash(lost_batches=self.random.choice([0, 0, 1]))
                crashed.up = True
            self._step()
        committed = self.judge.commits
        while self.judge.commits < committed + 5:
            if self.network.now > TROUBLED_STEPS + CALM_STEPS_MAX:
                raise LawBroken(f"nobody owns {CALM_STEPS_MAX} steps after the last fault")
            if self.network.now % 100 == 0:
                self._order(rewind=False)
            self._step()

    def _order(self, *, rewind: bool) -> None:
        """Orders from a control that knows what was granted, and which seqs count, at this moment."""
        replica = self.random.choice(self.replicas)
        self._orders += 1
        to = Seq(self.random.choice(list(self.judge.states))) if rewind else None
        granted = max(replica.memory.view.granted for replica in self.replicas)
        order = ClaimOrder(id=f"o{self._orders}", over=granted, rewind=to)
        if to is not None:
            # It starts from a checkpoint: the chosen one, or one before it when that is damaged.
            counting = sorted(Seq(seq) for seq in self.judge.states if seq <= to)
            at = self.random.choice(counting[-3:])
            replica.start_over({seq: self.judge.states[seq] for seq in counting if seq <= at})
        replica.desired = Desired(self._orders, order)

    def _step(self) -> None:
        self.network.now += 1
        self.broker.now = self.network.now
        self.broker.expire()
        self.network.deliver()
        for replica in self.replicas:
            if replica.paused_until <= self.network.now:
                replica.act()
        self.judge.look()


def broken_by(schedule: Rewinding) -> str | None:
    try:
        schedule.run()
    except (LawBroken, JournalBroken) as broken:
        return f"{broken} (replay with SEED={schedule.seed})"
    return None


@pytest.mark.timeout(180 + SCHEDULES // 10)
def test_nothing_is_committed_upon_what_was_rewound() -> None:
    rewinds = 0
    seeds = [int(SEED)] if SEED else range(SCHEDULES)
    for seed in seeds:
        schedule = Rewinding(seed)
        broken = broken_by(schedule)
        assert broken is None, broken
        rewinds += schedule.judge.rewinds
    print(f"{len(seeds)} schedules met {rewinds} rewinds")
    assert SEED or rewinds >= REWINDS_PER_SCHEDULE * SCHEDULES


def test_replicas_that_do_not_see_what_was_rewound_are_found_out() -> None:
    """They commit nothing on top of it, which the core takes care of. So nothing goes on, or they rewind to
    what does not count."""
    found = first_broken(heeds_rewinds=False, crashes=False)
    assert "nobody owns" in found or "which an earlier rewind had made void" in found


def test_replicas_that_forget_what_lies_before_their_mark_are_found_out() -> None:
    """They read on in a journal that was trimmed up to there, and no longer know what was rewound before."""
    print(first_broken(keeps_the_view=False))


def first_broken(**rules: bool) -> str:
    tried = (broken_by(Rewinding(seed, **rules)) for seed in range(SCHEDULES_OF_CI))
    found = next((broken for broken in tried if broken is not None), None)
    assert found is not None, f"no schedule of {SCHEDULES_OF_CI} finds it out"
    return found
