"""How often Python looks for cycles of objects that nobody uses, and through which.

It would do so after each 700 new objects, now and then through all there are, and PySpark has it done after
each task as well. The rows of a batch are objects by the thousand that have no cycles: to look through what
is here to stay for each of them took two thirds of the time in which the records of a batch are made.
"""

from __future__ import annotations

import gc

_NEW_OBJECTS, _YOUNG, _MIDDLE = 10_000, 10, 10  # the latter two as Python has them: closed clients are cycles


def settle() -> None:
    """All that has been imported by now is here to stay. Forks share its pages as long as nobody counts in
    them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, _YOUNG, _MIDDLE)


def freeze(*, dropped: bool) -> None:
    """In a fork of Spark's: what has been connected by now is here to stay, too.

    `dropped`: something of before is not. Else what the zygote has frozen stays so: to look through that
    writes into each of the pages that its forks share.
    """
    if dropped:
        gc.unfreeze()
    gc.collect()
    gc.freeze()
