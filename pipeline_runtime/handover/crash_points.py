"""Named places in a handover at which tests stop, kill or cut off a process.

Nothing happens there unless a test has set a function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

CrashPoint = Literal[
    "initialised",  # successor or claimant: it has taken an id and written nothing with it
    "ahead",  # owner: a batch has begun behind one that is not committed yet
    "committed",  # owner: its batch is in the journal, and its own state does not have the batch yet
    "armed",  # successor: its ARMED is in the journal
    "announced",  # owner: its ANNOUNCE is in the journal, the batch has not begun
    "releasing",  # owner: its last batch is processed, the RELEASE is not sent
    "released",  # owner: its RELEASE is in the journal
    "released-to",  # successor: it has read the RELEASE and committed nothing
    "claimed",  # claimant: its CLAIM is in the journal, and it has committed nothing
    "first-commit",  # new owner: its first batch is in the journal
]

on_reached: Callable[[CrashPoint], None] | None = None


def reached(point: CrashPoint) -> None:
    """Says that this process has come to the crash point. A test may kill the process here."""
    if on_reached is not None:
        on_reached(point)
