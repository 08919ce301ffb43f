"""Named places in a handover at which tests stop, kill or cut off a process.

Nothing happens at them unless a test has put a function here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

CrashPoint = Literal[
    "initialised",  # a successor or claimant: an id is taken, nothing is written at it
    "armed",  # a successor: its ARMED is in the journal
    "announced",  # an owner: its ANNOUNCE is in the journal, the batch not yet begun
    "releasing",  # an owner: its last batch is processed, the RELEASE not yet sent
    "released",  # an owner: its RELEASE is in the journal
    "released-to",  # a successor: it has read the RELEASE, and has committed nothing
    "claimed",  # a claimant: its CLAIM is in the journal, and has committed nothing
    "first-commit",  # a new owner: its first batch is in the journal
]

on_reached: Callable[[CrashPoint], None] | None = None


def reached(point: CrashPoint) -> None:
    if on_reached is not None:
        on_reached(point)
