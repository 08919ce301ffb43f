"""Every fault at every crash point: the table that both the soak and the tests use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from pipeline_runtime.handover.crash_points import CrashPoint
from pipeline_runtime.model.spec import LATENCY_MS_MIN, Pace
from tests.handover.control import Control, Fault, Loss, Plan
from tests.handover.nodes import Node

OWNERS_POINTS: tuple[CrashPoint, ...] = ("announced", "releasing", "released")
TARGETS_POINTS: tuple[CrashPoint, ...] = ("initialised", "armed", "released-to", "first-commit")
CLAIMANTS_POINTS: tuple[CrashPoint, ...] = ("initialised", "claimed", "first-commit")
ALWAYS_POINTS: tuple[CrashPoint, ...] = ("ahead", "committed")  # an owner comes there without a handover
assert {*ALWAYS_POINTS, *OWNERS_POINTS, *TARGETS_POINTS, *CLAIMANTS_POINTS} == set(get_args(CrashPoint))
OWNERS_FAULTS: tuple[Fault, ...] = ("kill", "stop", "cut")
"""What strikes an owner that hands nothing over."""
SMALL_BATCHES = Pace(latency_ms=LATENCY_MS_MIN, interval_ms_max=100, batch_rows_max=3)
"""So small that an owner often begins one before the one before it is committed."""
LOSSES: tuple[Loss, ...] = get_args(Loss)
TRIES = 5
"""An attempt may miss its fault. For example, an owner in doubt that claims again ends the handover before
its fault."""


@dataclass(frozen=True)
class Cell:
    """A fault at a crash point."""

    kind: Literal["live", "claim"]
    point: CrashPoint
    fault: Fault

    def __str__(self) -> str:
        return f"{self.kind}, {self.fault} at {self.point}"


LIVE = [
    Cell("live", point, fault) for point in (*OWNERS_POINTS, *TARGETS_POINTS) for fault in get_args(Fault)
]
CLAIMS = [Cell("claim", point, fault) for point in CLAIMANTS_POINTS for fault in get_args(Fault)]
CELLS = (*LIVE, *CLAIMS)


def attempt(control: Control, cell: Cell, target: Node) -> bool:
    """Changes the owner to `target`, with that fault. Returns whether the fault occurred."""
    owner = control.owner()
    assert owner is not None
    plan = Plan(owner if cell.point in OWNERS_POINTS else target, cell.point, cell.fault)
    if cell.kind == "live":
        control.move(target, plan)
    else:
        control.claim(target, plan)
    return plan.done


def meet(control: Control, cell: Cell) -> None:
    """Changes the owner until that fault has occurred. Raises AssertionError if it does not."""
    for _ in range(TRIES):
        control.restock()
        if attempt(control, cell, control.followers()[0]):
            return
        control.verify()
    raise AssertionError(f"in {TRIES} attempts there was no {cell}")


def strike(control: Control, point: CrashPoint, fault: Fault) -> Node:
    """That fault comes to the owner at that point, without a handover. Returns who was the owner."""
    struck = control.owner()
    assert struck is not None
    control.strike(Plan(struck, point, fault))
    control.verify()
    return struck


def change_owner(control: Control) -> None:
    """Does one live handover without a fault. Raises AssertionError if there is none."""
    for _ in range(TRIES):
        control.restock()
        target = control.followers()[0]
        if control.move(target) and control.owner() is target:
            return
        control.verify()
    raise AssertionError(f"{TRIES} live handovers changed no owner; {control.rig.picture()}")


def lose_and_replace(control: Control, how: Loss) -> None:
    """Lets another node own in place of the lost owner, which then comes back and does not own."""
    lost = control.owner()
    assert lost is not None
    control.lose_owner(how)
    successor = control.owner()
    assert successor is not None
    assert successor is not lost
    control.verify()
    control.restock(standbys=2)
    assert control.owner() is successor
