"""Many handovers with faults at random, by a schedule that follows from a seed.

    make soak                      1,000 handovers
    SEED=7 HANDOVERS=50 make soak

Ends at the first thing that is not as the law and the oracle have it; the seed and each step are printed. The
schedule is the same for the same seed; when exactly a fault comes is the machine's.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from pipeline_runtime.handover.crash_points import CrashPoint
from pipeline_runtime.model.spec import Pace
from tests.handover.control import Control, Fault, Plan
from tests.handover.rig import Group, running_rig

HANDOVERS = int(os.environ.get("HANDOVERS", "1000"))
OWNERS_POINTS: tuple[CrashPoint, ...] = ("announced", "releasing", "released")
TARGETS_POINTS: tuple[CrashPoint, ...] = ("initialised", "armed", "released-to", "first-commit")
CLAIMANTS_POINTS: tuple[CrashPoint, ...] = ("initialised", "claimed", "first-commit")
LOSSES = ("kill", "freeze", "cut", "reset")
assert {*OWNERS_POINTS, *TARGETS_POINTS, *CLAIMANTS_POINTS} == set(get_args(CrashPoint))


def log(message: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {message}", flush=True)


class Soak:
    def __init__(self, control: Control, seed: int) -> None:
        self.control = control
        self.random = random.Random(seed)
        self.done: Counter[str] = Counter()

    @property
    def handovers(self) -> int:
        """Changes of owner, as the journal counts them."""
        return self.control.group.journal.law.granted - 1

    def step(self) -> None:
        # As many draws in every step, so that the schedule does not depend on what is up just then.
        draw, choice, fault_draw, point_draw = (self.random.random() for _ in range(4))
        self.control.restock()
        standbys = self.control.followers()
        target = standbys[int(choice * len(standbys))]
        fault = _pick(get_args(Fault), fault_draw)
        if draw < 0.65:
            self._move(target.name, None)
        elif draw < 0.75:
            self._claim(target.name, None)
        elif draw < 0.9:
            point = _pick((*OWNERS_POINTS, *TARGETS_POINTS), point_draw)
            self._move(target.name, (point, fault))
        elif draw < 0.95:
            self._claim(target.name, (_pick(CLAIMANTS_POINTS, point_draw), fault))
        else:
            how = _pick(LOSSES, fault_draw)
            self._note(f"{how} the owner")
            self.control.lose_owner(how)  # type: ignore[arg-type]
        self.control.verify()

    def _move(self, name: str, fault: tuple[CrashPoint, Fault] | None) -> None:
        target, owner = self.control.rig.nodes[name], self.control.owner()
        assert owner is not None
        plan = None
        if fault is not None:
            plan = Plan(owner if fault[0] in OWNERS_POINTS else target, *fault)
        self._note(f"live, {fault[1]} at {fault[0]}" if fault else "live")
        self.control.move(target, plan)

    def _claim(self, name: str, fault: tuple[CrashPoint, Fault] | None) -> None:
        target = self.control.rig.nodes[name]
        self._note(f"claim, {fault[1]} at {fault[0]}" if fault else "claim")
        self.control.claim(target, Plan(target, *fault) if fault else None)

    def _note(self, what: str) -> None:
        self.done[what] += 1
        log(f"{self.handovers} handovers; next: {what}")


def _pick(values: tuple[Any, ...], draw: float) -> Any:
    return values[int(draw * len(values))]


def main() -> None:
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1_000_000))
    log(f"SEED={seed} HANDOVERS={HANDOVERS}")
    # A SIGTERM ends it as an error does: with its nodes, its proxy and its load stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    directory = Path(tempfile.mkdtemp(prefix="fogline-soak-"))
    with running_rig(("a", "b", "c"), directory) as rig:
        group = Group(rig.kafka, pace=Pace(interval_ms_min=100, interval_ms_max=400))
        control = Control(rig, group)
        control.log = log
        soak = Soak(control, seed)
        try:
            control.begin(rig.nodes["a"])
            group.load()
            while soak.handovers < HANDOVERS:
                soak.step()
            control.restock()
            group.finish_load()
            rig.wait(lambda: group.judge.verdict(final=True).lost == 0, "the last outputs", 120)
            control.verify(final=True)
        except BaseException:
            log(f"FAILED with SEED={seed} after {soak.handovers} handovers; {rig.picture()}")
            log(f"what the nodes say: {directory}/*/log.txt")
            raise
        finally:
            group.close()
        oracle = group.judge.oracle
        for what, count in sorted(soak.done.items()):
            log(f"{count:5} {what}")
        log(f"{soak.handovers} handovers, {oracle.inputs} events: {oracle.verdict(final=True)}")
    shutil.rmtree(directory, ignore_errors=True)
    sys.exit(0)


if __name__ == "__main__":
    main()
