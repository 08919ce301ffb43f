"""Many handovers with faults, by a schedule that follows from a seed.

    make soak                      1,000 handovers
    SEED=7 HANDOVERS=50 make soak
    ENGINE=plain make soak         without Spark, with batches so small that owners run ahead

First comes each fault at each crash point, until it has occurred, then faults at random. The soak ends at the
first violation of the law or the oracle, and prints the seed and each step. The same seed gives the same
schedule, but the exact moment of a fault depends on the machine.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from pipeline_runtime.handover.crash_points import CrashPoint
from pipeline_runtime.model.spec import LATENCY_MS_MIN, Pace
from tests.handover import stage, traffic
from tests.handover.cells import (
    CELLS,
    CLAIMS,
    LIVE,
    LOSSES,
    OWNERS_FAULTS,
    SMALL_BATCHES,
    Cell,
    attempt,
    strike,
)
from tests.handover.control import Control, Fault
from tests.handover.nodes import EngineName, Node
from tests.handover.rig import Group, running_rig


@dataclass(frozen=True)
class Strike:
    """A fault of an owner that hands nothing over."""

    point: CrashPoint
    fault: Fault

    def __str__(self) -> str:
        return f"{self.fault} at {self.point}"


@dataclass(frozen=True)
class Load:
    pace: Pace
    rate: float  # events per second
    tick_s: float
    strikes: tuple[Strike, ...]


def _strikes(*points: CrashPoint) -> tuple[Strike, ...]:
    return tuple(Strike(point, fault) for point in points for fault in OWNERS_FAULTS)


LOADS: dict[EngineName, Load] = {
    "spark": Load(
        Pace(latency_ms=LATENCY_MS_MIN, interval_ms_min=100, interval_ms_max=400),
        traffic.RATE,
        traffic.TICK_S,
        _strikes("committed"),
    ),
    "plain": Load(SMALL_BATCHES, stage.RATE, stage.TICK_S, _strikes("committed", "ahead")),
}
HANDOVERS = int(os.environ.get("HANDOVERS", "1000"))
HANDOVERS_FOR_ALL_CELLS = 200
"""So many handovers are enough for each cell, so a soak of that many fails if one cell did not occur."""


def log(message: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {message}", flush=True)


class Soak:
    def __init__(self, control: Control, seed: int, strikes: Sequence[Strike]) -> None:
        self.control = control
        self._strikes = strikes
        self.random = random.Random(seed)
        self.done: Counter[str] = Counter()
        self._cells = self.random.sample(CELLS, len(CELLS))

    @property
    def handovers(self) -> int:
        return self.control.group.journal.law.handovers

    @property
    def unmet(self) -> list[Cell]:
        return [cell for cell in self._cells if not self.done[str(cell)]]

    def step(self) -> None:
        # Every step draws the same number of random numbers, so that the schedule does not depend on which
        # nodes are up.
        draw, choice, cell_draw = (self.random.random() for _ in range(3))
        self.control.restock()
        standbys = self.control.followers()
        target = standbys[int(choice * len(standbys))]
        unmet = [each for each in self._strikes if not self.done[str(each)]]
        if self.unmet:
            self._meet(self.unmet[0], target)
        elif unmet:
            self._strike(unmet[0])
        elif draw < 0.05:
            self._strike(_pick(self._strikes, cell_draw))
        elif draw < 0.65:
            self._note("live")
            self.control.move(target)
        elif draw < 0.75:
            self._note("claim")
            self.control.claim(target)
        elif draw < 0.9:
            self._meet(_pick(LIVE, cell_draw), target)
        elif draw < 0.95:
            self._meet(_pick(CLAIMS, cell_draw), target)
        else:
            how = _pick(LOSSES, cell_draw)
            self._note(f"{how} the owner")
            self.control.lose_owner(how)
        self.control.verify()

    def _meet(self, cell: Cell, target: Node) -> None:
        self._log(cell)
        self.done[str(cell)] += attempt(self.control, cell, target)

    def _strike(self, chosen: Strike) -> None:
        self._note(str(chosen))
        strike(self.control, chosen.point, chosen.fault)

    def _note(self, what: str) -> None:
        self.done[what] += 1
        self._log(what)

    def _log(self, what: object) -> None:
        log(f"{self.handovers} handovers; next: {what}")

    def report(self) -> None:
        for what, count in sorted({**{str(cell): 0 for cell in CELLS}, **self.done}.items()):
            log(f"{count:5} {what}")


def _pick(values: Sequence[Any], draw: float) -> Any:
    return values[int(draw * len(values))]


def main() -> None:
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1_000_000))
    engine = cast(EngineName, os.environ.get("ENGINE", "spark"))
    load = LOADS[engine]
    log(f"SEED={seed} HANDOVERS={HANDOVERS} ENGINE={engine}")
    # A SIGTERM ends it as an error does: its nodes, its proxy and its load are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    directory = Path(tempfile.mkdtemp(prefix="fogline-soak-"))
    with running_rig(("a", "b", "c"), directory, engine) as rig:
        group = Group(rig.kafka, pace=load.pace)
        control = Control(rig, group)
        control.log = log
        soak = Soak(control, seed, load.strikes)
        try:
            control.begin(rig.nodes["a"])
            group.load(load.rate, load.tick_s)
            while soak.handovers < HANDOVERS:
                soak.step()
            control.restock()
            group.finish_load()
            rig.wait(lambda: group.judge.verdict(final=True).lost == 0, "the last outputs", 120)
            control.verify(final=True)
        except BaseException:
            log(f"FAILED with SEED={seed} ENGINE={engine} after {soak.handovers} handovers; {rig.picture()}")
            log(f"what the nodes say: {directory}/*/log.txt")
            raise
        finally:
            group.close()
        oracle = group.judge.oracle
        soak.report()
        log(f"{soak.handovers} handovers, {oracle.inputs} events: {oracle.verdict(final=True)}")
    shutil.rmtree(directory, ignore_errors=True)
    if HANDOVERS >= HANDOVERS_FOR_ALL_CELLS and soak.unmet:
        sys.exit(f"never met: {'; '.join(map(str, soak.unmet))}")


if __name__ == "__main__":
    main()
